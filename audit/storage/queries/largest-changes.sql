-- Of each package that moved where something changed: the largest change beside it. A suspicion; blame finds out.
-- package = *: which ones, as a pattern
SELECT
    before.package, count(*) AS changes, max(first_step_ratio) AS largest_ratio,
    arg_max(environment, first_step_ratio) AS environment, arg_max(older, first_step_ratio) AS older,
    arg_max(newer, first_step_ratio) AS newer, arg_max(before.version, first_step_ratio) AS older_version,
    arg_max(after.version, first_step_ratio) AS newer_version
FROM neighbours AS pair
JOIN release_packages AS before ON before.matrix = pair.matrix AND before.release = pair.older
JOIN release_packages AS after
    ON after.matrix = pair.matrix AND after.release = pair.newer AND after.package = before.package
WHERE pair.verdict = 'changed' AND before.version <> after.version AND before.package GLOB $package
GROUP BY before.package
ORDER BY largest_ratio DESC NULLS LAST, before.package
