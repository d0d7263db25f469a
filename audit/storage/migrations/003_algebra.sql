-- Laws held against what releases did: which broke, and which constant broke it; and the paper's figures measured again.

-- A law of a reference set on two behaviours of one environment: does the tested one break what the other keeps?
CREATE TABLE internal.screenings (
    reference_behaviour VARCHAR NOT NULL,
    tested_behaviour VARCHAR NOT NULL,
    laws VARCHAR NOT NULL,             -- name of the reference set
    setting VARCHAR NOT NULL,          -- how the releases were run: shipped, or with edits that resolve the law
    law VARCHAR NOT NULL,
    reference_residual DOUBLE NOT NULL,
    tested_residual DOUBLE NOT NULL,
    ratio DOUBLE NOT NULL,
    p DOUBLE NOT NULL,                 -- corrected for the number of laws
    broken BOOLEAN NOT NULL,
    attainable DOUBLE NOT NULL,        -- smallest p that so few trajectories can give
    key VARCHAR NOT NULL,              -- everything that decides it: the laws, what the releases were given and did
    PRIMARY KEY (reference_behaviour, tested_behaviour, laws, setting, law)
);

-- A law as it was recovered from a behaviour, and which constant of the specification explains it.
CREATE TABLE internal.attributions (
    behaviour VARCHAR NOT NULL,
    laws VARCHAR NOT NULL,
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
    PRIMARY KEY (behaviour, laws, setting, law)
);

CREATE TABLE internal.reproductions (
    experiment VARCHAR NOT NULL,
    figure VARCHAR NOT NULL,
    paper VARCHAR NOT NULL,
    measured VARCHAR NOT NULL,
    rule VARCHAR NOT NULL,
    agrees BOOLEAN NOT NULL,
    exact BOOLEAN NOT NULL,            -- algebra or deterministic: a disagreement is a mistake somewhere
    note VARCHAR NOT NULL,
    place VARCHAR NOT NULL,
    reproduced TIMESTAMP NOT NULL,
    PRIMARY KEY (experiment, figure)
);

-- Both directions of a pair: `tested` is the one that may break what the other keeps.
CREATE VIEW screenings AS
    SELECT
        pairs.matrix, pairs.environment, pairs.older, pairs.newer, pairs.adjacent, each.laws, each.setting, each.law,
        CASE WHEN each.tested_behaviour = pairs.newer_behaviour THEN pairs.newer ELSE pairs.older END AS tested,
        each.reference_residual, each.tested_residual, each.ratio, each.p, each.broken, each.attainable
    FROM pairs
    JOIN internal.screenings AS each
        ON (each.reference_behaviour = pairs.older_behaviour AND each.tested_behaviour = pairs.newer_behaviour)
        OR (each.reference_behaviour = pairs.newer_behaviour AND each.tested_behaviour = pairs.older_behaviour)
    WHERE pairs.verdict = 'changed';

CREATE VIEW attributions AS
    SELECT
        dumps.matrix, dumps.environment, dumps.release, each.laws, each.setting, each.law, each.verdict,
        each.explanation, each.parameters, each.fitted, each.specified, each.residual, each.gap, each.reason
    FROM dumps
    JOIN internal.attributions AS each USING (behaviour);

CREATE VIEW reproductions AS SELECT * FROM internal.reproductions;
