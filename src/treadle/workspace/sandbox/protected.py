"""The usual profile: what the sandbox keeps from being changed or read, and what commands need to find."""

import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path

from treadle.workspace.sandbox.ground import HIDDEN_FOLDERS, TMP
from treadle.workspace.sandbox.profile import Profile, is_within

_COVERED = """
    .git/ .gitmodules .treadle/ .mcp.json .claude/ .cursor/ .vscode/ .idea/ .envrc .husky/ .github/workflows/
    .npmrc .yarnrc .yarnrc.yml .pre-commit-config.yaml AGENTS.md CLAUDE.md GEMINI.md .cursorrules .windsurfrules .codex/
    .gemini/ .zed/ .devcontainer/ .gitlab-ci.yml .circleci/ .exrc .nvim.lua .dir-locals.el
"""
"""What acts by itself as soon as it stands in a folder. Elsewhere a name is protected only where it exists."""

_IN_HOME = """
    .ssh .aws .azure .kube .docker .gnupg .oci .password-store .config/gh .config/gcloud .config/git/credentials
    .config/op .config/rclone .config/treadle .netrc .npmrc .pypirc .git-credentials .pgpass .my.cnf .s3cfg .boto
    .terraformrc .vault-token .cargo/credentials .cargo/credentials.toml .gem/credentials .m2/settings.xml
    .gradle/gradle.properties .local/share/keyrings .mozilla .thunderbird .config/google-chrome .config/chromium
    .config/BraveSoftware .bash_history .zsh_history .python_history .node_repl_history .psql_history
"""

HOME_SECRETS = tuple(_IN_HOME.split())
"""Places in the home directory that no command reads."""

_MOST_ENTRIES = 20_000
_SKIPPED = frozenset({"node_modules", "__pycache__", ".venv", "venv", ".tox", "target", "site-packages"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Protected and masked paths found in a workspace; not `complete` when it is too large to look through."""

    protected: tuple[str, ...]
    masked: tuple[str, ...]
    complete: bool


def covered_names(root: str) -> tuple[str, ...]:
    """Give the paths in a workspace that are protected also while they do not exist; folders end in `/`."""
    return tuple(f"{root}/{name}" for name in _COVERED.split())


def survey(root: str, *, is_control: Callable[[str], bool], is_secret: Callable[[str], bool]) -> Survey:
    """Find what a workspace has of control files and secrets, level by level; both judge a path relative to it.

    What is protected or masked is not looked into, nor is what tools install.
    """
    protected: list[str] = []
    masked: list[str] = []
    folders = deque([root])
    seen = 0
    while folders and seen < _MOST_ENTRIES:
        for entry in _entries(folders.popleft()):
            seen += 1
            name = os.path.relpath(entry.path, root)
            secret, control = is_secret(name), is_control(name)
            masked += [entry.path] if secret else []
            protected += [entry.path] if control and not secret else []
            if not (secret or control) and entry.name not in _SKIPPED and entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
    return Survey(protected=tuple(protected), masked=tuple(masked), complete=not folders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where a workspace lies: its user's home, Treadle's own data, and a private folder of the session in there."""

    home: str
    data: str
    private: str
    variables: Mapping[str, str]

    def lock_of(self, root: str) -> str:
        """Name the file that the commands of a folder share."""
        return f"{self.data}/locks/{sha256(os.fsencode(root)).hexdigest()[:32]}"


def usual_profile(root: str, around: Surroundings, *found: Survey, roots: tuple[str, ...] = ()) -> Profile:
    """Build the profile that commands get when nothing else is said: they change the workspace, without a network.

    `roots` are further folders of the workspace; `found` is what there is in all of them.
    """
    scratch = (f"{around.home}/.cache",)
    return Profile(
        root=root,
        roots=roots,
        protected=tuple(
            chain(*map(covered_names, (root, *roots)), *(one.protected for one in found)),
        ),
        masked=(
            *(f"{around.home}/{name}" for name in HOME_SECRETS),
            around.data,
            *chain(*(one.masked for one in found)),
        ),
        readable=_tools((*HIDDEN_FOLDERS, TMP, *scratch), around.variables),
        scratch=scratch,
        tmp=str(Path(around.private, "tmp")),
        lock=around.lock_of(root),
        locks=tuple(map(around.lock_of, roots)),
    )


def _tools(hidden: tuple[str, ...], variables: Mapping[str, str]) -> tuple[str, ...]:
    """Give the folders of programs that lie in a hidden place."""
    named = [*variables.get("PATH", "").split(os.pathsep), variables.get("VIRTUAL_ENV", "")]
    paths = dict.fromkeys(os.path.normpath(path) for path in named if path.startswith("/"))
    return tuple(path for path in paths if any(is_within(path, folder) for folder in hidden))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(Path(folder)) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
