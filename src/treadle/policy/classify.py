"""Classifies shell lines: what may run unasked, what asks, and what no mode lets through."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from msgspec import Struct, structs

from treadle.policy.context import PolicyContext, RememberedFiles
from treadle.policy.findings import CommandClass, Finding, PathOp, class_of, dangerous, is_plain, unfollowed
from treadle.policy.marks import UNKNOWN, from_both_ends
from treadle.policy.names import control_name, secret_name
from treadle.policy.paths import MAX_PATH_BYTES, Where, check_path, usable_roots
from treadle.policy.shell.grammar.expand import Variables
from treadle.policy.shell.grammar.parse import parse
from treadle.policy.shell.grammar.syntax import BudgetError, ShellSyntaxError
from treadle.policy.shell.judging.builtins import judge_assignment
from treadle.policy.shell.judging.git import OF_THE_REPOSITORY
from treadle.policy.shell.judging.interpreters import scan_code
from treadle.policy.shell.judging.network import may_bring_text
from treadle.policy.shell.judging.programs import MAX_NESTING, judge_command
from treadle.policy.shell.judging.scene import CHARACTERS_A_STEP, Effort, EffortError, Scene, Trace
from treadle.policy.shell.judging.walk import JudgedCommand, Walk
from treadle.protocol.tools import Risk

MAX_LINE_BYTES = 64 * 1024


class CommandJudgement(Struct, frozen=True, kw_only=True):
    """A shell line's class, its commands with what was found about each, and what was found about the whole.

    `trace` is what may be run and touched by text that could only be searched. `outside` says that the line brings text
    that nobody on this machine wrote.
    """

    command_class: CommandClass
    parts: tuple[JudgedCommand, ...]
    findings: tuple[Finding, ...]
    trace: Trace
    outside: bool = False


def classify_command(command: str, cwd: str, context: PolicyContext) -> CommandJudgement:
    """Judge a line for bash in `cwd`. Never raises; what cannot be followed is searched for danger and asked."""
    try:
        return _classified(command, cwd, context)
    except Exception as error:  # noqa: BLE001 - a line that trips the analysis may be made to do so
        return _unjudged(command, cwd, context, error)


def _unjudged(command: str, cwd: str, context: PolicyContext, error: Exception) -> CommandJudgement:
    """Ask about a line that could not be judged; where it can be searched, rules that deny still see what it names."""
    scene = _scene(cwd, context)
    found: list[Finding] = []
    with suppress(Exception):
        found = sweep(_ends(command), scene)
    failed = dangerous("error", f"the analysis of this line failed ({type(error).__name__}): it may do anything")
    return CommandJudgement(
        command_class=CommandClass.DANGEROUS, parts=(), findings=(failed, *found), trace=scene.trace, outside=True
    )


def _scene(cwd: str, context: PolicyContext) -> Scene:
    files = RememberedFiles(context.files, filter(None, (*context.roots, context.home)))
    return Scene(
        context=replace(context, files=files, usable=usable_roots(context, files)),
        cwd=cwd,
        variables=Variables(context.home, {"PWD": cwd}),
        judge_script=_judge_script,
        judge_tree=Walk().script,
        judge_argv=judge_command,
    )


def _classified(command: str, cwd: str, context: PolicyContext) -> CommandJudgement:
    scene = _scene(cwd, context)
    findings = _precheck(command, cwd, scene.context)
    parts: list[JudgedCommand] = []
    if len(command.encode(errors="replace")) > MAX_LINE_BYTES:
        findings.append(unfollowed("budget", f"the line is longer than {MAX_LINE_BYTES} bytes"))
        findings += sweep(_ends(command), scene)
    else:
        parts, more = _walk(command, scene)
        findings += more
    return CommandJudgement(
        command_class=class_of([*findings, *(found for part in parts for found in part.findings)]),
        parts=tuple(parts),
        findings=tuple(findings),
        trace=scene.trace,
        outside=_brings_text(command, parts, findings, scene),
    )


_BESIDE_GIT = frozenset({"echo", "printf", "test", "[", "true", "cd"})


def is_plain_git(parts: Sequence[JudgedCommand]) -> bool:
    """Whether a line is git's own work: beside git stand only plain readers, and what says or tests something."""
    names = [part.argv[0] if part.argv else "" for part in parts]
    reads = [is_plain(part.findings) for part in parts]
    beside = all(name in ("git", *_BESIDE_GIT) or read for name, read in zip(names, reads, strict=True))
    return beside and any(name == "git" and not read for name, read in zip(names, reads, strict=True))


def commands_of(command: str, cwd: str, context: PolicyContext) -> list[tuple[str, ...]]:
    """Give the words of the simple commands of a line, as far as they are known."""
    return [part.argv for part in classify_command(command, cwd, context).parts]


def only_reads(command: str, cwd: str, context: PolicyContext) -> bool:
    """Whether a line does nothing but read, were its repository a plain one: no part of it needs programs of git's.

    It tells what git can be kept from, never a verdict.
    """
    judged = classify_command(command, cwd, replace(context, trusted=True, untrusted=()))
    found = [*judged.findings, *(one for part in judged.parts for one in part.findings)]
    return all(one.rule == OF_THE_REPOSITORY or class_of([one]) is CommandClass.READ_ONLY for one in found)


def _brings_text(command: str, parts: Sequence[JudgedCommand], findings: Sequence[Finding], scene: Scene) -> bool:
    if any(part.trace.outside for part in parts) or scene.trace.outside:
        return True
    return any(found.always_asks for found in findings) and may_bring_text(_ends(command))


def _precheck(command: str, cwd: str, context: PolicyContext) -> list[Finding]:
    hidden = hidden_characters(command)
    findings: list[Finding] = []
    if hidden:
        findings.append(dangerous("hidden-characters", f"the line contains {', '.join(hidden)}"))
    if len(command) <= MAX_LINE_BYTES and has_lookalikes(command):
        findings.append(unfollowed("look-alikes", "a word mixes look-alike letters"))
    is_root = cwd in context.roots and context.files.resolve(cwd) in context.usable
    if not is_root and check_path(cwd, PathOp.LIST, "/", context).where is not Where.INSIDE:
        findings.append(Finding(Risk.READ_OUTSIDE, "outside", f"runs in {cwd}, outside the workspace"))
    if not command.strip():
        findings.append(unfollowed("empty", "the line is empty"))
    return findings


_TOO_LONG = unfollowed("budget", "the line is too long to be judged: it has too many commands or words")


def _ends(command: str) -> str:
    """Give a line, or the beginning and the end of one that is too long to look through."""
    half = MAX_LINE_BYTES // 2
    return command if len(command) <= MAX_LINE_BYTES else f"{command[:half]}\n{command[-half:]}"


def _walk(command: str, scene: Scene) -> tuple[list[JudgedCommand], list[Finding]]:
    walk = Walk()
    try:
        script, joined = parse(command)
        walk.script(script, (structs.replace(scene, judge_tree=walk.script),))
        together = judge_sequence(walk.parts, scene)
    except ShellSyntaxError as failure:
        return walk.parts, [unfollowed("syntax", f"the line is not understood: {failure}"), *sweep(command, scene)]
    except (BudgetError, EffortError) as error:
        if scene.depth and isinstance(error, EffortError):
            raise
        return walk.parts, [_TOO_LONG, *sweep(_ends(command), scene)]
    if not joined:
        return walk.parts, together
    # The shell takes the break out before it looks at words, so what stands around it may be one word.
    parts, findings = _walk(command.replace("\\\n", ""), scene)
    return [*walk.parts, *parts], [unfollowed("syntax", "a line break is inside a word"), *together, *findings]


def _judge_script(text: str, scene: Scene) -> list[Finding]:
    """Judge a string that a command of the line would run as a script."""
    if scene.depth > MAX_NESTING:
        return [unfollowed("budget", "scripts are nested too deeply to follow")]
    if UNKNOWN in text:
        text = text.replace(UNKNOWN, "$unknown")
    parts, findings = _walk(text, scene)
    for part in parts:
        scene.trace.add(part.trace)
    return [*findings, *(found for part in parts for found in part.findings)]


SWEEP_EFFORT = 800
MAX_TARGETS = 200

_SEPARATORS = re.compile(r"[;&|\n(){}`]+|\$\(|<\(|>\(")
_QUOTING = re.compile(r"[\"'\\]")
_BOMB = re.compile(r"([\w:.]{1,32})\s*\(\)\s*\{[^}]{0,200}?\1\s*\|\s*\1\s*&")


def sweep(text: str, scene: Scene) -> list[Finding]:
    """Cut the text at everything that may separate commands and judge what starts at each word."""
    effort = scene.effort if scene.depth else Effort(SWEEP_EFFORT)
    scene = structs.replace(scene, effort=effort, is_search=True, is_guess=True)
    found: dict[Finding, None] = {}
    joined = text.replace("\\\n", "")
    try:
        # What is cut out of the line by `>` is looked at first: it is short.
        for target in from_both_ends(re.findall(r">+\s*([^\s;&|<>()]+)", joined))[:MAX_TARGETS]:
            found.update(dict.fromkeys(scene.mentions(_QUOTING.sub("", target))))
        for word in from_both_ends(_QUOTING.sub("", joined).split()):
            effort.spend(1 + len(word) // CHARACTERS_A_STEP)
            if len(word) <= MAX_PATH_BYTES and (name := secret_name(word) or control_name(word)):
                found[Finding(Risk.CRITICAL, "secret-read", f"names {name}, which is protected")] = None
        for piece in from_both_ends(_SEPARATORS.split(joined)):
            found.update(dict.fromkeys(_judge_piece(piece, scene)))
    except EffortError:
        pass
    for match in re.finditer(
        r"\|\s*(?:\w{1,64}=\S{0,99}\s+)*(?:\S{0,99}/)?(sudo|env|exec|nohup)?\s*(ba|z|da|k|a|c|tc)?sh\b", joined
    ):
        found[
            Finding(Risk.CRITICAL, "piped-script", f"what comes through the pipe is run: {match.group().strip()!r}")
        ] = None
    if _BOMB.search(joined):
        found[Finding(Risk.CRITICAL, "fork-bomb", "a function that calls itself")] = None
    return [finding for finding in found if finding.risk is Risk.CRITICAL]


def _judge_piece(piece: str, scene: Scene) -> Iterator[Finding]:
    words = tuple(filter(None, (_QUOTING.sub("", word) for word in piece.split())))
    for word in words[:6]:
        variable, is_set, value = word.partition("=")
        if is_set and variable.isidentifier():
            yield from judge_assignment(variable, value)
    for place in range(min(len(words), 4)):
        yield from scene.command(words[place : place + 60])


_RUNS_SHELL_TEXT = frozenset({"own-program", "shell"})
_RUNS_A_FILE = _RUNS_SHELL_TEXT | {"interpreter", "mode"}
_PRINTERS = frozenset({"echo", "printf"})


def judge_sequence(parts: Sequence[JudgedCommand], scene: Scene) -> list[Finding]:
    """Judge the commands of a line in their order."""
    if len(parts) < 2:
        return []
    scene = structs.replace(scene, is_guess=True)
    findings: list[Finding] = []
    written: list[str] = []
    fetched = False
    for part in parts:
        rules = {finding.rule for finding in part.findings}
        if fetched and rules & _RUNS_A_FILE:
            findings.append(dangerous("download-and-run", "runs a file after a download"))
        if written and rules & _RUNS_SHELL_TEXT:
            findings.extend(found for text in written for found in scene.script(text))
        if written and "interpreter" in rules:
            findings.extend(found for text in written for found in scan_code(text, scene))
        fetched |= "download" in rules
        if "write-inside" in rules:
            written.extend(_texts(part))
    return [finding for finding in dict.fromkeys(findings) if finding.risk is Risk.CRITICAL]


def _texts(part: JudgedCommand) -> Iterator[str]:
    """Give the texts that a command writes, as far as they stand in the line."""
    if part.input is not None:
        yield part.input
    if part.argv[:1] and part.argv[0] in _PRINTERS:
        yield " ".join(part.argv[1:])
        yield from part.argv[1:]


_ALLOWED_CONTROLS = frozenset("\t\n")
_EXOTIC_BLANKS = frozenset({"Zs", "Zl", "Zp"})
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co"})


def hidden_characters(text: str) -> list[str]:
    """Name the characters that are invisible, change direction, look like blanks, or control the terminal."""
    if text.isascii() and text.isprintable():
        return []
    found = {char for char in set(text) if not char.isascii() or not char.isprintable()} - _ALLOWED_CONTROLS
    return sorted(
        f"U+{ord(char):04X}"
        for char in found
        if unicodedata.category(char) in _HIDDEN
        or unicodedata.category(char) in _EXOTIC_BLANKS
        or char in "\u115f\u1160\u3164\uffa0\u2800\u034f"
    )


def has_lookalikes(text: str) -> bool:
    """Whether a word mixes ASCII letters with letters of another script, as look-alike names do."""
    return not text.isascii() and any(_mixes(word) for word in set(text.split()) if not word.isascii())


def _mixes(word: str) -> bool:
    scripts = {unicodedata.name(char, "?").split()[0] for char in set(word) if char.isalpha()}
    return "LATIN" in scripts and bool(scripts & {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "FULLWIDTH"})
