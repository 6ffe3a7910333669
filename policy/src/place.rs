//! One server, or the gateway itself, prepared for decisions: its targets, grouped into classes
//! that are decided alike.

use crate::class::Risk;
use crate::entities::{EntityError, EntityMaker};
use crate::entities_file::ExtraEntity;
use crate::inventory::{ServerInventory, ToolHints};
use crate::names::qualified;
use crate::request::AdminAction;
use crate::target::{Target, TargetMaker};
use crate::texts::PolicyTexts;
use crate::typing::InputShape;
use crate::vocabulary::TOOL;
use cedar_policy::Schema;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A class of targets that every decision treats alike, represented by one of them.
pub(crate) type ClassNumber = u32;

#[derive(Debug)]
pub(crate) struct Place {
    /// Distinguishes this place from all others, and from itself before a change. Part of every
    /// cache key.
    pub epoch: u64,
    pub schema: Schema,
    pub server: Option<Arc<ServerInventory>>,
    pub classes: Vec<Target>,
    pub tools: HashMap<Arc<str>, ClassNumber>,
    pub prompts: HashMap<Arc<str>, ClassNumber>,
    pub resources: HashMap<Arc<str>, ClassNumber>,
    /// The class of unlisted resources, unless policies distinguish them.
    pub unlisted: Option<ClassNumber>,
    pub server_use: Option<ClassNumber>,
    pub admin: HashMap<AdminAction, ClassNumber>,
}

static NEXT_EPOCH: AtomicU64 = AtomicU64::new(0);

/// The attributes of a tool by which policies can distinguish it.
#[derive(PartialEq, Eq, Hash)]
struct ToolClass {
    risk: Risk,
    hints: ToolHints,
    name: Option<Arc<str>>,
    input: Option<String>,
    extra: Option<String>,
}

/// Builds a place, one class after another.
pub(crate) struct PlaceBuilder<'a> {
    targets: TargetMaker<'a>,
    place: Place,
}

impl<'a> PlaceBuilder<'a> {
    pub(crate) fn new(
        texts: &'a PolicyTexts,
        maker: &'a EntityMaker,
        schema: Schema,
        server: Option<Arc<ServerInventory>>,
    ) -> Self {
        let place = Place {
            epoch: NEXT_EPOCH.fetch_add(1, Ordering::Relaxed),
            schema,
            server,
            classes: Vec::new(),
            tools: HashMap::new(),
            prompts: HashMap::new(),
            resources: HashMap::new(),
            unlisted: None,
            server_use: None,
            admin: HashMap::new(),
        };
        PlaceBuilder { targets: TargetMaker::new(texts, maker), place }
    }

    pub(crate) fn build(mut self) -> Result<Place, EntityError> {
        if let Some(server) = self.place.server.clone() {
            self.add_tools(&server)?;
            self.add_prompts(&server)?;
            self.add_resources(&server)?;
            let target = self.targets.server_target("use", &server);
            self.place.server_use = Some(self.add(target));
        }
        for action in AdminAction::ALL {
            let target = match self.place.server.clone() {
                Some(server) => self.targets.server_target(action.as_str(), &server),
                None => self.targets.gateway_target(action.as_str()),
            };
            let class = self.add(target);
            self.place.admin.insert(action, class);
        }
        Ok(self.place)
    }

    fn add(&mut self, target: Target) -> ClassNumber {
        let number = ClassNumber::try_from(self.place.classes.len()).unwrap_or(ClassNumber::MAX);
        self.place.classes.push(target);
        number
    }

    fn add_tools(&mut self, server: &Arc<ServerInventory>) -> Result<(), EntityError> {
        let mut classes: HashMap<(ToolClass, Vec<usize>), ClassNumber> = HashMap::new();
        for tool in server.tools.values() {
            let target = self.targets.tool_target(server, tool)?;
            let named = self.targets.texts.is_named(&target.action)
                || self.targets.texts.is_named(&target.resource);
            if named {
                let class = self.add(target);
                self.place.tools.insert(Arc::clone(&tool.name), class);
                continue;
            }
            let id = qualified(&server.id, &tool.name);
            let key = ToolClass {
                risk: tool.risk,
                hints: tool.hints,
                name: self.targets.texts.reads_names.then(|| Arc::clone(&tool.name)),
                input: target.relevant.reader.is_some().then(|| shape_key(&tool.input)),
                extra: self.targets.maker.extra.get(TOOL, &id).map(extra_key),
            };
            let key = (key, target.relevant.members.clone());
            let class = match classes.get(&key) {
                Some(class) => *class,
                None => {
                    let class = self.add(target);
                    classes.insert(key, class);
                    class
                }
            };
            self.place.tools.insert(Arc::clone(&tool.name), class);
        }
        Ok(())
    }

    fn add_prompts(&mut self, server: &Arc<ServerInventory>) -> Result<(), EntityError> {
        let mut shared = None;
        for name in &server.prompts {
            let target = self.targets.prompt_target(server, name)?;
            let alone = self.tells_apart(&target);
            let class = self.shared_class(target, alone, &mut shared);
            self.place.prompts.insert(Arc::clone(name), class);
        }
        Ok(())
    }

    fn add_resources(&mut self, server: &Arc<ServerInventory>) -> Result<(), EntityError> {
        let mut shared = None;
        for uri in &server.resources {
            let target = self.targets.resource_target(server, uri, true)?;
            let alone = self.tells_apart(&target);
            let class = self.shared_class(target, alone, &mut shared);
            self.place.resources.insert(Arc::clone(uri), class);
        }
        if !self.targets.texts.reads_names
            && !self.targets.texts.names_resources
            && !self.targets.maker.describes_parts()
        {
            // Policies do not see the URI, so any text will do.
            let target = self.targets.resource_target(server, "", false)?;
            self.place.unlisted = Some(self.add(target));
        }
        Ok(())
    }

    fn tells_apart(&self, target: &Target) -> bool {
        self.targets.texts.reads_names
            || self.targets.maker.describes_parts()
            || self.targets.texts.is_named(&target.resource)
    }

    fn shared_class(
        &mut self,
        target: Target,
        alone: bool,
        shared: &mut Option<ClassNumber>,
    ) -> ClassNumber {
        match *shared {
            Some(class) if !alone => class,
            _ => {
                let class = self.add(target);
                if !alone {
                    *shared = Some(class);
                }
                class
            }
        }
    }
}

fn shape_key(shape: &InputShape) -> String {
    shape.to_cedar().to_string()
}

fn extra_key(extra: &ExtraEntity) -> String {
    format!("{:?}", extra.attributes)
}
