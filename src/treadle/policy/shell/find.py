"""find: what it lists, deletes and writes, and what it runs for what it finds."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, as_glob, is_static, split_words
from treadle.policy.operations import PathOp
from treadle.policy.shell.listing import SEARCHES, Use, listed_by, name_like, names_no_secret
from treadle.policy.shell.readers import CONTENT_FREE, readers
from treadle.policy.shell.scene import Feed, Scene
from treadle.protocol.tools import Risk

_FIND_FLAGS = frozenset(
    split_words("""
    -print -print0 -ls -prune -quit -depth -d -mount -xdev -daystart -empty -executable -readable -writable -nouser
    -nogroup -true -false -not -a -and -o -or ! ( ) , -noleaf -ignore_readdir_race -P
""")
)
_FIND_VALUES = frozenset(
    split_words("""
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -mmin -atime
    -amin -ctime -cmin -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -printf -newermt -newerct -used
    -lname -ilname -fstype -O
""")
)
_FIND_READS = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})
_FIND_WRITES = frozenset({"-fprint", "-fprint0", "-fls", "-fprintf"})
_FIND_BRANCHES = frozenset({"-o", "-or", "!", "-not", ","})
_FIND_PATTERNS = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"})
_FIND_DESTROYERS = frozenset({"rm", "unlink", "shred", "truncate", "dd"})
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


@dataclass(frozen=True, slots=True)
class _Search:
    """Where find starts, and the patterns of paths and `names` it is given.

    `is_plain`: it finds files only, no links, and only those that all the patterns fit. `is_narrow`: what it finds has
    a name that a pattern says something of.
    """

    starts: tuple[str, ...]
    patterns: tuple[str, ...]
    names: tuple[str, ...] = ()
    is_plain: bool = False
    before: tuple[str, ...] = ()
    is_narrow: bool = False


def judge_find(_name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge one find command line."""
    findings = [Finding(Risk.READ, "reader", "find only lists")]
    starts: list[str] = []
    pending = list(words)
    while (pending and pending[0] in ("-P", "-H", "-L", "-D")) or (pending and pending[0].startswith("-O")):
        if pending.pop(0) != "-P":
            findings.append(unclear("unknown-option", "find follows links or prints its plan"))
    while pending and not (pending[0].startswith("-") or pending[0] in ("(", "!")):
        starts.append(pending.pop(0))
    for start in starts:
        findings.extend(scene.path(start, PathOp.LIST))
    patterns = [text for test, text in pairwise(pending) if test in _FIND_PATTERNS]
    patterns += [
        text.replace("\\", "").replace(".*", "*") for test, text in pairwise(pending) if test.endswith("regex")
    ]
    has_files_only = ("-type", "f") in pairwise(pending)
    branches = not _FIND_BRANCHES.isdisjoint(pending)
    names = [name for test, name in pairwise(pending) if test in ("-name", "-iname")]
    plain = has_files_only and not branches
    runs = next((place for place, word in enumerate(words) if word in _FIND_RUNS), len(words))
    search = _Search(
        tuple(starts),
        tuple(patterns),
        tuple(names),
        is_plain=plain,
        before=tuple(words[:runs]),
        is_narrow=_is_narrow(pending),
    )
    while pending:
        findings.extend(_find_step(pending, search, scene))
    return findings


def _find_step(pending: list[str], search: _Search, scene: Scene) -> list[Finding]:
    word = pending.pop(0)
    if word in _FIND_FLAGS:
        return []
    if word in _FIND_VALUES or re.fullmatch(r"-newer[aBcmt]{2}", word):
        if pending:
            pending.pop(0)
        return []
    if word in _FIND_READS:
        return scene.path(pending.pop(0), PathOp.READ) if pending else []
    if word in _FIND_WRITES:
        findings = scene.path(pending.pop(0), PathOp.WRITE) if pending else []
        if word == "-fprintf" and pending:
            pending.pop(0)
        return [*findings, Finding(Risk.WRITE, "writer", f"find {word} writes a file")]
    if word == "-delete":
        return _find_delete(search, scene)
    if word in _FIND_RUNS:
        return _find_run(word, pending, search, scene)
    return [unclear("unknown-option", f"find: {word!r} is not a known test or action"), *scene.mentions(word)]


def _is_narrow(tests: Sequence[str]) -> bool:
    depth, negated, narrow = 0, False, False
    for test, text in pairwise((*tests, "")):
        depth += {"(": 1, ")": -1}.get(test, 0)
        if test in ("-o", "-or", ",") and depth == 0:
            return False
        if test in _FIND_PATTERNS and not negated:
            narrow |= is_static(text) and text.strip("*?./") != ""
        negated = test in ("!", "-not")
    return narrow


def _find_delete(search: _Search, scene: Scene) -> list[Finding]:
    findings = [Finding(Risk.EXECUTE, "delete", "find -delete deletes files")]
    if not search.is_narrow:
        findings.append(dangerous("delete-tree", "deletes everything below the directory, whatever its name"))
    return findings + _reaches_out(search, scene)


def _find_run(word: str, pending: list[str], search: _Search, scene: Scene) -> list[Finding]:
    inner: list[str] = []
    while pending:
        part = pending.pop(0)
        if part == ";" or (part == "+" and inner and inner[-1] == "{}"):
            break
        inner.append(part)
    findings = [Finding(Risk.EXECUTE, "wrapper", f"find {word} runs a command for what it finds")]
    if not inner:
        return findings
    if word == "-exec" and (reading := _reads_found(inner, search, scene) or _reads_listed(inner, search, scene)):
        return reading
    found = scene.command(tuple(part.replace("{}", UNKNOWN) for part in inner))
    for pattern in search.patterns:
        marked = as_glob(pattern)
        command = tuple(part.replace("{}", marked) for part in inner)
        found.extend(finding for finding in scene.command(command) if finding.risk is Risk.CRITICAL)
    if inner[0] not in CONTENT_FREE:
        found.extend(one for start in search.starts for one in scene.mentions(start) if one.rule == "secret-read")
    if inner[0] in _FIND_DESTROYERS and not search.is_narrow:
        found.append(dangerous("delete-tree", f"{inner[0]} destroys everything below the directory, whatever its name"))
    if any(finding.risk is Risk.CRITICAL for finding in found) or inner[0] in ("rm", "mv", "shred", "dd", "cp"):
        findings.extend(_reaches_out(search, scene))
    return findings + found


def _reads_found(inner: list[str], search: _Search, scene: Scene) -> list[Finding]:
    """Judge a reader of what find finds by a file that it could find; empty where more than reading is possible.

    What it finds begins with where it starts, so that it is never taken for an option.
    """
    starts = search.starts or (".",)
    if not (all(map(is_static, starts)) and _takes_whole_names(inner)):
        return []
    if inner[0] not in CONTENT_FREE:
        if not search.is_plain or not search.names or inner[0] not in readers():
            return []
        if not all(map(names_no_secret, search.names)):
            return []
    name = name_like(search.names[0]) if search.names else "x"
    found = [
        finding
        for start in starts
        for finding in scene.command(
            tuple(posixpath.join(start, posixpath.basename(name)) if part == "{}" else part for part in inner)
        )
    ]
    return _only_reading(found)


def _reads_listed(inner: list[str], search: _Search, scene: Scene) -> list[Finding]:
    """Judge a reader by the files that find finds now; empty where more than reading is possible."""
    if not _takes_whole_names(inner):
        return []
    feed = Feed(upstream=(("find", *search.before),), lists_in=scene.cwd)
    use = Use.NAME if inner[0] in CONTENT_FREE else Use.SEARCH if inner[0] in SEARCHES else Use.READ
    listing = listed_by(replace(scene, feed=feed), use)
    if listing is None:
        return []
    found = scene.command(tuple(listing.sample if part == "{}" else part for part in inner))
    return _only_reading(found)


def _takes_whole_names(inner: Sequence[str]) -> bool:
    """Whether a command is known, but for the names that stand in it as words of their own."""
    return all(map(is_static, inner)) and not any("{}" in part and part != "{}" for part in inner)


def _only_reading(found: list[Finding]) -> list[Finding]:
    return found if all(finding.risk in (Risk.NONE, Risk.READ) for finding in found) else []


def _reaches_out(search: _Search, scene: Scene) -> list[Finding]:
    findings = [finding for start in search.starts for finding in scene.path(start, PathOp.LIST)]
    if all(finding.risk is Risk.READ for finding in findings):
        return []
    return [dangerous("write-outside", "changes files outside the workspace")]
