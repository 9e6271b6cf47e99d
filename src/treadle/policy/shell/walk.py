"""Walks the tree of a shell line and judges every command in it, wherever it stands."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import assert_never

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import HASH, UNKNOWN, is_glob, is_static
from treadle.policy.operations import PathOp
from treadle.policy.shell.assignments import judge_assignment
from treadle.policy.shell.builtins import judge_evaluated
from treadle.policy.shell.changes import (
    CHANGES_DIRECTORY,
    after_loop,
    agreed,
    assigned_names,
    changes_directory,
    forget,
    jumps,
    read_name,
    reads_its_input,
    runs_read,
    stands_alone,
)
from treadle.policy.shell.computed import names_secret
from treadle.policy.shell.conditions import FILE_TESTS
from treadle.policy.shell.dangers import VARIABLES_DANGEROUS, VARIABLES_SAFE_TO_SHOW, VARIABLES_SECRET
from treadle.policy.shell.expand import Variables, expand_text, expand_word, expand_words, only_calculates
from treadle.policy.shell.listing import SHOWS_LITTLE, Use, listed_by
from treadle.policy.shell.outline import command_names
from treadle.policy.shell.programs import judge_command
from treadle.policy.shell.scene import FREE_TARGETS, Feed, Scene, Trace
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
    Word,
)
from treadle.protocol.tools import Risk

MAX_PARTS = 500
MAX_LOOP_VALUES = 16
MAX_DIRECTORIES = 16

_TESTS = frozenset({"[", "test"})
_PLAIN_OPERATORS = frozenset({"", ":-", "-", "#", "##", "%", "%%", "/", "//", "/#", "/%", "^", "^^", ",", ",,", ":"})
_PLAIN_BLOCKS = frozenset({"subshell", "group", "if", "for", "case"})
_TAKES_ANY_WORDS = frozenset({"echo", ":", "true", "false"})
_TAKES_PIPES = frozenset(
    {"diff", "comm", "cmp", "cat", "head", "tail", "wc", "sort", "paste", "join", "uniq", "nl", "grep"}
)
"""Readers whose operands are only read, never obeyed."""

_NUMBERS = frozenset({"?", "#", "$", "!", "LINENO", "RANDOM", "SECONDS", "UID", "EUID", "PPID"})
_ARRAYS_OF_NUMBERS = frozenset({"PIPESTATUS", "BASH_VERSINFO"})
_NUMBERED = re.compile(r"\[(\d{1,2}|[@*])\]")
_BRANCHES = frozenset({"if", "case"})
_OTHER_LOOPS = frozenset({"while", "until", "calculated for"})


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

    def script(self, script: Script, scene: Scene) -> Scene:
        """Judge a script; gives the scene as it is afterwards."""
        chain, start = scene.cwds, scene.variables
        states: list[Variables] = []
        alternative = False
        for pipeline in script.pipelines:
            after = self._pipeline(pipeline, scene)
            states.append(after.variables)
            if pipeline.after == "&":
                self._note("&", [Finding(Risk.EXECUTE, "background", "runs beside the line, and goes on after it")])
                start = agreed(start, *states)
                scene, states, alternative = replace(scene, variables=start), [], False
                continue
            # Only behind && is it sure that the steps before ran and worked; elsewhere any may have failed or not run.
            chain = _either(chain, scene.cwds)
            alternative |= pipeline.after == "||"
            if pipeline.after != "&&" or alternative:
                after = replace(after, cwds=_either(after.cwds, chain), variables=agreed(*states))
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
        for place, command in enumerate(pipeline.commands):
            self._command(command, replace(scene, feed=feed))
            feed = _feed(pipeline.commands[: place + 1], scene)
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
                if not only_calculates(command.expression, scene.variables):
                    findings.append(unclear("shell-state", "arithmetic may set variables"))
                self._note(f"(({command.expression.text}))", findings + self._redirects(command.redirects, scene)[0])
                return scene
            case _:
                assert_never(command)

    def _simple(self, command: Simple, scene: Scene) -> Scene:
        scene = replace(scene, trace=Trace(places=list(scene.cwds)))
        redirected, feed = self._redirects(command.redirects, scene)
        findings = redirected + self._assignments(command, scene)
        words = expand_words(command.words, scene.variables, scene.cwd)
        gentle = bool(words) and words[0] in _TESTS
        for word in command.words:
            match word.segments:
                case (ProcessSubstitution(script=script, is_output=False),) if words[0] in _TAKES_PIPES:
                    self.script(script, replace(scene, feed=Feed()))
                case segments:
                    findings.extend(self._segments(segments, scene, gentle=gentle))
        if (
            words
            and not _takes_any_words(words)
            and any(_may_split(word, scene, of_git=words[0] == "git") for word in command.words)
        ):
            text = f"{words[0]}: what is not quoted may become several words, options too; put it in double quotes"
            findings.append(unclear("unknown-words", text))
        if words and words[0] in self._defining:
            findings.append(dangerous("fork-bomb", f"{words[0]} calls itself"))
        if words and words[0] in self._functions:
            findings.append(unclear("function", f"{words[0]} is a function of this line"))
        findings.extend(names_secret(command.words, "".join(words[:1]), scene))
        fed = feed or scene.feed
        own = judge_command(words, replace(scene, feed=fed))
        if HASH in words:
            # What names commits may also print nothing.
            own += judge_command(tuple(word for word in words if word != HASH), replace(scene, feed=fed))
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
        return self._state_after(command, words, scene)

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
                if assignment.appends:
                    value = variables.get(assignment.name) + value
                variables = variables.with_value(assignment.name, value)
            for word in words[1:]:
                name, is_set, value = word.partition("=")
                value = UNKNOWN if "-n" in words or name.endswith("+") else value
                name = name.removesuffix("+")
                variables = variables.with_value(name, value) if is_set and name.isidentifier() else variables
        elif words and words[0] in ("read", "unset", "mapfile", "readarray", "getopts"):
            for word in (*words[1:], "REPLY"):
                variables = variables.with_value(word, UNKNOWN)
        if words and words[0] in CHANGES_DIRECTORY:
            cwds = _directories(words, scene)
            known = cwds[0] if len(cwds) == 1 else UNKNOWN
            return replace(scene, cwds=cwds, variables=variables.with_value("PWD", known))
        return replace(scene, variables=variables)

    def _block(self, block: Block, scene: Scene) -> Scene:
        findings: list[Finding] = []
        reads_lines = reads_its_input(block)
        if block.kind in ("while", "until") and not reads_lines:
            findings.append(unclear("syntax", f"a {block.kind} loop may never end; only `while read` surely ends"))
        elif block.kind not in _PLAIN_BLOCKS and not reads_lines:
            findings.append(unclear("syntax", f"a {block.kind} block is not followed"))
        for word in block.words:
            findings.extend(self._segments(word.segments, scene))
        redirected, feed = self._redirects(block.redirects, scene, takes_pipe=reads_lines)
        findings.extend(redirected)
        if findings:
            self._note(block.kind, findings)
        if block.kind in ("for", "select") and VARIABLES_DANGEROUS.fullmatch(block.name):
            self._note(block.kind, judge_assignment(block.name, UNKNOWN))
        inner = replace(scene, feed=feed or scene.feed)
        if block.kind == "function":
            return self._function(block, inner)
        if block.kind in ("for", "select"):
            after = self._for(block, inner)
        elif block.kind in _OTHER_LOOPS:
            after = self._repeated(block, inner)
        else:
            after = self._scripts(block, inner)
        return scene if block.kind in ("subshell", "coproc") else replace(after, feed=scene.feed)

    def _function(self, block: Block, scene: Scene) -> Scene:
        self._defining.append(block.name)
        self._functions.add(block.name)
        self._scripts(block, replace(scene, variables=scene.variables.with_value("@", UNKNOWN)))
        self._defining.pop()
        return replace(scene, variables=forget(scene.variables, assigned_names(block.scripts)))

    def _scripts(self, block: Block, scene: Scene) -> Scene:
        """Judge the scripts of a block; a branch may run or not, so both directories stay possible."""
        for script in block.scripts:
            after = self.script(script, scene)
            if block.kind not in ("subshell", "group"):
                after = replace(after, cwds=_either(scene.cwds, after.cwds))
            if block.kind in _BRANCHES:
                after = replace(after, variables=agreed(scene.variables, after.variables))
            scene = after
        return scene

    def _for(self, block: Block, scene: Scene) -> Scene:
        values = [value for word in block.words for value in self._loop_values(word, block, scene)]
        if len(values) > MAX_LOOP_VALUES or not values:
            values = [*values[:MAX_LOOP_VALUES], UNKNOWN]
        # A name with blanks in it falls apart where it is not quoted.
        values = [value if not is_glob(value) or scene.fits_plain_names(value) else UNKNOWN for value in values]
        before, names = scene.variables, assigned_names(block.scripts)
        exact = all(map(is_static, values)) and not jumps(block.scripts)
        if not exact and changes_directory(block.scripts):
            scene = replace(scene, cwds=(UNKNOWN,))
        for value in values if exact or not names else (*values, *values):
            scene = self._scripts(block, replace(scene, variables=scene.variables.with_value(block.name, value)))
        if names and not exact:
            # The rounds above show danger; what they set may hold in any round, or in none.
            for value in values:
                variables = forget(scene.variables, names).with_value(block.name, value)
                scene = self._scripts(block, replace(scene, variables=variables))
        last = [] if exact and block.name not in names else [block.name]
        variables = after_loop(before, scene.variables, (*names, *last))
        if not last:
            variables = variables.with_value(block.name, values[-1])
        return replace(scene, variables=variables)

    def _loop_values(self, word: Word, block: Block, scene: Scene) -> list[str]:
        match word.segments:
            case (Substitution(script=script, quoted=False),):
                listed = self._listed(block.name, block, replace(scene, feed=_fed_by(script, scene)))
                return listed or expand_word(word, scene.variables, scene.cwd)
            case _:
                return expand_word(word, scene.variables, scene.cwd)

    def _listed(self, name: str | None, block: Block, scene: Scene) -> list[str]:
        """Give file names that stand for all those that a loop runs over; nothing where they are unknown."""
        body = block.scripts[-1:]
        if name is None or changes_directory(body) or not stands_alone(name, body):
            return []
        shows_little = SHOWS_LITTLE.issuperset(command_names(block.scripts[-1]))
        listing = listed_by(scene, Use.SEARCH if shows_little else Use.READ)
        return [] if listing is None or listing.is_nul else [listing.sample]

    def _read_files(self, block: Block, names: list[str], scene: Scene) -> Scene:
        """Judge a loop that reads the names of known files."""
        after = self.script(block.scripts[0], scene)
        set_in_it = assigned_names(block.scripts)
        for name in names:
            variables = forget(after.variables, set_in_it).with_value(read_name(block) or "", name)
            self.script(block.scripts[1], replace(after, variables=variables))
        return replace(scene, variables=after_loop(scene.variables, after.variables, set_in_it))

    def _repeated(self, block: Block, scene: Scene) -> Scene:
        """Judge a loop of which nobody knows how often it runs."""
        if reads_its_input(block) and (names := self._listed(read_name(block), block, scene)):
            return self._read_files(block, names, scene)
        before, changed = scene.variables, assigned_names(block.scripts)
        cwds = (UNKNOWN,) if changes_directory(block.scripts) else scene.cwds
        after = replace(scene, cwds=cwds)
        for _ in range(2 if changed else 0):
            after = self._scripts(block, after)
        after = self._scripts(block, replace(after, variables=forget(after.variables, changed)))
        return replace(after, variables=after_loop(before, after.variables, changed))

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

    def _redirects(
        self, redirects: Iterable[Redirect], scene: Scene, *, takes_pipe: bool = False
    ) -> tuple[list[Finding], Feed | None]:
        """Judge redirections; gives the new input, if any. With `takes_pipe` it may be `< <(…)`."""
        findings: list[Finding] = []
        feed: Feed | None = None
        for redirect in redirects:
            match redirect.target.segments:
                case (ProcessSubstitution(script=script, is_output=False),) if takes_pipe and redirect.operator == "<":
                    self.script(script, replace(scene, feed=Feed()))
                    feed = _fed_by(script, scene)
                    continue
                case _:
                    pass
            findings.extend(self._segments(redirect.target.segments, scene) if redirect.here is None else [])
            if redirect.here is not None:
                findings.extend(self._segments(redirect.here.body, scene))
                feed = Feed(text=expand_text(redirect.here.body, scene.variables))
            elif redirect.operator == "<<<":
                feed = Feed(text=expand_text(redirect.target.segments, scene.variables, scene.cwd, tilde=True))
            else:
                findings.extend(self._redirect(redirect, scene))
                feed = _input_of(redirect) if redirect.operator == "<" else feed
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
            elif target not in FREE_TARGETS:
                op = PathOp.READ if redirect.operator == "<" else PathOp.WRITE
                findings.extend(scene.path(target, op))
        is_known = len(targets) == 1 and (is_static(targets[0]) or (redirect.operator == "<" and is_glob(targets[0])))
        if not is_known:
            findings.append(unclear("redirect", f"the file {redirect.target.text} is unknown until it runs"))
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
        if name in _ARRAYS_OF_NUMBERS and _NUMBERED.fullmatch(parameter.operator):
            pass
        elif parameter.operator.startswith("!") or parameter.operator == "@" or "[" in parameter.operator:
            findings.append(unclear("evaluated-text", f"${{{name}…}} evaluates a value"))
            findings.extend(self._evaluated(parameter.operand, scene))
        elif parameter.operator not in _PLAIN_OPERATORS:
            findings.append(unclear("expansion", f"${{{name}{parameter.operator}…}} does more than show a value"))
            if parameter.operator in (":=", "="):
                findings.extend(judge_assignment(name, UNKNOWN))
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
        if not only_calculates(expression, scene.variables):
            findings.append(
                unclear(
                    "evaluated-text",
                    f"{expression.text.strip()!r}: arithmetic evaluates values that are not known numbers",
                )
            )
        return findings

    def _evaluated(self, segments: tuple[Segment, ...], scene: Scene) -> list[Finding]:
        return judge_evaluated(expand_text(segments, scene.variables), scene) if segments else []


def _input_of(redirect: Redirect) -> Feed:
    """Give what `< file` reads: nothing that is known, but for `< <(…)`, which is another command's output."""
    is_piped = any(isinstance(segment, ProcessSubstitution) for segment in redirect.target.segments)
    return Feed(upstream=((UNKNOWN,),)) if is_piped else Feed()


def _either(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Give the directories of both; too many to follow count as unknown."""
    together = tuple(dict.fromkeys((*first, *second)))
    return together if len(together) <= MAX_DIRECTORIES else (UNKNOWN,)


def _takes_any_words(words: tuple[str, ...]) -> bool:
    """Whether a command only prints its words, however many there are and whatever they look like."""
    return words[0] in _TAKES_ANY_WORDS or (words[0] == "printf" and is_static("".join(words[1:2])))


def _may_split(word: Word, scene: Scene, *, of_git: bool) -> bool:
    """Whether a part of a word is neither known nor quoted: the shell makes as many words of it as it has blanks.

    Several names of commits are as good as one to git, whatever it reads.
    """
    for segment in word.segments:
        match segment:
            case Parameter(quoted=False, name=name) if name not in _NUMBERS:
                pass
            case Substitution(quoted=False):
                pass
            case _:
                continue
        text = expand_text((segment,), scene.variables, scene.cwd)
        if UNKNOWN in text or (HASH in text and not of_git):
            return True
    return False


def _fed_by(script: Script, scene: Scene) -> Feed:
    """Give what a script prints as the input of something else."""
    match script.pipelines:
        case (Pipeline(commands=commands),):
            return _feed(commands, scene)
        case _:
            return Feed(upstream=((UNKNOWN,),))


def _feed(commands: Sequence[Command], scene: Scene) -> Feed:
    """Give the input of what stands behind these commands of a pipeline."""
    upstream = tuple(_argv(command, scene) for command in commands)
    only_print = all(isinstance(one, Simple) and not one.assignments and _drops_errors(one) for one in commands)
    return Feed(upstream=upstream, lists_in=scene.cwd if only_print else UNKNOWN)


def _drops_errors(command: Simple) -> bool:
    """Whether a command is redirected nowhere, but for its errors to the null device."""
    return all(one.fd == "2" and one.operator == ">" and one.target.text == "/dev/null" for one in command.redirects)


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
