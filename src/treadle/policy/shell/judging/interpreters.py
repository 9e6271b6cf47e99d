"""Shells and interpreters: the text they are given, and where it comes from."""

import posixpath
import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace

from treadle.policy.findings import Finding, dangerous
from treadle.policy.marks import ANY, SPLIT, STAR, UNKNOWN, is_static, split_words
from treadle.policy.shell.grammar.expand import Variables
from treadle.policy.shell.judging.reach import judge_inner_text, judge_named_places, judge_reach
from treadle.policy.shell.judging.scene import Scene
from treadle.policy.shell.tables.danger_forms import DESTRUCTIVE_VERBS
from treadle.policy.shell.tables.dangers import CODE, SQL, SQL_CLIENTS
from treadle.protocol.tools import Risk

SHELLS = frozenset(
    split_words("sh bash zsh dash ksh mksh ash fish tcsh csh rbash yash elvish nu xonsh pwsh powershell")
)
_INTERPRETERS = re.compile(
    r"(python|pypy|perl|ruby|php|lua|node|nodejs|deno|bun|rscript|julia|groovy|scala|tclsh|wish|guile|racket|elixir|iex|erl"
    r"|swift|ghci|runghc|ocaml|ts-node|tsx|jshell|kotlinc|clojure|bb|luajit|osascript|ipython|irb|r|octave|sqlite)"
    r"[0-9.]*w?"
)
_TASK_RUNNERS = frozenset({"artisan", "manage.py", "console", "rails", "rake", "django-admin"})
_CODE_OPTIONS = re.compile(
    r"-[a-zA-Z0-9]*[ceErpFR]|--(eval|exec|print|command|execute)|-?eval|(--eval=|-e|-c).*", re.DOTALL
)


@lru_cache(maxsize=1024)
def is_interpreter(name: str) -> bool:
    """Whether a program runs program text in its own language."""
    return _INTERPRETERS.fullmatch(name) is not None


def judge_shell(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge a shell: its script is judged as a line of its own."""
    findings = [Finding(Risk.EXECUTE, "shell", f"{name} runs a script")]
    if name in ("pwsh", "powershell"):
        findings.extend(scan_code(" ".join(words), scene))
        if any(re.fullmatch(r"-e(c|n\w*)?", word, re.IGNORECASE) for word in words):
            findings.append(dangerous("opaque-code", f"{name} runs a script that cannot be read"))
    is_command = False
    pending = list(words)
    while pending and pending[0][:1] in ("-", "+"):
        option = pending.pop(0)
        if option in ("-", "--"):
            break
        if option.startswith(("--rcfile", "--init-file")):
            findings.append(dangerous("shell", f"{name} {option} runs another file first"))
        if option in ("-o", "+o", "-O", "+O"):
            del pending[:1]
        is_command |= re.fullmatch(r"[-+]\w*c\w*|(?i:--?command|-encodedcommand)", option) is not None
    if is_command:
        script = _judge_script(pending[0], pending[1:], scene) if pending else [dangerous("shell", f"{name} -c alone")]
        return findings + script
    if pending and not any(re.fullmatch(r"-\w*s\w*", word) for word in words):
        findings.extend(found for word in pending for found in scene.mentions(word))
        is_known = is_static(pending[0]) and not pending[0].startswith(("/dev/", "/proc/"))
        return findings if is_known else [*findings, _unknown(name)]
    return findings + _judge_input(name, scene)


def _unknown(name: str) -> Finding:
    return dangerous("unknown-script", f"{name} runs text that is unknown until it runs")


def _judge_script(script: str, operands: Sequence[str], scene: Scene) -> list[Finding]:
    if not is_static(script):
        return [_unknown("the shell"), *scan_code(script, scene)]
    values = {str(place): value for place, value in enumerate(operands)}
    every = SPLIT.join(operands[1:])
    variables = Variables(scene.variables.home, {**scene.variables.values, **values, "@": every, "*": every})
    return replace(scene, variables=variables).script(script, feed=scene.feed)


def _judge_input(name: str, scene: Scene) -> list[Finding]:
    if scene.feed.is_pipe:
        return [dangerous("piped-script", f"{name} runs what comes through the pipe")]
    text = scene.feed.text or ""
    return scene.script(text) if is_static(text) else [_unknown(name)]


def judge_interpreter(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge an interpreter: always a question, dangerous when the program text shows danger or comes from a pipe."""
    findings = [Finding(Risk.EXECUTE, "interpreter", f"{name} runs a program")]
    if re.fullmatch(r"(python|pypy)[0-9.]*", name) and "-m" in words:
        module = tuple(words[list(words).index("-m") + 1 :])
        findings.extend(found for word in words for found in scene.mentions(word))
        return findings + (scene.command(module) if module else [])
    tasks = {posixpath.basename(word) for word in words[:2]} & {*_TASK_RUNNERS, "setup.py"}
    told = [word for word in words[1:] if DESTRUCTIVE_VERBS.fullmatch(word) or word in ("upload", "register")]
    if tasks and told:
        findings.append(dangerous("dangerous-form", f"{told[0]} destroys or publishes something"))
    findings.extend(judge_reach(name, words, scene))
    has_program = False
    for place, word in enumerate(words):
        findings.extend(scene.mentions(word))
        is_code = _CODE_OPTIONS.fullmatch(word) is not None
        findings.extend(scan_code(" ".join(words[place : place + 2]), scene) if is_code else [])
        has_program |= is_code or not word.startswith("-")
    if has_program:
        return findings
    if scene.feed.is_pipe:
        findings.append(dangerous("piped-script", f"{name} runs what comes through the pipe"))
    return findings + (scan_code(scene.feed.text, scene) if scene.feed.text is not None else [])


def scan_code(text: str, scene: Scene) -> list[Finding]:
    """Look through program text of any language for words that mean harm, and for protected names."""
    findings: list[Finding] = []
    match = CODE.search(text)
    if match is not None:
        findings.append(dangerous("opaque-code", f"program text contains {match.group().strip()!r}"))
    findings.extend([*judge_named_places(text, scene), *judge_inner_text(text, scene)])
    if UNKNOWN in text:
        findings.append(_unknown("the program"))
    cleaned = text.translate({ord(mark): " " for mark in (UNKNOWN, STAR, ANY, SPLIT)})
    tokens = dict.fromkeys(re.split(r"[\s'\"`()\[\]{};,<>|&]+", cleaned))
    return [*findings, *(found for token in tokens if token for found in scene.mentions(token))]


def is_database(name: str) -> bool:
    """Whether a program sends statements to a database."""
    return name in SQL_CLIENTS


def judge_database(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge a database client: a question, and dangerous when a statement changes something."""
    findings = [Finding(Risk.REMOTE, "database", f"{name} sends statements to a database, which can change it")]
    for text in [*words, scene.feed.text or "", *(" ".join(command) for command in scene.feed.upstream)]:
        findings.extend(scene.mentions(text))
        match = SQL.search(text)
        if match is not None:
            findings.append(dangerous("database", f"the statement contains {match.group().strip()!r}"))
    return findings
