-- Distributions that were found to bring changes, and where.
-- environment = *: which ones, as a pattern
SELECT unnest(blamed) AS distribution, matrix, environment, older, newer, suspects, tried
FROM blames
WHERE adjacent AND environment GLOB $environment
ORDER BY ALL
