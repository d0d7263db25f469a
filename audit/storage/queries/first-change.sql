-- The first release of each series in which an environment changed, and in how many it has changed.
-- environment = *: which ones, as a pattern
SELECT
    pair.matrix, pair.environment, after.series, arg_min(pair.older, pair.newer_position) AS last_before,
    arg_min(pair.newer, pair.newer_position) AS first_changed,
    arg_min(pair.outputs_changed, pair.newer_position) AS outputs_changed, count(*) AS changes
FROM neighbours AS pair
JOIN releases AS before ON before.matrix = pair.matrix AND before.release = pair.older
JOIN releases AS after ON after.matrix = pair.matrix AND after.release = pair.newer AND after.series = before.series
WHERE pair.verdict = 'changed' AND pair.environment GLOB $environment
GROUP BY pair.matrix, pair.environment, after.series
ORDER BY ALL
