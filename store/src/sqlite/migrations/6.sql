-- Sessions and principals that tripped an anomaly rule, until a person releases them.
CREATE TABLE quarantines (
    id TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    session TEXT,
    rule TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
-- The last drill of incident mode, and which processes have seen it.
CREATE TABLE drills (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT;
CREATE TABLE drill_sightings (
    number INTEGER NOT NULL,
    node TEXT NOT NULL,
    place TEXT NOT NULL,
    PRIMARY KEY (number, node)
) STRICT;
