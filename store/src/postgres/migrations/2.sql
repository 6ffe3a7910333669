-- Shows whether something other than Holdpoint changed the switches, the revocations or the API keys.
CREATE TABLE switch_seal (name TEXT COLLATE "C" PRIMARY KEY, seal_count BIGINT NOT NULL, seal BYTEA NOT NULL);

-- Shows that a grant is one of Holdpoint's.
ALTER TABLE call_approvals ADD COLUMN authentication BYTEA;
