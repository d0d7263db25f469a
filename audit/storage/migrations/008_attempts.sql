-- Cells whose process died, hung or answered nonsense: how often that happened, so that it is not tried for ever.
CREATE TABLE internal.attempts (
    cell_key VARCHAR PRIMARY KEY,
    runs INTEGER NOT NULL,             -- in which it failed, one after the other
    timeout DOUBLE NOT NULL,           -- seconds that it was given in the last of them
    status VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    exit_code INTEGER,
    signal INTEGER,
    stderr_tail VARCHAR NOT NULL
);
