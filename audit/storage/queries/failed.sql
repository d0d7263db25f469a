-- What could not be audited in the latest run of each matrix, which is last night's where there are nights.
-- status = *: which ones, as a pattern, such as crashed
WITH failed AS (
    SELECT matrix, subject, stage, status, reason, seconds FROM failures
    UNION ALL
    SELECT matrix, release || '/' || environment, 'dump', status, reason, seconds
    FROM dumps
    WHERE behaviour IS NULL
        AND (matrix, release) NOT IN (SELECT (matrix, subject) FROM failures)
        AND (matrix, release || '/' || environment) NOT IN (SELECT (matrix, subject) FROM failures)
)
SELECT failed.matrix, night.night, failed.subject, failed.stage, failed.status, failed.reason, failed.seconds
FROM failed
LEFT JOIN (SELECT matrix, max(night) AS night FROM nights GROUP BY matrix) AS night USING (matrix)
WHERE failed.status GLOB $status
ORDER BY failed.matrix, failed.status, failed.subject
