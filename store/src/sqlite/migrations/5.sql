-- Whether the person who granted a call proved more than one factor.
ALTER TABLE call_approvals ADD COLUMN step_up TEXT;
