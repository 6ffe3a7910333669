-- Whether a key opens the admin API instead of the MCP paths, and what its holder is cleared for.
ALTER TABLE api_keys ADD COLUMN admin BIGINT NOT NULL DEFAULT 0;
ALTER TABLE api_keys ADD COLUMN clearance TEXT;
