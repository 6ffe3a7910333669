//! What can be typed after `holdpoint store`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct StoreCommand {
    #[command(subcommand)]
    pub(crate) command: StoreSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreSubcommand {
    /// Copy servers, pins, history and all else to an empty database, and compare both
    #[command(
        after_help = "Examples:\n  holdpoint store migrate --from sqlite --to env:DATABASE_URL\n  holdpoint store migrate --from file:/run/secrets/database --to sqlite:/srv/holdpoint\n\nPlaces: sqlite (this home's), sqlite:DIR (another home's), postgres://USER@HOST/DATABASE, or where the address\nis kept: env:VARIABLE, file:PATH. The original stays as it is. Set `store` in holdpoint.toml to use the copy."
    )]
    Migrate(MigrateCommand),
}

#[derive(Debug, Args)]
pub(crate) struct MigrateCommand {
    /// Where everything is now
    #[arg(long, value_name = "PLACE")]
    pub(crate) from: String,
    /// Where it is to be: an empty database
    #[arg(long, value_name = "PLACE")]
    pub(crate) to: String,
}
