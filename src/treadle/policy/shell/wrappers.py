"""Commands that run another command, find among them: what they are told to run is judged as if it stood alone."""

import posixpath
import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from treadle.policy.findings import Finding, PathOp, dangerous, unclear
from treadle.policy.marks import UNKNOWN, as_glob, is_static, rows_by_name, shown, word_set
from treadle.policy.shell.builtins import judge_assignment
from treadle.policy.shell.file_programs import REGENERABLE
from treadle.policy.shell.handed_lists import RUNS_FOR_EACH, is_narrow, judge_each, lists_all
from treadle.policy.shell.readers import read_arguments, read_table
from treadle.policy.shell.shell_env import ProgramJudge, ShellEnv
from treadle.protocol.tools import Risk

MAX_FED_WORDS = 64
MAX_GUESSED_WORDS = 60
MAX_GUESSES = 40

_TABLES_TEXT = """
nice = -n: -0123456789 --adjustment:
timeout = -k: -s: -v --foreground --kill-after: --signal: --preserve-status
time = -apv -f: --format:
stdbuf = -i: -o: -e: --input: --output: --error:
ionice = -t -c: -n:
env = -iv0 -u: --ignore-environment --null --unset:
command = -pvV
xargs gxargs = -0rtpxo -a: -d: -E: -I: -i? -J: -L: -l? -n: -P: -R: -S: -s: -e? -j: --null --delimiter: --replace?
    --max-lines? --max-args: --max-procs: --max-chars: --no-run-if-empty --verbose --jobs: --arg-file:
nohup setsid exec builtin busybox toybox strace ltrace chrt taskset setarch linux32 linux64 valgrind caffeinate unbuffer
    rlwrap numactl prlimit fakeroot eatmydata xvfb-run dbus-run-session torsocks proxychains proxychains4
    = -clfw -a: -o: -e: -p:
"""
_TABLES = {name: read_table(options) for name, options in rows_by_name(_TABLES_TEXT).items()}
"""Wrappers with their options; any other program that runs another one is searched for it."""

_NO_RISK = frozenset({"nice", "timeout", "time", "stdbuf", "ionice", "env", "command"})
_LIKE_A_SCRIPT = re.compile(r"[\s;|&$`(<>=]|^\{")


def _unwrap(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge a wrapper and what it runs."""
    arguments = read_arguments(_TABLES[name], words, permute=False)
    inner = list(arguments.operands)
    if name == "command" and (not inner or arguments.has("-v", "-V")) and not arguments.strange:
        return [Finding(Risk.READ, "look-up", "looks up a program")]
    findings = _odd(name, arguments.strange, words, env)
    if name == "timeout":
        inner = inner[1:]
    if name not in _NO_RISK or arguments.has("-u", "--unset"):
        findings.append(Finding(Risk.EXECUTE, "wrapper", f"{name} runs another command"))
    while inner and ("=" in inner[0] if name == "env" else name not in _NO_RISK and inner[0].isdigit()):
        variable, is_set, value = inner.pop(0).partition("=")
        findings.extend(judge_assignment(variable, value) if is_set else [])
    if inner:
        return findings + env.command(tuple(inner))
    return [*findings, unclear("wrapper", f"{name} without a command")]


def _odd(name: str, strange: Sequence[str], words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge a wrapper with an option that is not known, or may be one: any of its words may be the command."""
    if not strange:
        return []
    # Of those in very common use all harmless options are known.
    is_known = name in _NO_RISK or name in ("xargs", "gxargs")
    odd = dangerous if is_known and strange[0].startswith("-") and not env.is_guess else unclear
    text = f"{name}: {shown(strange[0])!r} is not a known option, so it may run something else"
    return [odd("unknown-option", text), *suffixes(words, env)]


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


def _xargs(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge xargs by each word that it is known to read, and by any word."""
    arguments = read_arguments(_TABLES[name], words, permute=False)
    findings = _odd(name, arguments.strange, words, env)
    inner = arguments.operands or ("echo",)
    findings.append(unclear("xargs", f"xargs {shown(inner[0])}: the operands are unknown until it runs"))
    findings.extend(found for file in arguments.values("-a", "--arg-file") for found in env.path(file, PathOp.READ))
    fed = [*(word for command in env.feed.upstream for word in command[1:]), *(env.feed.text or "").split()]
    findings.extend(found for word in fed[:MAX_FED_WORDS] for found in env.mentions(word))
    names_all = lists_all(env.feed.upstream)
    mark = "".join(arguments.values("-I", "-J")[:1]) or "{}"
    marked = [part.replace(mark, "{}") for part in inner]
    filled = marked if any("{}" in part for part in marked) else [*marked, "{}"]
    return findings + _run(filled, fed[:MAX_FED_WORDS], env, names_all=names_all)


def _run(inner: Sequence[str], names: Sequence[str], env: ShellEnv, *, names_all: bool | None) -> list[Finding]:
    """Judge a command that is run with any name in the place of `{}`, and by the names that are known."""
    if not inner:
        return []
    unknown, *known = [tuple(part.replace("{}", name) for part in inner) for name in (UNKNOWN, *names)]
    # That the names are not known is said of all of them.
    said = [unclear(rule, "") for rule in ("unknown-option", "unknown-path")]
    found = [one for one in env.command(unknown) if replace(one, text="") not in said]
    if names_all is not None:
        found.extend(judge_each(unknown, env, names_all=names_all))
    named = (one for command in known for one in _critical(env.command(command)))
    return [*found, *(one for one in named if names_all is None or one.rule != "delete-all")]


WRAPPERS: dict[str, ProgramJudge] = {
    **dict.fromkeys(_TABLES, _unwrap),
    **dict.fromkeys(("xargs", "gxargs"), _xargs),
}
"""Judges by program name."""


def _below(starts: Sequence[str], ran: Sequence[Finding], env: ShellEnv) -> list[Finding]:
    """Find what is protected where find begins, from being read or from being changed as the command does."""
    reads = all(one.risk in (Risk.NONE, Risk.READ) for one in ran)
    inside = ([] if reads else env.path(posixpath.join(start, "x"), PathOp.WRITE) for start in starts)
    found = [one for start in starts for one in env.mentions(start) if one.rule == "secret-read"]
    return [*found, *(one for listed in inside for one in listed if one.rule == "control-write")]


_FLAGS = word_set("-print -print0 -ls -prune -quit -depth -mount -xdev -empty -executable -not -a -and -o -or ! ( )")
_VALUES = re.compile(
    r"-(i?(name|path|wholename|regex)|regextype|type|size|[acm](time|min)|(max|min)depth|perm|user|group|printf|newermt)"
)
_PATTERN = re.compile(r"-i?(name|path|wholename|regex)")


def judge_find(_name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge one find command line."""
    findings = [Finding(Risk.READ, "reader", "find only lists")]
    pending = [word for word in words if word != "-P"]
    first = next((place for place, word in enumerate(pending) if word[:1] in ("-", "(", "!")), len(pending))
    starts, pending = pending[:first], pending[first:]
    places = [found for start in starts for found in env.path(start, PathOp.LIST)]
    names_all = not is_narrow(pending)
    texts = (text.replace("\\", "").replace(".*", "*") for test, text in pairwise(pending) if _PATTERN.fullmatch(test))
    names = [*map(as_glob, texts)]
    changes = False
    while pending:
        word = pending.pop(0)
        if _VALUES.fullmatch(word):
            del pending[:1]
        elif word in RUNS_FOR_EACH or word == "-delete":
            # To delete is to run `rm` for each.
            pending = ["rm", "{}", ";", *pending] if word == "-delete" else pending
            ends = (at for at, part in enumerate(pending) if part == ";" or pending[at - 1 : at + 1] == ["{}", "+"])
            end = next(ends, len(pending))
            inner, pending = pending[:end], pending[end + 1 :]
            place = replace(env, cwd=UNKNOWN) if word.endswith("dir") else env
            ran = _run(inner, names, place, names_all=names_all)
            if not names_all and REGENERABLE.issuperset(names):
                ran = [one for one in ran if one.rule != "delete-tree"]
            findings.extend([Finding(Risk.EXECUTE, "wrapper", "find does something with each file it finds"), *ran])
            findings.extend(_below(starts, ran, env))
            changes |= any(one.risk is Risk.CRITICAL for one in ran) or inner[:1] in (["rm"], ["mv"], ["dd"], ["cp"])
        elif word not in _FLAGS:
            odd = dangerous if word.startswith(("-fprint", "-fls")) else unclear
            text = f"find: {word!r} is not a test or action known to be harmless"
            findings.extend([odd("unknown-option", text), *env.mentions(word)])
    if changes and any(found.risk is not Risk.READ for found in places):
        findings.append(dangerous("write-outside", "changes files outside the workspace", held=True))
    return findings + places
