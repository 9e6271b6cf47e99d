"""Commands that run another command, find among them: what they are told to run is judged as if it stood alone."""

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from treadle.policy.findings import Finding, PathOp, dangerous, unclear
from treadle.policy.marks import UNKNOWN, as_glob, is_static, shown, word_set
from treadle.policy.shell.builtins import judge_assignment
from treadle.policy.shell.lists import RUNS_FOR_EACH, is_narrow, judge_each, lists_all
from treadle.policy.shell.readers import CONTENT_FREE, Arguments, read_arguments, read_table
from treadle.policy.shell.shell_env import PipedInput, ProgramJudge, ShellEnv
from treadle.protocol.tools import Risk

MAX_FED_WORDS = 64
MAX_GUESSED_WORDS = 60
MAX_GUESSES = 40

_TABLES = {
    "nice": read_table("-n: -0123456789 --adjustment:"),
    "timeout": read_table("-k: -s: -v --foreground --kill-after: --signal: --preserve-status"),
    "time": read_table("-apv -f: -o: --format: --output:"),
    "stdbuf": read_table("-i: -o: -e: --input: --output: --error:"),
    "ionice": read_table("-t -c: -n:"),
    "env": read_table("-iv0 -u: -C: -S: -a: --ignore-environment --null --unset: --chdir: --split-string:"),
    "command": read_table("-pvV"),
    "xargs": read_table("""
    -0rtpxo -a: -d: -E: -I: -i? -J: -L: -l? -n: -P: -R: -S: -s: -e? -j: --null --arg-file: --delimiter: --replace?
    --max-lines? --max-args: --max-procs: --max-chars: --no-run-if-empty --verbose --jobs:
"""),
    **dict.fromkeys(
        word_set("""
        nohup setsid exec builtin busybox toybox strace ltrace chrt taskset setarch linux32 linux64 valgrind caffeinate
        unbuffer rlwrap numactl prlimit fakeroot eatmydata xvfb-run dbus-run-session torsocks proxychains proxychains4
        """),
        read_table("-clfw -a: -o: -e: -p:"),
    ),
}
"""Wrappers with their options; any other program that runs another one is searched for it."""

_NO_RISK = frozenset({"nice", "timeout", "time", "stdbuf", "ionice"})
_DELETERS = frozenset({"rm", "unlink", "shred", "rimraf"})
_LIKE_A_SCRIPT = re.compile(r"[\s;|&$`(<>=]|^\{")
_DURATION = re.compile(r"\d+(\.\d+)?[smhd]?")


def _unwrap(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge a wrapper and what it runs."""
    arguments = read_arguments(_TABLES[name], words, permute=False)
    findings = _options(name, arguments, env)
    inner = arguments.operands[1:] if name == "timeout" else arguments.operands
    while name not in _NO_RISK and inner and inner[0].isdigit():
        inner = inner[1:]
    if name not in _NO_RISK:
        findings.append(Finding(Risk.EXECUTE, "wrapper", f"{name} runs another command"))
    if not inner:
        return [*findings, unclear("wrapper", f"{name} without a command")]
    if name == "timeout" and not _DURATION.fullmatch(arguments.operands[0]):
        findings.append(unclear("wrapper", "timeout without a plain duration"))
    if arguments.strange:
        findings.extend(suffixes(words, env))
    return findings + env.command(inner)


def suffixes(words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Find danger in whatever part of the arguments may be a command; nothing found here is no proof of anything."""
    found: list[Finding] = []
    if env.is_search:
        return found
    env = replace(env, is_search=True, is_guess=True)
    for place, word in enumerate(words[:MAX_GUESSES]):
        if not is_static(word):
            continue
        if _LIKE_A_SCRIPT.search(word):
            found.extend(env.script(word))
            found.extend(env.script(word.partition("=")[2]) if word.startswith("-") and "=" in word else [])
        elif word and not word.startswith("-"):
            found.extend(env.command(tuple(words[place : place + MAX_GUESSED_WORDS])))
    return list(dict.fromkeys(_critical(found)))


def _critical(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.risk is Risk.CRITICAL]


def _options(name: str, arguments: Arguments, env: ShellEnv) -> list[Finding]:
    strange = [
        unclear("unknown-option", f"{name}: {shown(word)!r} is not a known option") for word in arguments.strange
    ]
    files = arguments.values("-o", "--output") if name == "time" else arguments.values("-a", "--arg-file")
    for file in files:
        strange.append(Finding(Risk.EXECUTE, "wrapper", f"{name} uses the file {file}"))
        strange.extend(env.mentions(file))
    return strange


def _env(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    arguments = read_arguments(_TABLES[name], words, permute=False)
    findings = _options(name, arguments, env)
    for text in arguments.values("-S", "--split-string"):
        findings.append(Finding(Risk.EXECUTE, "wrapper", "env -S runs a string"))
        findings.extend(env.script(" ".join((text, *arguments.operands))))
    if arguments.has("-C", "--chdir", "-u", "--unset", "-a"):
        findings.append(unclear("wrapper", "env changes where or how the command runs"))
    inner = list(arguments.operands)
    while inner and "=" in inner[0]:
        variable, _, value = inner.pop(0).partition("=")
        findings.extend(judge_assignment(variable, value))
    if not inner:
        return [*findings, Finding(Risk.EXECUTE, "prints-environment", "prints every variable, secrets included")]
    return findings + env.command(tuple(inner))


def _command(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    arguments = read_arguments(_TABLES[name], words, permute=False)
    if arguments.has("-v", "-V") and not arguments.strange:
        return [Finding(Risk.READ, "look-up", "looks up a program")]
    findings = _options(name, arguments, env)
    return findings + (env.command(arguments.operands) if arguments.operands else [])


def _xargs(_name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge xargs by each word that it is known to read, and by any word."""
    arguments = read_arguments(_TABLES["xargs"], words, permute=False)
    findings = _options("xargs", arguments, env)
    inner = arguments.operands or ("echo",)
    marks = arguments.values("-I", "-J") or [word for word in ("{}",) if any(word in text for text in inner)]
    findings.append(unclear("xargs", f"xargs {shown(inner[0])}: the operands are unknown until it runs"))
    fed = [*(word for command in env.feed.upstream for word in command[1:]), *(env.feed.text or "").split()]
    names_all = lists_all(env.feed.upstream)
    without_input = replace(env, feed=PipedInput())
    if names_all is not None:
        findings.extend(judge_each(_filled(inner, marks, UNKNOWN), without_input, names_all=names_all))
    for word in fed[:MAX_FED_WORDS]:
        findings.extend(env.mentions(word))
        named = _critical(env.command(_filled(inner, marks, word)))
        findings.extend(one for one in named if names_all is None or one.rule != "delete-all")
    if inner[0] in _DELETERS and names_all is not False:
        findings.append(dangerous("delete-unknown", f"xargs {inner[0]} deletes files that are unknown until it runs"))
    found = without_input.command(_filled(inner, marks, UNKNOWN))
    said = ("unknown-option", "unknown-path")
    return findings + [one for one in found if one.risk is not Risk.EXECUTE or one.rule not in said or one.always_asks]


def _filled(inner: Sequence[str], marks: Sequence[str], word: str) -> tuple[str, ...]:
    """Give the command that is run for one word of the input."""
    return tuple(one.replace(marks[0], word) for one in inner) if marks else (*inner, word)


def _parallel(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge parallel by its name, where it is more than a word of another command."""
    runs = unclear if env.is_search else dangerous
    return [runs("wrapper", f"{name} runs what its input says"), *suffixes(words, env)]


WRAPPERS: dict[str, ProgramJudge] = {
    **dict.fromkeys(_TABLES, _unwrap),
    "env": _env,
    "command": _command,
    "xargs": _xargs,
    "gxargs": _xargs,
    "parallel": _parallel,
}
"""Judges by program name."""


_FLAGS = word_set(
    "-print -print0 -ls -prune -quit -depth -mount -xdev -empty -executable -readable -writable -not -a -and -o -or"
    " ! ( ) , -true -false -P"
)
_VALUES = word_set("""
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -size -mtime -mmin -atime -amin
    -ctime -cmin -maxdepth -mindepth -perm -user -group -links -printf -newermt
""")
_PATTERN = re.compile(r"-i?(name|path|wholename|regex)|-iwholename")


def judge_find(_name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge one find command line."""
    findings = [Finding(Risk.READ, "reader", "find only lists")]
    pending = [word for word in words if word != "-P"]
    first = next((place for place, word in enumerate(pending) if word[:1] in ("-", "(", "!")), len(pending))
    starts, pending = pending[:first], pending[first:]
    places = [found for start in starts for found in env.path(start, PathOp.LIST)]
    names_all = not is_narrow(pending)
    texts = (text.replace("\\", "").replace(".*", "*") for test, text in pairwise(pending) if _PATTERN.fullmatch(test))
    names = [UNKNOWN, *map(as_glob, texts)]
    changes = False
    while pending:
        word = pending.pop(0)
        if word in _VALUES:
            del pending[:1]
        elif word in RUNS_FOR_EACH:
            inner = _taken(pending)
            ran = _run(inner, names, env, names_all=names_all)
            findings.extend([Finding(Risk.EXECUTE, "wrapper", f"find {word} runs a command for what it finds"), *ran])
            if inner[:1] and inner[0] not in CONTENT_FREE:
                named = (one for start in starts for one in env.mentions(start))
                findings.extend(one for one in named if one.rule == "secret-read")
            changes |= any(one.risk is Risk.CRITICAL for one in ran) or inner[:1] in (["rm"], ["mv"], ["dd"], ["cp"])
        elif word == "-delete":
            changes = True
            findings.append(Finding(Risk.EXECUTE, "delete", "find -delete deletes files"))
            if names_all:
                findings.append(dangerous("delete-tree", "deletes everything below the directory"))
        elif word not in _FLAGS:
            text = f"find: {word!r} is not a test or action known to be harmless"
            findings.extend([unclear("unknown-option", text), *env.mentions(word)])
            if word.startswith(("-fprint", "-fls")) and pending:
                findings.extend(env.path(pending[0], PathOp.WRITE))
    if changes and any(found.risk is not Risk.READ for found in places):
        findings.append(dangerous("write-outside", "changes files outside the workspace"))
    return findings + places


def _taken(pending: list[str]) -> list[str]:
    """Take the command that is run off what is left of the line."""
    inner: list[str] = []
    while pending:
        part = pending.pop(0)
        if part == ";" or (part == "+" and inner and inner[-1] == "{}"):
            break
        inner.append(part)
    return inner


def _run(inner: Sequence[str], names: Sequence[str], env: ShellEnv, *, names_all: bool) -> list[Finding]:
    """Judge a command that is run with each name that may be found; the first one stands for any."""
    if not inner:
        return []
    filled = [tuple(part.replace("{}", name) for part in inner) for name in names]
    found = [*env.command(filled[0]), *judge_each(filled[0], env, names_all=names_all)]
    named = (one for command in filled[1:] for one in env.command(command))
    return [*found, *(one for one in named if one.risk is Risk.CRITICAL)]
