"""Classifies shell lines: what may run without asking, what asks, and what no mode lets through."""

import posixpath
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from msgspec import Struct, structs

from treadle.policy.decision_context import PolicyContext, RememberedFiles
from treadle.policy.findings import WRITES_GIT, CommandClass, Finding, PathOp, class_of, dangerous, is_plain, unfollowed
from treadle.policy.marks import UNKNOWN, from_both_ends
from treadle.policy.path_check import Where, check_path, usable_roots
from treadle.policy.rules import Trace
from treadle.policy.shell.expand import Variables
from treadle.policy.shell.interpreters import judge_inner_text, scan_code
from treadle.policy.shell.judged_programs import MAX_NESTING, judge_command
from treadle.policy.shell.shell_env import EffortError, ShellEnv
from treadle.policy.shell.shell_parser import parse
from treadle.policy.shell.syntax import BudgetError, ShellSyntaxError
from treadle.policy.shell.walk import JudgedCommand, Walk
from treadle.protocol.tools import Risk

MAX_LINE_BYTES = 64 * 1024


class CommandJudgement(Struct, frozen=True, kw_only=True):
    """The commands of a shell line with what was found about each, and what was found about the whole.

    `trace` is what may be run and touched by text that could only be searched.
    """

    parts: tuple[JudgedCommand, ...]
    findings: tuple[Finding, ...]
    trace: Trace

    @property
    def every(self) -> list[Finding]:
        """All that was found."""
        return [*self.findings, *(found for part in self.parts for found in part.findings)]

    @property
    def command_class(self) -> CommandClass:
        """The class of the line."""
        return class_of(self.every)

    @property
    def writes_git(self) -> bool:
        """Whether a part of the line changes a repository, or may."""
        return any(found.rule == WRITES_GIT for found in self.every)

    @property
    def outside(self) -> bool:
        """Whether the line brings text that nobody on this machine wrote; what is not understood may."""
        named = any(trace.outside for trace in (self.trace, *(part.trace for part in self.parts)))
        return named or any(found.rule in _NOT_UNDERSTOOD for found in self.findings)


_NOT_UNDERSTOOD = frozenset({"syntax", "budget", "error"})


def classify_command(command: str, cwd: str, context: PolicyContext) -> CommandJudgement:
    """Judge a line for bash in `cwd`. Never raises; what cannot be followed is dangerous."""
    files = RememberedFiles.of(context.files)
    env = ShellEnv(
        context=replace(context, files=files, usable=usable_roots(context, files)),
        cwd=cwd,
        variables=Variables(context.home, {"PWD": cwd}),
        judge_script=_judge_script,
        judge_tree=Walk().script,
        judge_argv=judge_command,
    )
    parts: list[JudgedCommand] = []
    findings: list[Finding] = []
    try:
        findings = _precheck(command, cwd, env.context)
        if len(command.encode(errors="replace")) <= MAX_LINE_BYTES:
            parts, more = _walk(command, env)
            findings += more
        else:
            findings.append(dangerous("budget", f"the line is longer than {MAX_LINE_BYTES} bytes"))
            _note_words(command, env)
    except Exception as error:  # noqa: BLE001 - a line that trips the analysis may be made to do so
        failed = f"the analysis of this line failed ({type(error).__name__}): it may do anything"
        findings.append(dangerous("error", failed))
        _note_words(command, env)
    return CommandJudgement(parts=tuple(parts), findings=tuple(findings), trace=env.trace)


_OWN_WORK = frozenset({"git", "echo", "printf", "test", "[", "true", "cd"})


def is_plain_git(parts: Sequence[JudgedCommand]) -> bool:
    """Whether a line is git's own work: beside git stand only plain readers, and what says or tests something.

    Git that is told a script, as by `submodule foreach`, is judged by all that it runs. Text that is evaluated may set
    a variable, such as PATH.
    """
    works = [part for part in parts if not is_plain(part.findings)]
    evaluates = any(found.rule == "evaluated-text" for part in works for found in part.findings)
    beside = all(_OWN_WORK.issuperset(_programs(part)) for part in works)
    return beside and not evaluates and any("git" in _programs(part) for part in works)


def _programs(part: JudgedCommand) -> set[str]:
    return {words[0] for words in (part.argv or ("",), *part.trace.commands)}


def commands_of(command: str, cwd: str, context: PolicyContext) -> list[tuple[str, ...]]:
    """Give the words of the simple commands of a line, as far as they are known."""
    return [part.argv for part in classify_command(command, cwd, context).parts]


def places_of(command: str, cwd: str, context: PolicyContext) -> list[str]:
    """Give the directories in which the commands of a line run, as far as they are known."""
    return [place for part in classify_command(command, cwd, context).parts for place in part.trace.places]


def only_reads(command: str, cwd: str, context: PolicyContext) -> bool:
    """Whether a line does nothing but read, were its folder trusted. It tells what to keep from git, no verdict."""
    trusting = replace(context, trusted=True, untrusted=())
    return classify_command(command, cwd, trusting).command_class is CommandClass.READ_ONLY


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


def _walk(command: str, env: ShellEnv) -> tuple[list[JudgedCommand], list[Finding]]:
    """Judge a script. What is not understood may do anything, unless it is only guessed to be one."""
    walk = Walk()
    try:
        walk.script(parse(command), structs.replace(env, judge_tree=walk.script))
        return judge_sequence(walk.parts, env), []
    except ShellSyntaxError as failure:
        if env.is_guess:
            return walk.parts, judge_inner_text(command, structs.replace(env, is_guess=False))
        found = dangerous("syntax", f"the line is not understood: {failure}")
    except (BudgetError, EffortError) as error:
        if env.depth and isinstance(error, EffortError):
            raise
        found = dangerous("budget", "the line is too long to be judged: it has too many commands or words")
    _note_words(command, env)
    return walk.parts, [found]


def _judge_script(text: str, env: ShellEnv) -> list[Finding]:
    """Judge a string that a command of the line would run as a script."""
    if env.depth > MAX_NESTING:
        return [unfollowed("budget", "scripts are nested too deeply to follow")]
    if UNKNOWN in text:
        text = text.replace(UNKNOWN, "$unknown")
    parts, findings = _walk(text, env)
    for part in parts:
        env.trace.add(part.trace)
    return [*findings, *(found for part in parts for found in part.findings)]


_MOST_NOTED = 500
_SEPARATORS = re.compile(r"[;&|\n(){}`<>]+|\$\(")
_QUOTING = re.compile(r"[\"'\\]")


def _note_words(text: str, env: ShellEnv) -> None:
    """Note what a text that is not understood may run and touch, for the rules that deny; of a long one both ends."""
    half = MAX_LINE_BYTES // 2
    looked_at = text if len(text) <= MAX_LINE_BYTES else f"{text[:half]}\n{text[-half:]}"
    pieces = from_both_ends(_SEPARATORS.split(_QUOTING.sub("", looked_at)))[:_MOST_NOTED]
    for words in filter(None, (tuple(piece.split())[:_MOST_NOTED] for piece in pieces)):
        env.trace.commands.extend(words[place:] for place in range(min(len(words), 4)))
        env.trace.paths.extend((PathOp.WRITE, posixpath.join(env.cwd, word)) for word in words)


_RUNS_A_FILE = frozenset({"own-program", "shell", "interpreter", "mode"})


def judge_sequence(parts: Sequence[JudgedCommand], env: ShellEnv) -> list[JudgedCommand]:
    """Judge the commands of a line in their order: what one fetched or wrote, another may run.

    What is dangerous in that stands beside the command that runs it: no rule that allows the command lifts it.
    """
    env = structs.replace(env, is_guess=True)
    judged: list[JudgedCommand] = []
    written: list[str] = []
    fetched = has_fetched = False  # by the command just before, and by any before
    for part in parts:
        rules = {finding.rule for finding in part.findings}
        found: list[Finding] = []
        if has_fetched and rules & _RUNS_A_FILE:
            runs = "runs" if fetched and "piped-script" in rules else "may run"
            text = f"{runs} what was just downloaded, before anyone has read it"
            found.append(dangerous("download-and-run", text))
        if rules & _RUNS_A_FILE:
            found.extend(one for text in written for one in (*env.script(text), *scan_code(text, env)))
        beside = dict.fromkeys(one for one in found if one.risk is Risk.CRITICAL)
        judged.append(structs.replace(part, around=(*beside, *part.around)))
        fetched = "download" in rules
        has_fetched |= fetched
        if "write-inside" in rules:
            words = part.argv[1:] if part.argv[:1] in (("echo",), ("printf",)) else ()
            written += filter(None, (part.input, " ".join(words), *words))
    return judged


_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zs", "Zl", "Zp"})


def hidden_characters(text: str) -> list[str]:
    """Name the characters that are invisible, change direction, look like blanks, or control the terminal."""
    found = {char for char in set(text) if not char.isascii() or not char.isprintable()} - {"\t", "\n"}
    hidden = {char for char in found if unicodedata.category(char) in _HIDDEN}
    hidden |= found.intersection("\u115f\u1160\u3164\uffa0\u2800\u034f")
    return sorted(f"U+{ord(char):04X}" for char in hidden)


def has_lookalikes(text: str) -> bool:
    """Whether a word mixes ASCII letters with letters of another script, as look-alike names do."""
    return not text.isascii() and any(_mixes(word) for word in set(text.split()) if not word.isascii())


def _mixes(word: str) -> bool:
    scripts = {unicodedata.name(char, "?").split()[0] for char in set(word) if char.isalpha()}
    return "LATIN" in scripts and bool(scripts & {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "FULLWIDTH"})
