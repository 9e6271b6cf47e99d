"""Variables that a line sets: which are harmless, and which change what later programs do."""

import re

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import is_static
from treadle.policy.shell.dangers import VARIABLES_DANGEROUS, VARIABLES_HARMLESS
from treadle.protocol.tools import Risk

_PLAIN_VALUE = re.compile(r"[\w.@+:-]*|[A-Z]\w+(/[A-Z][\w-]+){1,2}")
"""A word, or the name of a time zone; a path would name a file to read."""


def judge_assignment(name: str, value: str) -> list[Finding]:
    """Judge one variable that is set, for one command or for the rest of the line."""
    if VARIABLES_HARMLESS.fullmatch(name):
        if is_static(value) and _PLAIN_VALUE.fullmatch(value):
            return [Finding(Risk.READ, "variable", f"{name} is harmless")]
        return [unclear("variable", f"{name} is set to something unknown or to a path")]
    if VARIABLES_DANGEROUS.fullmatch(name):
        return [dangerous("variable", f"{name} changes what later programs run or read")]
    return [Finding(Risk.EXECUTE, "variable", f"sets the variable {name}")]
