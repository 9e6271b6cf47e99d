"""The user's rules: what they match, which of those that match wins, and which options they cover."""

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import Struct

from treadle.policy.findings import PathOp
from treadle.policy.marks import fits_glob, word_set
from treadle.policy.urls import matches_host
from treadle.protocol.permissions import Reason, Verdict


class Scope(StrEnum):
    """Where a rule comes from. A project's rules allow nothing before the folder is trusted."""

    ADMIN = "admin"
    USER = "user"
    SESSION = "session"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. It matches when everything it names matches; `argv` is a prefix of the words unless `exact`.

    `path` is a glob: absolute, below `~/`, or relative to the workspace (`**` crosses directories); `op` narrows it to
    reading or writing. `host` is a name, or with a leading dot everything below it. `tool` may hold `*`; `tool_digest`
    pins its declaration. With a `workspace` (absolute) it counts in that folder only. `source` is the file and line,
    `match` and `not_match` are its examples.
    """

    id: str
    verdict: Verdict
    scope: Scope = Scope.USER
    tool: str = ""
    tool_digest: str = ""
    argv: tuple[str, ...] = ()
    exact: bool = False
    path: str = ""
    op: PathOp | None = None
    host: str = ""
    workspace: str = ""
    reason: str = ""
    source: str = ""
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruleset:
    """All rules in force. `problems` are rule files that could not be used: with one, nothing runs without asking.

    `version` names the rules in a decision's digest.
    """

    rules: tuple[Rule, ...] = ()
    problems: tuple[str, ...] = ()
    version: str = "1"


class Trace(Struct, frozen=True):
    """What was met while judging a part of a call: commands, files with what is done, and hosts.

    `places` are the directories that it may run in, `outside` the programs that bring text from outside.
    """

    commands: list[tuple[str, ...]] = []
    paths: list[tuple[PathOp, str]] = []
    hosts: list[str] = []
    outside: list[str] = []
    places: list[str] = []

    def add(self, other: "Trace") -> None:
        """Take over what was met in a script that the command runs."""
        for name in self.__struct_fields__:
            getattr(self, name).extend(getattr(other, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What rules are held against: one part of a call with everything that it would touch."""

    tool: str
    tool_digest: str = ""
    trace: Trace = field(default_factory=Trace)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """What relative and home paths in rules stand for. The first root is the workspace, the others belong to it."""

    roots: tuple[str, ...] = ()
    home: str = ""


STRICTEST_FIRST = (Verdict.DENY, Verdict.REQUIRE_USER_CONFIRMATION, Verdict.ALLOW)


def apply_rules(rules: Iterable[Rule], subject: Subject, places: Places, *, trusted: bool) -> Rule | None:
    """Give the rule that decides about a part: deny before ask before allow, whatever its order, scope or detail."""
    matching = (
        rule
        for rule in rules
        if (not rule.workspace or rule.workspace in places.roots[:1])
        and (trusted or rule.scope is not Scope.PROJECT or rule.verdict is not Verdict.ALLOW)
        and matches(rule, subject, places)
    )
    return min(matching, key=lambda rule: STRICTEST_FIRST.index(rule.verdict), default=None)


def reason_of(rule: Rule) -> Reason:
    """Say which rule spoke, and where it stands."""
    return Reason(rule=rule.id, text=rule.reason or f"the rule {rule.id} says {rule.verdict}", source=rule.source)


def matches(rule: Rule, subject: Subject, places: Places) -> bool:
    """Whether a rule speaks about a part.

    One that allows must cover the command itself and everything the part touches; one that denies or asks needs to hit
    only one thing.
    """
    if rule.tool and not (fits_glob(rule.tool, subject.tool) and rule.tool_digest in ("", subject.tool_digest)):
        return False
    covers_all = rule.verdict is Verdict.ALLOW
    if rule.argv and not (
        _allows_command(rule, subject, places) if covers_all else _argv_matches(rule, subject.trace.commands)
    ):
        return False
    paths = [_path_matches(rule, op, path, places) for op, path in subject.trace.paths] if rule.path else [True]
    hosts = [matches_host(host, (rule.host,)) for host in subject.trace.hosts] if rule.host else [True]
    if any(not hits or not (all(hits) if covers_all else any(hits)) for hits in (paths, hosts)):
        return False
    return bool(rule.tool or rule.argv or rule.path or rule.host)


def _argv_matches(rule: Rule, commands: Iterable[tuple[str, ...]]) -> bool:
    bare = (((name, *rest), (posixpath.basename(name), *rest)) for name, *rest in commands)
    return any(_begins(rule, words) for spelled in bare for words in spelled)


def _allows_command(rule: Rule, subject: Subject, places: Places) -> bool:
    """Whether a rule that allows covers the command itself: `./npm` is not `npm`, options may run others.

    In another folder the same words run other code, so it covers the command at the top of the workspace.
    """
    if places.roots and any(place not in places.roots for place in subject.trace.places):
        return False
    command = subject.trace.commands[0] if subject.trace.commands else ()
    return bool(command) and _begins(rule, command) and (rule.exact or covers(rule.argv, command))


def _begins(rule: Rule, words: tuple[str, ...]) -> bool:
    size = len(rule.argv)
    return words[:size] == rule.argv and (not rule.exact or len(words) == size)


def _path_matches(rule: Rule, op: PathOp, path: str, places: Places) -> bool:
    if rule.op is not None and (rule.op is PathOp.WRITE) is not (op is PathOp.WRITE):
        return False
    if rule.path.startswith("/"):
        patterns = [rule.path]
    elif rule.path.startswith("~/"):
        patterns = [posixpath.join(places.home, rule.path[2:])]
    else:
        # What a workspace, or an answer that was given in it, allows says nothing of other folders.
        bound = rule.verdict is Verdict.ALLOW and (rule.scope is Scope.PROJECT or bool(rule.workspace))
        patterns = [posixpath.join(root, rule.path) for root in places.roots[: 1 if bound else None]]
    return any(fits_glob(pattern, path) for pattern in patterns)


_PREFIXES = {
    tuple(words.split())
    for words in (
        *("git add", "git commit", "git switch", "npm test", "pnpm test", "yarn test", "cargo build", "cargo check"),
        *("cargo test", "cargo doc", "cargo fmt", "go test", "go build", "go vet", "docker ps", "docker images"),
        *("docker logs", "pytest", "ruff check", "ruff format", "mypy", "tsc", "eslint", "prettier"),
    )
}
_OPTIONS = word_set("""
    -a -A -m= -q -s -u -v -vv -x -l -k= --all --all-features --all-targets --check --co --create= --diff --example=
    --fix --features= --ff --filter= --format= --last-failed --lf --lib --locked --maxfail= --no-color --no-fail-fast
    --no-header --no-run --noEmit --offline --package= --quiet --release --select= --since= --stats --strict --tail=
    --tb= --test= --tests --timeout= --update --verbose --watch --workspace -bench= -count= -race -run= -short -timeout=
""")
"""Options that run and read nothing else, whichever of these programs they are given to."""


def listed_prefix(argv: Sequence[str]) -> tuple[str, ...]:
    """Give the program and subcommand that a rule may name for this command; empty where all its words are needed."""
    prefixes = (tuple(argv[:size]) for size in (2, 1))
    return next((prefix for prefix in prefixes if prefix in _PREFIXES and covers(prefix, argv)), ())


def covers(prefix: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether a rule that allows everything beginning with `prefix` covers this command.

    A rule whose words are not listed covers everything: whoever writes such a rule by hand says so.
    """
    return tuple(prefix) not in _PREFIXES or _are_plain(argv[len(prefix) :])


def _are_plain(words: Sequence[str]) -> bool:
    pending = list(words)
    while pending:
        word = pending.pop(0)
        if word == "--":
            return all(_is_plain_operand(word.lstrip("-")) for word in pending)
        name, glued, _ = word.partition("=")
        if word.startswith("-") and f"{name}=" in _OPTIONS and (glued or pending):
            pending = pending if glued else pending[1:]
        elif word not in _OPTIONS and not _is_plain_operand(word):
            return False
    return True


def _is_plain_operand(word: str) -> bool:
    """Whether a word is a name or a path that stays below the working directory; `A=b` sets something instead."""
    return not word.startswith(("/", "~", "-")) and "=" not in word and ".." not in word.split("/") and "@" not in word
