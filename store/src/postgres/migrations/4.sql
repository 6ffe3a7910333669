-- The gateway's nodes, and which of them runs the process of a server for a caller. No change of these is told to other
-- processes: nodes read them every second anyway, and a beat must not wake those who follow what people decide.
CREATE TABLE nodes (
    id TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    beat BIGINT NOT NULL,
    gone_at BIGINT
);
CREATE TABLE instance_owners (
    key BYTEA PRIMARY KEY,
    node TEXT NOT NULL
);
CREATE INDEX instance_owners_by_node ON instance_owners (node);
