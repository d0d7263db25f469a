-- Amplified neighbours without a certificate that holds: a person should look at them.
-- environment = *: which ones, as a pattern
SELECT
    matrix, environment, older, newer, coalesce(certificate, 'none') AS certificate, growth_steps_per_decade,
    first_step_ratio, horizon_separation
FROM neighbours
WHERE verdict = 'amplified' AND certificate IS DISTINCT FROM 'holds' AND environment GLOB $environment
ORDER BY matrix, environment, newer_position, older_position
