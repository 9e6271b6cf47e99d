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


def judge_assignment(name: str, value: str, *, alone: bool = False) -> list[Finding]:
    """Judge one variable that is set, for one command or (`alone`) for the rest of the line.

    A name in small letters is by custom the line's own: no program reads it, but for those that are listed.
    """
    if (
        alone
        and _OWN_NAME.fullmatch(name)
        and name not in _READ_BY_PROGRAMS
        and not VARIABLES_DANGEROUS.fullmatch(name)
    ):
        return [Finding(Risk.READ, "variable", f"{name} is a variable of the line")]
    if VARIABLES_HARMLESS.fullmatch(name):
        if is_static(value) and _PLAIN_VALUE.fullmatch(value):
            return [Finding(Risk.READ, "variable", f"{name} is harmless")]
        return [unclear("variable", f"{name} is set to something unknown or to a path")]
    if VARIABLES_DANGEROUS.fullmatch(name):
        return [dangerous("variable", f"{name} changes what later programs run or read")]
    return [Finding(Risk.EXECUTE, "variable", f"sets the variable {name}")]
