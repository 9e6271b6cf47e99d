"""The one path check: inside the workspace, outside of it, or protected."""

import posixpath
import re
import unicodedata
from enum import StrEnum
from functools import lru_cache
from urllib.parse import unquote

from msgspec import Struct

from treadle.policy.decision_context import FileKind, FileView, PolicyContext, is_below
from treadle.policy.findings import PathOp
from treadle.protocol.name_lists import ENVIRONMENT_MARK
from treadle.protocol.permissions import Reason
from treadle.protocol.protected_names import (
    GIT_DATA_NAMES,
    components,
    git_data_of,
    is_git_data,
    later_name,
    secret_name,
)

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255
_SLASHES = "\uff0f\u2044\u2215\u29f8\uff3c\ufe68\u29f5\u2216"
_LOOKALIKES = str.maketrans(
    {**dict.fromkeys(_SLASHES, "/"), **dict.fromkeys("\uff0e\u2024\ufe52", "."), "\u2025": "..", "\u2026": "..."}
)
"""Characters that some systems and programs take for slashes and dots."""
_PARTING = r"\s=:@,;\"'()"
_SOME_FOLDER = "folder"
"""What may stand before and behind a path in a word, and a name that is none of the protected ones."""
_OTHER_ROOT = re.compile(r"(?:^|/)(?:[A-Za-z]:[\\/]|\\\\)")
"""A drive, or a share of another machine."""


LISTED = "ignore-file"
"""The rule by which a path is protected that an ignore file for agents lists."""


class Where(StrEnum):
    """What a path is to the workspace, mildest first. A protected path needs a yes even inside."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    PROTECTED = "protected"


class PathCheck(Struct, frozen=True, kw_only=True):
    """The answer for one path; `resolved` is where it really leads (empty when that cannot be told)."""

    where: Where
    resolved: str
    reasons: tuple[Reason, ...]


def check_path(path: str, op: PathOp, cwd: str, context: PolicyContext) -> PathCheck:
    """Say where a path leads that was asked for. Its spelling and its resolved form are both tested (rules 27-31)."""
    roots = context.usable or usable_roots(context, context.files)
    refused = refusal(path)
    if refused is not None:
        return refused
    joined = posixpath.join(cwd, _expanded(path, context))
    lexical = _normal(joined)
    resolved = context.files.resolve(joined)
    is_inside = is_below(resolved, roots)
    # Inside the workspace, showing that a file is there tells nothing of what it holds.
    tested = () if is_inside and op is PathOp.LIST else dict.fromkeys((resolved, lexical, _normal(path)))
    for spelling in tested:
        name = _protected_name(_below(spelling, roots), spelling, op, context)
        if name is not None:
            text = f"{name} is protected from {'being changed' if op is PathOp.WRITE else 'being read'}"
            return _answer(Where.PROTECTED, resolved, "protected-path", text)
    for spelling in dict.fromkeys((resolved, lexical)):
        if listed := context.listed(spelling):
            return _answer(Where.PROTECTED, resolved, LISTED, listed)
    if is_below(lexical, ("/proc", "/dev", "/sys")) or not is_inside:
        return _answer(Where.OUTSIDE, resolved, "outside", f"{resolved} is outside the workspace")
    foreign = _folded(joined)
    if foreign != joined and not is_below(context.files.resolve(_normal(foreign)), roots):
        return _answer(Where.OUTSIDE, resolved, "outside", "the path leads outside the workspace on another system")
    return _check_file(resolved, op, context)


def _answer(where: Where, resolved: str, rule: str, text: str) -> PathCheck:
    return PathCheck(where=where, resolved=resolved, reasons=(Reason(rule=rule, text=text),))


def refusal(path: str) -> PathCheck | None:
    """Refuse a path by its form alone: empty, overlong, control, invisible or direction-changing characters."""
    if not path:
        return _answer(Where.OUTSIDE, "", "path-form", "the path is empty")
    if path.isascii() and path.isprintable() and len(path) <= MAX_NAME_BYTES:
        return None
    # A byte that is no UTF-8 is read as one of these by Python: old archives have such in their names.
    kinds = {unicodedata.category(char) for char in path if not "\udc80" <= char <= "\udcff"}
    if not kinds.isdisjoint(("Cc", "Cs")):
        return _answer(Where.OUTSIDE, "", "path-form", "the path has control characters")
    if not kinds.isdisjoint(("Cf", "Zl", "Zp")):
        return _answer(Where.PROTECTED, "", "path-form", "the path has invisible or direction-changing characters")
    encoded = path.encode(errors="surrogateescape")
    if len(encoded) > MAX_PATH_BYTES or any(len(part) > MAX_NAME_BYTES for part in encoded.split(b"/")):
        return _answer(Where.OUTSIDE, "", "path-form", "the path is too long")
    return None


def _expanded(path: str, context: PolicyContext) -> str:
    """Read `~` and `file:` the way a tool behind us might: the stricter reading counts."""
    if path.startswith(("file:/", "FILE:/")):
        return "/" + unquote(path[len("file:") :]).lstrip("/")
    if path.startswith("~"):
        return posixpath.join(context.home or "/", path[2:]) if path[1:2] in ("", "/") else f"/home/{path[1:]}"
    return path


def _folded(path: str) -> str:
    """Spell a path as it is read where `\\` separates, drives have letters, and wide dots count as dots."""
    folded = path.translate(_LOOKALIKES)
    start = max((found.end() for found in _OTHER_ROOT.finditer(folded)), default=0)
    return ("/" if start else "") + folded[start:].replace("\\", "/")


def _normal(path: str) -> str:
    return posixpath.normpath(path).replace("//", "/")


def usable_roots(context: PolicyContext, files: FileView) -> tuple[str, ...]:
    """Give the resolved roots that may be a workspace: not /, not the home directory, no ancestor of our own state."""
    kept = (context.home, *context.state)
    taken = [files.resolve(path) for path in kept if path]
    roots = [files.resolve(root) for root in context.roots]
    return tuple(root for root in roots if root != "/" and not any(is_below(path, (root,)) for path in taken))


def _below(path: str, roots: tuple[str, ...]) -> str:
    """Give the part of a path that is tested by name: below the root for what is inside, else all of it.

    A root that lies in a repository's own data or among secrets makes nothing in it less so.
    """
    root = max((root for root in roots if is_below(path, (root,))), key=len, default="")
    return path if not root or _is_kept_back(root) else path[len(root) :]


def named_part(text: str, context: PolicyContext) -> str:
    """Give what of a word or path, perhaps with unknown parts, is tested by name: a root in it says nothing.

    What climbs may leave the root that it begins with, and is tested whole.
    """
    if ".." in text.split("/"):
        return text
    roots = context.usable or usable_roots(context, context.files)
    for root in sorted((root for root in roots if root in text and not _is_kept_back(root)), key=len, reverse=True):
        text = re.sub(rf"(?<![^{_PARTING}]){re.escape(root)}(?![^/{_PARTING}])", _SOME_FOLDER, text)
    return text


@lru_cache(maxsize=64)
def _is_kept_back(root: str) -> bool:
    return ".git" in components(root) or secret_name(root) is not None


def _protected_name(tested: str, spelling: str, op: PathOp, context: PolicyContext) -> str | None:
    if is_below(spelling, (*context.state, *context.own)):
        return spelling
    if op is PathOp.WRITE:
        named = later_name(tested) or secret_name(tested) or _environment(spelling, tested, context)
        if named is None and spelling in context.hook_files:
            return f"{tested.lstrip('/')}, which a hook of the folder names,"
        if any(_is_git_data_with(name, folder, context.files) for folder, name in git_data_of(spelling)):
            return f"{tested.lstrip('/')}, by which git takes its folder for a repository,"
        return named or (spelling if spelling in ("/", context.home) else None)
    return secret_name(tested)


def _is_git_data_with(name: str, folder: str, files: FileView) -> bool:
    """Whether git takes a folder for a repository's data once it has this name, too."""
    return is_git_data({name, *(one for one in GIT_DATA_NAMES if files.facts(posixpath.join(folder, one)) is not None)})


def _environment(spelling: str, tested: str, context: PolicyContext) -> str | None:
    """Give the virtual environment that a path lies in, by the file that makes one, or None."""
    top = len(spelling) - len(tested)
    above = posixpath.dirname(spelling)
    while len(above) > top:
        if context.files.facts(posixpath.join(above, ENVIRONMENT_MARK)) is not None:
            return posixpath.basename(above)
        above = posixpath.dirname(above) if above != "/" else ""
    return None


def _check_file(resolved: str, op: PathOp, context: PolicyContext) -> PathCheck:
    path, facts = resolved, context.files.facts(resolved)
    while facts is None and len(path) > 1:
        path = posixpath.dirname(path)
        facts = context.files.facts(path)
    if facts is not None and facts.kind is FileKind.LINK:
        # One that is left in a resolved path is a loop.
        return _answer(Where.OUTSIDE, resolved, "link-loop", "a symbolic link that leads nowhere")
    if facts is not None and facts.kind is FileKind.OTHER:
        return _answer(Where.OUTSIDE, resolved, "not-a-file", "a device, socket or pipe")
    if facts is not None and facts.kind is FileKind.FILE and facts.links > 1 and op is not PathOp.LIST:
        where = Where.OUTSIDE if op is PathOp.WRITE else Where.PROTECTED
        return _answer(where, resolved, "hard-link", "the file has another name (a hard link), which may be anywhere")
    return _answer(Where.INSIDE, resolved, "inside", "inside the workspace")
