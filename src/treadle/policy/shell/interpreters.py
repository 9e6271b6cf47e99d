"""Shells and interpreters: the text they are given, and where it comes from."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace

from treadle.policy.findings import Finding, dangerous
from treadle.policy.marks import ANY, SPLIT, STAR, UNKNOWN, is_static, split_words
from treadle.policy.shell.danger_forms import DESTRUCTIVE_VERBS
from treadle.policy.shell.dangers import CODE, SQL, SQL_CLIENTS
from treadle.policy.shell.expand import Variables
from treadle.policy.shell.reach import judge_inner_text, judge_named_places, judge_reach
from treadle.policy.shell.scene import Scene
from treadle.protocol.tools import Risk

SHELLS = frozenset(
    split_words("""
    sh bash zsh dash ksh mksh ash fish tcsh csh rbash yash elvish nu xonsh pwsh powershell
""")
)
_INTERPRETERS = re.compile(
    r"(python|pypy|perl|ruby|php|lua|node|nodejs|deno|bun|rscript|julia|groovy|scala|tclsh|wish|guile|racket|elixir|iex|erl"
    r"|swift|ghci|runghc|ocaml|ts-node|tsx|jshell|kotlinc|clojure|bb|luajit|osascript|ipython|irb|r|octave|sqlite)"
    r"[0-9.]*w?"
)
_POWERSHELL = frozenset({"pwsh", "powershell"})
_TASK_RUNNERS = frozenset({"artisan", "manage.py", "console", "rails", "rake", "django-admin"})
_SHELL_OPTIONS_WITH_VALUE = frozenset({"-o", "+o", "-O", "+O"})
_CODE_OPTIONS = re.compile(r"-[a-zA-Z0-9]*[ceErpFR]|--eval|--exec|--print|--command|--execute|-eval|eval")


def is_interpreter(name: str) -> bool:
    """Whether a program runs program text in its own language."""
    return _INTERPRETERS.fullmatch(name) is not None


def judge_shell(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge a shell: its script is judged as a line of its own."""
    findings = [Finding(Risk.EXECUTE, "shell", f"{name} runs a script")]
    if name in _POWERSHELL:
        findings.extend(scan_code(" ".join(words), scene))
        if any(re.fullmatch(r"-e(c|n\w*)?", word, re.IGNORECASE) for word in words):
            findings.append(dangerous("opaque-code", f"{name} runs a script that cannot be read"))
    takes_script = reads_input = False
    pending = list(words)
    while pending and pending[0][:1] in ("-", "+") and pending[0] not in ("-", "--"):
        option = pending.pop(0)
        if option.split("=")[0] in ("--rcfile", "--init-file"):
            findings.append(dangerous("shell", f"{name} {option} runs another file first"))
        if option in _SHELL_OPTIONS_WITH_VALUE and pending:
            pending.pop(0)
        takes_script |= option in ("--command", "-Command", "-EncodedCommand") or _has_letter(option, "c")
        reads_input |= _has_letter(option, "s")
    if pending and pending[0] in ("-", "--"):
        pending.pop(0)
    if takes_script:
        if not pending:
            return [*findings, dangerous("shell", f"{name} -c without a script")]
        return findings + _judge_script(pending[0], pending[1:], scene)
    if pending and not reads_input:
        return findings + _judge_script_file(name, pending, scene)
    return findings + _judge_input(name, scene)


def _has_letter(option: str, letter: str) -> bool:
    return option.startswith("-") and not option.startswith("--") and letter in option


def _judge_script(script: str, operands: Sequence[str], scene: Scene) -> list[Finding]:
    if not is_static(script):
        return [dangerous("unknown-script", "runs a script that is unknown until it runs"), *scan_code(script, scene)]
    values = {str(place): value for place, value in enumerate(operands)}
    every = SPLIT.join(operands[1:])
    variables = Variables(scene.variables.home, {**scene.variables.values, **values, "@": every, "*": every})
    return replace(scene, variables=variables).script(script, feed=scene.feed)


def _judge_script_file(name: str, pending: list[str], scene: Scene) -> list[Finding]:
    findings = [found for word in pending for found in scene.mentions(word)]
    if pending[0].startswith(("/dev/", "/proc/")) or not is_static(pending[0]):
        findings.append(dangerous("unknown-script", f"{name} runs text that is unknown until it runs"))
    return findings


def _judge_input(name: str, scene: Scene) -> list[Finding]:
    feed = scene.feed
    if feed.is_pipe:
        return [dangerous("piped-script", f"{name} runs what comes through the pipe")]
    if feed.text is None:
        return []
    if not is_static(feed.text):
        return [dangerous("unknown-script", f"{name} runs text that is unknown until it runs")]
    return scene.script(feed.text)


def judge_interpreter(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge an interpreter: always a question, dangerous when the program text shows danger or comes from a pipe."""
    if re.fullmatch(r"(python|pypy)[0-9.]*", name) and "-m" in words:
        return _judge_module(words, scene)
    findings = [Finding(Risk.EXECUTE, "interpreter", f"{name} runs a program")]
    if any(posixpath.basename(word) in _TASK_RUNNERS for word in words[:2]):
        findings.extend(
            dangerous("dangerous-form", f"{word} destroys data")
            for word in words[1:]
            if DESTRUCTIVE_VERBS.fullmatch(word)
        )
    if any(posixpath.basename(word) == "setup.py" for word in words) and not {"upload", "register"}.isdisjoint(words):
        findings.append(dangerous("dangerous-form", "setup.py publishes a package"))
    findings.extend(judge_reach(name, words, scene))
    has_program = False
    for place, word in enumerate(words):
        findings.extend(scene.mentions(word))
        if _CODE_OPTIONS.fullmatch(word) or word.startswith(("--eval=", "-e", "-c")):
            has_program = True
            findings.extend(scan_code(" ".join(words[place : place + 2]), scene))
        elif not word.startswith("-"):
            has_program = True
    if has_program:
        return findings
    if scene.feed.is_pipe:
        findings.append(dangerous("piped-script", f"{name} runs what comes through the pipe"))
    if scene.feed.text is not None:
        findings.extend(scan_code(scene.feed.text, scene))
    return findings


def _judge_module(words: Sequence[str], scene: Scene) -> list[Finding]:
    place = list(words).index("-m")
    module = words[place + 1 :]
    findings = [Finding(Risk.EXECUTE, "interpreter", "python -m runs a module")]
    findings.extend(found for word in words for found in scene.mentions(word))
    return findings + (scene.command(tuple(module)) if module else [])


def scan_code(text: str, scene: Scene) -> list[Finding]:
    """Look through program text of any language for words that mean harm, and for protected names."""
    findings: list[Finding] = []
    match = CODE.search(text)
    if match is not None:
        findings.append(dangerous("opaque-code", f"program text contains {match.group().strip()!r}"))
    findings.extend([*judge_named_places(text, scene), *judge_inner_text(text, scene)])
    if UNKNOWN in text:
        findings.append(dangerous("unknown-script", "runs a program that is unknown until it runs"))
    cleaned = text.translate({ord(mark): " " for mark in (UNKNOWN, STAR, ANY, SPLIT)})
    for token in dict.fromkeys(re.split(r"[\s'\"`()\[\]{};,<>|&]+", cleaned)):
        if token:
            findings.extend(scene.mentions(token))
    return findings


def is_database(name: str) -> bool:
    """Whether a program sends statements to a database."""
    return name in SQL_CLIENTS


def judge_database(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge a database client: a question, and dangerous when a statement changes something."""
    findings = [Finding(Risk.REMOTE, "database", f"{name} sends statements to a database, which can change it")]
    texts = [*words, scene.feed.text or "", *(" ".join(command) for command in scene.feed.upstream)]
    for text in texts:
        findings.extend(scene.mentions(text))
        match = SQL.search(text)
        if match is not None:
            findings.append(dangerous("database", f"the statement contains {match.group().strip()!r}"))
    return findings
