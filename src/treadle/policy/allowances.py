"""What would let a call run: the narrowest rules, and commands that run by themselves; and what a person allowed."""

import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, assert_never

import msgspec

from treadle.policy.classify import classify_command
from treadle.policy.decide import SERVER_TOOLS, decide, tool_digest
from treadle.policy.decision_context import PolicyContext
from treadle.policy.findings import PathOp, is_plain
from treadle.policy.marks import is_static, word_set
from treadle.policy.rules import Rule, Ruleset, Scope, listed_prefix
from treadle.policy.shell.builtins import BUILTINS
from treadle.policy.shell.dangers import SQL_CLIENTS
from treadle.policy.shell.interpreters import SHELLS, is_interpreter
from treadle.policy.shell.network_programs import NETWORK
from treadle.policy.shell.walk import JudgedCommand
from treadle.policy.shell.wrappers import WRAPPERS
from treadle.policy.urls import HostKind, check_url
from treadle.protocol.permissions import Allowance, Decision, Part, Verdict
from treadle.protocol.reasons import YOU_ALLOWED
from treadle.protocol.tools import Access, FetchUrl, ReadPath, Risk, RunCommand, ToolSpec, WritePath

_NEVER = word_set("""
    ssh sftp npx bunx pnpx uvx pipx dlx pkgx nix-shell rm dd find ed ex vi vim nvim view nano flock watch script pipenv
    emacs emacsclient less more man gdb lldb sed awk gawk mawk nawk crontab just task tox nox direnv
""")
"""Programs that run, fetch or destroy whatever their words say, so that even the same words mean other things later."""

_RUNNERS = word_set("""
    uv poetry pdm hatch rye pixi conda mamba mise go docker podman nerdctl kubectl nix deno composer npm pnpm yarn bun
    pip bundle cargo git gh dotnet
""")
_RUNS_OTHERS = word_set("""
    exec x init create explore dlx download tool generate compose debug cp shell develop filter-branch bisect submodule
    rebase difftool mergetool config api alias extension script eval run-script
""")
"""Subcommands of runners, containers and git that run other programs; `run` names a script of the project for some."""

_PUSH_OPERANDS = 2
"""A push is offered only when it says where to and what: without that it follows settings."""


def suggest_rules(
    decision: Decision, spec: ToolSpec, accesses: Sequence[Access], context: PolicyContext
) -> tuple[Rule, ...]:
    """Offer the rules under which this call would not ask again; empty when there is none to offer (rule 10).

    Nothing is offered for what is dangerous or denied, nor for interpreters, wrappers, shells, downloads and package
    runners: a rule for those would allow anything. What is offered is tried: it must allow this very call.
    """
    if decision.verdict is not Verdict.REQUIRE_USER_CONFIRMATION or decision.risk is Risk.CRITICAL:
        return ()
    rules = [rule for access in accesses for rule in _for_access(access, spec, context)]
    if not accesses and spec.name.startswith(SERVER_TOOLS):
        rules.append(_rule(spec, tool_digest=tool_digest(spec)))
    unique = tuple({rule.id: rule for rule in rules if rule is not None}.values())
    if not unique or None in rules:
        return ()
    with_them = replace(context, rules=replace(context.rules, rules=(*context.rules.rules, *unique)))
    return unique if decide(spec, {}, accesses, with_them).verdict is Verdict.ALLOW else ()


def _for_access(access: Access, spec: ToolSpec, context: PolicyContext) -> Iterator[Rule | None]:
    """Give the rules for an access, and None where there is none to offer."""
    if decide(spec, {}, (access,), context).verdict is Verdict.ALLOW:
        return
    match access:
        case RunCommand(command=command, cwd=cwd):
            judgement = classify_command(command, cwd, context)
            yield from (_for_part(part, spec) for part in judgement.parts if not is_plain(part.findings))
            yield from (None for _ in judgement.findings)
        case ReadPath(path=path) | WritePath(path=path):
            op = PathOp.WRITE if isinstance(access, WritePath) else PathOp.READ
            resolved = context.files.resolve(path)
            yield None if "*" in resolved or "?" in resolved else _rule(spec, path=resolved, op=op)
        case FetchUrl(url=url):
            check = check_url(url)
            yield _rule(spec, host=check.host) if check.kind is HostKind.PUBLIC else None
        case _:
            assert_never(access)


def _for_part(part: JudgedCommand, spec: ToolSpec) -> Rule | None:
    is_known = bool(part.argv) and all(map(is_static, part.argv)) and is_plain(part.around) and not part.is_fed
    if not is_known or _runs_anything(part.argv):
        return None
    prefix = listed_prefix(part.argv)
    return _rule(spec, argv=prefix or part.argv, exact=not prefix)


def _runs_anything(argv: Sequence[str]) -> bool:
    """Whether a rule for these words would allow what they do not say, or what they say changes with the files."""
    program = argv[0]
    if "/" in program and posixpath.dirname(program) not in ("/bin", "/usr/bin"):
        return True
    name = posixpath.basename(program)
    if any(name in never for never in (_NEVER, BUILTINS, NETWORK, SHELLS, SQL_CLIENTS, WRAPPERS)):
        return True
    if is_interpreter(name):
        # To run the tests of the project is as much as `pytest` or `make test`, and offered like those.
        return not (argv[0].startswith("python") and argv[1:3] in (("-m", "unittest"), ("-m", "pytest")))
    words = [word for word in argv[1:] if not word.startswith("-")]
    if name == "git" and argv[1:2] == ("push",) and len(words) <= _PUSH_OPERANDS:
        return True
    if name not in _RUNNERS:
        return False
    scripts = name in ("npm", "pnpm", "yarn", "bun")
    first = "".join(words[:1])
    return (argv[1:2] and argv[1].startswith("-")) or first in _RUNS_OTHERS or (first == "run" and not scripts)


def _rule(spec: ToolSpec, **match: Any) -> Rule:
    rule = rule_of(Allowance(id="", tool=spec.name, **match))
    return replace(rule, id=rule_id(rule))


def rule_id(rule: Rule) -> str:
    """Name a rule by what it matches, short enough to type: `npm-test-1f3a9c`."""
    what: tuple[object, ...] = (rule.tool, rule.argv, rule.exact, rule.path, rule.op, rule.host, rule.workspace)
    if rule.tool_digest:
        what = (*what, rule.tool_digest)
    stem = " ".join(rule.argv[:2]) or posixpath.basename(rule.path) or rule.host or rule.tool
    slug = re.sub(r"[^a-z0-9]+", "-", stem.casefold()).strip("-")[:32].strip("-")
    return f"{slug or 'rule'}-{hashlib.sha256(repr(what).encode()).hexdigest()[:6]}"


_MOST = 3
_TRIED = 8
_LONGEST = 200
_SAYS_NOTHING = word_set("cd echo printf true false : test [ [[ export set pwd &")
"""Commands that nobody calls for themselves."""


def run_by_themselves(
    decision: Decision, spec: ToolSpec, accesses: Sequence[Access], context: PolicyContext
) -> tuple[str, ...]:
    """Name commands of a denied or asked line that run alone; each was judged alone, so that it is true."""
    access = accesses[0] if len(accesses) == 1 else None
    if not isinstance(access, RunCommand) or len(decision.parts) < 2:
        return ()
    lines = islice(dict.fromkeys(_candidates(decision.parts, access, context)), _TRIED)
    tried = ((line, RunCommand(command=line, cwd=access.cwd)) for line in lines)
    allowed = (line for line, run in tried if decide(spec, {"command": line}, (run,), context).verdict is Verdict.ALLOW)
    return tuple(islice(allowed, _MOST))


def _candidates(parts: Sequence[Part], access: RunCommand, context: PolicyContext) -> Iterator[str]:
    """Give the allowed commands that mean the same alone: the line gives them nothing but perhaps their directory."""
    allowed = {part.text for part in parts if part.verdict is Verdict.ALLOW}
    first, *others = classify_command(access.command, access.cwd, context).parts
    lead = f"{first.text} && " if first.text.startswith("cd ") and first.text in allowed else ""
    if any(part.text.startswith(("cd ", "pushd ", "popd")) for part in others):
        return
    for part in (first, *others):
        words, alone = part.text.split(), f"{lead}{part.text}"
        says_something = words[0] not in _SAYS_NOTHING and "$" not in part.text
        if part.text in allowed and says_something and not part.is_fed and len(alone) <= _LONGEST:
            yield alone


def allowance_of(rule: Rule) -> Allowance:
    """Give a rule that allows as what a person is offered."""
    said = {name: getattr(rule, name) for name in Allowance.__struct_fields__}
    return Allowance(**{**said, "op": rule.op.value if rule.op is not None else ""})


def rule_of(allowance: Allowance) -> Rule:
    """Give what a person allowed as a rule of the session. Raises `ValueError` for an `op` that there is not."""
    what = " ".join(allowance.argv) or allowance.path or allowance.host or allowance.tool
    said = {**msgspec.structs.asdict(allowance), "op": PathOp(allowance.op) if allowance.op else None}
    return Rule(verdict=Verdict.ALLOW, scope=Scope.SESSION, reason=f"{YOU_ALLOWED}{what}", **said)


def with_allowances(rules: Ruleset, allowances: Iterable[Allowance]) -> Ruleset:
    """Add what was allowed in this session. It is no other policy: a call that was judged before is still that call."""
    return replace(rules, rules=(*rules.rules, *map(rule_of, allowances)))


def decide_and_offer(
    spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], context: PolicyContext
) -> Decision:
    """Decide about one call; where it may not simply run, say what would.

    These are the narrowest allowances under which it would not ask, and the parts of it that would run by themselves.
    """
    decision = decide(spec, arguments, accesses, context)
    if decision.verdict is Verdict.ALLOW:
        return decision
    offered = suggest_rules(decision, spec, accesses, context)
    return msgspec.structs.replace(
        decision,
        offers=tuple(map(allowance_of, offered)),
        alternatives=run_by_themselves(decision, spec, accesses, context),
    )
