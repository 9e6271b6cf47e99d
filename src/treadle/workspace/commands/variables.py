"""The environment of child processes: an allow-list, so that keys and secrets of the parent are never handed on."""

import os
import shutil
from collections.abc import Iterable, Mapping

_NAMES = """
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TMP TEMP
    XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
    VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYENV_ROOT PYENV_VERSION NVM_DIR NVM_BIN VOLTA_HOME FNM_DIR
    JAVA_HOME GOPATH GOROOT GOBIN CARGO_HOME RUSTUP_HOME GEM_HOME DOTNET_ROOT ANDROID_HOME SDKROOT
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS CURL_CA_BUNDLE
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
    SSH_AUTH_SOCK DOCKER_HOST WAYLAND_DISPLAY DISPLAY
"""
_PASSED = frozenset(_NAMES.split())

_NO_STEPS = (
    "No editor could be opened: nobody can type into a command. Nothing was rebased. Use git reset --soft and git "
    "commit, or git commit --fixup and then GIT_SEQUENCE_EDITOR=true git rebase -i --autosquash."
)
_SEQUENCE_EDITOR = (
    'e=$(git config sequence.editor || echo "${GIT_EDITOR:-true}"); case $e in true|:) '
    f'echo "{_NO_STEPS}" >&2; exit 1;; esac; eval "$e \\"\\$@\\""'
)
"""Fails where git asks for the steps of a rebase and no program gives them: taken as they are, they change nothing."""

SET_FOR_COMMANDS = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": 'sh -c "$TREADLE_SEQUENCE_EDITOR" sh',
    "TREADLE_SEQUENCE_EDITOR": _SEQUENCE_EDITOR,
    "EDITOR": "true",
    "VISUAL": "true",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PYTHONUNBUFFERED": "1",
    "TREADLE": "1",
}
"""Nothing may wait for somebody to type: no pager, no editor, no password prompt. `TREADLE` tells who runs them."""


_HARDENED_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.askPass": "",
    "log.showSignature": "false",
}
"""An external diff cannot be turned off in this way: what the repository names of such is asked about before."""

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""The object of git for a folder without files: what there is before the first commit."""

HARDENED_GIT: Mapping[str, str] = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "GIT_CONFIG_COUNT": str(len(_HARDENED_SETTINGS)),
    **{f"GIT_CONFIG_KEY_{number}": name for number, name in enumerate(_HARDENED_SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_HARDENED_SETTINGS.values())},
}
"""With these git runs no program of a repository when it only reads, also not in submodules: no monitor of files, no
hook (the index stays as it is), no pager, no check of signatures, and nothing is fetched that is missing."""


def child_variables(parent: Mapping[str, str], extra: Iterable[str] = ()) -> dict[str, str]:
    """Choose what children get of the parent's environment; the user's own settings may name `extra` variables."""
    allowed = _PASSED | frozenset(extra)
    passed = {name: value for name, value in parent.items() if name in allowed or name.startswith("LC_")}
    return {**passed, **{name: value for name, value in SET_FOR_COMMANDS.items() if name not in extra}}


def path_outside(path: str, *roots: str) -> str:
    """Leave out of a search path what lies in one of `roots` (resolved) or depends on the current directory.

    Treadle looks its own programs up there: a folder that is opened must not be able to bring them along.
    """
    inside = tuple(f"{root.rstrip('/')}/" for root in roots)
    kept = (part for part in path.split(os.pathsep) if part.startswith("/"))
    return os.pathsep.join(part for part in kept if not f"{os.path.realpath(part)}/".startswith(inside))


def find_outside(name: str, *roots: str) -> str:
    """Find a program that Treadle itself runs, outside of `roots` (resolved); empty where there is none."""
    return shutil.which(name, path=path_outside(os.environ.get("PATH", os.defpath), *roots)) or ""
