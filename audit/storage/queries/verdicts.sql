-- How many neighbours have which verdict, by environment.
-- environment = *: which ones, as a pattern
SELECT
    matrix, environment, count(*) AS neighbours, count(*) FILTER (verdict = 'identical') AS identical,
    count(*) FILTER (verdict = 'rounding') AS rounding, count(*) FILTER (verdict = 'amplified') AS amplified,
    count(*) FILTER (verdict = 'changed') AS changed,
    count(*) FILTER (verdict NOT IN ('identical', 'rounding', 'amplified', 'changed')) AS without_verdict
FROM neighbours
WHERE environment GLOB $environment
GROUP BY ALL
ORDER BY ALL
