"""What commands hand on: inputs, operands that another command prints, and lists of files."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec.structs import replace

from treadle.policy.context import is_below
from treadle.policy.findings import Finding, dangerous
from treadle.policy.marks import UNKNOWN, is_glob, is_static, shown, word_set
from treadle.policy.shell.danger_forms import DESTRUCTIVE_VERBS
from treadle.policy.shell.expand import expand_word, expand_words
from treadle.policy.shell.readers import CONTENT_FREE
from treadle.policy.shell.shell_env import Breadth, PipedInput, ShellEnv, Trace
from treadle.policy.shell.syntax import (
    Block,
    Command,
    Literal,
    Parameter,
    Pipeline,
    Redirect,
    ShellScript,
    Simple,
    Substitution,
    Word,
)
from treadle.protocol.tools import Risk

_LETTERS = re.compile(r"[A-Za-z0-9]")
_NAMED = re.compile(r".*[*?\1\2].*[A-Za-z]|.*\.\w+")
"""A pattern that says something of a name, or a name with an ending."""

_NAME_TESTS = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"})
RUNS_FOR_EACH = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
"""Options of find that run a command for what it finds."""

_CHANGED = frozenset({"--name-only", "--name-status", "--porcelain", "-s", "--short"})
_LISTS_FILES = re.compile(r"-\w*[lL]|--files-with|--name-only")
_INVERTS = re.compile(r"-\w*[vL]|--invert|--files-without")
_EMPTIES = frozenset({"truncate", "tee", "dd", "shred", "srm"})
_REMOVES = frozenset({"rm", "unlink", "rmdir", "rimraf", "mv", "git-rm"}) | _EMPTIES
_REPLACES = _REMOVES | word_set("gzip gunzip bzip2 bunzip2 xz unxz zstd lzma lz4 compress pigz")
_BIN = re.compile(r"trash.*|rip|gomi|recycle|wastebasket|clean|clear|empty|del|erase|discard", re.IGNORECASE)
_TAKES_READING = re.compile(r"0*[0-3]?[0-3][0-7]{2}|0+|([ugoa]*-\w*r\w*|[ugoa]*=[wx]*)(,.*)?")
_IN_PLACE = re.compile(r"-\w*i.*|--in-place.*")
_DROPS_LINES = re.compile(r"(.*[\d$/!])?[dQ]")
"""What a program of sed and its like says that keeps little or nothing of a file."""

_TOUCHES_NO_FILE = word_set("[ test echo printf : true false set export local declare read shift return exit")
_POSITIONS = ("0", "1", "2", "@", "*")
"""Where a script finds the names that it is given."""

_OWN_STATE = frozenset({"git-settings", "untrusted"})
"""Rules that speak of the repository, not of what the command does."""


def is_whole(operand: str, env: ShellEnv) -> bool:
    """Whether an operand is the workspace itself or one above it, or a pattern that everything in a folder has."""
    if is_glob(operand):
        return not _LETTERS.search(posixpath.basename(operand.rstrip("/")))
    if not is_static(operand) or operand.startswith("-") or not operand or "://" in operand:
        return False
    place = env.context.home if operand == "~" else operand
    found = env.context.files.resolve(posixpath.join(env.cwd, place))
    return any(is_below(env.context.files.resolve(root), (found,)) for root in env.context.roots)


def judge_whole(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge a program that by its name or a word of its arguments removes, empties or moves: all of the folder?"""
    verbs = [word.lstrip("-").partition("=")[0] for word in words[:4] if is_static(word)]
    undoes = name in _REPLACES or any(_is_verb(word) for word in (name, *verbs))
    if name == "chmod":
        undoes = any(_TAKES_READING.fullmatch(word) for word in words[:3])
    undoes |= any(map(_IN_PLACE.fullmatch, words)) and any(map(_DROPS_LINES.fullmatch, words))
    whole = next((word for word in words if is_whole(word, env)), None) if undoes else None
    if whole is None:
        return []
    return [dangerous("delete-all", f"{name} removes, empties or moves everything that {shown(whole)} holds")]


def _is_verb(word: str) -> bool:
    return DESTRUCTIVE_VERBS.fullmatch(word) is not None or _BIN.fullmatch(word) is not None


def judge_each(inner: Sequence[str], breadth: Breadth, env: ShellEnv) -> list[Finding]:
    """Judge a command that runs with what another one lists: of a whole list only a reader may make something."""
    if not inner or not is_static(inner[0]) or inner[0] in _TOUCHES_NO_FILE:
        return []
    name = posixpath.basename(inner[0])
    text = f"{name} gets a list of files that another command prints, and may empty, move or remove them all"
    if _empties(name, inner[1:]) or (breadth is Breadth.WHOLE and not _only_reads(inner, env)):
        return [dangerous("delete-list", text)]
    each = replace(env, trace=Trace(), is_guess=True, each=tuple((name, breadth) for name in _POSITIONS))
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


def _only_reads(inner: Sequence[str], env: ShellEnv) -> bool:
    tried = tuple(word.replace(UNKNOWN, "./x") for word in inner)
    words = tried if tried != tuple(inner) else (*tried, "./x")
    found = replace(env, trace=Trace(), is_guess=True).command(words)
    return all(one.risk in (Risk.NONE, Risk.READ) or one.rule in _OWN_STATE for one in found)


def breadth_of(upstream: Sequence[Sequence[str]]) -> Breadth | None:
    """Say how much the list of files names that commands of a pipeline print; None where it is no such list."""
    if not upstream or any(command[0] == "wc" for command in upstream):
        return None
    name, *words = upstream[0]
    narrow = _is_list_narrow(posixpath.basename(name), words)
    if narrow is None:
        return None
    return Breadth.NARROW if narrow or any(map(_picks, upstream[1:])) else Breadth.WHOLE


def _is_list_narrow(name: str, words: Sequence[str]) -> bool | None:
    plain = [word for word in words if not word.startswith("-")]
    is_named = any(map(_NAMED.fullmatch, plain))
    match name:
        case "find" | "gfind":
            return is_narrow(words)
        case "git" if plain[:1] == ["grep"]:
            return _is_search_narrow(words, plain[1:])
        case "git":
            changed = not _CHANGED.isdisjoint(words)
            return is_named if plain[:1] in (["ls-files"], ["ls-tree"]) else changed or None
        case "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack":
            return _is_search_narrow(words, plain)
        case "fd" | "fdfind" | "ls" | "dir" | "tree" | "locate" | "du" | "exa" | "eza":
            return is_named
        case "printf" | "echo" if globs := [word for word in words if is_glob(word)]:
            return any(map(_LETTERS.search, globs))
        case _:
            return None


def _is_search_narrow(words: Sequence[str], plain: Sequence[str]) -> bool | None:
    """Say whether a search lists files that hold something or have a certain name, and not those that do not."""
    if "--files" in words:
        return any(map(_NAMED.fullmatch, plain))
    if not any(map(_LISTS_FILES.match, words)):
        return None
    return not any(map(_INVERTS.match, words)) and _LETTERS.search("".join(plain[:1])) is not None


def _picks(command: Sequence[str]) -> bool:
    """Whether a step of a pipeline keeps what has a certain name."""
    if posixpath.basename(command[0]) not in ("grep", "egrep", "fgrep", "rg") or any(map(_INVERTS.match, command)):
        return False
    return any(_LETTERS.search(word) for word in command[1:] if not word.startswith("-"))


def is_narrow(tests: Sequence[str]) -> bool:
    """Whether what find is told says something of the name of all that it finds."""
    depth, negated, narrow, runs = 0, False, False, False
    for test, text in pairwise((*tests, "")):
        runs = test not in (";", "+") if runs else test in RUNS_FOR_EACH
        if runs:
            continue
        depth += {"(": 1, ")": -1}.get(test, 0)
        if test in ("-o", "-or", ",") and depth == 0:
            return False
        if test in _NAME_TESTS and not negated:
            narrow |= is_static(text) and text.strip("*?./") != ""
        negated = test in ("!", "-not")
    return narrow


def fed_by(script: ShellScript, env: ShellEnv) -> PipedInput:
    """Give what a script prints as the input of something else."""
    match script.pipelines:
        case (Pipeline(commands=commands),):
            return feed_of(commands, env)
        case _:
            return PipedInput(upstream=((UNKNOWN,),))


def feed_of(commands: Sequence[Command], env: ShellEnv) -> PipedInput:
    """Give the input of what stands behind these commands of a pipeline."""
    known = (expand_words(one.words, env.variables, env.cwd) if isinstance(one, Simple) else None for one in commands)
    return PipedInput(upstream=tuple((UNKNOWN,) if words is None else words or ("",) for words in known))


_ONLY_PRINTS = CONTENT_FREE | {"printf", "test", "[", ":", "true", "false", "readlink", "realpath", "cd", "export"}


def names_secret(words: Sequence[Word], program: str, env: ShellEnv) -> list[Finding]:
    """Judge `cat $(find . -name .env)` by the names that the inner command is given."""
    if program in _ONLY_PRINTS:
        return []
    segments = (segment for word in words for segment in word.segments if isinstance(segment, Substitution))
    scripts = (segment.script for segment in segments if not segment.direction)
    inner = (one for script in scripts for pipeline in script.pipelines for one in pipeline.commands)
    given = (expand_words(one.words, env.variables, env.cwd)[1:] for one in inner if isinstance(one, Simple))
    found = (one for texts in given for text in filter(is_static, texts) for one in env.mentions(text))
    return [finding for finding in found if finding.rule == "secret-read"]


_EMPTYING = frozenset({">", ">|", "&>"})


def judge_lists(command: Simple, words: tuple[str, ...], env: ShellEnv) -> list[Finding]:
    """Judge a command by the lists of files that its words and redirections hold."""
    breadths = dict(env.each)
    findings = [found for redirect in command.redirects for found in _redirect(redirect, breadths, env)]
    if not words or not is_static(words[0]):
        return findings
    for breadth in _breadths(command.words, env):
        findings.extend(judge_each(tuple(filter(is_static, words)), breadth, env))
    if any(_prints_top(word, env) for word in command.words[1:]):
        findings.extend(judge_whole(words[0], (*filter(is_static, words[1:]), "."), env))
    for breadth in {breadths[name] for word in command.words[1:] for name in _names(word) if name in breadths}:
        findings.extend(judge_in_loop(words, breadth))
    return findings


def listed_in_loop(block: Block, feed: PipedInput, env: ShellEnv) -> tuple[tuple[str, Breadth], ...]:
    """Give the variables that a loop sets to each file of a list, and how much the list names."""
    if block.kind == "for":
        whole = [
            Breadth.WHOLE
            for word in block.words
            for value in expand_word(word, env.variables, env.cwd)
            if not is_static(value) and is_whole(value, env)
        ]
        breadths = [*_breadths(block.words, env), *whole]
        return ((block.name, max(breadths)),) if breadths else ()
    breadth = breadth_of(feed.upstream)
    if breadth is None or not block.scripts:
        return ()
    commands = (one for pipeline in block.scripts[0].pipelines for one in pipeline.commands)
    reads = [one for one in commands if isinstance(one, Simple) and one.words and one.words[0].text == "read"]
    return tuple((word.text, breadth) for one in reads for word in one.words[1:] if word.text.isidentifier())


def _breadths(words: tuple[Word, ...], env: ShellEnv) -> Iterator[Breadth]:
    """Give the breadth of each `$(…)` outside quotes that prints a list."""
    for word in words:
        for segment in word.segments:
            if isinstance(segment, Substitution) and not segment.quoted:
                breadth = breadth_of(fed_by(segment.script, env).upstream)
                yield from () if breadth is None else (breadth,)


def _prints_top(word: Word, env: ShellEnv) -> bool:
    """Whether a word is the folder of the whole repository."""
    match word.segments:
        case (Substitution(script=script),) | (Literal(text=""), Substitution(script=script)):
            return fed_by(script, env).upstream == (("git", "rev-parse", "--show-toplevel"),)
        case _:
            return False


def _redirect(redirect: Redirect, breadths: dict[str, Breadth], env: ShellEnv) -> Iterator[Finding]:
    """Judge what empties a file: each of a list, or whatever a pattern without a name stands for."""
    if redirect.operator not in _EMPTYING:
        return
    parts = [
        part for part in redirect.target.segments if part not in (Literal("", quoted=True), Literal("", quoted=False))
    ]
    is_each = len(parts) == 1 and not breadths.keys().isdisjoint(_names(redirect.target))
    targets = expand_word(redirect.target, env.variables, env.cwd)
    if is_each or any(not is_static(target) and is_whole(target, env) for target in targets):
        yield dangerous("delete-list", f"empties each file that {redirect.target.text} stands for")


def _names(word: Word) -> Iterator[str]:
    yield from (segment.name for segment in word.segments if isinstance(segment, Parameter))
