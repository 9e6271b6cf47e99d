"""Variables that a line sets: which are harmless, and which change what later programs do."""

import re

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import is_static, split_words
from treadle.policy.shell.dangers import VARIABLES_DANGEROUS, VARIABLES_HARMLESS
from treadle.protocol.tools import Risk

_PLAIN_VALUE = re.compile(r"[\w.@+:-]*|[A-Z]\w+(/[A-Z][\w-]+){1,2}")
"""A word, or the name of a time zone; a path would name a file to read."""


_OWN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_READ_BY_PROGRAMS = frozenset(
    split_words("""
    http_proxy https_proxy ftp_proxy all_proxy no_proxy rsync_proxy histchars auto_resume path fpath cdpath manpath
    mailpath module_path fignore watch prompt argv status
""")
)
"""Names in small letters that mean something after all: to programs, or to a shell (the last ones to zsh)."""


_SEARCH_PATHS = frozenset({"PYTHONPATH", "NODE_PATH"})
_OWN_FOLDERS = re.compile(r"(\./)?\w[\w-]*(/\w[\w-]*)*/?(:(\./)?\w[\w-]*(/\w[\w-]*)*/?)*")
"""Named folders below the directory that the line runs in: the code of the project."""


def _is_own(name: str) -> bool:
    if name in _READ_BY_PROGRAMS or VARIABLES_DANGEROUS.fullmatch(name):
        return False
    return _OWN_NAME.fullmatch(name) is not None


def judge_assignment(name: str, value: str, *, alone: bool = False) -> list[Finding]:
    """Judge one variable that is set, for one command or (`alone`) for the rest of the line.

    A name in small letters is by custom the line's own: no program reads it, but for those that are listed.
    """
    if alone and _is_own(name):
        return [Finding(Risk.READ, "variable", f"{name} is a variable of this line")]
    if VARIABLES_HARMLESS.fullmatch(name):
        if is_static(value) and _PLAIN_VALUE.fullmatch(value):
            return [Finding(Risk.READ, "variable", f"{name} is harmless")]
        return [unclear("variable", f"{name} is set to something unknown or to a path")]
    if name.endswith("PAGER") and value in ("", "cat"):
        return [unclear("variable", f"{name} lets nothing page; leave it out, since no pager is started here")]
    if name in _SEARCH_PATHS and _OWN_FOLDERS.fullmatch(value):
        return [unclear("variable", f"{name} lets the code of {value} be loaded")]
    if VARIABLES_DANGEROUS.fullmatch(name):
        pager = "; leave it out, since no pager is started here" if name.endswith("PAGER") else ""
        return [dangerous("variable", f"{name} changes what later programs run or read{pager}")]
    if name in _READ_BY_PROGRAMS:
        return [Finding(Risk.EXECUTE, "variable", f"sets the variable {name}, which programs or shells read")]
    return [
        Finding(
            Risk.EXECUTE,
            "variable",
            f"sets the variable {name}, which programs may read; a lower-case name would be the line's own",
        )
    ]
