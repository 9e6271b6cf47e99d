"""find: what it lists, deletes and writes, and what it runs for what it finds."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, as_glob, split_words
from treadle.policy.operations import PathOp
from treadle.policy.shell.many import is_narrow, judge_each
from treadle.policy.shell.readers import CONTENT_FREE
from treadle.policy.shell.scene import Breadth, Scene
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
_FIND_PATTERNS = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"})
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


@dataclass(frozen=True, slots=True)
class _Search:
    """Where find starts, and the patterns of paths it is given.

    `is_narrow`: what it finds has a name that a pattern says something of.
    """

    starts: tuple[str, ...]
    patterns: tuple[str, ...]
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
    search = _Search(tuple(starts), tuple(patterns), is_narrow=is_narrow(pending))
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
    found = scene.command(tuple(part.replace("{}", UNKNOWN) for part in inner))
    for pattern in search.patterns:
        marked = as_glob(pattern)
        command = tuple(part.replace("{}", marked) for part in inner)
        found.extend(finding for finding in scene.command(command) if finding.risk is Risk.CRITICAL)
    if inner[0] not in CONTENT_FREE:
        found.extend(one for start in search.starts for one in scene.mentions(start) if one.rule == "secret-read")
    found.extend(judge_each(tuple(part.replace("{}", UNKNOWN) for part in inner), _breadth(search), scene))
    if any(finding.risk is Risk.CRITICAL for finding in found) or inner[0] in ("rm", "mv", "shred", "dd", "cp"):
        findings.extend(_reaches_out(search, scene))
    return findings + found


def _breadth(search: _Search) -> Breadth:
    return Breadth.NARROW if search.is_narrow else Breadth.WHOLE


def _reaches_out(search: _Search, scene: Scene) -> list[Finding]:
    findings = [finding for start in search.starts for finding in scene.path(start, PathOp.LIST)]
    if all(finding.risk is Risk.READ for finding in findings):
        return []
    return [dangerous("write-outside", "changes files outside the workspace")]
