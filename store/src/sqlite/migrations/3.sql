-- Shows whether something other than Holdpoint changed the switches, the revocations or the API keys.
CREATE TABLE switch_seal (name TEXT PRIMARY KEY, seal_count INTEGER NOT NULL, seal BLOB NOT NULL) STRICT;

-- Shows that a grant is one of Holdpoint's.
ALTER TABLE call_approvals ADD COLUMN authentication BLOB;
