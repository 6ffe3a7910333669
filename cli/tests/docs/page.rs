//! Parses a page: its commands in order, its links, its headings.

/// A command, and the page's statements about it.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) line: usize,
    pub(crate) command: String,
    pub(crate) exit: i32,
    pub(crate) says: Vec<String>,
    pub(crate) is_hidden: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) steps: Vec<Step>,
    /// The first lines of command blocks that are not marked.
    pub(crate) unmarked: Vec<usize>,
}

impl Page {
    pub(crate) fn read(text: &str) -> Page {
        let mut page = Page::default();
        let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
        while let Some((at, line)) = lines.next() {
            if let Some(hidden) = line.strip_prefix("<!-- run: ") {
                let command = hidden.strip_suffix(" -->").unwrap().to_owned();
                page.steps.push(Step {
                    line: at,
                    command,
                    exit: 0,
                    says: Vec::new(),
                    is_hidden: true,
                });
            }
            let Some(mark) = line.strip_prefix("```") else { continue };
            let block: Vec<(usize, &str)> =
                lines.by_ref().take_while(|(_, line)| !line.starts_with("```")).collect();
            match mark {
                "console" => page.steps.extend(steps(&block)),
                "" if block.iter().any(|(_, line)| line.starts_with("$ ")) => {
                    page.unmarked.push(at);
                }
                _ => {}
            }
        }
        page
    }

    /// Whether a command of the page starts a server that has to be installed.
    pub(crate) fn needs_servers(&self) -> bool {
        self.steps.iter().any(|step| step.command.contains("uvx ") || step.command.contains("npx "))
    }
}

fn steps(block: &[(usize, &str)]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut end: Option<String> = None;
    for (at, line) in block {
        let last = steps.last_mut();
        match (&end, line.strip_prefix("$ "), last) {
            // Within a text passed to a command.
            (Some(word), _, Some(step)) => {
                step.command.push('\n');
                step.command.push_str(line);
                if line == word {
                    end = None;
                }
            }
            (None, Some(command), _) => {
                end = command
                    .split_once("<<'")
                    .and_then(|(_, rest)| rest.split_once('\''))
                    .map(|(word, _)| word.to_owned());
                let (command, exit) = match command.rsplit_once("# exits with ") {
                    Some((command, code)) => (command, code.parse().unwrap()),
                    None => (command, 0),
                };
                let command = command.trim_end().to_owned();
                steps.push(Step { line: *at, command, exit, says: Vec::new(), is_hidden: false });
            }
            (None, None, Some(step)) => step.says.push((*line).to_owned()),
            (_, _, None) => panic!("line {at}: a console block begins with a command"),
        }
    }
    steps
}

/// The page's links to other files of the project.
pub(crate) fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://") && !target.contains(char::is_whitespace))
        .collect()
}

/// The anchors that Markdown viewers generate for headings.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut anchors = Vec::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !is_code) {
            let heading = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            anchors.push(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    anchors
}

/// The lines of prose that are too long to read in a diff. Tables, code, comments and unbreakable
/// lines are not checked.
pub(crate) fn overlong(text: &str) -> Vec<usize> {
    const MAX_COLUMNS: usize = 120;
    let mut is_code = false;
    let mut overlong = Vec::new();
    for (at, line) in text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        let is_prose = !is_code && !line.starts_with('|') && !line.starts_with("<!--");
        let has_break = line.trim_start().contains(' ');
        if is_prose && has_break && line.chars().count() > MAX_COLUMNS {
            overlong.push(at + 1);
        }
    }
    overlong
}
