//! Every known host, in one table: adding a host means adding a row.
//!
//! A row says where the files are, where in a file the servers are, and the names of a server's
//! members. `docs/hosts.md` lists these facts with their sources.

/// A program that starts MCP servers or connects to them.
#[derive(Debug, PartialEq, Eq)]
pub struct Host {
    /// The name to type, and the first part of a server's id.
    pub id: &'static str,
    pub title: &'static str,
    pub(crate) places: &'static [Place],
    pub(crate) layouts: &'static [Layout],
    pub(crate) shape: &'static Shape,
    /// How to point it at a gateway; `None` if its file cannot contain servers reached over HTTP.
    pub(crate) http: Option<&'static HttpForm>,
}

/// The form of an entry for streamable HTTP, besides its address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HttpForm {
    /// The kind to write, if the host requires one.
    pub(crate) kind: Option<&'static str>,
    /// Members that the host requires, with their values in JSON.
    pub(crate) members: &'static [(&'static str, &'static str)],
    /// The member that contains the headers, if they are not directly in the entry.
    pub(crate) headers_in: Option<&'static str>,
    pub(crate) reference: KeyReference,
}

/// How a value in an entry refers to a variable that the host reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyReference {
    /// `${NAME}`
    Braces,
    /// `${env:NAME}`
    Environment,
    /// `{env:NAME}`
    Curly,
    /// `${{ secrets.NAME }}`
    Secrets,
    /// `${NAME}`, and a list of the names that the host looks up.
    Listed(&'static str),
    /// The member in [`Shape::bearer`], which names the variable.
    Bearer,
    /// Not supported.
    Nothing,
}

/// Whom a file applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    User,
    Project,
}

/// A path with at most one `*` for the name of a folder or file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) base: Base,
    pub(crate) path: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Home,
    /// Application data, depending on the system.
    Application,
    /// Local application data on Windows; nothing elsewhere.
    WindowsLocal,
    /// `~/.config` on every system except Windows.
    Configuration,
    /// Application data on Windows; nothing elsewhere.
    WindowsApplication,
    /// A folder that a variable names, otherwise one in the user's home.
    Variable {
        name: &'static str,
        otherwise: &'static str,
    },
    /// The file that a variable names.
    File {
        name: &'static str,
    },
    Project,
}

/// Where in a document the servers are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Members of the object at this path, by name.
    Named(&'static [&'static str]),
    /// Like `Named`, under each member of `outer`: one per project.
    PerProject { outer: &'static str, inner: &'static [&'static str] },
    /// Items of a list, each with its own `name`.
    Listed(&'static [&'static str]),
}

/// The names of the members of a server's entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) command: &'static str,
    pub(crate) arguments: &'static str,
    pub(crate) environment: &'static str,
    pub(crate) addresses: &'static [Address],
    pub(crate) headers: &'static str,
    pub(crate) kind: &'static str,
    /// The value of `kind` for a server that is started. Written only if `kind` was present.
    pub(crate) started: &'static str,
    /// The values of `kind` for streamable HTTP.
    pub(crate) streamable: &'static [&'static str],
    /// Whether the command and its arguments are in one list.
    pub(crate) one_list: bool,
    /// If the host refuses unknown members, those that a remote server's entry may keep. Empty for
    /// other hosts.
    pub(crate) allowed: &'static [&'static str],
    /// Whether the host replaces variables in arguments.
    pub(crate) expands_arguments: bool,
    /// A member that names the variable with a bearer token, and the one that passes variables to a
    /// program.
    pub(crate) bearer: Option<(&'static str, &'static str)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) member: &'static str,
    /// The transport used if `kind` does not say.
    pub(crate) transport: Transport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Streamable,
    /// The older HTTP transport with a separate event stream.
    Events,
}

/// Members by which the host signs in, or creates new credentials each time.
pub(crate) const SIGN_IN: &[&str] = &[
    "oauth",
    "oauth2",
    "auth",
    "authentication",
    "authProviderType",
    "headersHelper",
    "env_http_headers",
    "oauth_resource",
    "requestOptions",
    "scopes",
    "apiKey",
];

/// The names of an address in any host's files.
pub(crate) const ADDRESSES: &[&str] = &["url", "serverUrl", "httpUrl", "uri"];

/// The member that names a file with additional variables for a server that is started.
pub(crate) const ENV_FILE: &str = "envFile";

/// Members that name variables which the host passes to a program, or stores for it.
pub(crate) const HANDED_ON: &[&str] = &["env_vars", "env_keys"];

/// Members of a remote server that only some hosts use. If unexpected, the entry was written for
/// another host.
pub(crate) const FOREIGN: &[&str] =
    &["http_headers", "bearer_token_env_var", "httpUrl", "uri", "serverUrl", "headers", ENV_FILE];

const STREAMABLE: &[&str] =
    &["http", "streamable-http", "streamable_http", "streamableHttp", "streamableHTTP"];

const PLAIN: Shape = Shape {
    command: "command",
    arguments: "args",
    environment: "env",
    addresses: &[
        Address { member: "url", transport: Transport::Streamable },
        Address { member: "serverUrl", transport: Transport::Streamable },
    ],
    headers: "headers",
    kind: "type",
    started: "stdio",
    streamable: STREAMABLE,
    one_list: false,
    allowed: &[],
    expands_arguments: false,
    bearer: None,
};
const EXPANDING: Shape = Shape { expands_arguments: true, ..PLAIN };
const GEMINI: Shape = Shape {
    addresses: &[
        Address { member: "httpUrl", transport: Transport::Streamable },
        Address { member: "url", transport: Transport::Events },
    ],
    ..EXPANDING
};
const CLINE: Shape =
    Shape { addresses: &[Address { member: "url", transport: Transport::Events }], ..PLAIN };
const WINDSURF: Shape = Shape {
    addresses: &[
        Address { member: "serverUrl", transport: Transport::Streamable },
        Address { member: "url", transport: Transport::Streamable },
    ],
    ..EXPANDING
};
const COPILOT: Shape = Shape { started: "local", ..PLAIN };
const CODEX: Shape = Shape {
    headers: "http_headers",
    bearer: Some(("bearer_token_env_var", "env_vars")),
    allowed: &[
        "cwd",
        "disabled_tools",
        "enabled",
        "enabled_tools",
        "required",
        "startup_timeout_ms",
        "startup_timeout_sec",
        "tool_timeout_sec",
    ],
    ..PLAIN
};
const GOOSE: Shape = Shape {
    command: "cmd",
    environment: "envs",
    addresses: &[Address { member: "uri", transport: Transport::Streamable }],
    ..PLAIN
};
const OPENCODE: Shape = Shape {
    environment: "environment",
    started: "local",
    streamable: &["remote"],
    one_list: true,
    allowed: &["enabled", "disabled", "timeout"],
    ..EXPANDING
};

const HTTP: HttpForm =
    HttpForm { kind: None, members: &[], headers_in: None, reference: KeyReference::Nothing };
const HTTP_TYPED: HttpForm = HttpForm { kind: Some("http"), ..HTTP };
const HTTP_BRACES: HttpForm = HttpForm { reference: KeyReference::Braces, ..HTTP };
const HTTP_ENVIRONMENT: HttpForm = HttpForm { reference: KeyReference::Environment, ..HTTP };
const HTTP_CLAUDE_CODE: HttpForm = HttpForm { kind: Some("http"), ..HTTP_BRACES };
const HTTP_VS_CODE: HttpForm = HttpForm { kind: Some("http"), ..HTTP_ENVIRONMENT };
const HTTP_CLINE: HttpForm = HttpForm { kind: Some("streamableHttp"), ..HTTP };
const HTTP_ROO: HttpForm = HttpForm { kind: Some("streamable-http"), ..HTTP_ENVIRONMENT };
const HTTP_CODEX: HttpForm = HttpForm { reference: KeyReference::Bearer, ..HTTP };
const HTTP_CONTINUE: HttpForm = HttpForm {
    kind: Some("streamable-http"),
    headers_in: Some("requestOptions"),
    reference: KeyReference::Secrets,
    ..HTTP
};
const HTTP_GOOSE: HttpForm = HttpForm {
    kind: Some("streamable_http"),
    members: &[("name", "\"holdpoint\""), ("enabled", "true"), ("timeout", "300")],
    reference: KeyReference::Listed("env_keys"),
    ..HTTP
};
const HTTP_OPENCODE: HttpForm = HttpForm {
    kind: Some("remote"),
    members: &[("enabled", "true")],
    reference: KeyReference::Curly,
    ..HTTP
};
const HTTP_COPILOT: HttpForm = HttpForm { members: &[("tools", "[\"*\"]")], ..HTTP_TYPED };

const MCP_SERVERS: &[Layout] = &[Layout::Named(&["mcpServers"])];
const VS_CODE: &[Layout] = &[
    Layout::Named(&["servers"]),
    Layout::Named(&["mcp", "servers"]),
    Layout::Named(&["mcp.servers"]),
];

const fn home(path: &'static str) -> Place {
    Place { base: Base::Home, path }
}

const fn application(path: &'static str) -> Place {
    Place { base: Base::Application, path }
}

const fn configuration(path: &'static str) -> Place {
    Place { base: Base::Configuration, path }
}

const fn windows(path: &'static str) -> Place {
    Place { base: Base::WindowsApplication, path }
}

const fn project(path: &'static str) -> Place {
    Place { base: Base::Project, path }
}

const fn variable(name: &'static str, otherwise: &'static str, path: &'static str) -> Place {
    Place { base: Base::Variable { name, otherwise }, path }
}

const fn file(name: &'static str) -> Place {
    Place { base: Base::File { name }, path: "" }
}

/// A file that two hosts read is listed as the first one's.
pub const HOSTS: &[Host] = &[
    Host {
        id: "claude-desktop",
        title: "Claude Desktop",
        places: &[
            application("Claude/claude_desktop_config.json"),
            Place {
                base: Base::WindowsLocal,
                path: "Packages/*/LocalCache/Roaming/Claude/claude_desktop_config.json",
            },
        ],
        layouts: MCP_SERVERS,
        shape: &PLAIN,
        http: None,
    },
    Host {
        id: "claude-code",
        title: "Claude Code",
        places: &[variable("CLAUDE_CONFIG_DIR", "", ".claude.json"), project(".mcp.json")],
        layouts: &[
            Layout::Named(&["mcpServers"]),
            Layout::PerProject { outer: "projects", inner: &["mcpServers"] },
        ],
        shape: &EXPANDING,
        http: Some(&HTTP_CLAUDE_CODE),
    },
    Host {
        id: "cursor",
        title: "Cursor",
        places: &[home(".cursor/mcp.json"), project(".cursor/mcp.json")],
        layouts: MCP_SERVERS,
        shape: &EXPANDING,
        http: Some(&HTTP_ENVIRONMENT),
    },
    Host {
        id: "vscode",
        title: "VS Code",
        places: &[
            application("Code/User/mcp.json"),
            application("Code/User/settings.json"),
            application("Code/User/profiles/*/mcp.json"),
            project(".vscode/mcp.json"),
            project(".vscode/settings.json"),
        ],
        layouts: VS_CODE,
        shape: &EXPANDING,
        http: Some(&HTTP_VS_CODE),
    },
    Host {
        id: "vscode-insiders",
        title: "VS Code Insiders",
        places: &[
            application("Code - Insiders/User/mcp.json"),
            application("Code - Insiders/User/settings.json"),
            application("Code - Insiders/User/profiles/*/mcp.json"),
        ],
        layouts: VS_CODE,
        shape: &EXPANDING,
        http: Some(&HTTP_VS_CODE),
    },
    Host {
        id: "cline",
        title: "Cline",
        places: &[
            application(
                "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            application(
                "Code - Insiders/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            application(
                "Cursor/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            application(
                "Windsurf/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            home(".cline/data/settings/cline_mcp_settings.json"),
            file("CLINE_MCP_SETTINGS_PATH"),
        ],
        layouts: MCP_SERVERS,
        shape: &CLINE,
        http: Some(&HTTP_CLINE),
    },
    Host {
        id: "roo",
        title: "Roo Code",
        places: &[
            application(
                "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            ),
            application(
                "Code - Insiders/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            ),
            application(
                "Cursor/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            ),
            application(
                "Windsurf/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            ),
            project(".roo/mcp.json"),
        ],
        layouts: MCP_SERVERS,
        shape: &PLAIN,
        http: Some(&HTTP_ROO),
    },
    Host {
        id: "windsurf",
        title: "Windsurf",
        places: &[
            home(".codeium/windsurf/mcp_config.json"),
            home(".codeium/windsurf-next/mcp_config.json"),
            home(".codeium/mcp_config.json"),
        ],
        layouts: MCP_SERVERS,
        shape: &WINDSURF,
        http: Some(&HTTP_ENVIRONMENT),
    },
    Host {
        id: "zed",
        title: "Zed",
        places: &[
            configuration("zed/settings.json"),
            windows("Zed/settings.json"),
            project(".zed/settings.json"),
        ],
        layouts: &[Layout::Named(&["context_servers"])],
        shape: &PLAIN,
        http: Some(&HTTP),
    },
    Host {
        id: "codex",
        title: "Codex CLI",
        places: &[variable("CODEX_HOME", ".codex", "config.toml"), project(".codex/config.toml")],
        layouts: &[Layout::Named(&["mcp_servers"])],
        shape: &CODEX,
        http: Some(&HTTP_CODEX),
    },
    Host {
        id: "gemini",
        title: "Gemini CLI",
        places: &[home(".gemini/settings.json"), project(".gemini/settings.json")],
        layouts: MCP_SERVERS,
        shape: &GEMINI,
        http: Some(&HTTP_BRACES),
    },
    Host {
        id: "qwen",
        title: "Qwen Code",
        places: &[home(".qwen/settings.json"), project(".qwen/settings.json")],
        layouts: MCP_SERVERS,
        shape: &GEMINI,
        http: Some(&HTTP_BRACES),
    },
    Host {
        id: "continue",
        title: "Continue",
        places: &[
            variable("CONTINUE_GLOBAL_DIR", ".continue", "config.yaml"),
            variable("CONTINUE_GLOBAL_DIR", ".continue", "mcpServers/*"),
            project(".continue/mcpServers/*"),
        ],
        layouts: &[Layout::Listed(&["mcpServers"]), Layout::Named(&["mcpServers"])],
        shape: &PLAIN,
        http: Some(&HTTP_CONTINUE),
    },
    Host {
        id: "goose",
        title: "Goose",
        places: &[configuration("goose/config.yaml"), windows("Block/goose/config/config.yaml")],
        layouts: &[Layout::Named(&["extensions"])],
        shape: &GOOSE,
        http: Some(&HTTP_GOOSE),
    },
    Host {
        id: "opencode",
        title: "OpenCode",
        places: &[
            configuration("opencode/opencode.json"),
            configuration("opencode/opencode.jsonc"),
            configuration("opencode/config.json"),
            // The same folder on Windows.
            home(".config/opencode/opencode.json"),
            home(".config/opencode/opencode.jsonc"),
            home(".opencode/opencode.json"),
            variable("OPENCODE_CONFIG_DIR", ".config/opencode", "opencode.json"),
            variable("OPENCODE_CONFIG_DIR", ".config/opencode", "opencode.jsonc"),
            file("OPENCODE_CONFIG"),
            project("opencode.json"),
            project("opencode.jsonc"),
            project(".opencode/opencode.json"),
            project(".opencode/opencode.jsonc"),
        ],
        layouts: &[Layout::Named(&["mcp", "servers"]), Layout::Named(&["mcp"])],
        shape: &OPENCODE,
        http: Some(&HTTP_OPENCODE),
    },
    Host {
        id: "lm-studio",
        title: "LM Studio",
        places: &[home(".lmstudio/mcp.json"), home(".cache/lm-studio/mcp.json")],
        layouts: MCP_SERVERS,
        shape: &PLAIN,
        http: Some(&HTTP),
    },
    Host {
        id: "junie",
        title: "JetBrains Junie",
        places: &[home(".junie/mcp/mcp.json"), project(".junie/mcp/mcp.json")],
        layouts: MCP_SERVERS,
        shape: &PLAIN,
        http: Some(&HTTP),
    },
    Host {
        id: "amazon-q",
        title: "Amazon Q",
        places: &[
            home(".aws/amazonq/mcp.json"),
            home(".aws/amazonq/default.json"),
            home(".aws/amazonq/agents/*"),
            home(".aws/amazonq/cli-agents/*"),
            project(".amazonq/mcp.json"),
            project(".amazonq/default.json"),
            project(".amazonq/cli-agents/*"),
        ],
        layouts: MCP_SERVERS,
        shape: &PLAIN,
        http: Some(&HTTP_TYPED),
    },
    Host {
        id: "warp",
        title: "Warp",
        places: &[home(".warp/.mcp.json"), project(".warp/.mcp.json")],
        layouts: MCP_SERVERS,
        shape: &EXPANDING,
        http: Some(&HTTP),
    },
    Host {
        id: "kiro",
        title: "Kiro",
        places: &[
            home(".kiro/settings/mcp.json"),
            home(".kiro/agents/*"),
            project(".kiro/settings/mcp.json"),
            project(".kiro/agents/*"),
        ],
        layouts: MCP_SERVERS,
        shape: &PLAIN,
        http: Some(&HTTP_BRACES),
    },
    Host {
        id: "copilot-cli",
        title: "GitHub Copilot CLI",
        places: &[
            variable("COPILOT_HOME", ".copilot", "mcp-config.json"),
            project(".github/mcp.json"),
        ],
        layouts: MCP_SERVERS,
        shape: &COPILOT,
        http: Some(&HTTP_COPILOT),
    },
    Host {
        id: "witsy",
        title: "Witsy",
        places: &[application("Witsy/settings.json")],
        layouts: MCP_SERVERS,
        shape: &PLAIN,
        http: None,
    },
];

/// Every variable that affects where a file is. A program started without them searches elsewhere.
pub const VARIABLES: &[&str] = &[
    "APPDATA",
    "CLAUDE_CONFIG_DIR",
    "CLINE_MCP_SETTINGS_PATH",
    "CODEX_HOME",
    "CONTINUE_GLOBAL_DIR",
    "COPILOT_HOME",
    "LOCALAPPDATA",
    "OPENCODE_CONFIG",
    "OPENCODE_CONFIG_DIR",
    "XDG_CONFIG_HOME",
];

/// A file of an unknown host that a person named. It is read like most hosts' files.
pub(crate) static OTHER: Host = Host {
    id: "config",
    title: "another host",
    places: &[],
    layouts: &[
        Layout::Named(&["mcpServers"]),
        Layout::Listed(&["mcpServers"]),
        Layout::Named(&["servers"]),
        Layout::Named(&["mcp", "servers"]),
        Layout::Named(&["mcp.servers"]),
        Layout::Named(&["context_servers"]),
        Layout::Named(&["mcp_servers"]),
    ],
    shape: &PLAIN,
    http: Some(&HTTP_TYPED),
};

/// The host with this id.
pub fn host(id: &str) -> Option<&'static Host> {
    HOSTS.iter().find(|host| host.id == id)
}

#[cfg(test)]
mod tests;
