-- The database of Treadle 0.1.0, as it made it.
PRAGMA journal_mode = WAL;
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    workspace TEXT NOT NULL,
    model TEXT NOT NULL,
    title TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_seq INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_use ON sessions (workspace, updated_at);
CREATE TABLE events (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    source BLOB NOT NULL,
    version INTEGER NOT NULL,
    data BLOB NOT NULL, chain BLOB NOT NULL DEFAULT x'',
    PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE leases (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    beat REAL NOT NULL
) STRICT;
CREATE TABLE spending (
    session_id TEXT NOT NULL,
    day TEXT NOT NULL,
    cost REAL NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (day, session_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE reservations (
    session_id TEXT PRIMARY KEY,
    day TEXT NOT NULL,
    cost REAL NOT NULL,
    tokens INTEGER NOT NULL
) STRICT;
CREATE TABLE summaries (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;
CREATE TABLE "edits" (
    model TEXT NOT NULL,
    format TEXT NOT NULL,
    code TEXT NOT NULL,
    repair INTEGER NOT NULL,
    day TEXT NOT NULL,
    count INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (model, format, code, repair, day)
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 6;
