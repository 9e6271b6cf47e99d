"""What commands find of the home directory, which is hidden but for this list: programs, no data and no credentials."""

import contextlib
import os
import pwd
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from treadle.protocol.name_lists import SECRETS_IN_SHOWN, SHOWN_OF_HOME
from treadle.protocol.protected_names import secret_name
from treadle.workspace.commands.variables import find_outside
from treadle.workspace.files.paths import Listed, NoFolder, Unlisted, list_folder
from treadle.workspace.files.private_file import write_private
from treadle.workspace.sandbox.profile import is_within

_SCRATCH = ".cache .npm .yarn/berry .local/share/pnpm/store .node-gyp .gradle/daemon"
_NEEDED = (".cache", ".npm")
SCRATCH = tuple(_SCRATCH.split())
"""Places there that commands may write, each a folder of the session; but for two only where the user has them."""

_GIT_SETTINGS = (".gitconfig", ".config/git/config")
_HARMLESS = (
    *("user.name", "user.email", "user.useconfigonly", "init.", "pull.", "push.default", "push.autosetupremote"),
    *("merge.", "diff.", "alias.", "color.", "branch.", "rebase.", "commit.", "tag.", "log.", "status.", "fetch."),
    *("column.", "advice.", "rerere.", "i18n.", "format.pretty", "blame.", "grep.", "index.", "feature.", "safe."),
    *("core.autocrlf", "core.eol", "core.safecrlf", "core.excludesfile", "core.attributesfile", "core.quotepath"),
    *("core.whitespace", "core.filemode", "core.ignorecase", "core.precomposeunicode", "core.symlinks"),
    *("core.abbrev", "core.commentchar", "core.untrackedcache", "filter.lfs.", "gpg.format", "user.signingkey"),
)
"""Beginnings of the settings of git that hold no credential; the rest of the user's settings is left out."""

_PATIENCE = 2.0
_SYSTEM_SECRETS = (
    *("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
    *("/etc/ssl/private", "/etc/wireguard", "/etc/NetworkManager/system-connections", "/etc/krb5.keytab"),
    *("/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key"),
    *("/var/lib/docker", "/var/lib/kubelet", "/etc/kubernetes", "/var/spool/cron", "/var/mail", "/var/backups"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The part of a profile that is about the home directory and the like."""

    hidden: tuple[str, ...]
    masked: tuple[str, ...]
    shown: tuple[str, ...]
    replaced: tuple[tuple[str, str], ...]
    scratch: tuple[tuple[str, str], ...]


def home_for(
    home: str, private: str, variables: Mapping[str, str], *, roots: Sequence[str], environments: Sequence[str]
) -> Home:
    """Say what is hidden and shown where a workspace has these `roots` and virtual `environments`.

    A home directory that is itself a root of the workspace, or above all of the system, is not hidden.
    """
    hidden = tuple(folder for folder in _homes(home) if folder != "/" and folder not in roots)
    shown = {
        *(f"{each}/{name}" for each in (home, *_own_homes(home)) for name in SHOWN_OF_HOME),
        *_toolchains(variables, environments, hidden),
        *(folder for folder in (sys.prefix, sys.base_prefix) if _is_narrow(folder, hidden)),
    }
    visible = tuple(_outermost({os.path.realpath(path) for path in shown}, hidden, roots))
    return Home(
        hidden=hidden,
        masked=(
            *(path for path in _SYSTEM_SECRETS if os.access(path, os.R_OK)),
            *(secret for path in visible for secret in _secrets_in(path)),
        ),
        shown=visible,
        replaced=tuple(_git_settings(home, private, roots)) if home in hidden else (),
        scratch=tuple(
            (path, f"{private}/caches/{name}")
            for path, name in _caches(home, variables)
            if Path(path).is_dir() or (home in hidden and name in _NEEDED)
        ),
    )


def _outermost(shown: Iterable[str], hidden: Sequence[str], roots: Sequence[str]) -> Iterator[str]:
    """Leave out what is shown anyway: with a folder above it, in the workspace, or because nothing hides it."""
    above = "/\0"
    for path in sorted(shown):
        inside = any(is_within(path, root) for root in roots) or is_within(path, above)
        covered = any(is_within(path, cover) for cover in (*hidden, *_TEMPORARY))
        if covered and not inside and _is_narrow(path, hidden) and os.path.lexists(path):
            above = path
            yield path


def _secrets_in(shown: str) -> Iterator[str]:
    """Find credentials in a place that is shown: at its top by their names, deeper where they are known to lie."""
    yield from (path for path in _below(shown, ["*"]) if path == shown or secret_name(Path(path).name))
    for pattern in SECRETS_IN_SHOWN:
        yield from _below(shown, pattern.split("/"))


def _below(folder: str, names: Sequence[str]) -> Iterator[str]:
    """Find what lies below a folder by names, `*` for any; what cannot be listed on the way is not shown either."""
    if not names:
        yield from (path for path in (folder,) if os.path.lexists(path))
    elif names[0] != "*":
        yield from _below(f"{folder}/{names[0]}", names[1:])
    else:
        match list_folder(folder, follow=True):
            case Listed(entries=entries):
                for entry in entries:
                    yield from _below(f"{folder}/{entry.name}", names[1:])
            case Unlisted():
                yield folder
            case NoFolder():
                pass


def _own_homes(home: str) -> list[str]:
    """Give the user's home directories: the one that is named, and the one of the account."""
    named = [os.path.realpath(home)]
    with contextlib.suppress(KeyError):
        named.append(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
    return named


def _homes(home: str) -> list[str]:
    """Give the home directories that could be read: the user's, and those of others."""
    found = [path for path in (*_own_homes(home), "/home", "/root") if Path(path).is_dir() and os.access(path, os.X_OK)]
    return list(dict.fromkeys(found))


def _caches(home: str, variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Pair each folder that is written for a time with a name for the session's own."""
    for name in SCRATCH:
        yield f"{home}/{name}", name.replace("/", "-")
    elsewhere = os.path.normpath(variables.get("XDG_CACHE_HOME", ""))
    if elsewhere.startswith("/") and not is_within(elsewhere, f"{home}/.cache") and Path(elsewhere).is_dir():
        yield os.path.realpath(elsewhere), "xdg"


def _toolchains(variables: Mapping[str, str], environments: Sequence[str], hidden: Sequence[str]) -> Iterator[str]:
    """Give the folders of programs that lie in a hidden place, or in /tmp."""
    covers = (*hidden, *_TEMPORARY)
    for folder in _absolute(variables.get("PATH", "").split(os.pathsep)):
        for each in (folder, os.path.realpath(folder)):
            environment = str(Path(each).parent)
            if os.path.lexists(f"{environment}/pyvenv.cfg") or os.path.lexists(f"{environment}/conda-meta"):
                yield from _environment(environment, covers)
            if _is_narrow(each, hidden) and any(is_within(each, cover) for cover in covers):
                yield each
    for folder in _absolute((variables.get("VIRTUAL_ENV", ""), variables.get("CONDA_PREFIX", ""), *environments)):
        yield from _environment(folder, covers)


_TEMPORARY = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - to find what lies there


def _environment(folder: str, covers: Sequence[str]) -> Iterator[str]:
    """Give a virtual environment, and the installation of Python that it names."""
    if any(is_within(folder, cover) and folder != cover for cover in covers):
        yield folder
    named = _named_home(folder)
    base = str(Path(named).parent)
    for each in (base, os.path.realpath(base)) if named else ():
        if any(is_within(each, cover) and each != cover for cover in covers):
            yield each


def _named_home(environment: str) -> str:
    """Read the folder of the interpreter that a virtual environment was made with; empty for none."""
    try:
        lines = Path(environment, "pyvenv.cfg").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    pairs = (line.partition("=")[::2] for line in lines)
    found = next((value.strip() for name, value in pairs if name.strip() == "home"), "")
    return os.path.normpath(found) if found.startswith("/") else ""


def _absolute(folders: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(os.path.normpath(folder) for folder in folders if folder.startswith("/")))


def _is_narrow(folder: str, hidden: Sequence[str]) -> bool:
    """Whether to show a folder shows no hidden one whole, nor a folder of settings."""
    if any(is_within(cover, folder) for cover in (*hidden, *_TEMPORARY)):
        return False
    return Path(folder).name not in (".config", ".ssh", ".aws", ".gnupg", ".local", "share")


def _git_settings(home: str, private: str, roots: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Write what is harmless of the user's settings of git into files that are shown in their place."""
    for name in _GIT_SETTINGS:
        path = f"{home}/{name}"
        try:
            facts = Path(path).stat()
        except OSError:
            continue
        stamp = sha256(f"{path} {facts.st_mtime_ns} {facts.st_size} {facts.st_ino}".encode()).hexdigest()[:24]
        file = Path(private, f"git-settings-{stamp}")
        if not file.exists():
            write_private(file, _harmless_settings(path, roots), mode=0o400)
        yield path, str(file)


def _harmless_settings(path: str, roots: Sequence[str]) -> bytes:
    """Read settings with git's own reader, which runs nothing, and write down again those that hold no credential."""
    try:
        done = subprocess.run(
            (find_outside("git", *roots), "config", "--list", "--null", "--includes", "--file", path),
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
            env={"PATH": os.defpath, "HOME": str(Path(path).parent)},
            cwd="/",
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return b"".join(filter(None, map(_written, done.stdout.split(b"\0"))))


def _written(setting: bytes) -> bytes:
    """Write one setting, `section.subsection.name` and its value, as git reads it; empty for one to leave out."""
    key, has_value, value = setting.partition(b"\n")
    if not key.lower().startswith(tuple(each.encode() for each in _HARMLESS)):
        return b""
    section, _, rest = key.partition(b".")
    subsection, _, name = rest.rpartition(b".")
    head = b'[%s "%s"]' % (section, _escaped(subsection)) if subsection else b"[%s]" % section
    return head + b"\n\t" + (name + b' = "' + _escaped(value) + b'"' if has_value else name) + b"\n"


def _escaped(text: bytes) -> bytes:
    for plain, written in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\t", b"\\t")):
        text = text.replace(plain, written)
    return text
