//! Checks the arguments against the approved definition and the operator's rules. Refusals name the
//! place and the rule.
//!
//! INVARIANT: a refusal never contains the value of an argument.

mod links;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use crate::decide::{Answer, ArgumentViolation, Check, Denial, Question};
use crate::reason::ReasonCode;
use gate::by_the_call::input::{
    Arguments, InputRule, InputRulesCache, UndeclaredMembers, Violation,
};
use policy::preflight::{
    AllowedHost, ArgumentPlace, PathFault, SizeLimits, TooBig, UrlFault, Workspace, check_url,
};
use settings::{Preflight, UnknownFields};

/// The rules for the arguments of a server's calls.
#[derive(Debug, Clone, Default)]
pub struct ArgumentRules {
    /// Shared by all servers of a process.
    pub cache: InputRulesCache,
    pub undeclared: UndeclaredMembers,
    pub sizes: SizeLimits,
    pub paths: Option<PathArguments>,
    pub urls: Option<UrlArguments>,
}

/// The arguments that are paths.
#[derive(Debug, Clone)]
pub struct PathArguments {
    pub places: Vec<ArgumentPlace>,
    pub workspace: Workspace,
    /// Whether the server runs on this machine, so that links can be resolved here.
    pub is_local: bool,
}

/// The arguments that are URLs.
#[derive(Debug, Clone)]
pub struct UrlArguments {
    pub places: Vec<ArgumentPlace>,
    pub allowed: Vec<AllowedHost>,
}

impl ArgumentRules {
    /// A server's rules from its settings.
    pub fn of(settings: &Preflight, is_local: bool) -> ArgumentRules {
        ArgumentRules {
            cache: InputRulesCache::default(),
            undeclared: match settings.unknown_fields.unwrap_or_default() {
                UnknownFields::Refuse => UndeclaredMembers::Refuse,
                UnknownFields::Allow => UndeclaredMembers::Allow,
            },
            sizes: settings.sizes(),
            paths: settings.paths().map(|(places, workspace)| PathArguments {
                places,
                workspace,
                is_local,
            }),
            urls: settings.urls().map(|(places, allowed)| UrlArguments { places, allowed }),
        }
    }

    /// Uses the cache that all servers of a process share.
    #[must_use]
    pub fn sharing(self, cache: InputRulesCache) -> ArgumentRules {
        ArgumentRules { cache, ..self }
    }
}

#[derive(Debug)]
pub(crate) struct ArgumentCheck {
    pub(crate) rules: ArgumentRules,
}

impl Check for ArgumentCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        self.check_arguments(question).map_or_else(Answer::Deny, |()| Answer::Continue)
    }
}

impl ArgumentCheck {
    fn check_arguments(&self, question: &Question<'_>) -> Result<(), Denial> {
        let Question { call, situation, .. } = *question;
        let ArgumentRules { cache, undeclared, sizes, paths, urls } = &self.rules;
        let arguments = Arguments::read(call.arguments).map_err(|found| broken(&found))?;
        sizes.check(arguments.root()).map_err(|found| too_big(&found))?;
        // Without a definition, which only monitor lets through, there is nothing to compare with.
        let definition = call.target.and_then(|target| situation.view.definition(target));
        if let Some(definition) = definition {
            let rules = cache.rules(definition).map_err(|why| {
                let rule = InputRule::Decidable(why);
                broken(&Violation { pointer: String::new(), rule })
            })?;
            rules.check(&arguments, *undeclared).map_err(|found| broken(&found))?;
        }
        if let Some(PathArguments { places, workspace, is_local }) = paths {
            let mut check = |at: &contract::pointer::Pointer<'_>, text: Option<&str>| {
                let checked = text
                    .ok_or(PathFault::NotText)
                    .and_then(|text| check_path(workspace, text, *is_local));
                checked.map_err(|why| outside(at.to_string(), why))
            };
            places.iter().try_for_each(|place| place.each(arguments.root(), &mut check))?;
        }
        if let Some(UrlArguments { places, allowed }) = urls {
            let is_blocked = situation.switches.is_egress_blocked;
            let mut check = |at: &contract::pointer::Pointer<'_>, text: Option<&str>| {
                if is_blocked {
                    return Err(blocked(at.to_string()));
                }
                let checked =
                    text.ok_or(UrlFault::NotText).and_then(|text| check_url(text, allowed));
                checked.map_err(|why| egress(at.to_string(), why))
            };
            places.iter().try_for_each(|place| place.each(arguments.root(), &mut check))?;
        }
        Ok(())
    }
}

/// Checks every reading of a path and, if the server runs on this machine, the target of its links.
fn check_path(workspace: &Workspace, text: &str, is_local: bool) -> Result<(), PathFault> {
    let readings = workspace.readings(text)?;
    let mut followed = readings.iter().filter(|_| is_local);
    followed.try_for_each(|reading| links::check(workspace, reading))
}

fn denial(reason: ReasonCode, pointer: String, rule: &'static str, why: &str) -> Denial {
    let what = match pointer.as_str() {
        "" => "the arguments object".to_owned(),
        pointer => format!("the argument `{pointer}`"),
    };
    let message = format!("○ holdpoint — {what} {why}");
    Denial {
        violation: Some(Box::new(ArgumentViolation { pointer, rule })),
        ..Denial::new(reason, message)
    }
}

fn broken(Violation { pointer, rule }: &Violation) -> Denial {
    let schema = ReasonCode::SchemaViolation;
    let (reason, name, why) = match rule {
        InputRule::Declared => (
            ReasonCode::UnknownField,
            "unknown_field",
            "is not one that the tool declares".to_owned(),
        ),
        InputRule::Keyword("required") => {
            (schema, "required", "is missing, and the tool requires it".to_owned())
        }
        InputRule::Keyword(keyword) => (
            schema,
            *keyword,
            format!("does not keep `{keyword}` of the tool's input schema"),
        ),
        InputRule::Object => (schema, "type", "is not an object".to_owned()),
        InputRule::Exact => (
            ReasonCode::AmbiguousMessage,
            "exact",
            "can be read in more than one way: a member is there twice, or a number cannot be held exactly"
                .to_owned(),
        ),
        InputRule::Decidable(why) => (
            schema,
            "undecided",
            format!("cannot be checked against the tool's input schema: {why}"),
        ),
    };
    denial(reason, pointer.clone(), name, &why)
}

fn too_big(TooBig { pointer, limit, most }: &TooBig) -> Denial {
    let why = match *limit {
        "string_bytes" => format!("has a text or a name of more than {most} bytes (`{limit}`)"),
        _ => format!("has more than {most} elements (`{limit}`)"),
    };
    denial(ReasonCode::PayloadTooLarge, pointer.clone(), limit, &why)
}

fn outside(pointer: String, why: PathFault) -> Denial {
    let why = format!("{why}: paths have to stay in the workspace");
    denial(ReasonCode::PathOutsideWorkspace, pointer, "path", &why)
}

fn blocked(pointer: String) -> Denial {
    let why = "is a URL, and all ways out are closed by an incident: a person opens them again with `holdpoint incident block-egress --off`";
    denial(ReasonCode::EgressBlocked, pointer, "url", why)
}

fn egress(pointer: String, why: UrlFault) -> Denial {
    let why = format!("{why}: URLs have to lead to a host that `net_allow` names");
    denial(ReasonCode::EgressNotAllowed, pointer, "url", &why)
}
