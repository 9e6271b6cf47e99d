"""Classifies shell lines: what may run unasked, what asks, and what no mode lets through."""

from collections.abc import Sequence
from dataclasses import dataclass

from treadle.policy.context import PolicyContext
from treadle.policy.findings import CommandClass, Finding, class_of, dangerous, unclear
from treadle.policy.marks import UNKNOWN
from treadle.policy.paths import PathOp, Where, check_path
from treadle.policy.shell.expand import Variables
from treadle.policy.shell.grammar import grammar_commands
from treadle.policy.shell.parse import parse
from treadle.policy.shell.precheck import has_lookalikes, hidden_characters
from treadle.policy.shell.programs import MAX_NESTING, judge_command
from treadle.policy.shell.scene import Scene
from treadle.policy.shell.sweep import sweep
from treadle.policy.shell.syntax import (
    Block,
    Command,
    Conditional,
    Script,
    Segment,
    Simple,
    Substitution,
    SyntaxFailure,
)
from treadle.policy.shell.walk import JudgedCommand, TooManyParts, Walk
from treadle.protocol.tools import Risk

MAX_LINE_BYTES = 64 * 1024

_RUNS_A_FILE = frozenset({"own-program", "shell", "interpreter", "mode"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandJudgement:
    """A shell line's class, its commands with what was found about each, and what was found about the whole."""

    command_class: CommandClass
    parts: tuple[JudgedCommand, ...]
    findings: tuple[Finding, ...] = ()

    def all_findings(self) -> tuple[Finding, ...]:
        """Give every finding once: the line's own first, then those of its parts in order."""
        return tuple(dict.fromkeys((*self.findings, *(found for part in self.parts for found in part.findings))))


def classify_command(command: str, cwd: str, context: PolicyContext) -> CommandJudgement:
    """Judge a line for bash in `cwd`. Never raises; what cannot be followed is searched for danger and asked."""
    scene = Scene(
        context=context,
        cwds=(cwd,),
        variables=Variables(context.home, {"PWD": cwd}),
        judge_script=_judge_script,
        judge_argv=judge_command,
    )
    findings = _precheck(command, cwd, context)
    if len(command.encode(errors="replace")) > MAX_LINE_BYTES:
        findings.append(unclear("budget", f"the line is longer than {MAX_LINE_BYTES} bytes"))
        return _judgement(
            (), [*findings, *sweep(command[:MAX_LINE_BYTES], scene), *sweep(command[-MAX_LINE_BYTES:], scene)]
        )
    parts, more = _walk(command, scene)
    more += _written_and_run(command, parts, scene)
    judgement = _judgement(parts, findings + more)
    if judgement.command_class is CommandClass.READ_ONLY:
        second = _second_opinion(command)
        return _judgement(parts, [*findings, *more, *second])
    return judgement


def _judgement(parts: Sequence[JudgedCommand], findings: Sequence[Finding]) -> CommandJudgement:
    findings = [*findings, *_downloaded_and_run(parts)]
    together = [*findings, *(found for part in parts for found in part.findings)]
    return CommandJudgement(command_class=class_of(together), parts=tuple(parts), findings=tuple(findings))


def _downloaded_and_run(parts: Sequence[JudgedCommand]) -> list[Finding]:
    """Find a part that runs a file after another part could have fetched it."""
    fetched = False
    for part in parts:
        rules = {finding.rule for finding in part.findings}
        if fetched and rules & _RUNS_A_FILE:
            return [dangerous("download-and-run", "runs a file behind a download")]
        fetched |= "download" in rules
    return []


def _written_and_run(command: str, parts: Sequence[JudgedCommand], scene: Scene) -> list[Finding]:
    """Look through the texts of a line that writes a file and runs one: they may be the program."""
    writes = False
    for part in parts:
        rules = {finding.rule for finding in part.findings}
        if writes and rules & _RUNS_A_FILE:
            return [finding for finding in sweep(command, scene) if finding.risk is Risk.CRITICAL]
        writes |= "write-inside" in rules
    return []


def _precheck(command: str, cwd: str, context: PolicyContext) -> list[Finding]:
    hidden = hidden_characters(command)
    findings: list[Finding] = []
    if hidden:
        findings.append(dangerous("hidden-characters", f"the line holds {', '.join(hidden)}"))
    if has_lookalikes(command):
        findings.append(unclear("look-alikes", "a word mixes letters that look alike"))
    if check_path(cwd, PathOp.LIST, "/", context).where is not Where.INSIDE:
        findings.append(Finding(Risk.READ_OUTSIDE, "outside", f"runs in {cwd}, outside the workspace"))
    if not command.strip():
        findings.append(unclear("empty", "the line is empty"))
    return findings


def _walk(command: str, scene: Scene) -> tuple[list[JudgedCommand], list[Finding]]:
    walk = Walk()
    try:
        script, joined = parse(command)
        walk.script(script, scene)
    except SyntaxFailure as failure:
        return walk.parts, [unclear("syntax", f"the line is not understood: {failure}"), *sweep(command, scene)]
    except TooManyParts:
        return walk.parts, [unclear("budget", "the line holds too many commands"), *sweep(command, scene)]
    return walk.parts, [unclear("syntax", "a line break stands inside a word")] if joined else []


def _judge_script(text: str, scene: Scene) -> list[Finding]:
    """Judge a string that a command of the line would run as a script."""
    if scene.depth > MAX_NESTING:
        return [unclear("budget", "scripts are nested too deeply to follow")]
    if UNKNOWN in text:
        text = text.replace(UNKNOWN, "$unknown")
    parts, findings = _walk(text, scene)
    return [*findings, *(found for part in parts for found in part.findings)]


def _second_opinion(command: str) -> list[Finding]:
    script, _ = parse(command)
    own: list[str] = []
    _collect(script, own)
    if grammar_commands(command) != own:
        return [unclear("grammar", "two readings of the line differ")]
    return []


def _collect(script: Script, names: list[str]) -> None:
    for pipeline in script.pipelines:
        for command in pipeline.commands:
            _collect_command(command, names)


def _collect_command(command: Command, names: list[str]) -> None:
    match command:
        case Simple():
            for assignment in command.assignments:
                for value in assignment.values:
                    _collect_segments(value.segments, names)
            if command.words:
                names.append(command.words[0].text)
            for word in command.words:
                _collect_segments(word.segments, names)
            for redirect in command.redirects:
                _collect_segments(redirect.here.body if redirect.here else redirect.target.segments, names)
        case Block():
            for word in command.words:
                _collect_segments(word.segments, names)
            for script in command.scripts:
                _collect(script, names)
        case Conditional():
            names.append("[[")
            for word in command.words:
                _collect_segments(word.segments, names)
        case _:
            names.append("((")


def _collect_segments(segments: Sequence[Segment], names: list[str]) -> None:
    for segment in segments:
        if isinstance(segment, Substitution):
            _collect(segment.script, names)
