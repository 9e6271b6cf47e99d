"""Walks the tree of a shell line and judges every command in it, wherever it stands."""

import re
from collections.abc import Iterable
from typing import assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from treadle.policy.decision_context import is_below
from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_static
from treadle.policy.path_check import named_part
from treadle.policy.rules import Trace
from treadle.policy.shell.builtins import (
    judge_assignment,
    judge_evaluated,
    judge_redirects,
    judge_segments,
    judge_subscripts,
    judge_test,
)
from treadle.policy.shell.dangers import VARIABLES_DANGEROUS
from treadle.policy.shell.expand import expand_text, expand_word, expand_words
from treadle.policy.shell.file_programs import FILE_PROGRAMS
from treadle.policy.shell.handed_lists import judge_lists, listed_in_loop, names_secret, piped_words
from treadle.policy.shell.judged_programs import judge_command
from treadle.policy.shell.shell_env import PipedInput, ShellEnv, behind, either
from treadle.policy.shell.syntax import (
    Block,
    BudgetError,
    Command,
    Parameter,
    Pipeline,
    ShellScript,
    Simple,
    Substitution,
    Word,
)
from treadle.protocol.protected_names import later_name

MAX_PARTS = 500

_PLAIN_BLOCKS = frozenset({"subshell", "group", "if", "for", "case"})
_LOOPS = frozenset({"for", "while", "until", "calculated for"})
_JUMPS = frozenset({"break", "continue"})
MAX_ROUNDS = 3
MAX_LOOP_VALUES = 16

_TAKES_ANY_WORDS = frozenset({"echo", ":", "true", "false"})
_PID_FILE = re.compile(r"\"?\$\((?:cat |<) *([\w./-]+)\)\"?")
_NUMBERS = tuple(Parameter(name, quoted=False) for name in "?#$!")


class JudgedCommand(Struct, frozen=True):
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
        return _once((*self.around, *self.own))


def _once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(dict.fromkeys(findings))


class Walk:
    """One pass over one line. `parts` grows as commands are met, in the order of the text.

    `_functions` says of each function whether its body is being judged, `_jumped` what may be behind a jump.
    """

    def __init__(self) -> None:
        self.parts: list[JudgedCommand] = []
        self._functions: dict[str, bool] = {}
        self._jumped: tuple[ShellEnv, ...] = ()

    def script(self, script: ShellScript, env: ShellEnv) -> ShellEnv:
        """Judge a script; gives the environment behind it."""
        begun, ends, skips = env, [], False
        for pipeline in script.pipelines:
            env = self._pipeline(pipeline, env)
            ends.append(env)
            if pipeline.after == "&":
                text = "runs in the background, and continues after the line"
                self._add(JudgedCommand("&", (unclear("background", text),)))
                ends = [begun]
            is_surely_behind = pipeline.after == "&&" and not skips
            skips = pipeline.after == "||" or (skips and pipeline.after == "&&")
            if not is_surely_behind:
                env = either(*ends)
            if pipeline.after not in ("&&", "||"):
                begun, ends = env, []
        return either(env, *ends)

    def _add(self, part: JudgedCommand) -> None:
        self.parts.append(part)
        if len(self.parts) > MAX_PARTS:
            raise BudgetError

    def _pipeline(self, pipeline: Pipeline, env: ShellEnv) -> ShellEnv:
        """Judge a pipeline; gives the environment behind it."""
        if len(pipeline.commands) == 1:
            after = self._command(pipeline.commands[0], env)
            # Where the directory is not there, to change to it may fail; out of the workspace, or where something is
            # protected, it is worse if it does not.
            is_sure = after.cwd == env.cwd or (pipeline.after == "&&" and not pipeline.negated)
            is_worse = (
                not is_below(after.cwd, env.context.roots) or later_name(named_part(after.cwd, env.context)) is not None
            )
            is_there = is_static(after.cwd) and env.context.files.facts(after.cwd) is not None
            return after if is_sure or is_worse or is_there else replace(after, cwd=UNKNOWN)
        # Each command runs in a shell of its own.
        fed = env
        upstream: tuple[tuple[str, ...], ...] = ()
        for command in pipeline.commands:
            self._command(command, fed)
            upstream = (*upstream, piped_words(command, env))
            fed = replace(env, feed=PipedInput(upstream))
        return env

    def _command(self, command: Command, env: ShellEnv) -> ShellEnv:
        match command:
            case Simple():
                return self._simple(command, env)
            case Block(kind="[[", words=words, redirects=redirects):
                shown = _spared(found for word in words for found in judge_segments(word.segments, env))
                tested = judge_test("[[", expand_words(words, env.variables, env.cwd), env)
                self._add(JudgedCommand("[[", _once([*shown, *tested, *judge_redirects(redirects, env)[0]])))
                return env
            case Block():
                return self._block(command, env)
            case _:
                assert_never(command)

    def _simple(self, command: Simple, env: ShellEnv) -> ShellEnv:
        """Judge a command."""
        part = self._judged(command, env)
        self._add(part)
        if not _JUMPS.isdisjoint(part.argv):
            self._jumped = (*self._jumped, env)
        if part.argv and part.argv[0] in self._functions:
            # What a function sets is not followed.
            env = replace(env, cwd=UNKNOWN, variables=env.variables.forgotten())
        return behind(command, part.argv, env)

    def _judged(self, command: Simple, env: ShellEnv) -> JudgedCommand:
        env = replace(env, trace=Trace(places=[env.cwd]))
        redirected, feed = judge_redirects(command.redirects, env)
        findings = redirected + self._assignments(command, env)
        words = expand_words(command.words, env.variables, env.cwd)
        name = words[0] if words else ""
        shown = [found for word in command.words for found in judge_segments(word.segments, env)]
        findings.extend(_spared(shown) if name in ("[", "test") else shown)
        takes_any = name in _TAKES_ANY_WORDS or (name == "printf" and is_static("".join(words[1:2])))
        if not takes_any and any(_may_split(word, env) for word in command.words):
            text = f"{name}: unquoted text may become several words, even options; put it in double quotes"
            findings.append(unclear("unknown-words", text))
        if self._functions.get(name):
            findings.append(dangerous("fork-bomb", f"{name} calls itself", held=True))
        if name in self._functions:
            findings.append(unclear("function", f"{name} is a function of this line"))
            findings.extend(judge_subscripts(words[1:], env))
        findings.extend(judge_lists(command, words, env))
        findings.extend(names_secret(command.words, name, env))
        env = replace(env, feed=feed or env.feed)
        return JudgedCommand(
            text=command.text,
            around=_once(findings),
            own=_once(judge_command(self._without_own(command, words, env), env)),
            argv=words,
            trace=env.trace,
            input=feed.text if feed else None,
            is_fed=env.feed != PipedInput(),
        )

    def _without_own(self, command: Simple, words: tuple[str, ...], env: ShellEnv) -> tuple[str, ...]:
        """Leave out of `kill` what stands in a file that another program of the line was given: its own process."""
        given = {word for part in self.parts if not FILE_PROGRAMS.keys() & {*part.argv[:1]} for word in part.argv}
        files = ((word, _PID_FILE.fullmatch(word.text)) for word in command.words)
        others = [word for word, file in files if file is None or file[1] not in given]
        return expand_words(others, env.variables, env.cwd) if words[:1] == ("kill",) else words

    def _assignments(self, command: Simple, env: ShellEnv) -> list[Finding]:
        findings: list[Finding] = []
        for assignment in command.assignments:
            values = [expand_text(word.segments, env.variables, env.cwd) for word in assignment.values]
            if not (assignment.name == "IFS" and command.words and command.words[0].text == "read"):
                findings.extend(judge_assignment(assignment.name, " ".join(values), alone=not command.words))
            if assignment.is_array:
                findings.append(unclear("shell-state", "sets an array"))
            evaluated = (value for value in values if "$(" in value or "`" in value)
            findings.extend(found for value in evaluated for found in judge_evaluated(value, env))
            for word in assignment.values:
                findings.extend(judge_segments(word.segments, env))
        return findings

    def _block(self, block: Block, env: ShellEnv) -> ShellEnv:
        findings: list[Finding] = []
        if block.kind not in _PLAIN_BLOCKS:
            findings.append(unclear("syntax", f"how often a {block.kind} block runs is not known"))
        if block.kind == "for" and VARIABLES_DANGEROUS.fullmatch(block.name):
            findings.extend(judge_assignment(block.name, UNKNOWN))
        for word in block.words:
            findings.extend(judge_segments(word.segments, env))
            findings.extend(judge_subscripts(expand_word(word, env.variables, env.cwd), env))
        redirected, feed = judge_redirects(block.redirects, env)
        findings.extend(redirected)
        feed = feed or env.feed
        if findings:
            self._add(JudgedCommand(block.kind, _once(findings)))
        after = self._inside(block, replace(env, feed=feed, each=(*env.each, *listed_in_loop(block, feed, env))))
        return env if block.kind == "subshell" else replace(after, feed=env.feed, each=env.each)

    def _inside(self, block: Block, env: ShellEnv) -> ShellEnv:
        """Judge the scripts of a block as often as they may run."""
        if block.kind == "function":
            is_inside = self._functions.get(block.name, False)
            self._functions[block.name] = True
            self._scripts(block, _with_value(env, "@", UNKNOWN))
            self._functions[block.name] = is_inside
        elif block.kind in _LOOPS:
            for value in _values(block, env) if block.kind == "for" else [UNKNOWN]:
                env = self._round(block, value, env)
        else:
            env = self._scripts(block, env)
        return env

    def _round(self, block: Block, value: str, env: ShellEnv) -> ShellEnv:
        """Judge a loop for one value of its variable; one that is not known stands for any number of rounds."""
        for _ in range(1 if is_static(value) else MAX_ROUNDS):
            # A jump may lead out of several loops, so it counts behind all that follow.
            after = either(self._scripts(block, _with_value(env, block.name, value)), *self._jumped)
            if is_static(value):
                return after
            before, env = env, either(env, after)
            if (env.cwd, env.variables) == (before.cwd, before.variables):
                return env
        forgotten = replace(env, cwd=UNKNOWN, variables=env.variables.forgotten())
        self._scripts(block, forgotten)
        return forgotten

    def _scripts(self, block: Block, env: ShellEnv) -> ShellEnv:
        """Judge scripts in order, each of which may run or not, but for those of a group."""
        for script in block.scripts:
            after = self.script(script, env)
            env = after if block.kind == "group" else either(env, after)
        return env


def _with_value(env: ShellEnv, name: str, value: str) -> ShellEnv:
    return replace(env, variables=env.variables.with_value(name, value))


def _spared(shown: Iterable[Finding]) -> list[Finding]:
    """Leave out what a test may do: see whether a secret is set."""
    return [found for found in shown if found.rule != "secret-variable"]


def _may_split(word: Word, env: ShellEnv) -> bool:
    """Whether a part of a word is neither known nor quoted: the shell makes as many words of it as it has blanks.

    So it does of the names that a pattern in a variable stands for.
    """
    parts = (one for one in word.segments if isinstance(one, Parameter | Substitution) and not one.quoted)
    texts = (expand_text((part,), env.variables, env.cwd) for part in parts if part not in _NUMBERS)
    return any(not {UNKNOWN, "*", "?"}.isdisjoint(text) for text in texts)


def _values(block: Block, env: ShellEnv) -> list[str]:
    """Give what the variable of a loop is set to, as far as it is known."""
    values = [value for word in block.words for value in expand_word(word, env.variables, env.cwd)]
    if len(values) > MAX_LOOP_VALUES or not values:
        values = [*values[:MAX_LOOP_VALUES], UNKNOWN]
    return values
