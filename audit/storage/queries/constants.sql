-- Constants that differ where neighbours changed: in how many environments and boundaries, with an example.
-- field = *: which ones, as a pattern, such as body_*
SELECT
    each.field, each.entry, each.kind, count(DISTINCT each.environment) AS environments,
    count(DISTINCT (each.older, each.newer)) AS boundaries, max(each.size) AS largest,
    arg_max(each.environment, each.size) AS environment, arg_max(each.older, each.size) AS older,
    arg_max(each.newer, each.size) AS newer,
    arg_max(each.older_value || ' → ' || each.newer_value, each.size) AS example
FROM constant_differences AS each
WHERE each.adjacent AND each.field GLOB $field
GROUP BY each.field, each.entry, each.kind
ORDER BY environments DESC, boundaries DESC, each.field, each.entry
