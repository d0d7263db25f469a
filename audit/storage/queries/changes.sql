-- Every change between neighbours: how far, in which stage of the step it begins, how many constants differ.
-- environment = *: which ones, as a pattern
SELECT
    pair.matrix, pair.environment, pair.older, pair.newer, pair.first_step_ratio, pair.states_beyond,
    pair.states_forced, pair.outputs_changed, explained.stage, explained.constants
FROM neighbours AS pair
LEFT JOIN explanations AS explained
    ON explained.adjacent AND explained.matrix = pair.matrix AND explained.environment = pair.environment
    AND explained.older = pair.older AND explained.newer = pair.newer
WHERE pair.verdict = 'changed' AND pair.environment GLOB $environment
ORDER BY pair.matrix, pair.environment, pair.newer_position, pair.older_position
