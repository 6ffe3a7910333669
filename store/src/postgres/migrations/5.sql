-- What all nodes counted of the calls of one principal, tool or server: when its bucket is full again (nanoseconds since
-- 1970), and the calls of a day. No change of it is told to other processes.
CREATE TABLE rates (
    key BYTEA PRIMARY KEY,
    full_at BIGINT NOT NULL,
    day BIGINT NOT NULL,
    used BIGINT NOT NULL
);
-- Whether the person who granted a call proved more than one factor.
ALTER TABLE call_approvals ADD COLUMN step_up TEXT;
