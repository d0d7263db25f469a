-- Bytes that arrays take on disk, by the environment that uses them. Equal arrays are kept once.
WITH kept AS (
    SELECT DISTINCT shown.environment, each.array_digest, each.bytes
    FROM arrays AS each LEFT JOIN behaviours AS shown USING (behaviour)
)
SELECT coalesce(environment, 'controls and earlier runs') AS used_by, count(*) AS arrays, sum(bytes)::BIGINT AS bytes
FROM kept
GROUP BY ALL
ORDER BY bytes DESC, used_by
