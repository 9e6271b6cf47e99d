"""The rules in force as a person or a script reads them, with the files they come from."""

from collections.abc import Iterator
from pathlib import Path

from treadle.app.security.policy_files import FileState, FoundFile, InForce, PolicyFiles, usual_places
from treadle.policy.findings import PathOp
from treadle.policy.rules import STRICTEST_FIRST, Rule, Scope
from treadle.protocol.base import Record
from treadle.protocol.permissions import Verdict
from treadle.workspace.files.text import visible

_WORDS = {Verdict.DENY: "deny", Verdict.REQUIRE_USER_CONFIRMATION: "ask", Verdict.ALLOW: "allow"}
_NOT_TRUSTED = "the folder is not trusted"
_CHANGED = "the file has changed since the folder was trusted"
_ELSEWHERE = "it is for another folder"


class RuleLine(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One rule; `why` says why it is not in force. `match` and `not_match` are its examples, all of which hold."""

    id: str
    verdict: str
    scope: Scope
    source: str
    matches: str
    reason: str
    match: tuple[str, ...]
    not_match: tuple[str, ...]
    in_force: bool
    why: str


class Policy(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Everything about the rules of a workspace. With `problems`, nothing runs without asking."""

    workspace: str
    trusted: bool
    files: tuple[FoundFile, ...]
    rules: tuple[RuleLine, ...]
    problems: tuple[str, ...]


def read_policy(workspace: Path, *, trusted: bool) -> Policy:
    """Read the rules that count in a workspace (resolved); keeps nothing."""
    found = PolicyFiles(usual_places(workspace), keep=False).in_force()
    return Policy(
        workspace=str(workspace),
        trusted=trusted,
        files=found.files,
        rules=tuple(_rules(found, str(workspace), trusted=trusted)),
        problems=found.ruleset.problems,
    )


def _rules(found: InForce, workspace: str, *, trusted: bool) -> Iterator[RuleLine]:
    for rule in sorted(found.ruleset.rules, key=lambda rule: STRICTEST_FIRST.index(rule.verdict)):
        why = ""
        if rule.workspace not in ("", workspace):
            why = _ELSEWHERE
        elif rule.scope is Scope.PROJECT and rule.verdict is Verdict.ALLOW and not trusted:
            why = _NOT_TRUSTED
        yield _line(rule, why)
    yield from (_line(rule, _CHANGED) for rule in found.ignored)


def _line(rule: Rule, why: str) -> RuleLine:
    return RuleLine(
        id=rule.id,
        verdict=_WORDS[rule.verdict],
        scope=rule.scope,
        source=rule.source,
        matches=what_it_matches(rule),
        reason=rule.reason,
        match=rule.match,
        not_match=rule.not_match,
        in_force=not why,
        why=why,
    )


def what_it_matches(rule: Rule) -> str:
    """Say in words what a rule speaks of."""
    facts = []
    if rule.argv:
        facts.append(f"command {' '.join(rule.argv)}{' (exactly)' if rule.exact else ' …'}")
    if rule.path:
        facts.append(f"path {rule.path}")
    if rule.op is not None:
        facts.append("writing" if rule.op is PathOp.WRITE else "reading")
    if rule.host:
        facts.append(f"host {rule.host}")
    if rule.tool:
        facts.append(f"tool {rule.tool}{' (pinned)' if rule.tool_digest else ''}")
    if rule.workspace:
        facts.append(f"in {rule.workspace}")
    return ", ".join(facts)


def policy_lines(policy: Policy) -> Iterator[str]:
    """Write the rules for a person."""
    yield f"{visible(policy.workspace)}: {'trusted' if policy.trusted else 'not trusted'}"
    yield "files:" if policy.files else "files: none"
    for file in policy.files:
        rules = f"{file.rules} rule{'' if file.rules == 1 else 's'}"
        if file.state is FileState.BROKEN:
            shown = (
                f"BROKEN: {file.why}; {f'its last valid version ({rules})' if file.rules else 'none of it'} is in force"
            )
        else:
            shown = rules
        yield visible(f"  {file.scope:<8} {file.path}  {shown}")
    if policy.problems:
        yield "automatic approval is off until this is fixed: nothing runs without asking"
    yield "rules:" if policy.rules else "rules: only the built-in ones"
    for rule in policy.rules:
        mark = "" if rule.in_force else f"  NOT IN FORCE: {rule.why}"
        examples = len(rule.match) + len(rule.not_match)
        hold = f"{examples} example{'s hold' if examples != 1 else ' holds'}"
        shown = f"{rule.matches}  [{rule.scope}, {rule.source}]  {hold}{mark}"
        yield visible(f"  {rule.verdict:<6} {rule.id}: {shown}")
