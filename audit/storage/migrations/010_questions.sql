-- What was found of an environment is found again by what was asked of it: two matrices may give one title to
-- environments with other arguments, edits or files.

-- Where the files lie that an environment of a run is made of (a scene, an adapter) or stepped from (a bank), and what
-- they were. An environment that needs no file has no row; of earlier runs nobody knows.
CREATE TABLE internal.run_files (
    run_id VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    folder VARCHAR NOT NULL,           -- that of the matrix, which their names are relative to
    digest VARCHAR NOT NULL,           -- of their names and contents
    PRIMARY KEY (run_id, environment)
);

-- Earlier blames were kept by title and locks, and were searched for on an environment without the arguments, edits and
-- files of any matrix. Nobody can tell which of them hold for what was audited, so none is taken over: a search is made
-- anew when somebody asks.
DROP TABLE internal.blames;
CREATE TABLE internal.blames (
    older_cell VARCHAR NOT NULL,       -- key of a cell: lock, Python, environment, edits, files, stimulus, machine
    newer_cell VARCHAR NOT NULL,
    reads VARCHAR NOT NULL,            -- as in internal.runs: what counts as a change
    blamed VARCHAR[] NOT NULL,
    suspects INTEGER NOT NULL,
    tried INTEGER NOT NULL,
    PRIMARY KEY (older_cell, newer_cell, reads)
);

-- Of every cell of a run that somebody blamed a change on, as pairs of releases.
CREATE VIEW internal.run_blames AS
    SELECT
        run.run_id, older.environment, older.release AS older, newer.release AS newer, each.blamed, each.suspects,
        each.tried
    FROM internal.blames AS each
    JOIN internal.runs AS run USING (reads)
    JOIN internal.run_cells AS older ON older.run_id = run.run_id AND older.cell_key = each.older_cell
    JOIN internal.run_cells AS newer
        ON newer.run_id = run.run_id AND newer.cell_key = each.newer_cell AND newer.environment = older.environment;

CREATE OR REPLACE VIEW blames AS
    SELECT
        pairs.matrix, pairs.environment, pairs.older, pairs.newer, pairs.adjacent, each.blamed, each.suspects, each.tried
    FROM pairs
    JOIN internal.run_blames AS each USING (run_id, environment, older, newer);
