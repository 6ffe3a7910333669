//! Reads the policy files that the configuration names.

use policy::{Inventory, Policies, PolicyProblem};
use settings::gateway::PolicySettings;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The largest policy file.
const MAX_POLICY_BYTES: u64 = 1024 * 1024;
/// The most policy files.
const MAX_POLICY_FILES: usize = 1_000;

/// Why the policies cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFilesError {
    #[error("`{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("`{}` is larger than {MAX_POLICY_BYTES} bytes", .0.display())]
    TooLarge(PathBuf),
    #[error("`policy.files`: more than {MAX_POLICY_FILES} files match")]
    TooMany,
    #[error("`policy.files`: no file matches `{0}`")]
    NoFile(String),
    #[error("the policies are wrong:\n{}", sentences(.0))]
    Wrong(Vec<PolicyProblem>),
}

fn sentences(problems: &[PolicyProblem]) -> String {
    let lines: Vec<String> = problems.iter().map(|problem| format!("  {problem}")).collect();
    lines.join("\n")
}

/// The policy files, and the file of entities.
#[derive(Debug, Default)]
pub struct PolicyFiles {
    pub files: Vec<(String, String)>,
    pub entities: Option<String>,
}

impl PolicyFiles {
    /// A hash over all texts.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let texts = self.files.iter().map(|(_, text)| text).chain(&self.entities);
        for text in texts {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        hash.finalize().into()
    }
}

/// Reads all configured files.
pub fn read(settings: &PolicySettings) -> Result<PolicyFiles, PolicyFilesError> {
    let mut files = Vec::new();
    for pattern in &settings.files {
        let found = matching(pattern)?;
        if found.is_empty() {
            return Err(PolicyFilesError::NoFile(pattern.clone()));
        }
        for path in found {
            let text = read_bounded(&path)?;
            files.push((path.display().to_string(), text));
        }
        if files.len() > MAX_POLICY_FILES {
            return Err(PolicyFilesError::TooMany);
        }
    }
    let entities = settings.entities.as_deref().map(read_bounded).transpose()?;
    Ok(PolicyFiles { files, entities })
}

/// Compiles the policies against what the servers offer.
pub fn compile(files: &PolicyFiles, inventory: &Inventory) -> Result<Policies, PolicyFilesError> {
    Policies::compile(&files.files, files.entities.as_deref(), inventory)
        .map_err(PolicyFilesError::Wrong)
}

fn read_bounded(path: &Path) -> Result<String, PolicyFilesError> {
    let wrong = |source| PolicyFilesError::Unreadable { path: path.to_owned(), source };
    let length = std::fs::metadata(path).map_err(wrong)?.len();
    if length > MAX_POLICY_BYTES {
        return Err(PolicyFilesError::TooLarge(path.to_owned()));
    }
    std::fs::read_to_string(path).map_err(wrong)
}

/// The files that match a pattern with one `*` in its last part, ordered by name.
fn matching(pattern: &str) -> Result<Vec<PathBuf>, PolicyFilesError> {
    let path = Path::new(pattern);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let Some((before, after)) = name.split_once('*') else { return Ok(vec![path.to_owned()]) };
    let folder = path.parent().unwrap_or(Path::new("."));
    let wrong = |source| PolicyFilesError::Unreadable { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_long = name.len() >= before.len() + after.len();
        if is_long && name.starts_with(before) && name.ends_with(after) && entry.path().is_file() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
