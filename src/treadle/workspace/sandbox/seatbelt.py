"""The profile of macOS' own sandbox (`sandbox-exec`): pure text, from the facts about what is there.

Later rules win over earlier ones. It has no mounts: secrets cannot be opened instead of reading as empty, /tmp is
closed but for a folder of the session, and nothing can be shown that is not there.
"""

from collections.abc import Iterator, Sequence

from treadle.workspace.sandbox.present import Present
from treadle.workspace.sandbox.profile import Profile

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper", "/dev/fd")
_TEMPORARY = ("/private/tmp", "/private/var/tmp", "/private/var/folders")


def seatbelt(profile: Profile, present: Present) -> tuple[str, ...]:
    """Build the command line that goes before the command's own."""
    git = (f"GIT_CONFIG_GLOBAL={file}" for _, file in profile.replaced[:1])
    variables = (f"TMPDIR={profile.tmp}", f"XDG_CACHE_HOME={profile.tmp}/cache", *git)
    return (SANDBOX_EXEC, "-p", profile_text(profile, present), "/usr/bin/env", *variables)


def profile_text(profile: Profile, present: Present) -> str:
    """Write the rules."""
    return "\n".join(_rules(profile, present)) + "\n"


def _rules(profile: Profile, present: Present) -> Iterator[str]:
    settings = (file for _, file in profile.replaced)
    shown = (*profile.folders, *present.readable, *present.writable, profile.tmp, *settings)
    yield "(version 1)"
    yield "(allow default)"
    yield "(deny file-write*)"
    yield from _rule("deny", "file-read*", (*present.hidden, *_TEMPORARY))
    yield from _rule("allow", "file-read*", shown)
    yield from _rule("allow", "file-read-metadata", present.hidden)
    written = (*(profile.folders if profile.change_root else ()), *present.writable, profile.tmp)
    yield from _rule("allow", "file-write*", written)
    yield from _rule("allow", "file-write-data", _DEVICES, exact=True)
    yield from _rule("deny", "file-write*", present.protected)
    yield from _rule("allow", "file-write*", [path for path in present.writable if path not in present.protected])
    yield from _rule("deny", "file-read* file-write*", present.masked)
    if not profile.network:
        yield "(deny network*)"
    else:
        yield "(deny network-outbound (remote unix-socket))"
    yield "(deny file-write-setugid)"
    yield "(deny process-info* (target others))"
    yield "(deny signal (target others))"
    yield "(allow signal (target same-sandbox))"
    yield "(deny mach-priv-task-port)"
    yield "(deny appleevent-send)"


def _rule(verdict: str, operations: str, paths: Sequence[str], *, exact: bool = False) -> Iterator[str]:
    if paths:
        kind = "literal" if exact else "subpath"
        yield f"({verdict} {operations} {' '.join(f'({kind} {_quoted(path)})' for path in paths)})"


def _quoted(path: str) -> str:
    """Quote a path as a string of the language, which knows escapes for these alone."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
