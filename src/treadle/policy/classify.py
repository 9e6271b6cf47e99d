"""Classifies shell lines: what may run unasked, what asks, and what no mode lets through."""

from collections.abc import Sequence
from dataclasses import dataclass

from treadle.policy.context import PolicyContext
from treadle.policy.findings import CommandClass, Finding, class_of, dangerous, unfollowed
from treadle.policy.marks import UNKNOWN
from treadle.policy.operations import PathOp
from treadle.policy.paths import Where, check_path
from treadle.policy.shell.expand import ExpansionBudgetError, Variables
from treadle.policy.shell.grammar import grammar_commands
from treadle.policy.shell.outline import command_names
from treadle.policy.shell.parse import parse
from treadle.policy.shell.precheck import has_lookalikes, hidden_characters
from treadle.policy.shell.programs import MAX_NESTING, judge_command
from treadle.policy.shell.scene import Scene, Trace
from treadle.policy.shell.sequences import judge_sequence
from treadle.policy.shell.sweep import sweep
from treadle.policy.shell.syntax import ShellSyntaxError
from treadle.policy.shell.walk import JudgedCommand, PartsBudgetError, Walk
from treadle.protocol.tools import Risk

MAX_LINE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandJudgement:
    """A shell line's class, its commands with what was found about each, and what was found about the whole.

    `trace` is what may be run and touched by text that could only be searched.
    """

    command_class: CommandClass
    parts: tuple[JudgedCommand, ...]
    findings: tuple[Finding, ...]
    trace: Trace


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
    parts: list[JudgedCommand] = []
    if len(command.encode(errors="replace")) > MAX_LINE_BYTES:
        findings.append(unfollowed("budget", f"the line is longer than {MAX_LINE_BYTES} bytes"))
        findings += [*sweep(command[:MAX_LINE_BYTES], scene), *sweep(command[-MAX_LINE_BYTES:], scene)]
    else:
        parts, more = _walk(command, scene)
        findings += more
    if scene.effort.left < 0:
        findings += sweep(command[:MAX_LINE_BYTES], scene)
    if _class(parts, findings) is CommandClass.READ_ONLY:
        findings += _second_opinion(command)
    return CommandJudgement(
        command_class=_class(parts, findings), parts=tuple(parts), findings=tuple(findings), trace=scene.trace
    )


def _class(parts: Sequence[JudgedCommand], findings: Sequence[Finding]) -> CommandClass:
    return class_of([*findings, *(found for part in parts for found in part.findings)])


def _precheck(command: str, cwd: str, context: PolicyContext) -> list[Finding]:
    hidden = hidden_characters(command)
    findings: list[Finding] = []
    if hidden:
        findings.append(dangerous("hidden-characters", f"the line holds {', '.join(hidden)}"))
    if has_lookalikes(command):
        findings.append(unfollowed("look-alikes", "a word mixes letters that look alike"))
    if check_path(cwd, PathOp.LIST, "/", context).where is not Where.INSIDE:
        findings.append(Finding(Risk.READ_OUTSIDE, "outside", f"runs in {cwd}, outside the workspace"))
    if not command.strip():
        findings.append(unfollowed("empty", "the line is empty"))
    return findings


def _walk(command: str, scene: Scene) -> tuple[list[JudgedCommand], list[Finding]]:
    walk = Walk()
    try:
        script, joined = parse(command)
        walk.script(script, scene)
    except ShellSyntaxError as failure:
        return walk.parts, [unfollowed("syntax", f"the line is not understood: {failure}"), *sweep(command, scene)]
    except (PartsBudgetError, ExpansionBudgetError):
        return walk.parts, [unfollowed("budget", "the line holds too many commands or words"), *sweep(command, scene)]
    together = judge_sequence(walk.parts, scene)
    if not joined:
        return walk.parts, together
    # The shell takes the break out before it looks at words, so what stands around it may be one word.
    parts, findings = _walk(command.replace("\\\n", ""), scene)
    return [*walk.parts, *parts], [unfollowed("syntax", "a line break stands inside a word"), *together, *findings]


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


def _second_opinion(command: str) -> list[Finding]:
    """Ask where the grammar sees other commands than the own parser."""
    script, _ = parse(command)
    if grammar_commands(command) != command_names(script):
        return [unfollowed("grammar", "two readings of the line differ")]
    return []
