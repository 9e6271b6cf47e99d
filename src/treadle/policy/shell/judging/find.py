"""find: what it lists, deletes and writes, and what it runs for what it finds."""

import re
from collections.abc import Sequence
from itertools import pairwise

from treadle.policy.findings import Finding, PathOp, dangerous, unclear
from treadle.policy.marks import UNKNOWN, as_glob, split_words
from treadle.policy.shell.judging.lists import is_narrow, judge_each
from treadle.policy.shell.judging.scene import Breadth, Scene
from treadle.policy.shell.tables.readers import CONTENT_FREE
from treadle.protocol.tools import Risk

_FLAGS = frozenset(
    split_words(
        "-print -print0 -ls -prune -quit -depth -mount -xdev -empty -executable -readable -writable -not -a -and -o -or"
        " ! ( ) , -true -false -P"
    )
)
_VALUES = frozenset(
    split_words("""
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -size -mtime -mmin -atime -amin
    -ctime -cmin -maxdepth -mindepth -perm -user -group -links -printf -newermt
""")
)
_PATTERN = re.compile(r"-i?(name|path|wholename|regex)|-iwholename")
_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def judge_find(_name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge one find command line."""
    findings = [Finding(Risk.READ, "reader", "find only lists")]
    pending = [word for word in words if word != "-P"]
    first = next((place for place, word in enumerate(pending) if word[:1] in ("-", "(", "!")), len(pending))
    starts, pending = pending[:first], pending[first:]
    places = [found for start in starts for found in scene.path(start, PathOp.LIST)]
    breadth = Breadth.NARROW if is_narrow(pending) else Breadth.WHOLE
    texts = (text.replace("\\", "").replace(".*", "*") for test, text in pairwise(pending) if _PATTERN.fullmatch(test))
    names = [UNKNOWN, *map(as_glob, texts)]
    changes = False
    while pending:
        word = pending.pop(0)
        if word in _VALUES:
            del pending[:1]
        elif word in _RUNS:
            inner = _command(pending)
            ran = _run(inner, names, breadth, scene)
            findings.extend([Finding(Risk.EXECUTE, "wrapper", f"find {word} runs a command for what it finds"), *ran])
            if inner[:1] and inner[0] not in CONTENT_FREE:
                named = (one for start in starts for one in scene.mentions(start))
                findings.extend(one for one in named if one.rule == "secret-read")
            changes |= any(one.risk is Risk.CRITICAL for one in ran) or inner[:1] in (["rm"], ["mv"], ["dd"], ["cp"])
        elif word == "-delete":
            changes = True
            findings.append(Finding(Risk.EXECUTE, "delete", "find -delete deletes files"))
            if breadth is Breadth.WHOLE:
                findings.append(dangerous("delete-tree", "deletes everything below the directory"))
        elif word not in _FLAGS:
            text = f"find: {word!r} is not a test or action known to be harmless"
            findings.extend([unclear("unknown-option", text), *scene.mentions(word)])
            if word.startswith(("-fprint", "-fls")) and pending:
                findings.extend(scene.path(pending[0], PathOp.WRITE))
    if changes and any(found.risk is not Risk.READ for found in places):
        findings.append(dangerous("write-outside", "changes files outside the workspace"))
    return findings + places


def _command(pending: list[str]) -> list[str]:
    """Take the command that is run off what is left of the line."""
    inner: list[str] = []
    while pending:
        part = pending.pop(0)
        if part == ";" or (part == "+" and inner and inner[-1] == "{}"):
            break
        inner.append(part)
    return inner


def _run(inner: Sequence[str], names: Sequence[str], breadth: Breadth, scene: Scene) -> list[Finding]:
    """Judge a command that is run with each name that may be found; the first one stands for any."""
    if not inner:
        return []
    filled = [tuple(part.replace("{}", name) for part in inner) for name in names]
    found = [*scene.command(filled[0]), *judge_each(filled[0], breadth, scene)]
    named = (one for command in filled[1:] for one in scene.command(command))
    return [*found, *(one for one in named if one.risk is Risk.CRITICAL)]
