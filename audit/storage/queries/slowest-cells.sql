-- The cells that took longest to dump.
-- limit = 20: how many
SELECT matrix, release, environment, seconds, steps, steps / seconds AS steps_per_second, reused
FROM dumps
WHERE seconds IS NOT NULL
ORDER BY seconds DESC, release, environment
LIMIT $limit::BIGINT
