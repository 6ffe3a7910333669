//! The options of launchers, as closed lists. After an option that is in none of them, it is
//! unknown which word is the package.

/// Words separated by spaces, to keep the tables below readable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words(&'static str);

impl Words {
    pub(super) fn contains(self, word: &str) -> bool {
        self.0.split_ascii_whitespace().any(|known| known == word)
    }
}

/// A launcher's own options, which precede the thing it runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Options without a value. Several may be combined in one word (`-it`).
    pub(super) switches: Words,
    /// Options followed by a value.
    pub(super) valued: Words,
    /// Options whose value is the thing to run. The launcher reads no options of its own after it.
    pub(super) last: Words,
}

/// Options whose value is code or a command line, also as `--option=value`.
const CODE: Words = Words("--call --code --command --eval --execute --print --run --split-string");

impl Options {
    /// The index of the first word that is neither an option nor an option's value. Returns `None`
    /// if there is none, or if an option before it is unknown: that option might take the next word
    /// as its value.
    pub(super) fn operand_place(&self, words: &[&str]) -> Option<usize> {
        let mut rest = words.iter().enumerate();
        while let Some((place, word)) = rest.next() {
            if *word == "--" || self.last.contains(word) {
                return rest.next().map(|(place, _)| place);
            }
            if !word.starts_with('-') {
                return Some(place);
            }
            if self.takes_next(word)? {
                rest.next();
            }
        }
        None
    }

    /// Whether the word after an option is its value. Returns `None` if the option is unknown.
    fn takes_next(&self, option: &str) -> Option<bool> {
        if self.valued.contains(option) || self.switches.contains(option) {
            return Some(self.valued.contains(option));
        }
        if option.starts_with("--") {
            let (name, _) = option.split_once('=')?;
            return (!CODE.contains(name)).then_some(false);
        }
        let letters = option.strip_prefix('-').filter(|letters| !letters.is_empty())?;
        for (at, letter) in letters.char_indices() {
            let short = format!("-{letter}");
            if self.valued.contains(&short) {
                return Some(at + letter.len_utf8() == letters.len());
            }
            if !self.switches.contains(&short) {
                return None;
            }
        }
        Some(false)
    }
}

/// Programs that run another program, package, file or line of code named by their arguments.
const LAUNCHERS: Words = Words(
    "asdf bash bun bunx cargo cmd conda dash deno docker doppler dotenv dotenvx dotnet env fastmcp \
    fish flatpak go hatch java just ksh kubectl make mamba mcp mcp-proxy mcp-remote micromamba \
    mise nerdctl nice nix nix-shell node nodejs nohup npm npx op pdm perl php pipenv pipx pixi \
    pnpm pnpx podman poetry powershell pwsh ruby rye setsid sh ssh sshpass stdbuf sudo \
    supergateway timeout uv uvx wsl zsh",
);

/// Whether a program, by its base name, runs what its arguments name.
pub(super) fn is_launcher(name: &str) -> bool {
    let is_python = name.starts_with("python") || name == "py";
    is_python || LAUNCHERS.contains(name) || ["yarn", "tsx", "ts-node"].contains(&name)
}

pub(super) const NPM: Options = Options {
    switches: Words(
        "-B -D -E -O -P -S -a -d -f -g -q -s -v -y --all --audit --bun --color --force \
        --foreground-scripts --fund --global --ignore-existing --ignore-scripts \
        --include-workspace-root --legacy-peer-deps --no --no-audit --no-color --no-fund \
        --no-install --no-package-lock --no-progress --no-save --no-update-notifier \
        --no-workspaces --no-yes --offline --prefer-offline --prefer-online --progress --quiet \
        --silent --strict-peer-deps --verbose --workspaces --yes",
    ),
    valued: Words(
        "-C -p -w --allow-build --auth-type --before --ca --cache --cafile --cpu --fetch-retries \
        --fetch-timeout --globalconfig --https-proxy --include --libc --loglevel --maxsockets \
        --node-arg --node-options --noproxy --omit --os --otp --package --prefix --proxy \
        --registry --reporter --scope --script-shell --tag --user-agent --userconfig --workspace",
    ),
    last: Words(""),
};

/// `uv` and `uvx`, including what follows `uv run` and `uv tool run`.
pub(super) const UV: Options = Options {
    switches: Words(
        "-U -n -q -s -v --active --all-extras --all-groups --all-packages --compile-bytecode --dev \
        --exact --frozen --gui-script --inexact --isolated --lfs --locked --managed-python \
        --native-tls --no-active --no-binary --no-build --no-build-isolation --no-cache \
        --no-compile-bytecode --no-config --no-default-groups --no-dev --no-editable --no-env-file \
        --no-index --no-managed-python --no-native-tls --no-offline --no-preview --no-progress \
        --no-project --no-python-downloads --no-refresh --no-reinstall --no-sources --no-sync \
        --no-upgrade --offline --only-dev --preview --quiet --refresh --reinstall --script \
        --show-resolution --system-certs --upgrade --verbose",
    ),
    valued: Words(
        "-C -P -b -c -f -i -p -w --allow-insecure-host --build-constraint --build-constraints \
        --cache-dir --color --config-file --config-setting --config-settings \
        --config-settings-package --constraint --constraints --default-index --directory \
        --env-file --exclude-newer --exclude-newer-package --extra --extra-index-url --find-links \
        --fork-strategy --from --group --index --index-strategy --index-url --keyring-provider \
        --link-mode --no-binary-package --no-build-isolation-package --no-build-package --no-extra \
        --no-group --no-sources-package --only-group --override --overrides --package --prerelease \
        --preview-features --project --python --python-fetch --python-platform --python-preference \
        --refresh-package --reinstall-package --resolution --torch-backend --trusted-host \
        --upgrade-package --with --with-editable --with-requirements",
    ),
    last: Words("-m --module"),
};

pub(super) const PIPX: Options = Options {
    switches: Words(
        "-q -v --fetch-missing-python --no-cache --path --pypackages --quiet --system-site-packages \
        --verbose",
    ),
    valued: Words("-i --backend --index-url --pip-args --python --spec --with"),
    last: Words(""),
};

/// `poetry`, `pdm`, `hatch`, `rye` and `pipenv`.
pub(super) const PROJECT: Options = Options {
    switches: Words(
        "-I -n -q -v --ansi --no-ansi --no-cache --no-color --no-interaction --no-plugins --quiet \
        --verbose",
    ),
    valued: Words(
        "-C -P -c -e -p --cache-dir --config --data-dir --directory --env --env-file --project \
        --pyproject --python",
    ),
    last: Words("-m --module"),
};

pub(super) const SSH: Options = Options {
    switches: Words("-4 -6 -A -C -K -M -N -T -X -Y -a -f -g -k -n -q -t -v -x -y"),
    valued: Words("-B -D -E -F -I -J -L -P -R -S -W -b -c -e -i -l -m -o -p -w"),
    last: Words(""),
};

pub(super) const CONTAINER_EXEC: Options = Options {
    switches: Words("-d -i -t --detach --interactive --privileged --tty"),
    valued: Words("-e -u -w --detach-keys --env --env-file --preserve-fds --user --workdir"),
    last: Words(""),
};

pub(super) const CONTAINER_RUN: Options = Options {
    switches: Words(
        "-P -d -i -q -t --detach --disable-content-trust --init --interactive --no-healthcheck \
        --no-hosts --oom-kill-disable --privileged --publish-all --quiet --read-only \
        --read-only-tmpfs --replace --rm --rmi --rootfs --sig-proxy --tls-verify --tty \
        --use-api-socket",
    ),
    valued: Words(
        "-a -c -e -h -l -m -p -u -v -w --add-host --annotation --arch --attach --authfile \
        --blkio-weight --blkio-weight-device --cap-add --cap-drop --cgroup-parent --cgroupns \
        --cgroups --cidfile --conmon-pidfile --cpu-count --cpu-percent --cpu-period --cpu-quota \
        --cpu-rt-period --cpu-rt-runtime --cpu-shares --cpus --cpuset-cpus --cpuset-mems --creds \
        --detach-keys --device --device-cgroup-rule --device-read-bps --device-read-iops \
        --device-write-bps --device-write-iops --dns --dns-opt --dns-option --dns-search \
        --domainname --entrypoint --env --env-file --expose --gpus --group-add --health-cmd \
        --health-interval --health-retries --health-start-interval --health-start-period \
        --health-timeout --hostname --io-maxbandwidth --io-maxiops --ip --ip6 --ipc --isolation \
        --kernel-memory --label --label-file --link --link-local-ip --log-driver --log-opt \
        --mac-address --memory --memory-reservation --memory-swap --memory-swappiness --mount \
        --name --net --net-alias --network --network-alias --oom-score-adj --os --pid --pids-limit \
        --platform --pod --publish --pull --restart --runtime --sdnotify --secret --security-opt \
        --shm-size --stop-signal --stop-timeout --storage-opt --subgidname --subuidname --sysctl \
        --systemd --timeout --tmpfs --tz --ulimit --umask --user --userns --uts --variant --volume \
        --volume-driver --volumes-from --workdir",
    ),
    last: Words(""),
};

pub(super) const PYTHON: Options = Options {
    switches: Words("-B -E -I -O -P -R -S -b -d -q -s -u -v -x -2 -3"),
    valued: Words("-W -X --check-hash-based-pycs"),
    last: Words("-m"),
};

pub(super) const NODE: Options = Options {
    switches: Words(
        "--abort-on-uncaught-exception --allow-addons --allow-child-process --allow-wasi \
        --allow-worker --bun --enable-source-maps --enable-network-family-autoselection \
        --experimental-detect-module --experimental-eventsource --experimental-import-meta-resolve \
        --experimental-network-inspection --experimental-permission --experimental-require-module \
        --experimental-sqlite --experimental-strip-types --experimental-transform-types \
        --experimental-vm-modules --experimental-wasm-modules --experimental-webstorage \
        --experimental-websocket --experimental-worker --expose-gc --expose_gc --force-fips \
        --frozen-intrinsics --harmony --hot --insecure-http-parser --inspect --inspect-brk \
        --inspect-wait --jitless --network-family-autoselection --no-addons --no-deprecation \
        --no-experimental-detect-module --no-experimental-fetch --no-experimental-global-navigator \
        --no-experimental-require-module --no-experimental-strip-types --no-experimental-websocket \
        --no-experimental-webstorage --no-install --no-network-family-autoselection --no-warnings \
        --openssl-legacy-provider --pending-deprecation --permission --preserve-symlinks \
        --preserve-symlinks-main --prof --silent --smol --throw-deprecation --trace-deprecation \
        --trace-exit --trace-sigint --trace-sync-io --trace-tls --trace-uncaught --trace-warnings \
        --track-heap-objects --use-bundled-ca --use-env-proxy --use-openssl-ca --use-system-ca \
        --verify-base-objects --watch --watch-preserve-output --zero-fill-buffers",
    ),
    valued: Words(
        "-C -r --conditions --cwd --diagnostic-dir --disable-proto --disable-warning \
        --dns-result-order --env-file --env-file-if-exists --experimental-config-file \
        --experimental-default-type --experimental-loader --heapsnapshot-near-heap-limit \
        --heapsnapshot-signal --icu-data-dir --import --input-type --inspect-port --loader \
        --localstorage-file --max-http-header-size --openssl-config --preload --redirect-warnings \
        --report-dir --report-directory --report-filename --report-signal --require --secure-heap \
        --title --tls-cipher-list --tls-keylog --trace-event-categories --trace-event-file-pattern \
        --tsconfig --unhandled-rejections --use-largepages --watch-path",
    ),
    last: Words(""),
};

/// `tsx` and `ts-node`.
pub(super) const TYPESCRIPT: Options = Options {
    switches: Words(
        "-T --clear-screen --emit --enable-source-maps --esm --files --include --no-cache \
        --no-warnings --pretty --swc --transpile-only --transpileOnly",
    ),
    valued: Words(
        "-C -O -P -r --compiler-options --conditions --cwd --env-file --import --loader --project \
        --require --tsconfig",
    ),
    last: Words(""),
};

pub(super) const DENO: Options = Options {
    switches: Words(
        "-A -E -I -N -R -S -W -q -r --allow-all --allow-env --allow-ffi --allow-hrtime \
        --allow-import --allow-net --allow-read --allow-run --allow-scripts --allow-sys \
        --allow-write --cached-only --check --coverage --deny-env --deny-ffi --deny-net \
        --deny-read --deny-run --deny-sys --deny-write --env-file --env --frozen --inspect \
        --inspect-brk --inspect-wait --lock --no-check --no-clear-screen --no-code-cache \
        --no-config --no-lock --no-npm --no-prompt --no-remote --node-modules-dir --quiet --reload \
        --unstable --unstable-bare-node-builtins --unstable-broadcast-channel --unstable-byonm \
        --unstable-cron --unstable-detect-cjs --unstable-ffi --unstable-fs --unstable-http \
        --unstable-kv --unstable-net --unstable-node-globals --unstable-otel --unstable-process \
        --unstable-sloppy-imports --unstable-temporal --unstable-unsafe-proto --unstable-webgpu \
        --unstable-worker-options --vendor --watch --watch-hmr",
    ),
    valued: Words(
        "-L -c --cert --conditions --config --ext --import-map --location --log-level \
        --minimum-dependency-age --preload --seed --watch-exclude",
    ),
    last: Words(""),
};

pub(super) const SHELL: Options = Options {
    switches: Words(
        "-B -C -E -H -P -T -a -b -e -f -h -k -l -m -p -u -v -x --login --noediting --noprofile \
        --norc --posix --restricted --verbose",
    ),
    valued: Words("-O -o --init-file --rcfile"),
    last: Words(""),
};

/// Options that `ruby`, `perl` and `php` share.
pub(super) const INTERPRETER: Options =
    Options { switches: Words("-W -q -w"), valued: Words(""), last: Words("") };

/// `mcp run` and `fastmcp run`.
pub(super) const MCP: Options = Options {
    switches: Words("--no-banner --reload --skip-env --skip-source"),
    valued: Words(
        "-e -f -l -p -t --env-file --host --log-level --path --port --project --python --transport \
        --with --with-editable --with-requirements",
    ),
    last: Words(""),
};

pub(super) const MCP_REMOTE: Options = Options {
    switches: Words("--allow-http --debug --enable-proxy --silent"),
    valued: Words(
        "--auth-timeout --header --host --ignore-tool --resource --static-oauth-client-info \
        --static-oauth-client-metadata --transport",
    ),
    last: Words(""),
};

pub(super) const ENV: Options = Options {
    switches: Words("- -0 -i -v --debug --ignore-environment --null"),
    valued: Words("-C -P -u --chdir --unset"),
    last: Words(""),
};
