-- Text is compared byte by byte (COLLATE "C"), so that both databases sort alike.

-- What all nodes share: a number that moves with every change, the transaction that moved it last, and a value that
-- shows whether a node has the key that pins are authenticated with.
CREATE TABLE shared (
    only_row BOOLEAN PRIMARY KEY DEFAULT true CHECK (only_row),
    version BIGINT NOT NULL,
    transaction BIGINT NOT NULL,
    key_check BYTEA
);
INSERT INTO shared (version, transaction) VALUES (1, 0);

-- Who made each change: after a connection was lost in the middle of a commit this tells whether it was made.
CREATE TABLE commits (version BIGINT PRIMARY KEY, writer BYTEA NOT NULL);

-- Numbers of rows that were used, also of rows that are gone.
CREATE TABLE counters (name TEXT COLLATE "C" PRIMARY KEY, value BIGINT NOT NULL);

CREATE TABLE servers (
    id TEXT COLLATE "C" PRIMARY KEY,
    status TEXT NOT NULL,
    launch TEXT,
    first_seen BIGINT NOT NULL,
    last_seen BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    seal_count BIGINT NOT NULL,
    seal BYTEA
);

CREATE TABLE pins (
    seq BIGINT PRIMARY KEY,
    server TEXT COLLATE "C" NOT NULL REFERENCES servers (id),
    authentication BYTEA NOT NULL,
    basis TEXT NOT NULL,
    at BIGINT NOT NULL,
    entry_hash TEXT NOT NULL,
    definition_hash TEXT,
    withdrawn_at BIGINT,
    by TEXT NOT NULL,
    withdrawn_by TEXT,
    entry_type TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    raw TEXT NOT NULL
);
CREATE INDEX pins_by_server ON pins (server, seq);
-- An entry's key may be longer than a tree index holds.
CREATE INDEX pins_by_key ON pins USING hash (key);

CREATE TABLE observations (
    server TEXT COLLATE "C" PRIMARY KEY REFERENCES servers (id),
    observed_at BIGINT NOT NULL,
    surface_hash TEXT NOT NULL,
    protocol_version TEXT,
    server_version TEXT,
    unreadable TEXT NOT NULL,
    notes TEXT NOT NULL,
    origin TEXT,
    capture TEXT NOT NULL
);

CREATE TABLE history (
    seq BIGINT PRIMARY KEY,
    act BIGINT NOT NULL,
    at BIGINT NOT NULL,
    by TEXT NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    action TEXT NOT NULL,
    entry_type TEXT,
    key TEXT,
    entry_hash_before TEXT,
    entry_hash_after TEXT,
    surface_hash_before TEXT,
    surface_hash_after TEXT,
    status_before TEXT,
    status_after TEXT,
    basis TEXT,
    detail TEXT,
    raw TEXT
);
CREATE INDEX history_by_server ON history (server, seq);

-- The switches that stop calls: a row is there while its switch is on.
CREATE TABLE switches (
    name TEXT COLLATE "C" PRIMARY KEY,
    level TEXT,
    scope TEXT,
    reason TEXT,
    at BIGINT NOT NULL,
    by TEXT NOT NULL
);

CREATE TABLE revocations (
    kind TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    by TEXT NOT NULL,
    PRIMARY KEY (kind, value)
);

CREATE TABLE api_keys (
    id TEXT COLLATE "C" PRIMARY KEY,
    hash BYTEA NOT NULL UNIQUE,
    sub TEXT NOT NULL,
    actor_type TEXT NOT NULL,
    org TEXT,
    group_names TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    revoked_by TEXT,
    last_used_day BIGINT
);

CREATE TABLE call_approvals (
    id TEXT COLLATE "C" PRIMARY KEY,
    principal TEXT NOT NULL,
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    contract_hash TEXT NOT NULL,
    args_hash TEXT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    parked_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    decided_at BIGINT,
    decided_by TEXT,
    used_at BIGINT
);
CREATE INDEX call_approvals_by_state ON call_approvals (state, expires_at);

CREATE TABLE statistics (
    day BIGINT NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (day, server, name)
);

CREATE TABLE events (
    seq BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    by TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT,
    detail TEXT
);
