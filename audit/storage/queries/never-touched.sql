-- What may act in an environment and did so in none of its states: verdicts say nothing of it.
-- environment = *: which ones, as a pattern
SELECT each.matrix, each.environment, feature.key AS never_touched, each.states
FROM environments AS each, json_each(each.features) AS feature
WHERE feature.value::BIGINT = 0 AND each.environment GLOB $environment
ORDER BY ALL
