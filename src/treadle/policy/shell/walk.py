"""Walks the tree of a shell line and judges every command in it, wherever it stands."""

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import assert_never

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_static
from treadle.policy.operations import PathOp
from treadle.policy.shell.assignments import judge_assignment
from treadle.policy.shell.builtins import judge_evaluated
from treadle.policy.shell.dangers import VARIABLES_DANGEROUS, VARIABLES_SAFE_TO_SHOW, VARIABLES_SECRET
from treadle.policy.shell.expand import expand_text, expand_word, expand_words
from treadle.policy.shell.filters import FILE_TESTS
from treadle.policy.shell.programs import judge_command
from treadle.policy.shell.scene import Feed, Scene, Trace
from treadle.policy.shell.syntax import (
    Arithmetic,
    Block,
    Calculation,
    Command,
    Conditional,
    Literal,
    Parameter,
    Pipeline,
    ProcessSubstitution,
    Redirect,
    Script,
    Segment,
    Simple,
    Substitution,
)
from treadle.protocol.tools import Risk

MAX_PARTS = 500
MAX_LOOP_VALUES = 16
MAX_DIRECTORIES = 16

_TESTS = frozenset({"[", "test"})
_PLAIN_OPERATORS = frozenset({"", ":-", "-", "#", "##", "%", "%%", "/", "//", "/#", "/%", "^", "^^", ",", ",,", ":"})
_PLAIN_BLOCKS = frozenset({"subshell", "group", "if", "for"})
_CHANGES_DIRECTORY = frozenset({"cd", "pushd", "popd", "chdir"})
_FREE_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})


@dataclass(frozen=True, slots=True)
class JudgedCommand:
    """One command of a line with everything that was found about it.

    `around` is what its variables, redirections and expansions do, `own` what its program does; `argv` are its words
    as far as they are known, `input` is the here-document it reads, and `trace` what it runs, reads, writes and calls.
    """

    text: str
    around: tuple[Finding, ...]
    own: tuple[Finding, ...] = ()
    argv: tuple[str, ...] = ()
    trace: Trace = field(default_factory=Trace)
    input: str | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that was found."""
        return tuple(dict.fromkeys((*self.around, *self.own)))


class PartsBudgetError(Exception):
    """The line holds more commands than the budget allows."""


class Walk:
    """One pass over one line. `parts` grows as commands are met, in the order of the text."""

    def __init__(self) -> None:
        self.parts: list[JudgedCommand] = []
        self._functions: set[str] = set()
        self._defining: list[str] = []

    def script(self, script: Script, scene: Scene) -> Scene:
        """Judge a script; gives the scene as it is afterwards."""
        chain = scene.cwds
        for pipeline in script.pipelines:
            after = self._pipeline(pipeline, scene)
            if pipeline.after == "&":
                self._note("&", [Finding(Risk.EXECUTE, "background", "runs beside the line, and goes on after it")])
                continue
            # Only behind && is it sure that a change of directory worked; elsewhere any step may have failed.
            chain = _either(chain, scene.cwds)
            if pipeline.after not in ("&&", ""):
                after = replace(after, cwds=_either(after.cwds, chain))
                chain = after.cwds
            scene = after
        return scene

    def _note(self, text: str, findings: Iterable[Finding]) -> None:
        self._add(JudgedCommand(text, tuple(dict.fromkeys(findings))))

    def _add(self, part: JudgedCommand) -> None:
        self.parts.append(part)
        if len(self.parts) > MAX_PARTS:
            raise PartsBudgetError

    def _pipeline(self, pipeline: Pipeline, scene: Scene) -> Scene:
        if len(pipeline.commands) == 1:
            return self._command(pipeline.commands[0], scene)
        upstream: tuple[tuple[str, ...], ...] = ()
        for command in pipeline.commands:
            fed = replace(scene, feed=Feed(upstream=upstream)) if upstream else scene
            self._command(command, fed)
            upstream = (*upstream, _argv(command, scene))
        return scene

    def _command(self, command: Command, scene: Scene) -> Scene:
        match command:
            case Simple():
                return self._simple(command, scene)
            case Block():
                return self._block(command, scene)
            case Conditional():
                self._conditional(command, scene)
                return scene
            case Calculation():
                findings = self._arithmetic(command.expression, scene)
                findings.append(unclear("shell-state", "arithmetic may set variables"))
                self._note(f"(({command.expression.text}))", findings + self._redirects(command.redirects, scene)[0])
                return scene
            case _:
                assert_never(command)

    def _simple(self, command: Simple, scene: Scene) -> Scene:
        scene = replace(scene, trace=Trace())
        redirected, feed = self._redirects(command.redirects, scene)
        findings = redirected + self._assignments(command, scene)
        words = expand_words(command.words, scene.variables, scene.cwd)
        gentle = bool(words) and words[0] in _TESTS
        for word in command.words:
            findings.extend(self._segments(word.segments, scene, gentle=gentle))
        if words and words[0] in self._defining:
            findings.append(dangerous("fork-bomb", f"{words[0]} calls itself"))
        if words and words[0] in self._functions:
            findings.append(unclear("function", f"{words[0]} is a function of this line"))
        own = judge_command(words, replace(scene, feed=feed or scene.feed))
        around = tuple(dict.fromkeys(findings))
        self._add(
            JudgedCommand(
                command.text, around, tuple(dict.fromkeys(own)), words, scene.trace, feed.text if feed else None
            )
        )
        return self._state_after(command, words, scene)

    def _assignments(self, command: Simple, scene: Scene) -> list[Finding]:
        findings: list[Finding] = []
        for assignment in command.assignments:
            values = [expand_text(word.segments, scene.variables, scene.cwd, tilde=True) for word in assignment.values]
            findings.extend(judge_assignment(assignment.name, " ".join(values)))
            if assignment.is_array or assignment.subscript:
                findings.append(unclear("shell-state", "sets an array"))
            for value in values:
                if "$(" in value or "`" in value:
                    findings.extend(judge_evaluated(value, scene))
            for word in assignment.values:
                findings.extend(self._segments(word.segments, scene))
            findings.extend(self._segments(assignment.subscript, scene))
            findings.extend(self._evaluated(assignment.subscript, scene))
        return findings

    def _state_after(self, command: Simple, words: tuple[str, ...], scene: Scene) -> Scene:
        variables = scene.variables
        if not command.words or (words and words[0] in ("export", "declare", "typeset", "readonly", "local")):
            for assignment in command.assignments:
                value = UNKNOWN
                if len(assignment.values) == 1 and not assignment.is_array and not assignment.subscript:
                    value = expand_text(assignment.values[0].segments, variables, scene.cwd, tilde=True)
                variables = variables.with_value(assignment.name, value)
            for word in words[1:]:
                name, is_set, value = word.partition("=")
                variables = variables.with_value(name, value) if is_set and name.isidentifier() else variables
        elif words and words[0] in ("read", "unset", "mapfile", "readarray", "getopts"):
            for word in words[1:]:
                variables = variables.with_value(word, UNKNOWN)
        if words and words[0] in _CHANGES_DIRECTORY:
            cwds = _directories(words, scene)
            known = cwds[0] if len(cwds) == 1 else UNKNOWN
            return replace(scene, cwds=cwds, variables=variables.with_value("PWD", known))
        return replace(scene, variables=variables)

    def _block(self, block: Block, scene: Scene) -> Scene:
        findings: list[Finding] = []
        if block.kind not in _PLAIN_BLOCKS:
            findings.append(unclear("syntax", f"a {block.kind} block is not followed"))
        for word in block.words:
            findings.extend(self._segments(word.segments, scene))
        redirected, feed = self._redirects(block.redirects, scene)
        findings.extend(redirected)
        if findings:
            self._note(block.kind, findings)
        if block.kind in ("for", "select") and VARIABLES_DANGEROUS.fullmatch(block.name):
            self._note(block.kind, judge_assignment(block.name, UNKNOWN))
        inner = replace(scene, feed=feed or scene.feed)
        if block.kind == "function":
            return self._function(block, inner)
        after = self._for(block, inner) if block.kind in ("for", "select") else self._scripts(block, inner)
        return scene if block.kind in ("subshell", "coproc") else replace(after, feed=scene.feed)

    def _function(self, block: Block, scene: Scene) -> Scene:
        self._defining.append(block.name)
        self._functions.add(block.name)
        self._scripts(block, replace(scene, variables=scene.variables.with_value("@", UNKNOWN)))
        self._defining.pop()
        return scene

    def _scripts(self, block: Block, scene: Scene) -> Scene:
        """Judge the scripts of a block; a branch may run or not, so both directories stay possible."""
        for script in block.scripts:
            after = self.script(script, scene)
            if block.kind not in ("subshell", "group"):
                after = replace(after, cwds=_either(scene.cwds, after.cwds))
            scene = after
        return scene

    def _for(self, block: Block, scene: Scene) -> Scene:
        values = list(expand_words(block.words, scene.variables, scene.cwd))
        if len(values) > MAX_LOOP_VALUES or not values:
            values = [*values[:MAX_LOOP_VALUES], UNKNOWN]
        for value in values:
            scene = self._scripts(block, replace(scene, variables=scene.variables.with_value(block.name, value)))
        return scene

    def _conditional(self, command: Conditional, scene: Scene) -> None:
        findings = [Finding(Risk.READ, "reader", "a test only looks")]
        for word in command.words:
            findings.extend(self._segments(word.segments, scene, gentle=True))
            for text in expand_word(word, scene.variables, scene.cwd):
                if "$(" in text or "`" in text:
                    findings.extend(judge_evaluated(text, scene))
            if word.text in ("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"):
                findings.append(unclear("evaluated-text", "the test evaluates arithmetic"))
        for operator, word in pairwise(command.words):
            if operator.text in FILE_TESTS:
                for text in expand_word(word, scene.variables, scene.cwd):
                    findings.extend(scene.path(text, PathOp.LIST))
        self._note("[[", findings + self._redirects(command.redirects, scene)[0])

    def _redirects(self, redirects: Iterable[Redirect], scene: Scene) -> tuple[list[Finding], Feed | None]:
        findings: list[Finding] = []
        feed: Feed | None = None
        for redirect in redirects:
            findings.extend(self._segments(redirect.target.segments, scene) if redirect.here is None else [])
            if redirect.here is not None:
                findings.extend(self._segments(redirect.here.body, scene))
                feed = Feed(text=expand_text(redirect.here.body, scene.variables))
            elif redirect.operator == "<<<":
                feed = Feed(text=expand_text(redirect.target.segments, scene.variables, scene.cwd, tilde=True))
            else:
                findings.extend(self._redirect(redirect, scene))
                feed = Feed() if redirect.operator == "<" else feed
            if redirect.fd.startswith("{"):
                findings.append(unclear("redirect", "opens a descriptor and sets a variable"))
        return findings, feed

    def _redirect(self, redirect: Redirect, scene: Scene) -> list[Finding]:
        if any(isinstance(segment, ProcessSubstitution) for segment in redirect.target.segments):
            return [unclear("redirect", "the input or output is another command")]
        targets = expand_word(redirect.target, scene.variables, scene.cwd)
        findings: list[Finding] = []
        for target in targets:
            if target.startswith(("/dev/tcp", "/dev/udp")):
                findings.append(dangerous("network-redirect", f"{target} is a connection to the network"))
            elif redirect.operator in (">&", "<&") and (target.rstrip("-").isdigit() or target == "-"):
                continue
            elif target not in _FREE_TARGETS:
                op = PathOp.READ if redirect.operator == "<" else PathOp.WRITE
                findings.extend(scene.path(target, op))
        if len(targets) != 1 or not is_static(targets[0]):
            findings.append(unclear("redirect", "the file is unknown until it runs"))
        return findings

    def _segments(self, segments: Iterable[Segment], scene: Scene, *, gentle: bool = False) -> list[Finding]:
        """Judge what the expansions of a word run and show."""
        findings: list[Finding] = []
        for segment in segments:
            match segment:
                case Literal():
                    continue
                case Parameter():
                    findings.extend(self._parameter(segment, scene, gentle=gentle))
                case Substitution() | ProcessSubstitution():
                    is_output = isinstance(segment, ProcessSubstitution) and segment.is_output
                    self.script(segment.script, replace(scene, feed=Feed(upstream=((UNKNOWN,),) if is_output else ())))
                    if isinstance(segment, ProcessSubstitution):
                        findings.append(unclear("syntax", "a process substitution"))
                case Arithmetic():
                    findings.extend(self._arithmetic(segment, scene))
                case _:
                    assert_never(segment)
        return findings

    def _parameter(self, parameter: Parameter, scene: Scene, *, gentle: bool) -> list[Finding]:
        findings = self._segments(parameter.operand, scene, gentle=gentle)
        name = parameter.name
        if parameter.operator.startswith("!") or parameter.operator == "@" or "[" in parameter.operator:
            findings.append(unclear("evaluated-text", f"${{{name}…}} evaluates a value"))
            findings.extend(self._evaluated(parameter.operand, scene))
        elif parameter.operator not in _PLAIN_OPERATORS:
            findings.append(unclear("expansion", f"${{{name}{parameter.operator}…}} does more than show a value"))
        elif parameter.operator == ":" or "/" in parameter.operator:
            findings.extend(self._evaluated(parameter.operand, scene))
        if VARIABLES_SECRET.fullmatch(name):
            text = f"uses the variable {name}, which looks like a secret"
            findings.append(
                Finding(Risk.EXECUTE, "secret-variable", text) if gentle else dangerous("secret-variable", text)
            )
        elif name not in VARIABLES_SAFE_TO_SHOW and name not in scene.variables.values:
            findings.append(unclear("unknown-variable", f"the value of {name} is unknown"))
        return findings

    def _arithmetic(self, expression: Arithmetic, scene: Scene) -> list[Finding]:
        findings = self._segments(expression.inner, scene)
        findings.extend(self._evaluated(expression.inner, scene))
        if not all(
            isinstance(part, Literal) and part.text.strip(" 0123456789+-*/%()<>=&|!~^?:") == ""
            for part in expression.inner
        ):
            findings.append(unclear("evaluated-text", "arithmetic over variables evaluates their values"))
        return findings

    def _evaluated(self, segments: tuple[Segment, ...], scene: Scene) -> list[Finding]:
        return judge_evaluated(expand_text(segments, scene.variables), scene) if segments else []


def _either(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Give the directories of both; too many to follow count as unknown."""
    together = tuple(dict.fromkeys((*first, *second)))
    return together if len(together) <= MAX_DIRECTORIES else (UNKNOWN,)


def _argv(command: Command, scene: Scene) -> tuple[str, ...]:
    if isinstance(command, Simple):
        return expand_words(command.words, scene.variables, scene.cwd) or ("",)
    return (UNKNOWN,)


def _directories(words: tuple[str, ...], scene: Scene) -> tuple[str, ...]:
    operands = [word for word in words[1:] if not (word.startswith("-") and len(word) > 1)]
    if words[0] == "popd" or operands[:1] == ["-"] or len(operands) > 1:
        return (UNKNOWN,)
    target = operands[0] if operands else scene.variables.get("HOME")
    if not is_static(target) or UNKNOWN in scene.cwds:
        return (UNKNOWN,) if not target.startswith("/") or not is_static(target) else (target,)
    # Like the shell, go by names: `cd link; cd ..` comes back. Only -P goes by where links lead.
    places = [posixpath.normpath(_join(cwd, target)) for cwd in scene.cwds]
    if "-P" in words:
        places = [scene.context.files.resolve(place) for place in places]
    return tuple(dict.fromkeys(places))


def _join(cwd: str, target: str) -> str:
    return target if target.startswith("/") else f"{cwd.rstrip('/')}/{target}"
