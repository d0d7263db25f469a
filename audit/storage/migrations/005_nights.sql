-- Nights: what was looked for, what was new, and what came of it.
CREATE TABLE internal.nights (
    matrix VARCHAR NOT NULL,
    night VARCHAR NOT NULL,
    started TIMESTAMP NOT NULL,
    finished TIMESTAMP,
    exit_code INTEGER,
    first BOOLEAN NOT NULL,
    run_id VARCHAR,
    news VARCHAR[] NOT NULL,
    new_changes INTEGER NOT NULL,
    waived_changes INTEGER NOT NULL,
    known_changes INTEGER NOT NULL,
    not_audited INTEGER NOT NULL,
    summary VARCHAR NOT NULL,
    question VARCHAR NOT NULL,    -- digest of all of the matrix but its releases: with another, all is looked at again
    PRIMARY KEY (matrix, night)
);

-- A change is reported once: what stands here is known on every later night.
CREATE TABLE internal.night_changes (
    matrix VARCHAR NOT NULL,
    night VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    older VARCHAR NOT NULL,
    newer VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,
    standing VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    waiver VARCHAR,
    PRIMARY KEY (matrix, night, environment, older, newer)
);

-- Releases that the nights of a matrix know, each with the lock that it keeps.
CREATE TABLE internal.watched_releases (
    matrix VARCHAR NOT NULL,
    release VARCHAR NOT NULL,
    asked VARCHAR NOT NULL,       -- digest of what the matrix asks for: with another, it is another release
    listing VARCHAR NOT NULL,     -- digest of the range that it was listed under, empty where it is written out
    package VARCHAR NOT NULL,     -- the watched package, empty where none is
    version VARCHAR NOT NULL,
    request VARCHAR NOT NULL,     -- JSON
    lock_digest VARCHAR,          -- NULL while it has not been resolved
    news VARCHAR NOT NULL,        -- what is new in it, in words; empty where it belongs to the matrix
    found VARCHAR NOT NULL,       -- the night
    audited VARCHAR,              -- the night, NULL while that is still to be done
    yanked VARCHAR,               -- the night on which that was noticed
    PRIMARY KEY (matrix, release)
);

CREATE VIEW nights AS
    SELECT
        matrix, night, started, finished, exit_code, first, run_id, news, new_changes, waived_changes, known_changes,
        not_audited, summary
    FROM internal.nights;

CREATE VIEW night_changes AS
    SELECT matrix, night, environment, older, newer, verdict, standing, reason, waiver FROM internal.night_changes;
