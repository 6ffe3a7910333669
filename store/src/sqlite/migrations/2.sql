-- Numbers of rows are counted in a table of their own from here on, and no longer in SQLite's `sqlite_sequence`.
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO counters SELECT name, seq FROM sqlite_sequence WHERE name IN ('pins', 'history');

-- The switches that stop calls: a row is there while its switch is on.
CREATE TABLE switches (
    name TEXT PRIMARY KEY,
    level TEXT,
    scope TEXT,
    reason TEXT,
    at INTEGER NOT NULL,
    by TEXT NOT NULL
) STRICT;

CREATE TABLE revocations (
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    at INTEGER NOT NULL,
    by TEXT NOT NULL,
    PRIMARY KEY (kind, value)
) STRICT;

CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    sub TEXT NOT NULL,
    actor_type TEXT NOT NULL,
    org TEXT,
    group_names TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    revoked_by TEXT,
    last_used_day INTEGER
) STRICT;

CREATE TABLE call_approvals (
    id TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    contract_hash TEXT NOT NULL,
    args_hash TEXT NOT NULL,
    state TEXT NOT NULL,
    parked_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    decided_at INTEGER,
    decided_by TEXT,
    used_at INTEGER
) STRICT;
CREATE INDEX call_approvals_by_state ON call_approvals (state, expires_at);

CREATE TABLE statistics (
    day INTEGER NOT NULL,
    server TEXT NOT NULL,
    name TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (day, server, name)
) STRICT;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    by TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT,
    detail TEXT
) STRICT;
CREATE TRIGGER events_are_not_edited BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events is only added to'); END;
CREATE TRIGGER events_are_not_removed BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events is only added to'); END;
