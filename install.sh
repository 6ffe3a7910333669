#!/bin/sh
# Installs Holdpoint for the user who runs it. See --help, and docs/install.md for all that it does.
set -eu

usage() {
    cat <<'TEXT'
usage: install.sh [--yes] [--dry-run] [--help]

Installs `holdpoint` into ~/.local/bin, shows which MCP servers of which hosts it would guard, and guards them if you
say yes. Then it offers a watcher that looks after servers you add later. It needs no root and sends nothing anywhere.

  --yes       ask nothing: install, guard every server found, and install the watcher so that it guards by itself
  --dry-run   show what would be done, and do nothing
  --help      this text

The archive is the one beside this script. Another one, a file or an https address, is named by

  HOLDPOINT_ARCHIVE=FILE|URL

with SHA256SUMS (and SHA256SUMS.sig) in the same folder. A signed release is installed only if its signature can be
checked, which needs openssl 3; HOLDPOINT_SKIP_SIGNATURE=1 goes on with the sums alone. Root is refused, unless
HOLDPOINT_ALLOW_ROOT=1 says that there is nobody else, as in a container. Take it all back with `holdpoint uninstall`.
TEXT
}

# The public key that releases are signed with, in PEM. Empty in the source tree: scripts/dist puts it in.
release_key=''

say() { printf '%s\n' "$*"; }
fail() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

# confirm QUESTION: yes or no, from the terminal also where the script itself comes through a pipe.
confirm() {
    $yes && return 0
    printf '%s [y/N] ' "$1" >/dev/tty
    read -r reply </dev/tty || return 1
    case $reply in
    y | Y | yes | Yes | YES) return 0 ;;
    *) return 1 ;;
    esac
}

target() {
    case $(uname -s) in
    Linux) system=unknown-linux ;;
    Darwin) system=apple-darwin ;;
    *) fail "no archive is made for $(uname -s): build it with \`cargo install --profile dist --path cli\`" ;;
    esac
    case $(uname -m) in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "no archive is made for $(uname -m): build it with \`cargo install --profile dist --path cli\`" ;;
    esac
    printf '%s-%s' "$machine" "$system"
}

# The archive beside the script. A script that comes through a pipe has no folder.
beside() {
    case $0 in
    */*) folder=${0%/*} ;;
    *) folder=. ;;
    esac
    [ -f "$folder/install.sh" ] || return 0
    for candidate in "$folder"/holdpoint-*-"$(target)"*.tar.gz; do
        [ -f "$candidate" ] && printf '%s' "$candidate" && return 0
    done
    return 0
}

# fetch ADDRESS FILE
fetch() {
    if has curl; then
        curl --proto '=https' --tlsv1.2 --fail --silent --show-error --location --output "$2" "$1"
    elif has wget; then
        wget --https-only --quiet --output-document="$2" "$1"
    else
        fail "neither curl nor wget is there to fetch \`$1\`"
    fi
}

sum_of() {
    if has sha256sum; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif has shasum; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    else
        fail "neither sha256sum nor shasum is there to check the archive with"
    fi
}

# Gets archive, sums and signature into the work folder.
get_archive() {
    archive=${HOLDPOINT_ARCHIVE:-$(beside)}
    [ -n "$archive" ] || fail "no archive: put it and SHA256SUMS beside this script, or set HOLDPOINT_ARCHIVE"
    name=${archive##*/}
    source_folder=.
    case $archive in
    */*) source_folder=${archive%/*} ;;
    esac
    case $archive in
    https://*)
        fetch "$archive" "$work/$name"
        fetch "$source_folder/SHA256SUMS" "$work/SHA256SUMS"
        fetch "$source_folder/SHA256SUMS.sig" "$work/SHA256SUMS.sig" 2>/dev/null || rm -f "$work/SHA256SUMS.sig"
        ;;
    *://*) fail "\`$archive\`: only https addresses are fetched" ;;
    *)
        [ -f "$archive" ] || fail "\`$archive\` is not there"
        [ -f "$source_folder/SHA256SUMS" ] || fail "\`$source_folder/SHA256SUMS\` is not there: the archive cannot be checked"
        cp "$archive" "$source_folder/SHA256SUMS" "$work"
        [ ! -f "$source_folder/SHA256SUMS.sig" ] || cp "$source_folder/SHA256SUMS.sig" "$work"
        ;;
    esac
}

# Nothing of the archive is unpacked before this has passed.
check_archive() {
    expected=$(while read -r sum file; do
        [ "${file#\*}" != "$name" ] || printf '%s' "$sum"
    done <"$work/SHA256SUMS")
    [ -n "$expected" ] || fail "SHA256SUMS does not name \`$name\`"
    [ "$(sum_of "$work/$name")" = "$expected" ] || fail "\`$name\` is not what SHA256SUMS says: nothing was installed"
    say "checked: $name is what SHA256SUMS says"
    if [ -z "$release_key" ]; then
        say "not checked: who made SHA256SUMS (this script has no release key)"
        return
    fi
    [ -f "$work/SHA256SUMS.sig" ] || fail "SHA256SUMS.sig is not there: this script installs signed releases only"
    if [ "${HOLDPOINT_SKIP_SIGNATURE:-}" = 1 ]; then
        say "not checked: the signature of SHA256SUMS (HOLDPOINT_SKIP_SIGNATURE is set)"
        return
    fi
    if ! has openssl || ! openssl pkeyutl -help 2>&1 | grep -q rawin; then
        fail "the signature of SHA256SUMS cannot be checked: install openssl 3, or set HOLDPOINT_SKIP_SIGNATURE=1 to go on without"
    fi
    printf '%s\n' "$release_key" >"$work/release-key.pem"
    openssl pkeyutl -verify -pubin -inkey "$work/release-key.pem" -rawin -in "$work/SHA256SUMS" \
        -sigfile "$work/SHA256SUMS.sig" >/dev/null 2>&1 ||
        fail "SHA256SUMS is not signed with the release key: nothing was installed"
    say "checked: SHA256SUMS is signed with the release key"
}

unpack() {
    mkdir "$work/unpacked"
    tar -xzf "$work/$name" -C "$work/unpacked"
    new=$(find "$work/unpacked" -type f -name holdpoint | head -n 1)
    [ -n "$new" ] || fail "\`$name\` has no holdpoint in it"
    version=$("$new" --version) || fail "\`$name\` is for another system"
}

install_binary() {
    mkdir -p "$bin"
    # Into place in one step: a host may start it at this moment.
    cp "$new" "$bin/.holdpoint.new"
    chmod 755 "$bin/.holdpoint.new"
    mv -f "$bin/.holdpoint.new" "$bin/holdpoint"
    say "installed $version: $bin/holdpoint"
}

# Runs a command that asks, with the terminal as its input.
at_terminal() {
    if $yes; then
        "$@" </dev/null
    else
        "$@" </dev/tty
    fi
}

wire() {
    if $yes; then
        at_terminal "$bin/holdpoint" wire --yes && return
    else
        at_terminal "$bin/holdpoint" wire && return
    fi
    say "not every server is guarded: \`holdpoint doctor\` says what is wrong"
}

watcher() {
    if $yes; then
        "$bin/holdpoint" watch --install --auto || say "no watcher was installed"
    elif confirm "Install the watcher? It tells you of servers that you add later."; then
        "$bin/holdpoint" watch --install || say "no watcher was installed"
    fi
}

# All of it is read before any of it is run: a script that was cut off on its way does nothing.
main() {
    yes=false
    dry_run=false
    for argument in "$@"; do
        case $argument in
        --yes) yes=true ;;
        --dry-run) dry_run=true ;;
        --help)
            usage
            exit 0
            ;;
        *)
            echo "install.sh: unknown option \`$argument\`" >&2
            usage >&2
            exit 2
            ;;
        esac
    done
    [ -n "${HOME:-}" ] || fail "HOME is not set"
    bin=$HOME/.local/bin
    if [ "$(id -u)" = 0 ] && [ "${HOLDPOINT_ALLOW_ROOT:-}" != 1 ]; then
        fail "run it as the user whose hosts are to be guarded, not as root (in a container that has only root: HOLDPOINT_ALLOW_ROOT=1)"
    fi
    if ! $yes && ! $dry_run && ! (: </dev/tty) 2>/dev/null; then
        fail "there is no terminal to ask at: use --yes, or --dry-run to look first"
    fi
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM

    get_archive
    check_archive
    unpack
    # Files of a project that this may be called in are shared with others: they are for whoever types `holdpoint wire` there.
    cd "$HOME"
    if $dry_run; then
        say "would install $version into $bin"
        say "would guard:"
        "$new" wire --dry-run --program "$bin/holdpoint" </dev/null || true
        say "would offer the watcher, a service of yours: holdpoint watch --install"
        exit 0
    fi
    confirm "Install $version into $bin?" || fail "nothing was installed"
    install_binary
    wire
    watcher
    case :${PATH:-}: in
    *":$bin:"*) ;;
    *) say "add it to your shell's profile: export PATH=\"$bin:\$PATH\"" ;;
    esac
    say "restart your hosts. Then look: holdpoint status"
    say "see it hold something: holdpoint demo     take it all back: holdpoint uninstall"
}

main "$@"
