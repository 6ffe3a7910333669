# What CI runs, and nothing else.
ci:
    CI=true ./scripts/test

# The test suite alone: `just test`, or with a filter: `just test pins`.
test *FILTER:
    cargo test --workspace --locked {{FILTER}}

# Refresh the golden files; read the difference before committing it.
golden:
    UPDATE_GOLDEN=1 cargo test --workspace --locked
    git diff --stat

# Every fuzz target for that many seconds each.
fuzz SECONDS="60":
    ./scripts/fuzz {{SECONDS}}
