-- Releases whose results can be used beside each other: the longest ranges in which every pair agrees.
-- environment = *: which ones, as a pattern
-- comparable = trajectories: or steps, which also lets pass what chaos alone has amplified
SELECT matrix, environment, series, first, last, releases, boundaries, lacking
FROM safe_ranges
WHERE environment GLOB $environment AND comparable = $comparable AND releases > 1
ORDER BY matrix, environment, series, last_position DESC
