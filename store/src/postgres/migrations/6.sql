-- Sessions and principals that tripped an anomaly rule, until a person releases them.
CREATE TABLE quarantines (
    id TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    session TEXT,
    rule TEXT NOT NULL,
    at BIGINT NOT NULL
);
-- The last drill of incident mode, and which processes have seen it.
CREATE TABLE drills (
    number BIGINT PRIMARY KEY,
    at BIGINT NOT NULL
);
CREATE TABLE drill_sightings (
    number BIGINT NOT NULL,
    node TEXT NOT NULL,
    place TEXT NOT NULL,
    PRIMARY KEY (number, node)
);
