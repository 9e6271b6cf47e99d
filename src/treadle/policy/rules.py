"""The user's rules: what they match, and which of those that match wins."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from treadle.policy.operations import PathOp
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
    pins its declaration. `source` is the file and line.
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
    reason: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruleset:
    """All rules in force. `problems` are rule files that could not be used: with one, nothing is allowed unasked."""

    rules: tuple[Rule, ...] = ()
    problems: tuple[str, ...] = ()
    version: str = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What rules are held against: one part of a call with everything that it would touch."""

    tool: str
    tool_digest: str = ""
    commands: tuple[tuple[str, ...], ...] = ()
    paths: tuple[tuple[PathOp, str], ...] = ()
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """What relative and home paths in rules stand for."""

    roots: tuple[str, ...] = ()
    home: str = ""


_STRICTEST_FIRST = (Verdict.DENY, Verdict.REQUIRE_USER_CONFIRMATION, Verdict.ALLOW)


def apply_rules(rules: Iterable[Rule], subject: Subject, places: Places, *, trusted: bool) -> Rule | None:
    """Give the rule that decides about a part: deny before ask before allow, whatever its order, scope or detail."""
    matching = [rule for rule in rules if _counts(rule, trusted=trusted) and matches(rule, subject, places)]
    return min(matching, key=lambda rule: _STRICTEST_FIRST.index(rule.verdict), default=None)


def reason_of(rule: Rule) -> Reason:
    """Say which rule spoke, and where it stands."""
    return Reason(rule=rule.id, text=rule.reason or f"the rule {rule.id} says {rule.verdict}", source=rule.source)


def _counts(rule: Rule, *, trusted: bool) -> bool:
    return trusted or rule.scope is not Scope.PROJECT or rule.verdict is not Verdict.ALLOW


def matches(rule: Rule, subject: Subject, places: Places) -> bool:
    """Whether a rule speaks about a part.

    One that allows must cover the command itself and everything the part touches; one that denies or asks needs to hit
    only one thing.
    """
    if rule.tool and not _tool_matches(rule, subject):
        return False
    covers_all = rule.verdict is Verdict.ALLOW
    if rule.argv and not _argv_matches(rule, subject.commands[:1] if covers_all else subject.commands):
        return False
    if rule.path:
        hits = [_path_matches(rule, op, path, places) for op, path in subject.paths]
        if not hits or not (all(hits) if covers_all else any(hits)):
            return False
    if rule.host:
        hosts = [matches_host(host, (rule.host,)) for host in subject.hosts]
        return bool(hosts) and (all(hosts) if covers_all else any(hosts))
    return bool(rule.tool or rule.argv or rule.path)


def _tool_matches(rule: Rule, subject: Subject) -> bool:
    named = _glob(rule.tool).fullmatch(subject.tool) is not None
    return named and rule.tool_digest in ("", subject.tool_digest)


def _argv_matches(rule: Rule, commands: Sequence[tuple[str, ...]]) -> bool:
    size = len(rule.argv)
    for command in commands:
        bare = (posixpath.basename(command[0]), *command[1:])
        if any(words[:size] == rule.argv and (not rule.exact or len(words) == size) for words in (command, bare)):
            return True
    return False


def _path_matches(rule: Rule, op: PathOp, path: str, places: Places) -> bool:
    if rule.op is not None and (rule.op is PathOp.WRITE) is not (op is PathOp.WRITE):
        return False
    if rule.path.startswith("/"):
        patterns = [rule.path]
    elif rule.path.startswith("~/"):
        patterns = [posixpath.join(places.home, rule.path[2:])]
    else:
        patterns = [posixpath.join(root, rule.path) for root in places.roots]
    return any(_glob(pattern).fullmatch(path) for pattern in patterns)


@lru_cache(maxsize=512)
def _glob(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(known.get(part, re.escape(part)) for part in parts), re.DOTALL)
