-- What the index last answered to a question whose answer can move: which lock requirements resolve to, which versions
-- of a package there are.
CREATE TABLE internal.index_answers (
    question VARCHAR PRIMARY KEY,      -- digest of what was asked, for which Python and day, under which index settings
    answer VARCHAR NOT NULL,           -- digest of a lock, or versions with commas between them
    answered TIMESTAMP NOT NULL
);
