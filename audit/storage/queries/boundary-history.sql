-- What every finished run said of neighbours: a verdict that moved although the releases did not.
-- environment = *: which ones, as a pattern
-- older = *: the same of the older release
-- newer = *: and of the newer
SELECT finished, matrix, environment, older, newer, verdict, first_step_ratio, states_forced, evidence, run_id
FROM pairs_history
WHERE adjacent AND environment GLOB $environment AND older GLOB $older AND newer GLOB $newer
ORDER BY matrix, environment, older, newer, finished
