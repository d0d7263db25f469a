-- Verdicts are read from forced steps by the yardstick; banks, controls and certificates are kept.
ALTER TABLE internal.comparisons ADD COLUMN paper_verdict VARCHAR;
ALTER TABLE internal.comparisons ADD COLUMN first_step_ratio DOUBLE;
ALTER TABLE internal.comparisons ADD COLUMN states_forced INTEGER;
ALTER TABLE internal.comparisons ADD COLUMN states_beyond INTEGER;
ALTER TABLE internal.comparisons ADD COLUMN outputs_changed VARCHAR;
ALTER TABLE internal.comparisons ADD COLUMN beyond INTEGER[];  -- the states beyond the threshold, by place in the bank

UPDATE internal.comparisons SET paper_verdict = verdict;  -- until now that was the rule

-- What a verdict was read from, for each way of reading.
CREATE TABLE internal.evidence (
    first VARCHAR NOT NULL,
    second VARCHAR NOT NULL,
    reads VARCHAR NOT NULL,
    output VARCHAR NOT NULL,
    same_bits BOOLEAN NOT NULL,
    first_step_separation DOUBLE NOT NULL,
    first_step_ulps DOUBLE,
    horizon_separation DOUBLE NOT NULL,
    horizon_ulps DOUBLE,
    interface VARCHAR NOT NULL,
    first_step_ratio DOUBLE,
    states_beyond INTEGER,
    PRIMARY KEY (first, second, reads, output)
);
INSERT INTO internal.evidence
    SELECT
        old.first, old.second, comparison.reads, old.output, old.same_bits, old.first_step_separation,
        old.first_step_ulps, old.horizon_separation, old.horizon_ulps, old.interface, NULL, NULL
    FROM internal.output_separations AS old JOIN internal.comparisons AS comparison USING (first, second);
DROP VIEW separations;
DROP TABLE internal.output_separations;

-- A release against its own nudged copies.
CREATE TABLE internal.behaviours (
    behaviour VARCHAR PRIMARY KEY,
    null_ratio DOUBLE                  -- NULL where nothing could be nudged
);

CREATE TABLE internal.banks (
    bank_key VARCHAR PRIMARY KEY,
    status VARCHAR NOT NULL,           -- ok, or why there is none
    reason VARCHAR NOT NULL,
    file VARCHAR,
    coverage JSON
);

-- What holds for all releases of a run on one environment.
CREATE TABLE internal.run_environments (
    run_id VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    baseline VARCHAR,                  -- the release on which the bank was made
    evidence VARCHAR NOT NULL,         -- forced, replayed or table
    states INTEGER NOT NULL,
    coverage VARCHAR NOT NULL,         -- in words
    features JSON,                     -- in how many states each thing acts that can; NULL where not measured
    reproduced VARCHAR NOT NULL,       -- of the baseline in a second process: yes, no or unknown
    planted VARCHAR NOT NULL,          -- a fault planted in the baseline was: seen, missed or unknown
    constant VARCHAR NOT NULL,         -- what was moved
    planted_ratio DOUBLE,
    reason VARCHAR NOT NULL,
    PRIMARY KEY (run_id, environment)
);

CREATE TABLE internal.certificates (
    first VARCHAR NOT NULL,
    second VARCHAR NOT NULL,
    reads VARCHAR NOT NULL,
    certificate VARCHAR NOT NULL,      -- holds or unexplained
    reason VARCHAR NOT NULL,
    steps_per_decade DOUBLE,           -- of the pair; NULL where no growth could be fitted
    twin_slowest DOUBLE,               -- steps per decade of the twins
    twin_fastest DOUBLE,
    curve DOUBLE[] NOT NULL,           -- separation of the pair, step by step
    twin_curves DOUBLE[][] NOT NULL,
    PRIMARY KEY (first, second, reads)
);

-- One constant of an environment's baseline moved by ever less.
CREATE TABLE internal.sensitivity (
    matrix VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    release VARCHAR NOT NULL,
    constant VARCHAR NOT NULL,
    relative DOUBLE NOT NULL,          -- by how much of itself it was moved
    ratio DOUBLE NOT NULL,
    states_beyond INTEGER NOT NULL,
    states INTEGER NOT NULL,
    detected BOOLEAN NOT NULL,
    measured TIMESTAMP NOT NULL,
    PRIMARY KEY (matrix, environment, release, constant, relative)
);

CREATE OR REPLACE VIEW pairs_history AS
    WITH paired AS (
        SELECT
            run_id, older.environment, older.release AS older, newer.release AS newer,
            older.position AS older_position, newer.position AS newer_position,
            older.behaviour AS older_behaviour, newer.behaviour AS newer_behaviour,
            CASE WHEN older.series <> newer.series THEN older.requires = newer.requires
                 WHEN older.dumped AND newer.dumped THEN newer.dumped_place - older.dumped_place = 1
                 ELSE newer.place - older.place = 1 END AS adjacent,
            -- What needs no comparison: a dump is missing, or the two are the same.
            CASE WHEN older.dumped AND newer.dumped
                 THEN CASE WHEN older.behaviour = newer.behaviour THEN 'identical' END
                 WHEN 'nondeterministic' IN (older.status, newer.status) THEN 'nondeterministic'
                 WHEN 'incomparable' IN (older.status, newer.status) THEN 'incomparable'
                 ELSE 'unavailable' END AS plain_verdict,
            concat_ws('; ',
                CASE WHEN NOT older.dumped THEN older.release || ': ' || older.reason END,
                CASE WHEN NOT newer.dumped THEN newer.release || ': ' || newer.reason END
            ) AS plain_reason
        FROM internal.ranked_cells AS older
        JOIN internal.ranked_cells AS newer USING (run_id)
        WHERE older.environment = newer.environment AND older.position < newer.position
    )
    SELECT
        run.matrix,
        paired.environment,
        paired.older,
        paired.newer,
        paired.adjacent,
        coalesce(paired.plain_verdict, comparison.verdict) AS verdict,
        CASE WHEN paired.plain_verdict = 'identical' THEN 0 ELSE comparison.first_step_separation END
            AS first_step_separation,
        CASE WHEN paired.plain_verdict = 'identical' THEN 0 ELSE comparison.first_step_ulps END AS first_step_ulps,
        CASE WHEN paired.plain_verdict = 'identical' THEN 0 ELSE comparison.horizon_separation END
            AS horizon_separation,
        coalesce(comparison.reason, paired.plain_reason) AS reason,
        paired.older_position,
        paired.newer_position,
        paired.older_behaviour,
        paired.newer_behaviour,
        run.run_id,
        run.finished,
        coalesce(paired.plain_verdict, comparison.paper_verdict) AS paper_verdict,
        CASE WHEN paired.plain_verdict = 'identical' THEN 0 ELSE comparison.first_step_ratio END AS first_step_ratio,
        greatest(older_null.null_ratio, newer_null.null_ratio) AS null_ratio,
        CASE WHEN paired.plain_verdict = 'identical' THEN environment.states ELSE comparison.states_forced END
            AS states_forced,
        CASE WHEN paired.plain_verdict = 'identical' THEN 0 ELSE comparison.states_beyond END AS states_beyond,
        coalesce(comparison.outputs_changed, '') AS outputs_changed,
        comparison.beyond,
        coalesce(environment.coverage, '') AS coverage,
        coalesce(environment.evidence, 'forced') AS evidence,
        certificate.certificate,
        certificate.steps_per_decade AS growth_steps_per_decade
    FROM paired
    JOIN internal.runs AS run USING (run_id)
    LEFT JOIN internal.run_environments AS environment
        ON environment.run_id = run.run_id AND environment.environment = paired.environment
    LEFT JOIN internal.behaviours AS older_null ON older_null.behaviour = paired.older_behaviour
    LEFT JOIN internal.behaviours AS newer_null ON newer_null.behaviour = paired.newer_behaviour
    LEFT JOIN internal.comparisons AS comparison
        ON comparison.first = least(paired.older_behaviour, paired.newer_behaviour)
        AND comparison.second = greatest(paired.older_behaviour, paired.newer_behaviour)
        AND comparison.reads = run.reads
        AND paired.plain_verdict IS NULL
    LEFT JOIN internal.certificates AS certificate
        ON certificate.first = comparison.first
        AND certificate.second = comparison.second
        AND certificate.reads = comparison.reads
    WHERE run.finished IS NOT NULL
        AND CASE run.pairing
            WHEN 'adjacent' THEN paired.adjacent
            WHEN 'against' THEN run.against IN (paired.older, paired.newer)
            ELSE true END;

CREATE OR REPLACE VIEW pairs AS
    SELECT pairs_history.* FROM pairs_history SEMI JOIN internal.latest_runs USING (run_id);

CREATE OR REPLACE VIEW changes AS SELECT * FROM pairs WHERE verdict = 'changed';

CREATE OR REPLACE VIEW amplified AS SELECT * FROM pairs WHERE verdict = 'amplified';

CREATE VIEW separations AS
    SELECT
        pairs.matrix, pairs.environment, pairs.older, pairs.newer, pairs.adjacent, each.output, each.same_bits,
        each.first_step_separation, each.first_step_ulps, each.horizon_separation, each.horizon_ulps, each.interface,
        each.first_step_ratio, each.states_beyond
    FROM pairs
    JOIN internal.runs AS run USING (run_id)
    JOIN internal.evidence AS each
        ON each.first = least(pairs.older_behaviour, pairs.newer_behaviour)
        AND each.second = greatest(pairs.older_behaviour, pairs.newer_behaviour)
        AND each.reads = run.reads;

CREATE VIEW environments AS
    SELECT
        latest_runs.matrix, each.environment, each.baseline, each.evidence, each.states, each.coverage, each.features,
        each.reproduced, each.planted, each.constant, each.planted_ratio, each.reason
    FROM internal.run_environments AS each
    JOIN internal.latest_runs USING (run_id);

CREATE VIEW certificates AS
    SELECT
        pairs.matrix, pairs.environment, pairs.older, pairs.newer, pairs.adjacent, each.certificate, each.reason,
        each.steps_per_decade, each.twin_slowest, each.twin_fastest, each.curve, each.twin_curves,
        pairs.older_position, pairs.newer_position
    FROM pairs
    JOIN internal.runs AS run USING (run_id)
    JOIN internal.certificates AS each
        ON each.first = least(pairs.older_behaviour, pairs.newer_behaviour)
        AND each.second = greatest(pairs.older_behaviour, pairs.newer_behaviour)
        AND each.reads = run.reads;

CREATE VIEW sensitivity AS SELECT * FROM internal.sensitivity;
