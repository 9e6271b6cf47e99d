"""Many files at once: which commands print lists of them, and what no command may do with each of a list."""

import posixpath
import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from treadle.policy.findings import Finding, dangerous
from treadle.policy.marks import UNKNOWN, is_glob, is_static, shown, split_words
from treadle.policy.shell.judging.scene import Breadth, Scene, Trace
from treadle.policy.shell.tables.danger_forms import DESTRUCTIVE_VERBS
from treadle.protocol.tools import Risk

_LETTERS = re.compile(r"[A-Za-z0-9]")
_NAMED = re.compile(r".*[*?\1\2].*[A-Za-z]|.*\.\w+")
"""A pattern that says something of a name, or a name with an ending."""

_NAME_TESTS = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"})
_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_CHANGED = frozenset({"--name-only", "--name-status", "--porcelain", "-s", "--short"})
_EMPTIES = frozenset({"truncate", "tee", "dd", "shred", "srm"})
_REMOVES = frozenset({"rm", "unlink", "rmdir", "rimraf", "mv", "git-rm"}) | _EMPTIES
_REPLACES = _REMOVES | frozenset(split_words("gzip gunzip bzip2 bunzip2 xz unxz zstd lzma lz4 compress pigz"))
_BIN = re.compile(r"trash.*|rip|gomi|recycle|wastebasket|clean|clear|empty|del|erase|discard", re.IGNORECASE)
_TAKES_READING = re.compile(r"0*[0-3]?[0-3][0-7]{2}|0+|([ugoa]*-\w*r\w*|[ugoa]*=[wx]*)(,.*)?")
_IN_PLACE = re.compile(r"-\w*i.*|--in-place.*")
_DROPS_LINES = re.compile(r"(.*[\d$/!])?[dQ]")
"""What a program of sed and its like says that keeps little or nothing of a file."""

_TOUCHES_NO_FILE = frozenset(
    split_words("[ test echo printf : true false set export local declare read shift return exit")
)
_POSITIONS = ("0", "1", "2", "@", "*")
"""Where a script finds the names that it is given."""

_OWN_STATE = frozenset({"git-settings", "untrusted"})
"""Rules that speak of the repository, not of what the command does."""


def is_whole(operand: str, scene: Scene) -> bool:
    """Whether an operand is the workspace itself or one above it, or a pattern that everything in a folder has."""
    if is_glob(operand):
        return not _LETTERS.search(posixpath.basename(operand.rstrip("/")))
    if not is_static(operand) or operand.startswith("-") or not operand or "://" in operand:
        return False
    place = scene.context.home if operand == "~" else operand
    tops = [scene.context.files.resolve(root) + "/" for root in scene.context.roots]
    found = scene.context.files.resolve(posixpath.join(scene.cwd, place)).rstrip("/") + "/"
    return any(top.startswith(found) for top in tops)


def judge_whole(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge a program that by its name or a word of its arguments removes, empties or moves: all of the folder?"""
    verbs = [word.lstrip("-").partition("=")[0] for word in words[:4] if is_static(word)]
    undoes = name in _REPLACES or any(_is_verb(word) for word in (name, *verbs))
    if name == "chmod":
        undoes = any(_TAKES_READING.fullmatch(word) for word in words[:3])
    undoes |= any(map(_IN_PLACE.fullmatch, words)) and any(map(_DROPS_LINES.fullmatch, words))
    whole = next((word for word in words if is_whole(word, scene)), None) if undoes else None
    if whole is None:
        return []
    return [dangerous("delete-all", f"{name} removes, empties or moves everything that {shown(whole)} holds")]


def _is_verb(word: str) -> bool:
    return DESTRUCTIVE_VERBS.fullmatch(word) is not None or _BIN.fullmatch(word) is not None


def judge_each(inner: Sequence[str], breadth: Breadth, scene: Scene) -> list[Finding]:
    """Judge a command that runs with what another one lists: of a whole list only a reader may make something."""
    if not inner or not is_static(inner[0]) or inner[0] in _TOUCHES_NO_FILE:
        return []
    name = posixpath.basename(inner[0])
    text = f"{name} gets a list of files that another command prints, and may empty, move or remove them all"
    if _empties(name, inner[1:]) or (breadth is Breadth.WHOLE and not _only_reads(inner, scene)):
        return [dangerous("delete-list", text)]
    each = replace(scene, trace=Trace(), is_guess=True, each=tuple((name, breadth) for name in _POSITIONS))
    return [one for one in each.command(tuple(inner)) if one.rule == "delete-list"] if "-c" in inner else []


def judge_in_loop(words: Sequence[str], breadth: Breadth) -> list[Finding]:
    """Judge a command in a loop over a list that is given the name of each file."""
    name = posixpath.basename(words[0])
    if _empties(name, words[1:]) or (breadth is Breadth.WHOLE and (name in _REMOVES or _is_verb(name))):
        return [dangerous("delete-list", f"{name} empties, moves or removes each file of a list")]
    return []


def _empties(name: str, words: Sequence[str]) -> bool:
    if name in ("chmod", "cp"):
        return any(_TAKES_READING.fullmatch(word) if name == "chmod" else word == "/dev/null" for word in words[:3])
    return name in _EMPTIES


def _only_reads(inner: Sequence[str], scene: Scene) -> bool:
    tried = tuple(word.replace(UNKNOWN, "./x") for word in inner)
    words = tried if tried != tuple(inner) else (*tried, "./x")
    found = replace(scene, trace=Trace(), is_guess=True).command(words)
    return all(one.risk in (Risk.NONE, Risk.READ) or one.rule in _OWN_STATE for one in found)


def breadth_of(upstream: Sequence[Sequence[str]]) -> Breadth | None:
    """Say how much the list of files names that commands of a pipeline print; None where it is no such list."""
    if not upstream or any(command[0] == "wc" for command in upstream):
        return None
    name, *words = upstream[0]
    breadth = _listed(posixpath.basename(name), words)
    if breadth is Breadth.WHOLE and any(_picks(command) for command in upstream[1:]):
        return Breadth.NARROW
    return breadth


def _listed(name: str, words: Sequence[str]) -> Breadth | None:
    match name:
        case "find" | "gfind":
            return Breadth.NARROW if is_narrow(words) else Breadth.WHOLE
        case "git":
            return _listed_by_git([word for word in words if word != "--no-pager"])
        case "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack":
            return _searched(words)
        case "fd" | "fdfind":
            return _narrow_if(any(_LETTERS.search(word) for word in words if not word.startswith("-")))
        case "ls" | "dir" | "tree" | "locate" | "du" | "exa" | "eza":
            return _narrow_if(any(_NAMED.fullmatch(word) for word in words if not word.startswith("-")))
        case "printf" | "echo":
            globs = [word for word in words if is_glob(word)]
            return _narrow_if(any(map(_LETTERS.search, globs))) if globs else None
        case _:
            return None


def _listed_by_git(words: Sequence[str]) -> Breadth | None:
    command, rest = "".join(words[:1]), words[1:]
    plain = [word for word in rest if not word.startswith("-")]
    if command == "ls-files":
        return _narrow_if(any(_NAMED.fullmatch(word) for word in plain))
    if command == "ls-tree":
        return _narrow_if(any(_NAMED.fullmatch(word) for word in plain[1:]))
    if command == "grep":
        return _searched(rest)
    return Breadth.NARROW if not _CHANGED.isdisjoint(rest) else None


def _searched(words: Sequence[str]) -> Breadth | None:
    """Say what a search lists: the files that hold something, or those with a certain name."""
    flags = {word.partition("=")[0] for word in words if word.startswith("--")}
    letters = {letter for word in words if re.match(r"-[A-Za-z]", word) for letter in word[1:]}
    if "--files" in flags:
        return _narrow_if(bool(letters & {"g", "t"}) or not flags.isdisjoint({"--glob", "--type", "--iglob"}))
    if not letters & {"l", "L"} and flags.isdisjoint({"--files-with-matches", "--files-without-match", "--name-only"}):
        return None
    inverted = letters & {"L", "v"} or flags & {"--files-without-match", "--invert-match"}
    pattern = next((word for word in words if not word.startswith("-")), "")
    return _narrow_if(not inverted and _LETTERS.search(pattern) is not None)


def _picks(command: Sequence[str]) -> bool:
    """Whether a step of a pipeline keeps what has a certain name."""
    if posixpath.basename(command[0]) not in ("grep", "egrep", "fgrep", "rg"):
        return False
    inverted = any(re.match(r"-\w*v|--invert", word) for word in command[1:])
    return not inverted and any(_LETTERS.search(word) for word in command[1:] if not word.startswith("-"))


def _narrow_if(narrow: bool) -> Breadth:  # noqa: FBT001 - the answer in other words
    return Breadth.NARROW if narrow else Breadth.WHOLE


def is_narrow(tests: Sequence[str]) -> bool:
    """Whether what find is told says something of the name of all that it finds."""
    depth, negated, narrow, runs = 0, False, False, False
    for test, text in pairwise((*tests, "")):
        runs = test not in (";", "+") if runs else test in _RUNS
        if runs:
            continue
        depth += {"(": 1, ")": -1}.get(test, 0)
        if test in ("-o", "-or", ",") and depth == 0:
            return False
        if test in _NAME_TESTS and not negated:
            narrow |= is_static(text) and text.strip("*?./") != ""
        negated = test in ("!", "-not")
    return narrow
