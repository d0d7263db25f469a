-- Distributions that differ between neighbours: what the resolver moved besides what was asked for.
-- older = *: the older release, as a pattern
-- newer = *: and the newer
SELECT
    pair.matrix, pair.older, pair.newer, part.package,
    max(part.version) FILTER (pair.release = pair.older) AS older_version,
    max(part.version) FILTER (pair.release = pair.newer) AS newer_version
FROM (
    SELECT DISTINCT matrix, older, newer, unnest([older, newer]) AS release
    FROM neighbours
    WHERE older GLOB $older AND newer GLOB $newer
) AS pair
JOIN release_packages AS part USING (matrix, release)
GROUP BY pair.matrix, pair.older, pair.newer, part.package
HAVING older_version IS DISTINCT FROM newer_version
ORDER BY ALL
