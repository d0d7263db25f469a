-- Why two behaviours differ: what releases are made of, where in a step they part, and who brought it.

-- What a release answered when it was examined: its constants, or the stages of its steps. Arrays are files by digest.
CREATE TABLE internal.examinations (
    key VARCHAR PRIMARY KEY,
    status VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    meta VARCHAR NOT NULL,             -- JSON
    arrays VARCHAR NOT NULL            -- JSON: digest by name
);

CREATE TABLE internal.explanations (
    older_behaviour VARCHAR NOT NULL,
    newer_behaviour VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    key VARCHAR NOT NULL,              -- everything that decides it
    states INTEGER NOT NULL,           -- forced states whose steps were looked into
    stage VARCHAR NOT NULL,            -- the first that differs; empty where none could be told
    fields VARCHAR NOT NULL,
    before VARCHAR[] NOT NULL,         -- stages before it, in which nothing differs
    ratio DOUBLE,
    interface VARCHAR NOT NULL,        -- entries that an observation lost or gained; empty where it did not
    constants INTEGER NOT NULL,        -- how many differ in value
    unsteady VARCHAR[] NOT NULL,       -- quantities that a release does not reproduce, left out
    reason VARCHAR NOT NULL,           -- where something could not be looked into
    PRIMARY KEY (older_behaviour, newer_behaviour)
);

CREATE TABLE internal.constant_differences (
    older_behaviour VARCHAR NOT NULL,
    newer_behaviour VARCHAR NOT NULL,
    place INTEGER NOT NULL,
    kind VARCHAR NOT NULL,             -- changed, added, removed, renamed
    field VARCHAR NOT NULL,
    entry VARCHAR NOT NULL,            -- name of the body, joint, geom …
    older_value VARCHAR NOT NULL,
    newer_value VARCHAR NOT NULL,
    size DOUBLE NOT NULL,              -- relative
    PRIMARY KEY (older_behaviour, newer_behaviour, place)
);

CREATE TABLE internal.stage_differences (
    older_behaviour VARCHAR NOT NULL,
    newer_behaviour VARCHAR NOT NULL,
    place INTEGER NOT NULL,            -- in the order of computation
    stage VARCHAR NOT NULL,
    field VARCHAR NOT NULL,
    states INTEGER NOT NULL,
    ratio DOUBLE NOT NULL,
    separation DOUBLE NOT NULL,
    dtypes VARCHAR NOT NULL,           -- older → newer, where they differ
    PRIMARY KEY (older_behaviour, newer_behaviour, place)
);

-- Of every pair of releases, in that order, that show the two behaviours.
CREATE VIEW explanations AS
    SELECT
        pairs.matrix, pairs.environment, pairs.older, pairs.newer, pairs.adjacent, each.stage, each.fields,
        each.before, each.ratio, each.interface, each.states, each.constants, each.unsteady, each.reason
    FROM pairs
    JOIN internal.explanations AS each USING (older_behaviour, newer_behaviour);

CREATE VIEW constant_differences AS
    SELECT
        pairs.matrix, pairs.environment, pairs.older, pairs.newer, pairs.adjacent, each.place, each.kind, each.field,
        each.entry, each.older_value, each.newer_value, each.size
    FROM pairs
    JOIN internal.constant_differences AS each USING (older_behaviour, newer_behaviour);

CREATE VIEW stage_differences AS
    SELECT
        pairs.matrix, pairs.environment, pairs.older, pairs.newer, pairs.adjacent, each.place, each.stage, each.field,
        each.states, each.ratio, each.separation, each.dtypes
    FROM pairs
    JOIN internal.stage_differences AS each USING (older_behaviour, newer_behaviour);

-- Which of the distributions that differ between two locks brings a change: the smallest set whose move alone does.
CREATE TABLE internal.blames (
    environment VARCHAR NOT NULL,
    older_lock VARCHAR NOT NULL,
    newer_lock VARCHAR NOT NULL,
    blamed VARCHAR[] NOT NULL,
    suspects INTEGER NOT NULL,
    tried INTEGER NOT NULL,
    PRIMARY KEY (environment, older_lock, newer_lock)
);

CREATE VIEW blames AS
    SELECT
        pairs.matrix, pairs.environment, pairs.older, pairs.newer, pairs.adjacent, each.blamed, each.suspects, each.tried
    FROM pairs
    JOIN releases AS older ON older.matrix = pairs.matrix AND older.release = pairs.older
    JOIN releases AS newer ON newer.matrix = pairs.matrix AND newer.release = pairs.newer
    JOIN internal.blames AS each
        ON each.environment = pairs.environment AND each.older_lock = older.lock_digest
        AND each.newer_lock = newer.lock_digest;
