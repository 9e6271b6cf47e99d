"""The narrowest rule that would have allowed a call, for "always allow"; none for what no rule should allow."""

import posixpath
from collections.abc import Sequence
from typing import Any, assert_never

from treadle.policy.classify import classify_command
from treadle.policy.context import PolicyContext
from treadle.policy.marks import is_static, split_words
from treadle.policy.operations import PathOp
from treadle.policy.rules import Rule, Scope
from treadle.policy.shell.interpreters import SHELLS, is_interpreter
from treadle.policy.shell.walk import JudgedCommand
from treadle.policy.shell.wrappers import is_wrapper
from treadle.policy.urls import HostKind, check_url
from treadle.protocol.permissions import Decision, Verdict
from treadle.protocol.tools import Access, FetchUrl, ReadPath, Risk, RunCommand, ToolSpec, WritePath

_SUBCOMMANDS = {
    "git": "add commit fetch merge pull stash switch tag",
    "npm": "test ci install",
    "pnpm": "test install",
    "yarn": "test install",
    "cargo": "build check test clippy fmt doc bench",
    "go": "build test vet fmt",
    "make": "test check lint build format",
    "docker": "ps images logs build",
    "gh": "pr issue run",
    "uv": "sync lock",
    "pip": "list show freeze",
    "dotnet": "build test",
}
"""Programs whose subcommands mean the same with any further words; other commands are offered word by word."""

_NEVER = frozenset(
    split_words(
        """
        sudo su doas curl wget ssh scp rsync npx bunx pnpx uvx pipx dlx rm dd eval source . sed awk find make-shell
        docker-run osascript expect tclsh
        """
    )
)


def suggest_rules(
    decision: Decision, spec: ToolSpec, accesses: Sequence[Access], context: PolicyContext
) -> tuple[Rule, ...]:
    """Offer the rules under which this call would not ask again; empty when there is none to offer (rule 10).

    Nothing is offered for what is dangerous or denied, nor for interpreters, wrappers, shells, downloads and package
    runners: a rule for those would allow anything.
    """
    if decision.verdict is not Verdict.REQUIRE_USER_CONFIRMATION or decision.risk is Risk.CRITICAL:
        return ()
    rules: list[Rule] = []
    for access in accesses:
        offered = _for_access(access, spec, context)
        if offered is None:
            return ()
        rules.extend(offered)
    return tuple(rules)


def _for_access(access: Access, spec: ToolSpec, context: PolicyContext) -> list[Rule] | None:
    match access:
        case RunCommand(command=command, cwd=cwd):
            return _for_command(command, cwd, spec, context)
        case ReadPath(path=path):
            return [_rule(spec, path=context.files.resolve(path), op=PathOp.READ)]
        case WritePath(path=path):
            return [_rule(spec, path=context.files.resolve(path), op=PathOp.WRITE)]
        case FetchUrl(url=url):
            check = check_url(url)
            return [_rule(spec, host=check.host)] if check.kind is HostKind.PUBLIC else None
        case _:
            assert_never(access)


def _for_command(command: str, cwd: str, spec: ToolSpec, context: PolicyContext) -> list[Rule] | None:
    judgement = classify_command(command, cwd, context)
    if judgement.findings:
        return None
    rules = [_for_part(part, spec) for part in judgement.parts if _asks(part)]
    return None if None in rules else [rule for rule in rules if rule is not None]


def _asks(part: JudgedCommand) -> bool:
    return any(finding.risk not in (Risk.NONE, Risk.READ) for finding in part.findings)


def _for_part(part: JudgedCommand, spec: ToolSpec) -> Rule | None:
    surroundings_ask = any(finding.risk not in (Risk.NONE, Risk.READ) for finding in part.around)
    if surroundings_ask or not part.argv or not all(is_static(word) for word in part.argv):
        return None
    program = posixpath.basename(part.argv[0])
    if program in _NEVER or program in SHELLS or is_wrapper(program) or is_interpreter(program):
        return None
    listed = _SUBCOMMANDS.get(program, "").split()
    if len(part.argv) > 1 and part.argv[1] in listed:
        return _rule(spec, argv=part.argv[:2])
    return _rule(spec, argv=part.argv, exact=True)


def _rule(spec: ToolSpec, **match: Any) -> Rule:
    what = " ".join(match.get("argv", ())) or match.get("path") or match.get("host")
    return Rule(
        id=f"always: {what}",
        verdict=Verdict.ALLOW,
        scope=Scope.SESSION,
        tool=spec.name,
        reason=f"you allowed {what}",
        **match,
    )
