-- What the gateway keeps of people's sign-ins. The content is encrypted and authenticated by the gateway with a key that is not
-- in the database. A claim is held by the node that replaces a record at the moment.
CREATE TABLE sign_ins (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    claim TEXT,
    claimed_until BIGINT,
    sealed TEXT NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE INDEX sign_ins_by_owner ON sign_ins (kind, owner);
CREATE INDEX sign_ins_by_expiry ON sign_ins (expires_at);
