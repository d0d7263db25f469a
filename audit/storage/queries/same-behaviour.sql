-- Which releases show the same behaviour bit by bit; more than one stretch of a series: it came back.
-- environment = *: which ones, as a pattern
SELECT
    each.matrix, each.environment, each.behaviour[:12] AS behaviour, each.releases, each.first, each.last,
    count(*) AS stretches
FROM behaviours AS each
JOIN stretches AS stretch USING (matrix, environment, behaviour)
WHERE environment GLOB $environment
GROUP BY ALL
ORDER BY each.matrix, each.environment, min(stretch.first_position), behaviour
