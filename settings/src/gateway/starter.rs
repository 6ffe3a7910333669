//! The file that `gateway init` writes.

/// A `gateway.toml` for this machine only, with the other options in comments.
pub fn starter() -> &'static str {
    include_str!("starter.toml")
}

#[cfg(test)]
mod tests {
    use super::starter;
    use crate::gateway::GatewaySettings;
    use std::path::Path;

    #[test]
    fn the_starter_is_accepted_as_it_is() {
        let settings = GatewaySettings::read(starter(), Path::new("/etc/holdpoint")).unwrap();
        assert!(settings.front.listen.ip().is_loopback());
        assert!(settings.auth.keys);
        assert_eq!(settings.warnings(), ["no server is configured: add a `[[server]]`"]);
    }

    /// Every commented setting can be turned on, each in a file of its own.
    #[test]
    fn the_starters_comments_are_accepted_when_they_are_turned_on() {
        let lines = starter().lines().map(|line| match line.strip_prefix("#: ") {
            Some(setting) => setting,
            None => line,
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        let settings = GatewaySettings::read(&text, Path::new("/etc/holdpoint")).unwrap();
        assert_eq!(settings.servers.len(), 2);
        assert_eq!(settings.toolsets.len(), 1);
        assert_eq!(settings.auth.issuers.len(), 1);
    }
}
