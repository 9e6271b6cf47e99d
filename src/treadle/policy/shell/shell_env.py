"""Where a command of a line stands: directory, variables, input; what may be the case behind it; and its paths."""

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import dropwhile, islice

from msgspec import Struct, field
from msgspec.structs import replace

from treadle.policy.decision_context import MAX_NAMES, PolicyContext, is_below
from treadle.policy.findings import Finding, PathOp, dangerous, unclear
from treadle.policy.marks import ANY, STAR, UNKNOWN, as_glob, fits, is_glob, is_static, shown
from treadle.policy.name_patterns import pattern_hits
from treadle.policy.path_check import LISTED, MAX_PATH_BYTES, Where, check_path, named_part
from treadle.policy.repository import runs_untrusted
from treadle.policy.rules import Trace
from treadle.policy.shell.expand import Variables, expand_text
from treadle.policy.shell.syntax import ShellScript, Simple
from treadle.protocol.protected_names import control_name, later_name, secret_name
from treadle.protocol.tools import Risk

MAX_GLOB_MATCHES = 200
MAX_ENDS = 16
MAX_EFFORT = 2000
STEPS_A_PATTERN = 15
CHARACTERS_A_STEP = 100

_FREE_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})
"""What may be written to wherever a command runs."""

_SAYS_NOTHING = re.compile(r"--?[A-Za-z][a-z-]*|\d+")
"""Options without a value, and numbers: no file is meant by them."""

_BETWEEN = re.compile(r"[=:@,]")
_BEFORE = re.compile(r"[=:@]")
_TREES_WITH_SECRETS = frozenset({"/", "/etc", "/root", "/home", "/proc", "/Users", "/var"})


class PipedInput(Struct, frozen=True):
    """What a command reads from its standard input: `upstream` are the commands that a pipe comes from."""

    upstream: tuple[tuple[str, ...], ...] = ()
    text: str | None = None

    @property
    def is_pipe(self) -> bool:
        """Whether the input comes through a pipe."""
        return bool(self.upstream)


class EffortError(Exception):
    """Judging a line took as many steps as it may."""


class Effort(Struct):
    """How many more steps judging may take, so that no line takes long; a step is one command, path or short text."""

    left: int = MAX_EFFORT

    def spend(self, steps: int = 1) -> None:
        """Count steps. Raises `EffortError` when none are left."""
        self.left -= steps
        if self.left < 0:
            raise EffortError


class ShellEnv(Struct, frozen=True, kw_only=True):
    """The surroundings of one command.

    `cwd` is `UNKNOWN` where it may be anything. `judge_tree` judges a script of the same text. `is_search` marks a
    guess at a command, `is_guess` text of which only the danger counts, as it may never be run; `depth` counts nesting.
    `each` are the variables that a loop sets to each file of a list, and whether that names all there is.
    """

    context: PolicyContext
    cwd: str
    variables: Variables
    judge_script: "Callable[[str, ShellEnv], list[Finding]]"
    judge_tree: "Callable[[ShellScript, ShellEnv], ShellEnv]"
    judge_argv: "Callable[[tuple[str, ...], ShellEnv], list[Finding]]"
    feed: PipedInput = PipedInput()
    depth: int = 0
    is_search: bool = False
    is_guess: bool = False
    each: tuple[tuple[str, bool], ...] = ()
    trace: Trace = field(default_factory=Trace)
    effort: Effort = field(default_factory=Effort)

    @property
    def is_trusted(self) -> bool:
        """Whether the user trusts the folder, wherever the command may run, and what git would run there."""
        return self.context.trusts(self.cwd) and not runs_untrusted(self.cwd, self.context)

    def script(self, text: str, *, feed: PipedInput | None = None) -> list[Finding]:
        """Judge a string that a shell would run."""
        self.effort.spend(len(text) // CHARACTERS_A_STEP)
        return self.judge_script(text, replace(self, depth=self.depth + 1, feed=feed or PipedInput(), is_search=False))

    def command(self, argv: tuple[str, ...]) -> list[Finding]:
        """Judge a command that another one would run."""
        return self.judge_argv(argv, replace(self, depth=self.depth + 1))

    def brings_text(self, program: str) -> None:
        """Note that a program brings text from outside, unless it is only guessed that it is run."""
        if not self.is_guess:
            self.trace.outside.append(program)

    def path(self, text: str, op: PathOp) -> list[Finding]:
        """Judge an operand that names a file, from every directory the command may run in."""
        self.effort.spend(1 + len(text) // CHARACTERS_A_STEP)
        if is_static(text) and (self.cwd != UNKNOWN or text.startswith("/")):
            return [_static_path(text, op, self)]
        tested, writes = self._tested(text), op is PathOp.WRITE
        name = secret_name(tested) or pattern_hits(tested, writing=writes) if op is not PathOp.LIST else None
        name = (later_name(tested) if writes else None) or name
        if name and not (writes and self.throws_away(text)):
            does = "changes" if writes else "reads"
            rule = "control-write" if writes else "secret-read"
            return [dangerous(rule, f"{does} {name}, which is protected", held=True)]
        if is_glob(text) and self.cwd != UNKNOWN:
            return _judge_glob(text, op, self)
        place = " (the directory is unknown)" if self.cwd == UNKNOWN and is_static(text) else ""
        does = "writes to" if writes else "reads"
        return [unclear("unknown-path", f"{does} {shown(text)!r}, a path that is unknown until it runs{place}")]

    def overwrites(self, text: str, *sources: str) -> list[Finding]:
        """Judge that a file is written anew, or one in a folder by the name of its source: are its old bytes lost?"""
        if self.cwd == UNKNOWN or not is_static(text):
            return []
        names = ("", *(posixpath.basename(source.rstrip("/")) for source in sources if is_static(source)))
        places = (posixpath.normpath(posixpath.join(self.cwd, text, name)) for name in names)
        if not any(map(self.context.overwritten, places)):
            return []
        return [dangerous("data-loss", f"overwrites {shown(text)}, which is too large for a checkpoint")]

    def _tested(self, text: str) -> str:
        """Give what of a path with unknown parts is tested by name: below the root, unless it climbs out of it."""
        joined = posixpath.join(self.cwd, text)
        short = re.sub(r"[^/]+/\.\./", "", joined)
        is_inside = is_below(posixpath.normpath(joined), self.context.roots)
        return named_part(short, self.context) if is_inside else short

    def throws_away(self, text: str) -> bool:
        """Whether a path to be changed is in a place for files that are thrown away, however a pattern ends it."""
        place = posixpath.normpath(posixpath.join(self.cwd, text))
        folder, name = posixpath.split(place)
        is_all = not is_static(name) and folder in ("/tmp", *self.context.private)  # noqa: S108
        if UNKNOWN in place or ".." in text.split("/") or is_all:
            return False
        scratch = is_static(folder) and self.context.is_scratch(
            posixpath.join(self.context.files.resolve(folder), name)
        )
        return scratch or self.context.is_private(place)

    def mentions(self, text: str) -> list[Finding]:
        """Judge a word of a program whose options are not known: does any part of it name a protected file?"""
        found: list[Finding] = []
        # A pattern that one file fits names it.
        only = _matches(text, self)[0] if is_glob(text) and self.cwd != UNKNOWN else []
        for piece in (*_pieces(text), *(path.removeprefix(f"{self.cwd}/") for path in only if len(only) == 1)):
            if len(piece) > MAX_PATH_BYTES or _SAYS_NOTHING.fullmatch(piece):
                continue
            self.effort.spend(1 + len(piece) // CHARACTERS_A_STEP)
            # A quoted pattern is one for the program that gets it.
            tested = named_part(piece, self.context)
            name = secret_name(tested) or pattern_hits(as_glob(tested), writing=False)
            why, listed, runs = f"names {name}, which is protected from being read", False, ""
            if name is None and self.cwd != UNKNOWN and is_static(piece) and "://" not in piece:
                check = check_path(piece, PathOp.READ, self.cwd, self.context)
                self.trace.paths.append((PathOp.WRITE, check.resolved))
                runs = piece if check.resolved in self.context.hook_files else ""
                name, why = (piece if check.where is Where.PROTECTED else None), check.reasons[0].text
                listed = check.reasons[0].rule == LISTED
            if name is not None:
                found.append(dangerous("secret-read", why, held=not listed))
            elif control := control_name(tested) or runs:
                why = f"names {control}, which is protected from being changed"
                found.append(dangerous("control-write", why, held=True))
        return found


ProgramJudge = Callable[[str, Sequence[str], ShellEnv], list[Finding]]
"""Judges a program by its name and its words."""


def _pieces(text: str) -> list[str]:
    """Split a word where a file name may start: after `=`, `:`, `@`, `,` and a short option's letter."""
    behind_letter = [text[2:]] if text.startswith("-") and not text.startswith("--") else []
    ends = (text[match.end() :] for match in islice(_BEFORE.finditer(text), MAX_ENDS))
    return [piece for piece in dict.fromkeys((text, *behind_letter, *_BETWEEN.split(text), *ends)) if piece]


def _static_path(text: str, op: PathOp, env: ShellEnv) -> Finding:
    if text in _FREE_TARGETS:
        return Finding(Risk.READ, "device", f"uses {text}")
    check = check_path(text, op, env.cwd, env.context)
    env.trace.paths.append((op, check.resolved))
    reason = check.reasons[0]
    if env.context.is_private(posixpath.normpath(posixpath.join(env.cwd, text))):
        # Whatever link stands there is the commands' own, and leads nowhere that they could not go.
        risk = Risk.EXECUTE if op is PathOp.WRITE else Risk.READ
        return Finding(risk, "private", f"{'changes' if op is PathOp.WRITE else 'reads'} {text}, the session's own")
    home, place = env.context.home, check.resolved
    # So far up that keys and passwords lie below it.
    is_tree = place in _TREES_WITH_SECRETS or (bool(home) and is_below(home, (place,)))
    if op is PathOp.READ and is_tree:
        return dangerous("secret-read", f"{place} contains protected files")
    if op is PathOp.WRITE and env.context.is_scratch(place):
        return Finding(Risk.WRITE, "scratch", f"changes {text}, a file in /tmp")
    if check.where is Where.PROTECTED:
        rule = "control-write" if op is PathOp.WRITE else "secret-read"
        return dangerous(rule, reason.text, path="" if reason.rule == LISTED else place)
    if check.where is Where.INSIDE:
        changes = Finding(Risk.WRITE, "write-inside", f"changes {text}")
        return changes if op is PathOp.WRITE else Finding(Risk.READ, "read-inside", f"reads {text}")
    if op is PathOp.WRITE:
        return dangerous("write-outside", f"{reason.text}, and the command changes it", path=place)
    return Finding(Risk.READ_OUTSIDE, "read-outside", reason.text, path=place)


def _judge_glob(text: str, op: PathOp, env: ShellEnv) -> list[Finding]:
    """Judge a glob by its directory, and by the files it stands for now."""
    base, *parts = _split(text)
    findings = [_static_path(base or ".", PathOp.LIST if op is not PathOp.WRITE else op, env)]
    matches, whole = _matches(text, env)
    env.effort.spend(STEPS_A_PATTERN + len(matches))
    if not whole or ".." in parts or (op is PathOp.READ and not matches):
        findings.append(unclear("wide-glob", f"{shown(text)!r} matches no file, or too many to check; name them"))
    return [*findings, *(_static_path(path, op, env) for path in matches)]


def _split(text: str) -> list[str]:
    """Give the directory in which a glob begins, and the parts behind it."""
    base = text[: text.replace(ANY, STAR).partition(STAR)[0].rfind("/") + 1]
    return [base, *text[len(base) :].split("/")]


def _matches(text: str, env: ShellEnv) -> tuple[list[str], bool]:
    """Expand a glob through the file view; the flag says whether all matches are there."""
    base, *parts = _split(text)
    found, whole = [posixpath.join(env.cwd, base)], True
    for part in filter(None, parts):
        listed = {directory: env.context.files.names(directory) for directory in found}
        if any(names is not None and len(names) >= MAX_NAMES for names in listed.values()):
            return [], False
        whole = whole and None not in listed.values()
        found = [
            posixpath.join(directory, name)
            for directory, names in listed.items()
            for name in names or ()
            if (part.startswith(".") or not name.startswith(".")) and fits(part, name)
        ]
        if len(found) > MAX_GLOB_MATCHES:
            return [], False
    return found, whole


_CHANGES_DIRECTORY = frozenset({"cd", "pushd", "popd", "chdir"})
_DECLARES = frozenset({"export", "declare", "typeset", "readonly", "local"})
_SETS = frozenset({"read", "unset", "mapfile", "readarray", "getopts", "let", "wait"})


def either(*envs: ShellEnv) -> ShellEnv:
    """Give an environment that may be any of these: what differs is unknown, but for a name that is protected."""
    first = envs[0]
    if all(env is first for env in envs):
        return first
    names = dict.fromkeys(name for env in envs for name in env.variables.values)
    known = {name: _any_of({env.variables.get(name): None for env in envs}) for name in names}
    cwd = first.cwd if all(env.cwd == first.cwd for env in envs) else UNKNOWN
    fixed = frozenset(name for env in envs for name in env.variables.fixed)
    return replace(first, cwd=cwd, variables=Variables(first.variables.home, known, fixed))


def _any_of(values: Iterable[str]) -> str:
    one, *others = values
    names = (value.removesuffix(UNKNOWN) for value in (one, *others))
    return next((name + UNKNOWN for name in names if secret_name(name) or later_name(name)), UNKNOWN) if others else one


def behind(command: Simple, words: tuple[str, ...], env: ShellEnv) -> ShellEnv:
    """Give the environment behind a simple command that worked; its words expand to `words`."""
    words = tuple(dropwhile(lambda word: word in ("command", "builtin") or word.startswith("-"), words))
    name = words[0] if words else ""
    variables = _assigned(command, env) if not command.words or name in _DECLARES else env.variables
    forgets = name in _SETS or (name == "printf" and "-v" in words)
    for word in (*words[1:], "REPLY") if forgets or name in _DECLARES else ():
        variable, is_set, value = word.partition("=")
        # Outside of a function `local` sets nothing.
        is_kept = name == "local" and variable in variables.values
        is_known = not (forgets or is_kept or "-n" in words or variable.endswith("+"))
        if forgets or is_set:
            variables = variables.with_value(variable.rstrip("+"), value if is_known else UNKNOWN)
    fixes = name == "readonly" or any(word.startswith("-") and "r" in word for word in words[1:])
    if fixes and name in _DECLARES:
        variables = variables.fixing(word.partition("=")[0] for word in words[1:])
    if name not in _CHANGES_DIRECTORY:
        return env if variables is env.variables else replace(env, variables=variables)
    cwd = _directory(words, env)
    return replace(env, cwd=cwd, variables=variables.with_value("PWD", cwd))


def _assigned(command: Simple, env: ShellEnv) -> Variables:
    variables = env.variables
    for assignment in command.assignments:
        value = UNKNOWN
        if not assignment.is_array:
            value = expand_text(assignment.values[0].segments, variables, env.cwd)
        if assignment.appends:
            value = variables.get(assignment.name) + value
        variables = variables.with_value(assignment.name, value)
    return variables


def _directory(words: tuple[str, ...], env: ShellEnv) -> str:
    operands = [word for word in words[1:] if not (word.startswith("-") and len(word) > 1)]
    target = operands[0] if operands else env.variables.get("HOME")
    unknown = words[0] == "popd" or target == "-" or len(operands) > 1 or not is_static(target)
    if unknown or (env.cwd == UNKNOWN and not target.startswith("/")):
        return UNKNOWN
    # Like the shell, go by names: `cd link; cd ..` comes back. Only -P goes by where links lead.
    place = posixpath.normpath(posixpath.join(env.cwd, target))
    return env.context.files.resolve(place) if "-P" in words else place
