"""What commands hand on: inputs, and lists of files; and which commands may destroy what they are given."""

import posixpath
import re
from collections.abc import Sequence
from itertools import pairwise, takewhile

from msgspec.structs import replace

from treadle.policy.decision_context import is_below
from treadle.policy.findings import Finding, dangerous
from treadle.policy.marks import UNKNOWN, is_glob, is_static, shown, word_set
from treadle.policy.rules import Trace
from treadle.policy.shell.danger_forms import DESTRUCTIVE_VERBS
from treadle.policy.shell.expand import expand_word, expand_words
from treadle.policy.shell.readers import CONTENT_FREE
from treadle.policy.shell.shell_env import PipedInput, ShellEnv
from treadle.policy.shell.syntax import (
    Block,
    Command,
    Literal,
    Parameter,
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

_GIT_LISTS = frozenset({"ls-files", "ls-tree", "grep"})
_LISTS = word_set("ls-files ls-tree fd fdfind ls dir tree locate du exa eza rg find gfind")
"""Programs, and subcommands of git, that print the names of the files that their words stand for."""

_WIDENS = frozenset({",", "!", "-not"})
_SEARCHES = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "ack"})
_LISTS_FILES = re.compile(r"-\w*[lL]|--files-with|--name-only")
_INVERTS = re.compile(r"-\w*[vL]|--invert|--files-without")
_CHANGED = frozenset({"--name-only", "--name-status", "--porcelain", "-s", "--short"})
_EMPTIES = frozenset({"truncate", "tee", "dd", "shred", "srm"})
_DESTROYS_DATA = frozenset({"rm", "unlink", "truncate", "shred", "srm", "dropdb"})
_DATABASE = re.compile(r"(?!-).*\.(sqlite3?|db3?|rdb|mdb|duckdb|realm)")
_REPLACES = _EMPTIES | word_set("mv unlink rmdir rimraf gzip gunzip bzip2 bunzip2 xz unxz zstd lzma lz4 compress pigz")
_REMOVES = re.compile(
    rf"{DESTRUCTIVE_VERBS.pattern}|trash.*|rip|gomi|recycle|wastebasket|clean|clear|empty|del|discard", re.IGNORECASE
)
_TAKES_READING = re.compile(r"0*[0-3]?[0-3][0-7]{2}|0+|([ugoa]*-\w*r\w*|[ugoa]*=[wx]*)(,.*)?")
_IN_PLACE = re.compile(r"-\w*i.*|--in-place.*")
_DROPS_LINES = re.compile(r"(.*[\d$/!])?[dQ]")
"""What a program of sed and its like says that keeps little or nothing of a file."""

_PRINTS = word_set("[ test echo printf : true false export")
_TOUCHES_NO_FILE = _PRINTS | word_set("set local declare read shift return exit")
_POSITIONS = ("0", "1", "2", "@", "*")
"""Where a script finds the names that it is given."""


def is_whole(operand: str, env: ShellEnv) -> bool:
    """Whether an operand is the workspace itself or one above it, or a pattern that everything in a folder has."""
    if is_glob(operand):
        return not _LETTERS.search(posixpath.basename(operand.rstrip("/"))) and not env.throws_away(operand)
    if not is_static(operand) or operand.startswith("-") or not operand or "://" in operand:
        return False
    place = env.context.home if operand == "~" else operand
    found = env.context.files.resolve(posixpath.join(env.cwd, place))
    return any(is_below(env.context.files.resolve(root), (found,)) for root in env.context.roots)


def judge_whole(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge a program that may destroy what it is given: is that all of the folder, or a database?"""
    whole = next((word for word in words if is_whole(word, env)), None) if _destroys(name, words) else None
    data = next((word for word in words if _DATABASE.fullmatch(word)), None) if name in _DESTROYS_DATA else None
    if whole is not None:
        return [dangerous("delete-all", f"{name} removes, empties or moves everything that {shown(whole)} holds")]
    return [dangerous("data-loss", f"{name} destroys {shown(data)}, which looks like a database")] if data else []


def judge_each(words: Sequence[str], env: ShellEnv, *, names_all: bool, in_loop: bool = False) -> list[Finding]:
    """Judge a command that is given each file of a list; a whole one only a loop may give to more than readers."""
    if not words or not is_static(words[0]) or words[0] in _TOUCHES_NO_FILE:
        return []
    name = posixpath.basename(words[0])
    harms = _destroys if names_all else _empties
    if harms(name, words[1:]) or (names_all and not in_loop and not _only_reads(words, env)):
        text = f"{name} is given each file of a list, and may empty, move or remove them all"
        return [dangerous("delete-list", text)]
    each = replace(env, trace=Trace(), is_guess=True, each=tuple((name, names_all) for name in _POSITIONS))
    return [one for one in each.command(tuple(words)) if one.rule == "delete-list"] if "-c" in words else []


def _destroys(name: str, words: Sequence[str]) -> bool:
    """Whether a program by its name or its first words removes, moves, packs or empties what it is given."""
    told = [word.lstrip("-").partition("=")[0] for word in words[:4] if is_static(word)]
    drops_lines = any(map(_IN_PLACE.fullmatch, words)) and any(map(_DROPS_LINES.fullmatch, words))
    return drops_lines or name in _REPLACES or _empties(name, words) or any(map(_REMOVES.fullmatch, (name, *told)))


def _empties(name: str, words: Sequence[str]) -> bool:
    if name in ("chmod", "cp"):
        return any(_TAKES_READING.fullmatch(word) if name == "chmod" else word == "/dev/null" for word in words[:3])
    return name in _EMPTIES


def _only_reads(inner: Sequence[str], env: ShellEnv) -> bool:
    tried = tuple(word.replace(UNKNOWN, "./x") for word in inner)
    words = tried if tried != tuple(inner) else (*tried, "./x")
    found = replace(env, trace=Trace(), is_guess=True).command(words)
    return all(one.risk in (Risk.NONE, Risk.READ) or one.rule == "untrusted" for one in found)


def lists_all(upstream: Sequence[Sequence[str]]) -> bool | None:
    """Whether the list of files that a pipeline prints names all there is; None where it prints no such list."""
    if not upstream or any(command[0] == "wc" for command in upstream):
        return None
    first, *steps = upstream
    name, words = posixpath.basename(first[0]), first[1:]
    if name == "git":
        name, words = next((word for word in words if word in _GIT_LISTS), ""), words[1:]
        if not name:
            return None if _CHANGED.isdisjoint(words) else False
    prints = name in ("printf", "echo") and any(map(is_glob, words))
    searches = name in _SEARCHES and "--files" not in words
    if not (prints or name in _LISTS) and not (searches and any(map(_LISTS_FILES.match, words))):
        return None
    narrow = is_narrow(words) or (not searches and any(map(_NAMED.fullmatch, words)))
    picks = [step[1:] for step in steps if posixpath.basename(step[0]) in _SEARCHES]
    return not (narrow and _WIDENS.isdisjoint(words)) and not any(map(_picks, [*picks, words] if searches else picks))


def _picks(words: Sequence[str]) -> bool:
    """Whether a search keeps what holds something, or has a certain name."""
    pattern = next((word for word in words if not word.startswith("-")), "")
    return _LETTERS.search(pattern) is not None and not any(map(_INVERTS.match, words))


def is_narrow(tests: Sequence[str]) -> bool:
    """Whether what find is told says something of the name of all that it finds."""
    told = list(takewhile(lambda word: word not in RUNS_FOR_EACH, tests))
    named = [text for test, text in pairwise(told) if test in _NAME_TESTS and text.strip("*?./") and is_static(text)]
    return _WIDENS.isdisjoint(told) and len(named) > sum(test in ("-o", "-or") for test in told)


def fed_by(script: ShellScript, env: ShellEnv) -> PipedInput:
    """Give what a script prints as the input of something else."""
    if len(script.pipelines) != 1:
        return PipedInput(upstream=((UNKNOWN,),))
    return PipedInput(upstream=tuple(piped_words(command, env) for command in script.pipelines[0].commands))


def piped_words(command: Command, env: ShellEnv) -> tuple[str, ...]:
    """Give the words of a command for what stands behind it in a pipeline."""
    return expand_words(command.words, env.variables, env.cwd) or ("",) if isinstance(command, Simple) else (UNKNOWN,)


def names_secret(words: Sequence[Word], program: str, env: ShellEnv) -> list[Finding]:
    """Judge `cat $(find . -name .env)` by the names that the inner command is given."""
    if program in _PRINTS | CONTENT_FREE:
        return []
    segments = (segment for word in words for segment in word.segments if isinstance(segment, Substitution))
    scripts = (segment.script for segment in segments if not segment.direction)
    inner = (one for script in scripts for pipeline in script.pipelines for one in pipeline.commands)
    texts = (text for command in inner for text in piped_words(command, env)[1:] if is_static(text))
    return [found for text in texts for found in env.mentions(text) if found.rule == "secret-read"]


def judge_lists(command: Simple, words: tuple[str, ...], env: ShellEnv) -> list[Finding]:
    """Judge a command by the lists of files that its words and redirections hold."""
    each = dict(env.each)
    emptied = [redirect.target.text for redirect in command.redirects if _empties_each(redirect, env)]
    findings = [dangerous("delete-list", f"empties each file that {text} stands for") for text in emptied]
    if not words or not is_static(words[0]):
        return findings
    known = tuple(filter(is_static, words))
    for names_all in _printed_lists(command.words, env):
        findings.extend(judge_each(known, env, names_all=names_all))
    if any(word.text.rstrip('"` )').endswith("--show-toplevel") for word in command.words[1:]):
        findings.extend(judge_whole(words[0], (*known[1:], "."), env))
    named = (one for word in command.words[1:] for one in word.segments if isinstance(one, Parameter))
    for names_all in {each[one.name] for one in named if one.name in each}:
        findings.extend(judge_each(words, env, names_all=names_all, in_loop=True))
    return findings


def listed_in_loop(block: Block, feed: PipedInput, env: ShellEnv) -> tuple[tuple[str, bool], ...]:
    """Give the variables that a loop sets to each file of a list, and whether that names all there is."""
    if block.kind == "for":
        values = (value for word in block.words for value in expand_word(word, env.variables, env.cwd))
        wide = [True for value in values if not is_static(value) and is_whole(value, env)]
        # The last one stays: all there is.
        return tuple((block.name, names_all) for names_all in sorted([*_printed_lists(block.words, env), *wide]))
    names_all = lists_all(feed.upstream)
    if names_all is None or not block.scripts:
        return ()
    commands = (one for pipeline in block.scripts[0].pipelines for one in pipeline.commands)
    reads = (one for one in commands if isinstance(one, Simple) and one.words and one.words[0].text == "read")
    return tuple((word.text, names_all) for one in reads for word in one.words[1:] if word.text.isidentifier())


def _printed_lists(words: tuple[Word, ...], env: ShellEnv) -> list[bool]:
    """Say of each `$(…)` outside quotes that prints a list whether that names all there is."""
    segments = (one for word in words for one in word.segments if isinstance(one, Substitution) and not one.quoted)
    found = (lists_all(fed_by(segment.script, env).upstream) for segment in segments)
    return [names_all for names_all in found if names_all is not None]


def _empties_each(redirect: Redirect, env: ShellEnv) -> bool:
    """Whether a file is emptied that is each of a list, or whatever a pattern without a name stands for."""
    if redirect.operator not in (">", ">|", "&>"):
        return False
    parts = [one for one in redirect.target.segments if not isinstance(one, Literal) or one.text]
    is_each = all(isinstance(one, Parameter) and one.name in dict(env.each) for one in parts)
    targets = expand_word(redirect.target, env.variables, env.cwd)
    return (bool(parts) and is_each) or any(not is_static(target) and is_whole(target, env) for target in targets)
