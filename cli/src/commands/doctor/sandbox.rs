//! Checks what this system offers for confining servers.

use super::Finding;
use super::codes::Code;
use ::sandbox::{Level, Support};

/// Ubuntu's restriction of user namespaces, which an AppArmor profile for this program lifts.
const RESTRICTION: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

pub(super) fn look() -> Vec<Finding> {
    let Ok(program) = std::env::current_exe() else { return Vec::new() };
    let support = ::sandbox::support(&program);
    let is_restricted = std::fs::read_to_string(RESTRICTION).is_ok_and(|value| value.trim() == "1");
    vec![finding(&support, is_restricted.then(|| profile(&program.display().to_string())))]
}

fn finding(support: &Support, profile: Option<String>) -> Finding {
    let offered = offered(support);
    match support.level {
        Level::Full => {
            Finding::new(Code::SandboxFull, format!("servers can be confined wholly: {offered}"))
        }
        Level::Partial | Level::None => {
            let (code, sentence) = match support.level {
                Level::Partial => (Code::SandboxPartial, "servers can be confined in part only"),
                Level::None | Level::Full => (Code::SandboxNone, "servers cannot be confined here"),
            };
            let finding = Finding::new(code, format!("{sentence}: {offered}"));
            match profile.filter(|_| support.namespaces.is_some()) {
                Some(profile) => finding.fixed_by(profile),
                None => finding,
            }
        }
    }
}

fn offered(support: &Support) -> String {
    let Support { namespaces, landlock_abi, seccomp, control_group, .. } = support;
    let part = |name: &str, why: &Option<String>| match why {
        None => name.to_owned(),
        Some(why) => format!("no {name} ({why})"),
    };
    let landlock = match landlock_abi {
        0 => "no Landlock".to_owned(),
        abi => format!("Landlock {abi}"),
    };
    let parts = [
        part("user namespaces", namespaces),
        landlock,
        part("seccomp", seccomp),
        part("control group", control_group),
    ];
    parts.join(", ")
}

/// The shipped AppArmor profile, which names the program in its usual place.
const PROFILE: &str = include_str!("../../../../dist/apparmor/holdpoint");
const USUAL_PLACE: &str = "/usr/local/bin/holdpoint";

/// A command that lets only this program create user namespaces.
fn profile(program: &str) -> String {
    let profile = PROFILE.replace(USUAL_PLACE, program);
    format!(
        "sudo tee /etc/apparmor.d/holdpoint <<'END' && sudo apparmor_parser -r /etc/apparmor.d/holdpoint\n{profile}END"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn support(level: Level, namespaces: Option<&str>) -> Support {
        Support {
            level,
            namespaces: namespaces.map(str::to_owned),
            landlock_abi: 5,
            seccomp: None,
            control_group: Some("none is delegated".to_owned()),
        }
    }

    #[test]
    fn each_level_is_a_finding_that_names_what_is_missing() {
        let found = finding(&support(Level::Full, None), None);
        assert_eq!(found.code, Code::SandboxFull);
        assert!(found.sentence.contains("Landlock 5") && found.fix.is_none());
        let found =
            finding(&support(Level::Partial, Some("EPERM")), Some(profile("/usr/bin/holdpoint")));
        assert_eq!(found.code, Code::SandboxPartial);
        assert!(found.sentence.contains("no user namespaces (EPERM)"), "{}", found.sentence);
        assert!(found.fix.unwrap().contains("profile holdpoint /usr/bin/holdpoint"));
        let none = finding(&support(Level::None, Some("not Linux")), None);
        assert_eq!((none.code, none.fix), (Code::SandboxNone, None));
    }
}
