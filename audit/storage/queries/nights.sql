-- The history of nights: what was new, what it came to.
SELECT night, matrix, exit_code, news, new_changes, waived_changes, known_changes, not_audited
FROM nights
ORDER BY night DESC, matrix
