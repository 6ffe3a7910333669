//! Turns results of the gate's marker scan into findings of the screen.

use crate::dimension::Dimension;
use crate::finding::Severity;
use contract::markers::MarkerClass;

/// The dimension, severity and reason of a class of markers.
pub(super) fn meaning(class: MarkerClass) -> (Dimension, Severity, &'static str) {
    use Dimension::{Exfiltration, HiddenInstructions, Injection, Shadowing};
    use Severity::{High, Medium};
    match class {
        MarkerClass::HiddenCharacters => (
            HiddenInstructions,
            High,
            "has characters that a model reads and a person does not see",
        ),
        MarkerClass::Concealment => {
            (HiddenInstructions, High, "tells the reader to keep something from the user")
        }
        MarkerClass::InstructionOverride => {
            (Injection, High, "tells the reader to set other instructions aside")
        }
        MarkerClass::RoleTag => {
            (Injection, High, "uses the marks of a system message or a chat role")
        }
        MarkerClass::DecodedCommand => (Injection, High, "has an encoded shell command"),
        MarkerClass::SecretReading => {
            (Exfiltration, High, "asks for a file or a value that is a secret")
        }
        MarkerClass::Exfiltration => {
            (Exfiltration, High, "asks for data to be sent somewhere else")
        }
        MarkerClass::ContextCapture => (
            Exfiltration,
            Medium,
            "asks for the conversation, the instructions or other tools' results as a value",
        ),
        MarkerClass::Preemption => {
            (Shadowing, High, "tells the reader which of other servers' tools to use or to avoid")
        }
        MarkerClass::ToolOrder => {
            (Shadowing, High, "gives an order about a tool that is not this server's")
        }
    }
}
