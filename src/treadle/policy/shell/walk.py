"""Walks the tree of a shell line and judges every command in it, wherever it stands."""

from collections.abc import Iterable
from typing import assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_glob, is_static
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
from treadle.policy.shell.expand import Variables, expand_text, expand_word, expand_words
from treadle.policy.shell.lists import judge_lists, listed_in_loop, names_secret, piped_words
from treadle.policy.shell.programs import judge_command
from treadle.policy.shell.shell_env import (
    PipedInput,
    ShellEnv,
    ShellEnvs,
    behind,
    together,
    widened,
    with_values,
)
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

MAX_PARTS = 500

_PLAIN_BLOCKS = frozenset({"subshell", "group", "if", "for", "case"})
_LOOPS = frozenset({"while", "until", "calculated for"})
_JUMPS = frozenset({"break", "continue"})
MAX_ROUNDS = 3
MAX_LOOP_VALUES = 16

_TAKES_ANY_WORDS = frozenset({"echo", ":", "true", "false"})
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
        self._jumped: ShellEnvs = ()

    def script(self, script: ShellScript, envs: ShellEnvs) -> ShellEnvs:
        """Judge a script in each environment that it may run in; gives the environments behind it."""
        worked = failed = begun = envs
        joint = ""
        for pipeline in script.pipelines:
            if joint == "||":
                also, failed = self._pipeline(pipeline, failed)
                worked = together(worked, also)
            else:
                worked, also = self._pipeline(pipeline, worked)
                failed = together(failed, also) if joint else also
            joint = pipeline.after if pipeline.after in ("&&", "||") else ""
            if pipeline.after == "&":
                text = "runs in the background, and continues after the line"
                self._add(JudgedCommand("&", (unclear("background", text),)))
                worked = failed = begun
            elif not joint:
                worked = failed = begun = together(worked, failed)
        return together(worked, failed)

    def _add(self, part: JudgedCommand) -> None:
        self.parts.append(part)
        if len(self.parts) > MAX_PARTS:
            raise BudgetError

    def _pipeline(self, pipeline: Pipeline, envs: ShellEnvs) -> tuple[ShellEnvs, ShellEnvs]:
        """Judge a pipeline; gives the environments in which it worked, and failed."""
        if len(pipeline.commands) == 1:
            worked, failed = self._command(pipeline.commands[0], envs)
            return (failed, worked) if pipeline.negated else (worked, failed)
        # Each command runs in a shell of its own.
        fed = envs
        upstreams: list[tuple[tuple[str, ...], ...]] = [()] * len(envs)
        for command in pipeline.commands:
            self._command(command, fed)
            upstreams = [(*before, piped_words(command, env)) for before, env in zip(upstreams, envs, strict=True)]
            fed = tuple(replace(env, feed=PipedInput(upstream)) for env, upstream in zip(envs, upstreams, strict=True))
        return envs, envs

    def _command(self, command: Command, envs: ShellEnvs) -> tuple[ShellEnvs, ShellEnvs]:
        match command:
            case Simple():
                return self._simple(command, envs)
            case Block(kind="[[", words=words, redirects=redirects):
                for env in envs:
                    shown = _spared(found for word in words for found in judge_segments(word.segments, env))
                    tested = judge_test("[[", expand_words(words, env.variables, env.cwd), env)
                    around = [*shown, *tested, *judge_redirects(redirects, env)[0]]
                    self._add(JudgedCommand("[[", _once(around)))
                return envs, envs
            case Block():
                after = self._block(command, envs)
                return after, after
            case _:
                assert_never(command)

    def _simple(self, command: Simple, envs: ShellEnvs) -> tuple[ShellEnvs, ShellEnvs]:
        """Judge a command in each environment that it may run in."""
        after: list[tuple[ShellEnv, ShellEnv]] = []
        for env in envs:
            part = self._judged(command, env)
            self._add(part)
            if not _JUMPS.isdisjoint(part.argv):
                self._jumped = together(self._jumped, (env,))
            # What a function sets is not followed.
            forgotten = replace(env, cwd=UNKNOWN, variables=Variables(env.variables.home))
            is_function = bool(part.argv) and part.argv[0] in self._functions
            after.append(behind(command, part.argv, forgotten if is_function else env))
        return together([worked for worked, _ in after]), together([failed for _, failed in after])

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
            own=_once(judge_command(words, env)),
            argv=words,
            trace=env.trace,
            input=feed.text if feed else None,
            is_fed=env.feed != PipedInput(),
        )

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

    def _block(self, block: Block, envs: ShellEnvs) -> ShellEnvs:
        findings: list[Finding] = []
        if block.kind not in _PLAIN_BLOCKS:
            findings.append(unclear("syntax", f"how often a {block.kind} block runs is not known"))
        if block.kind == "for" and VARIABLES_DANGEROUS.fullmatch(block.name):
            findings.extend(judge_assignment(block.name, UNKNOWN))
        inner: list[ShellEnv] = []
        for env in envs:
            for word in block.words:
                findings.extend(judge_segments(word.segments, env))
                findings.extend(judge_subscripts(expand_word(word, env.variables, env.cwd), env))
            redirected, feed = judge_redirects(block.redirects, env)
            findings.extend(redirected)
            feed = feed or env.feed
            inner.append(replace(env, feed=feed, each=(*env.each, *listed_in_loop(block, feed, env))))
        if findings:
            self._add(JudgedCommand(block.kind, _once(findings)))
        after = self._inside(block, tuple(inner))
        if block.kind == "subshell":
            return envs
        return together(replace(env, feed=envs[0].feed, each=envs[0].each) for env in after)

    def _inside(self, block: Block, envs: ShellEnvs) -> ShellEnvs:
        """Judge the scripts of a block as often as they may run."""
        if block.kind == "function":
            is_inside = self._functions.get(block.name, False)
            self._functions[block.name] = True
            self._scripts(block, with_values(envs, "@", UNKNOWN))
            self._functions[block.name] = is_inside
        elif block.kind == "for":
            envs = together(*(self._listed(block, env) for env in envs))
        elif block.kind in _LOOPS:
            envs = self._rounds(block, UNKNOWN, envs)
        else:
            envs = self._scripts(block, envs)
        return envs

    def _listed(self, block: Block, env: ShellEnv) -> ShellEnvs:
        envs: ShellEnvs = (env,)
        for value in _values(block, env):
            envs = self._rounds(block, value, envs)
        return envs

    def _rounds(self, block: Block, value: str, envs: ShellEnvs, left: int = MAX_ROUNDS) -> ShellEnvs:
        """Judge a loop for one value of its variable; one that is not known stands for any number of rounds."""
        begun = with_values(envs if left else (widened(envs),), block.name, value)
        # A jump may lead out of several loops, so it counts behind all that follow.
        after = together(self._scripts(block, begun), self._jumped)
        if is_static(value):
            return after
        again = together(begun, with_values(after, block.name, value))
        if left and len(again) > len(begun):
            again = self._rounds(block, value, again, left - 1)
        return together(envs, again) if left == MAX_ROUNDS else again

    def _scripts(self, block: Block, envs: ShellEnvs) -> ShellEnvs:
        """Judge scripts in order, each of which may run or not, but for those of a group."""
        for script in block.scripts:
            after = self.script(script, envs)
            envs = after if block.kind == "group" else together(envs, after)
        return envs


def _spared(shown: Iterable[Finding]) -> list[Finding]:
    """Leave out what a test may do: see whether a secret is set."""
    return [found for found in shown if found.rule != "secret-variable"]


def _may_split(word: Word, env: ShellEnv) -> bool:
    """Whether a part of a word is neither known nor quoted: the shell makes as many words of it as it has blanks."""
    parts = (one for one in word.segments if isinstance(one, Parameter | Substitution) and not one.quoted)
    return any(part not in _NUMBERS and UNKNOWN in expand_text((part,), env.variables, env.cwd) for part in parts)


def _values(block: Block, env: ShellEnv) -> list[str]:
    """Give what the variable of a loop is set to, as far as it is known."""
    values = [value for word in block.words for value in expand_word(word, env.variables, env.cwd)]
    if len(values) > MAX_LOOP_VALUES or not values:
        values = [*values[:MAX_LOOP_VALUES], UNKNOWN]
    # A name with blanks in it falls apart where it is not quoted.
    return [value if not is_glob(value) or env.fits_plain_names(value) else UNKNOWN for value in values]
