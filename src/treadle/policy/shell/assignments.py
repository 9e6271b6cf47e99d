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

_OWN_WORDS = frozenset(
    split_words("""
    A B C D E F G H I J K L M N O P Q R S T U V W X Y Z AFTER ARCHIVE ARG ARGS AUTHOR BACKEND BASE BEFORE BRANCH
    BRANCHES CHANGED CLIENT CMD COMMIT COMMITS CONFIG COUNT CURRENT DATE DAYS DEFAULT DEP DEPS DIR DIRS DIRECTORY
    DOC DOCS END ENTRY ERRORS EXAMPLE EXIT EXPECTED EXT FAILED FEATURE FIELD FILE FILENAME FILES FILTER FIRST
    FOLDER FOUND FROM FRONTEND FUNC HASH HEAD ID IDX IMPORTS INDEX INFO INPUT ISSUE ITEM KIND LAST LATEST LEVEL
    LIMIT LINE LIST LOG LOGS MAIN MATCH MATCHES MAX MERGE MIN MODULE MODULES MSG NAME NAMES NEW NUM NUMBER OFFSET
    OLD OUT OUTPUT PACKAGE PACKAGES PAGE PARENT PART PATTERN PKG PLUGIN PORT PREV PREVIOUS PROJECT QUERY RANGE RC
    REF RELEASE REPO RESULT RESULTS REV REVISION ROOT SCRIPT SEARCH SERVER SERVICE SHA SIZE SRC SOURCE START
    STATUS STEP STRING SUFFIX SUM TAG TAGS TARGET TEST TESTS TEXT TITLE TODAY TODO TOP TOTAL TYPE UPSTREAM VALUE
    VER VERSION WEB WORD WORKSPACE
""")
)
"""Words of which people make the names of their own variables: no reading program and no shell looks at such a name."""


def _is_own(name: str) -> bool:
    if name in _READ_BY_PROGRAMS or VARIABLES_DANGEROUS.fullmatch(name):
        return False
    return _OWN_NAME.fullmatch(name) is not None or all(
        part.rstrip("0123456789") in _OWN_WORDS for part in name.split("_")
    )


def judge_assignment(name: str, value: str, *, alone: bool = False) -> list[Finding]:
    """Judge one variable that is set, for one command or (`alone`) for the rest of the line.

    A name in small letters is by custom the line's own: no program reads it, but for those that are listed. One in
    capitals is, when it is made of words that only people use.
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
