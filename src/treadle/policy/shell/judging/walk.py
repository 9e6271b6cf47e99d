"""Walks the tree of a shell line and judges every command in it, wherever it stands."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import assert_never

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_static
from treadle.policy.operations import PathOp
from treadle.policy.shell.grammar.expand import Variables, expand_text, expand_word, expand_words
from treadle.policy.shell.grammar.syntax import (
    Block,
    Calculation,
    Command,
    Conditional,
    Literal,
    Parameter,
    Pipeline,
    ShellScript,
    Simple,
    Substitution,
    Word,
)
from treadle.policy.shell.judging.builtins import FILE_TESTS, judge_evaluated, judge_subscripts
from treadle.policy.shell.judging.flow import (
    agreed,
    assigned_names,
    either,
    follow_block,
    forget,
    runs_read,
    state_after,
)
from treadle.policy.shell.judging.lists import feed_of, judge_lists, listed_in_loop, names_secret
from treadle.policy.shell.judging.programs import judge_command
from treadle.policy.shell.judging.scene import PipedInput, Scene, Trace
from treadle.policy.shell.judging.surroundings import (
    judge_arithmetic,
    judge_assignment,
    judge_redirects,
    judge_segments,
)
from treadle.policy.shell.tables.dangers import VARIABLES_DANGEROUS
from treadle.protocol.tools import Risk

MAX_PARTS = 500

_TESTS = frozenset({"[", "test"})
_PLAIN_BLOCKS = frozenset({"subshell", "group", "if", "for", "case"})
_TAKES_ANY_WORDS = frozenset({"echo", ":", "true", "false"})

_NUMBERS = frozenset({"?", "#", "$", "!", "LINENO", "RANDOM", "SECONDS", "UID", "EUID", "PPID"})


@dataclass(frozen=True, slots=True)
class JudgedCommand:
    """One command of a line with everything that was found about it.

    `around` is what its variables, redirections and expansions do, `own` what its program does; `argv` are its words
    as far as they are known, `input` is the here-document it reads, and `trace` what it runs, reads, writes and calls.
    `is_fed` says that its input comes from the line itself: a pipe or a here-document.
    """

    text: str
    around: tuple[Finding, ...]
    own: tuple[Finding, ...] = ()
    argv: tuple[str, ...] = ()
    trace: Trace = field(default_factory=Trace)
    input: str | None = None
    is_fed: bool = False

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

    def script(self, script: ShellScript, scene: Scene) -> Scene:
        """Judge a script; gives the scene as it is afterwards."""
        chain, start = scene.cwds, scene.variables
        states: list[Variables] = []
        alternative = False
        for pipeline in script.pipelines:
            after = self._pipeline(pipeline, scene)
            states.append(after.variables)
            if pipeline.after == "&":
                self._note(
                    "&", [Finding(Risk.EXECUTE, "background", ("runs in the background, and continues after the line"))]
                )
                start = agreed(start, *states)
                scene, states, alternative = replace(scene, variables=start), [], False
                continue
            # Only behind && is it sure that the steps before ran and worked; elsewhere any may have failed or not run.
            chain = either(chain, scene.cwds)
            alternative |= pipeline.after == "||"
            changed = len(states) > 1 or after.cwds != chain
            if (pipeline.after != "&&" or alternative) and changed:
                after = replace(after, cwds=either(after.cwds, chain), variables=agreed(*states))
                chain = after.cwds
            if pipeline.after not in ("&&", "||"):
                start, states, alternative = after.variables, [], False
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
        feed = scene.feed
        for command in pipeline.commands:
            self._command(command, replace(scene, feed=feed))
            upstream = () if command is pipeline.commands[0] else feed.upstream
            feed = PipedInput(upstream=(*upstream, *feed_of((command,), scene).upstream))
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
                findings = judge_arithmetic(command.expression, scene, self.script)
                self._note(
                    f"(({command.expression.text}))",
                    findings + judge_redirects(command.redirects, scene, self.script)[0],
                )
                return scene
            case _:
                assert_never(command)

    def _simple(self, command: Simple, scene: Scene) -> Scene:
        scene = replace(scene, trace=Trace(places=list(scene.cwds)))
        redirected, feed = judge_redirects(command.redirects, scene, self.script)
        findings = redirected + self._assignments(command, scene)
        words = expand_words(command.words, scene.variables, scene.cwd)
        gentle = bool(words) and words[0] in _TESTS
        expanded = [word for word in command.words if not all(isinstance(one, Literal) for one in word.segments)]
        for word in expanded:
            findings.extend(judge_segments(word.segments, scene, self.script, gentle=gentle))
        if words and not _takes_any_words(words) and any(_may_split(word, scene) for word in expanded):
            text = f"{words[0]}: unquoted text may become several words, even options; put it in double quotes"
            findings.append(unclear("unknown-words", text))
        if words and words[0] in self._defining:
            findings.append(dangerous("fork-bomb", f"{words[0]} calls itself"))
        if words and words[0] in self._functions:
            findings.append(unclear("function", f"{words[0]} is a function of this line"))
            findings.extend(judge_subscripts(words[1:], scene))
        findings.extend(judge_lists(command, words, scene))
        findings.extend(names_secret(expanded, "".join(words[:1]), scene))
        fed = feed or scene.feed
        own = judge_command(words, scene if fed is scene.feed else replace(scene, feed=fed))
        self._add(
            JudgedCommand(
                text=command.text,
                around=tuple(dict.fromkeys(findings)),
                own=tuple(dict.fromkeys(own)),
                argv=words,
                trace=scene.trace,
                input=feed.text if feed else None,
                is_fed=fed.is_pipe or fed.text is not None,
            )
        )
        return state_after(command, words, scene)

    def _assignments(self, command: Simple, scene: Scene) -> list[Finding]:
        findings: list[Finding] = []
        for assignment in command.assignments:
            values = [expand_text(word.segments, scene.variables, scene.cwd, tilde=True) for word in assignment.values]
            if not (assignment.name == "IFS" and runs_read(command)):
                findings.extend(judge_assignment(assignment.name, " ".join(values), alone=not command.words))
            if assignment.is_array or assignment.subscript:
                findings.append(unclear("shell-state", "sets an array"))
            for value in values:
                if "$(" in value or "`" in value:
                    findings.extend(judge_evaluated(value, scene))
            for word in assignment.values:
                findings.extend(judge_segments(word.segments, scene, self.script))
            findings.extend(judge_segments(assignment.subscript, scene, self.script))
        return findings

    def _block(self, block: Block, scene: Scene) -> Scene:
        findings: list[Finding] = []
        if block.kind not in _PLAIN_BLOCKS:
            findings.append(unclear("syntax", f"how often a {block.kind} block runs is not known"))
        for word in block.words:
            findings.extend(judge_segments(word.segments, scene, self.script))
            findings.extend(judge_subscripts(expand_word(word, scene.variables, scene.cwd), scene))
        redirected, feed = judge_redirects(block.redirects, scene, self.script)
        findings.extend(redirected)
        if findings:
            self._note(block.kind, findings)
        if block.kind in ("for", "select") and VARIABLES_DANGEROUS.fullmatch(block.name):
            self._note(block.kind, judge_assignment(block.name, UNKNOWN))
        inner = replace(scene, feed=feed or scene.feed)
        inner = replace(inner, each=(*scene.each, *listed_in_loop(block, inner.feed, scene)))
        if block.kind == "function":
            return self._function(block, inner)
        after = follow_block(block, inner, self.script)
        return scene if block.kind in ("subshell", "coproc") else replace(after, feed=scene.feed, each=scene.each)

    def _function(self, block: Block, scene: Scene) -> Scene:
        self._defining.append(block.name)
        self._functions.add(block.name)
        follow_block(block, replace(scene, variables=scene.variables.with_value("@", UNKNOWN)), self.script)
        self._defining.pop()
        return replace(scene, variables=forget(scene.variables, assigned_names(block.scripts)))

    def _conditional(self, command: Conditional, scene: Scene) -> None:
        findings = [Finding(Risk.READ, "reader", "a test only reads")]
        for word in command.words:
            findings.extend(judge_segments(word.segments, scene, self.script, gentle=True))
            for text in expand_word(word, scene.variables, scene.cwd):
                if "$(" in text or "`" in text:
                    findings.extend(judge_evaluated(text, scene))
            if word.text in ("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"):
                findings.append(unclear("evaluated-text", "the test evaluates arithmetic"))
        for operator, word in pairwise(command.words):
            if operator.text in FILE_TESTS:
                for text in expand_word(word, scene.variables, scene.cwd):
                    findings.extend(scene.path(text, PathOp.LIST))
        self._note("[[", findings + judge_redirects(command.redirects, scene, self.script)[0])


def _takes_any_words(words: tuple[str, ...]) -> bool:
    """Whether a command only prints its words, however many there are and whatever they look like."""
    return words[0] in _TAKES_ANY_WORDS or (words[0] == "printf" and is_static("".join(words[1:2])))


def _may_split(word: Word, scene: Scene) -> bool:
    """Whether a part of a word is neither known nor quoted: the shell makes as many words of it as it has blanks."""
    for segment in word.segments:
        match segment:
            case Parameter(quoted=False, name=name) if name not in _NUMBERS:
                pass
            case Substitution(quoted=False):
                pass
            case _:
                continue
        text = expand_text((segment,), scene.variables, scene.cwd)
        if UNKNOWN in text:
            return True
    return False
