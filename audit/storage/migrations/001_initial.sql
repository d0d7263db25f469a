-- Tables live in `internal`; the views in `main` are the public interface and stay stable across versions.
CREATE SCHEMA internal;

CREATE TABLE internal.runs (
    run_id VARCHAR PRIMARY KEY,
    matrix VARCHAR NOT NULL,
    matrix_text VARCHAR NOT NULL,
    pairing VARCHAR NOT NULL,          -- all, adjacent or against
    against VARCHAR,                   -- the release that `against` names
    reads VARCHAR NOT NULL,            -- the verdict's rule and the outputs it reads: first-step-1:state,reward
    started TIMESTAMP NOT NULL,        -- all times are UTC
    finished TIMESTAMP,              -- NULL: interrupted
    exit_code INTEGER,
    harness_version VARCHAR NOT NULL,
    python_version VARCHAR NOT NULL,
    uv_version VARCHAR NOT NULL,
    host VARCHAR NOT NULL,
    cpu_model VARCHAR NOT NULL,
    cpu_flags VARCHAR NOT NULL,
    libc VARCHAR NOT NULL,
    machine VARCHAR NOT NULL           -- digest of the instruction sets and the C library
);

CREATE TABLE internal.locks (
    lock_digest VARCHAR PRIMARY KEY,
    text VARCHAR NOT NULL
);

CREATE TABLE internal.lock_packages (
    lock_digest VARCHAR NOT NULL,
    package VARCHAR NOT NULL,
    version VARCHAR NOT NULL,
    PRIMARY KEY (lock_digest, package)
);

CREATE TABLE internal.run_releases (
    run_id VARCHAR NOT NULL,
    release VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    series VARCHAR NOT NULL,           -- neighbours are sought within a series
    requires VARCHAR NOT NULL,
    python VARCHAR NOT NULL,           -- full version where known, else the one asked for
    lock_digest VARCHAR,
    status VARCHAR NOT NULL,           -- ready, or a failure's status
    reason VARCHAR NOT NULL,
    PRIMARY KEY (run_id, release)
);

-- What a release says of an environment's states and actions.
CREATE TABLE internal.probes (
    probe_key VARCHAR PRIMARY KEY,
    status VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    layout JSON
);

CREATE TABLE internal.stimuli (
    stimulus_digest VARCHAR PRIMARY KEY,
    trajectories INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    file VARCHAR NOT NULL
);

-- One row a cell that has been dumped, whichever runs use it.
CREATE TABLE internal.dumps (
    cell_key VARCHAR PRIMARY KEY,
    status VARCHAR NOT NULL,           -- ok, unavailable, incomparable or raised
    reason VARCHAR NOT NULL,
    behaviour VARCHAR,                 -- digest of everything it did; NULL unless ok
    machine VARCHAR NOT NULL,
    stimulus_digest VARCHAR,
    description JSON,
    steps BIGINT,
    seconds DOUBLE NOT NULL,
    dumped TIMESTAMP NOT NULL
);

CREATE TABLE internal.behaviour_outputs (
    behaviour VARCHAR NOT NULL,
    output VARCHAR NOT NULL,
    array_digest VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    shape VARCHAR NOT NULL,
    PRIMARY KEY (behaviour, output)
);

CREATE TABLE internal.run_cells (
    run_id VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    release VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    cell_key VARCHAR,
    status VARCHAR NOT NULL,           -- of the dump, or of the failure in its place
    reason VARCHAR NOT NULL,
    behaviour VARCHAR,
    reused BOOLEAN NOT NULL,
    PRIMARY KEY (run_id, environment, release)
);

-- Bitwise equality is an equivalence relation: verdicts are kept per pair of behaviours, not per pair of releases.
CREATE TABLE internal.comparisons (
    first VARCHAR NOT NULL,            -- the lesser digest of the two
    second VARCHAR NOT NULL,
    reads VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    first_step_separation DOUBLE,
    first_step_ulps DOUBLE,
    horizon_separation DOUBLE,
    PRIMARY KEY (first, second, reads)
);

CREATE TABLE internal.output_separations (
    first VARCHAR NOT NULL,
    second VARCHAR NOT NULL,
    output VARCHAR NOT NULL,
    same_bits BOOLEAN NOT NULL,
    first_step_separation DOUBLE NOT NULL,
    first_step_ulps DOUBLE,
    horizon_separation DOUBLE NOT NULL,
    horizon_ulps DOUBLE,
    interface VARCHAR NOT NULL,
    PRIMARY KEY (first, second, output)
);

CREATE TABLE internal.failures (
    run_id VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    stage VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    exit_code INTEGER,
    signal INTEGER,
    stderr_tail VARCHAR NOT NULL,
    seconds DOUBLE NOT NULL,
    PRIMARY KEY (run_id, subject, stage)
);

CREATE VIEW internal.latest_runs AS
    SELECT * FROM internal.runs WHERE finished IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY matrix ORDER BY finished DESC) = 1;

-- Neighbours follow each other among the releases of a series that have the environment, or ask for the same
-- requirements in two series. A release that lacks the environment is shown beside those listed next to it.
CREATE VIEW internal.ranked_cells AS
    SELECT
        cells.*, listed.series, listed.requires,
        cells.behaviour IS NOT NULL AS dumped,
        row_number() OVER (PARTITION BY run_id, environment, series ORDER BY cells.position) AS place,
        row_number() OVER (
            PARTITION BY run_id, environment, series, cells.behaviour IS NOT NULL ORDER BY cells.position
        ) AS dumped_place
    FROM internal.run_cells AS cells
    JOIN internal.run_releases AS listed USING (run_id, release);

CREATE VIEW pairs_history AS
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
        run.finished
    FROM paired
    JOIN internal.runs AS run USING (run_id)
    LEFT JOIN internal.comparisons AS comparison
        ON comparison.first = least(paired.older_behaviour, paired.newer_behaviour)
        AND comparison.second = greatest(paired.older_behaviour, paired.newer_behaviour)
        AND comparison.reads = run.reads
        AND paired.plain_verdict IS NULL
    WHERE run.finished IS NOT NULL
        AND CASE run.pairing
            WHEN 'adjacent' THEN paired.adjacent
            WHEN 'against' THEN run.against IN (paired.older, paired.newer)
            ELSE true END;

CREATE VIEW pairs AS
    SELECT pairs_history.* FROM pairs_history SEMI JOIN internal.latest_runs USING (run_id);

CREATE VIEW changes AS SELECT * FROM pairs WHERE verdict = 'changed';

CREATE VIEW amplified AS SELECT * FROM pairs WHERE verdict = 'amplified';

CREATE VIEW separations AS
    SELECT
        pairs.matrix, pairs.environment, pairs.older, pairs.newer, pairs.adjacent, each.output, each.same_bits,
        each.first_step_separation, each.first_step_ulps, each.horizon_separation, each.horizon_ulps, each.interface
    FROM pairs
    JOIN internal.output_separations AS each
        ON each.first = least(pairs.older_behaviour, pairs.newer_behaviour)
        AND each.second = greatest(pairs.older_behaviour, pairs.newer_behaviour);

CREATE VIEW releases AS
    SELECT
        latest_runs.matrix, run_releases.release, run_releases.position, run_releases.series, run_releases.requires,
        run_releases.python,
        run_releases.status, run_releases.reason, run_releases.lock_digest, locks.text AS lock_text
    FROM internal.run_releases
    JOIN internal.latest_runs USING (run_id)
    LEFT JOIN internal.locks USING (lock_digest);

CREATE VIEW release_packages AS
    SELECT releases.matrix, releases.release, lock_packages.package, lock_packages.version
    FROM releases JOIN internal.lock_packages USING (lock_digest);

CREATE VIEW dumps AS
    SELECT
        latest_runs.matrix, run_cells.environment, run_cells.release, run_cells.position, run_cells.status,
        run_cells.reason, run_cells.behaviour, run_cells.reused, dumps.steps, dumps.seconds, dumps.dumped, dumps.machine,
        dumps.stimulus_digest, dumps.description
    FROM internal.run_cells
    JOIN internal.latest_runs USING (run_id)
    LEFT JOIN internal.dumps USING (cell_key);

CREATE VIEW failures AS
    SELECT
        latest_runs.matrix, failures.subject, failures.stage, failures.status, failures.reason, failures.exit_code,
        failures.signal, failures.stderr_tail, failures.seconds
    FROM internal.failures
    JOIN internal.latest_runs USING (run_id);
