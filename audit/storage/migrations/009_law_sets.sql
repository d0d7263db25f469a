-- What laws said is kept by the content of their reference set, and shown to the runs that were held against that set:
-- another matrix may have none, or another of the same name.

-- The reference sets that a run was held against.
CREATE TABLE internal.run_laws (
    run_id VARCHAR NOT NULL,
    laws_digest VARCHAR NOT NULL,
    PRIMARY KEY (run_id, laws_digest)
);

-- Of earlier results nobody knows the content of the set: their digest is empty, and all earlier runs show them, as they
-- did.
INSERT INTO internal.run_laws SELECT run_id, '' FROM internal.runs;

CREATE TABLE internal.screenings_by_name AS FROM internal.screenings;
DROP TABLE internal.screenings;
CREATE TABLE internal.screenings (
    reference_behaviour VARCHAR NOT NULL,
    tested_behaviour VARCHAR NOT NULL,
    laws VARCHAR NOT NULL,             -- name of the reference set
    laws_digest VARCHAR NOT NULL,      -- of its content; empty where it was kept by name alone
    setting VARCHAR NOT NULL,          -- how the releases were run: shipped, or with edits that resolve the law
    law VARCHAR NOT NULL,
    reference_residual DOUBLE NOT NULL,
    tested_residual DOUBLE NOT NULL,
    ratio DOUBLE NOT NULL,
    p DOUBLE NOT NULL,                 -- corrected for the number of laws
    broken BOOLEAN NOT NULL,
    attainable DOUBLE NOT NULL,        -- smallest p that so few trajectories can give
    key VARCHAR NOT NULL,              -- everything that decides it: the laws, what the releases were given and did
    PRIMARY KEY (reference_behaviour, tested_behaviour, laws, laws_digest, setting, law)
);
INSERT INTO internal.screenings BY NAME SELECT *, '' AS laws_digest FROM internal.screenings_by_name;
DROP TABLE internal.screenings_by_name;

CREATE TABLE internal.attributions_by_name AS FROM internal.attributions;
DROP TABLE internal.attributions;
CREATE TABLE internal.attributions (
    behaviour VARCHAR NOT NULL,
    laws VARCHAR NOT NULL,
    laws_digest VARCHAR NOT NULL,
    setting VARCHAR NOT NULL,
    law VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,
    explanation VARCHAR NOT NULL,      -- in words; empty unless a constant is named
    parameters VARCHAR[] NOT NULL,     -- of the first explanation
    fitted DOUBLE[] NOT NULL,
    specified DOUBLE[] NOT NULL,
    residual DOUBLE,                   -- what the explanation leaves of the law
    gap DOUBLE NOT NULL,
    reason VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    PRIMARY KEY (behaviour, laws, laws_digest, setting, law)
);
INSERT INTO internal.attributions BY NAME SELECT *, '' AS laws_digest FROM internal.attributions_by_name;
DROP TABLE internal.attributions_by_name;

CREATE OR REPLACE VIEW screenings AS
    SELECT
        pairs.matrix, pairs.environment, pairs.older, pairs.newer, pairs.adjacent, each.laws, each.setting, each.law,
        CASE WHEN each.tested_behaviour = pairs.newer_behaviour THEN pairs.newer ELSE pairs.older END AS tested,
        each.reference_residual, each.tested_residual, each.ratio, each.p, each.broken, each.attainable
    FROM pairs
    JOIN internal.run_laws USING (run_id)
    JOIN internal.screenings AS each
        ON each.laws_digest = run_laws.laws_digest
        AND ((each.reference_behaviour = pairs.older_behaviour AND each.tested_behaviour = pairs.newer_behaviour)
            OR (each.reference_behaviour = pairs.newer_behaviour AND each.tested_behaviour = pairs.older_behaviour))
    WHERE pairs.verdict = 'changed';

CREATE OR REPLACE VIEW attributions AS
    SELECT
        latest_runs.matrix, run_cells.environment, run_cells.release, each.laws, each.setting, each.law, each.verdict,
        each.explanation, each.parameters, each.fitted, each.specified, each.residual, each.gap, each.reason
    FROM internal.run_cells
    JOIN internal.latest_runs USING (run_id)
    JOIN internal.run_laws USING (run_id)
    JOIN internal.attributions AS each USING (behaviour, laws_digest);
