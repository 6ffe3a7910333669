//! What can be typed after `holdpoint store`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct StoreCommand {
    #[command(subcommand)]
    pub(crate) command: StoreSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreSubcommand {
    /// Copy all data to an empty database, and compare both
    #[command(
        after_help = "Examples:\n  holdpoint store migrate --from sqlite --to env:DATABASE_URL\n  holdpoint store migrate --from file:/run/secrets/database --to sqlite:/srv/holdpoint\n\nA database is `sqlite` (of this home), `sqlite:DIR` (of another home), `postgres://USER@HOST/DATABASE`, or the\nvariable or file that holds its address: `env:VARIABLE`, `file:PATH`. The original is not changed. Set `store` in\nholdpoint.toml to use the copy."
    )]
    Migrate(MigrateCommand),
}

#[derive(Debug, Args)]
pub(crate) struct MigrateCommand {
    /// The current database
    #[arg(long, value_name = "PLACE")]
    pub(crate) from: String,
    /// The new database, which must be empty
    #[arg(long, value_name = "PLACE")]
    pub(crate) to: String,
}
