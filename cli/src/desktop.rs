//! Desktop notices, if there is a desktop. A failure to show one is ignored: standard error,
//! `status` and `doctor` give the same information.

use gate::server::ServerId;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

const TITLE: &str = "Holdpoint";
/// The minimum time between two hold notices for one server, across all processes of a home.
const PAUSE: Duration = Duration::from_secs(60);

/// Takes the text as an argument: a server's name must not become part of a script.
const APPLE_SCRIPT: &str =
    "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";
/// Takes the text from a variable, for the same reason. Template 5 has a title and a text.
const TOAST_SCRIPT: &str = "\
    $kind = [Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime]; \
    $toast = $kind::GetTemplateContent(5); \
    $text = $toast.GetElementsByTagName('text'); \
    $null = $text.Item(0).AppendChild($toast.CreateTextNode($env:HOLDPOINT_NOTICE_TITLE)); \
    $null = $text.Item(1).AppendChild($toast.CreateTextNode($env:HOLDPOINT_NOTICE_TEXT)); \
    $kind::CreateToastNotifier('Holdpoint').Show([Windows.UI.Notifications.ToastNotification]::new($toast))";

/// Shows a notice and returns at once.
pub(crate) fn show(sentence: &str) {
    let mut command = if cfg!(target_os = "macos") {
        let mut command = Command::new("osascript");
        command.args(["-e", APPLE_SCRIPT, "--", TITLE, sentence]);
        command
    } else if cfg!(windows) {
        let mut command = Command::new("powershell");
        command.args(["-NoProfile", "-NonInteractive", "-Command", TOAST_SCRIPT]);
        command.env("HOLDPOINT_NOTICE_TITLE", TITLE).env("HOLDPOINT_NOTICE_TEXT", sentence);
        command
    } else {
        let mut command = Command::new("notify-send");
        command.args(["--app-name", TITLE, "--", TITLE, &without_markup(sentence)]);
        command
    };
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The programs exit at once, and a thread reaps them. One that hangs is not waited for.
    let _ = command.spawn().map(|mut child| std::thread::spawn(move || child.wait()));
}

/// Whether this process runs in a desktop session.
fn is_there(variable: impl Fn(&str) -> bool) -> bool {
    let has_screen = cfg!(any(target_os = "macos", windows))
        || ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"].into_iter().any(&variable);
    has_screen && !variable("CI")
}

/// Whether an environment variable is set to anything but an empty value or `false`.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "false")
}

/// Tells a person that something of a server is held: at most once a minute, and without quoting
/// the server.
#[derive(Debug)]
pub(crate) struct HoldNotice {
    server: ServerId,
    /// A file whose modification time says when any process last showed a notice.
    stamp: PathBuf,
    shown_at: Mutex<Option<Instant>>,
}

impl HoldNotice {
    /// Returns `None` if there is no desktop.
    pub(crate) fn new(server: &ServerId, home: &Path) -> Option<HoldNotice> {
        is_there(is_set).then(|| HoldNotice {
            server: server.clone(),
            stamp: home.join("notices").join(server.as_str()),
            shown_at: Mutex::new(None),
        })
    }

    /// Shows the notice, unless one was shown recently. Never blocks the call: a thread touches the
    /// file and starts the program.
    pub(crate) fn show(&self) {
        let Ok(mut shown_at) = self.shown_at.lock() else { return };
        if shown_at.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        *shown_at = Some(Instant::now());
        let (stamp, sentence) = (self.stamp.clone(), sentence(&self.server));
        let work = move || {
            if is_old(&stamp) && renew(&stamp).is_ok() {
                show(&sentence);
            }
        };
        // If no thread can be started, no notice is shown.
        let _ = std::thread::Builder::new().name("notice".to_owned()).spawn(work);
    }
}

fn sentence(server: &ServerId) -> String {
    format!("Holdpoint holds calls to {server}. To see why, run: holdpoint review {server}")
}

fn is_old(stamp: &Path) -> bool {
    let written = std::fs::metadata(stamp).and_then(|found| found.modified());
    // A time in the future is ignored.
    let age = written.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
    age.is_none_or(|age| age >= PAUSE)
}

fn renew(stamp: &Path) -> std::io::Result<()> {
    if let Some(folder) = stamp.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(stamp, "")
}

/// Escapes markup: desktops interpret some of it in the body of a notice.
fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_shown_and_not_read() {
        assert_eq!(without_markup("<b>&"), "&lt;b&gt;&amp;");
    }

    #[test]
    fn a_notice_has_no_words_but_the_id_and_the_command() {
        assert_eq!(
            sentence(&"reports".parse().unwrap()),
            "Holdpoint holds calls to reports. To see why, run: holdpoint review reports"
        );
    }

    #[test]
    fn in_continuous_integration_there_is_no_desktop() {
        assert!(is_there(|name| name == "DISPLAY") && is_there(|name| name == "WAYLAND_DISPLAY"));
        assert!(
            !is_there(|name| name == "CI") && !is_there(|name| name == "CI" || name == "DISPLAY")
        );
    }

    #[test]
    fn a_stamp_counts_for_a_minute_and_not_if_it_is_of_the_future() {
        let folder = tempfile::tempdir().unwrap();
        let stamp = folder.path().join("notices").join("reports");
        assert!(is_old(&stamp));
        renew(&stamp).unwrap();
        assert!(!is_old(&stamp));
        let set = |at: SystemTime| {
            std::fs::File::options().write(true).open(&stamp).unwrap().set_modified(at).unwrap();
        };
        set(SystemTime::now() - PAUSE);
        assert!(is_old(&stamp));
        set(SystemTime::now() + PAUSE);
        assert!(is_old(&stamp));
    }
}
