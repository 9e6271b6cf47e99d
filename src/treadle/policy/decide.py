"""The one decision: may this call run, must a person say yes, or may it not run at all."""

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, assert_never

import msgspec
from msgspec import structs

from treadle.policy.classify import CommandJudgement, classify_command, is_plain_git
from treadle.policy.decision_context import PolicyContext, RememberedFiles
from treadle.policy.findings import WRITES_GIT, Finding, PathOp, dangerous, is_plain, when_confined, worst
from treadle.policy.modes import (
    UNTRUSTED,
    asked_rights,
    granting,
    hosts_never_reached,
    needs_not_given,
    paths_not_given,
    rights_beyond,
    rights_when_used,
    rules_opened,
    verdict_for,
)
from treadle.policy.path_check import Where, check_path, refusal
from treadle.policy.rules import STRICTEST_FIRST, Places, Rule, Scope, Subject, Trace, apply_rules, reason_of
from treadle.policy.shell.network_programs import PUBLISHES
from treadle.policy.shell.walk import JudgedCommand
from treadle.policy.urls import HostKind, check_url, host_kind, matches_host
from treadle.protocol.codec import encode
from treadle.protocol.permissions import Decision, Mode, Part, Reason, Verdict
from treadle.protocol.reasons import NOT_TRUSTED, strength_of
from treadle.protocol.tools import (
    Access,
    Confinement,
    FetchUrl,
    ReadPath,
    Right,
    Risk,
    RunCommand,
    SandboxDenial,
    ToolSpec,
    WritePath,
)

_RISKS = tuple(Risk)
_LOOKS = frozenset({Risk.NONE, Risk.READ, Risk.READ_OUTSIDE})
_READING_METHODS = frozenset({"GET", "HEAD"})
_POLICY_VERSION = "2"
_MODE = "mode"
_ASK = Verdict.REQUIRE_USER_CONFIRMATION
SERVER_TOOLS = "mcp__"
"""How the names of tools of MCP servers begin."""

_SERVER_TOOL: Mapping[Risk, str] = {
    **dict.fromkeys(Risk, "a tool of an MCP server"),
    Risk.READ: "a tool of an MCP server that you trust, which says that it only reads",
    Risk.REMOTE: "a tool of an MCP server, which may change things that others see, or destroy something",
}
_FROM_OUTSIDE = "text from outside was read in this turn, so this may be its wish and not yours"
_FIRST_USE = "the first use of a tool of an MCP server: a yes approves the tool as it is now"


def decide(
    spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], context: PolicyContext
) -> Decision:
    """Decide about one call: the strictest of its parts wins; a call that touches nothing is judged by its tool."""
    context = dataclasses.replace(context, files=RememberedFiles.of(context.files))
    judged = [_judge(access, spec, context) for access in accesses]
    rights = tuple(dict.fromkeys(right for one in judged for right in one.rights))
    if rights and all(part.verdict is Verdict.ALLOW for one in judged for part in one.parts):
        # A right holds for all that the call runs, so none of it may be allowed for being confined.
        beyond = dataclasses.replace(context, confines=False)
        judged = [_judge(access, spec, beyond) for access in accesses]
    # What a loop does is judged once more with what it may have changed; that it is the same is not worth telling.
    parts = list(dict.fromkeys(part for one in judged for part in one.parts)) or [_judge_tool(spec, context)]
    verdict = min((part.verdict for part in parts), key=STRICTEST_FIRST.index)
    rights = () if verdict is Verdict.DENY else rights
    confinement = None if verdict is Verdict.DENY else _confinement(judged, verdict, rights, context)
    # Where a part is not allowed, what speaks for the others explains nothing. The part that decides comes first.
    telling = [part for part in parts if verdict is Verdict.ALLOW or part.verdict is not Verdict.ALLOW]
    telling.sort(key=_weight)
    first, *others = dict.fromkeys(reason for part in telling for reason in part.reasons)
    others.sort(key=lambda reason: reason.rule == _MODE)  # what the mode says of one part speaks of no other
    return Decision(
        verdict=verdict,
        risk=_riskiest(parts),
        reasons=(first, *others, *(_granting(judged, rights, context) if verdict is _ASK else ())),
        parts=tuple(parts),
        digest=_digest((spec.name, arguments, tuple(accesses)), accesses, confinement, context),
        confinement=confinement,
        grants=rights,
        asks_when_used=() if verdict is Verdict.DENY else tuple(right for one in judged for right in one.later),
        outside=any(one.command is not None and one.command.outside for one in judged),
    )


def _granting(
    judged: Sequence["_Judged"], rights: Sequence[SandboxDenial], context: PolicyContext
) -> tuple[Reason, ...]:
    """Say what a yes gives to the commands of a call, and what it does not."""
    findings = [found for one in judged if one.command is not None for found in one.command.every]
    outside = any(right.right is Right.UNSANDBOXED for right in rights)
    not_given = {} if outside else paths_not_given(findings, context)
    return granting(rights, not_given, denied_hosts=context.denied_hosts)


def _weight(part: Part) -> tuple[int, int, int]:
    """Order parts by how much they explain, the strongest first."""
    strength = strength_of(reason.rule for reason in part.reasons)
    return STRICTEST_FIRST.index(part.verdict), -_RISKS.index(part.risk), -strength


def _riskiest(parts: Iterable[Part]) -> Risk:
    return max((part.risk for part in parts), key=_RISKS.index)


def tool_digest(spec: ToolSpec) -> str:
    """Name exactly this declaration of a tool (SHA-256, hex)."""
    return hashlib.sha256(msgspec.json.encode(spec, order="deterministic")).hexdigest()


def _judge_tool(spec: ToolSpec, context: PolicyContext) -> Part:
    """Judge a call that names nothing it touches: it runs in Treadle's own process, which nothing confines."""
    subject = Subject(tool=spec.name, tool_digest=tool_digest(spec))
    if spec.name.startswith(SERVER_TOOLS):
        new = spec.name in context.unapproved
        rule, text = ("first-use", _FIRST_USE) if new else ("server-tool", _SERVER_TOOL[spec.risk])
        finding = Finding(spec.risk, rule, text, always_asks=new)
    else:
        finding = Finding(spec.risk, "tool-risk", f"a tool of risk class {spec.risk}")
    return _answer(spec.name, (finding,), subject, context)[0]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """One access: its parts, what was found out about a command, and the rights beyond its confinement that it needs.

    `ruled` says that a rule allows what it is more than reading. `later` are rights that are asked for when they are
    used.
    """

    parts: Sequence[Part]
    command: CommandJudgement | None = None
    rights: tuple[SandboxDenial, ...] = ()
    ruled: bool = False
    later: tuple[SandboxDenial, ...] = ()


def _confinement(
    judged: Sequence[_Judged], verdict: Verdict, rights: Sequence[SandboxDenial], context: PolicyContext
) -> Confinement | None:
    """Say what the commands of a call run in, now or after a yes; None where it runs none."""
    commands = [one.command for one in judged if one.command is not None]
    if not commands:
        return None
    allowed = verdict is Verdict.ALLOW
    writes_git = any(one.writes_git and not (allowed and _writes_through_broker(one, context)) for one in commands)
    if not context.confined or any(right.right is Right.UNSANDBOXED for right in rights):
        return Confinement.OPEN
    risk = _riskiest(part for one in judged if one.command is not None for part in one.parts)
    ruled = risk in context.approved or any(one.ruled for one in judged)
    by_mode = verdict is Verdict.ALLOW and not rights and not ruled
    tries = context.mode is Mode.ASK or (context.mode is Mode.EDITS and risk is not Risk.WRITE)
    if context.mode is Mode.PLAN or (not rights and not writes_git and (risk in _LOOKS or (by_mode and tries))):
        return Confinement.LOOK
    return Confinement.GIT if writes_git else Confinement.WORK


def _writes_through_broker(line: CommandJudgement, context: PolicyContext) -> bool:
    """Whether git in the middle of others is judged when it is called: what is around it writes no repository."""
    return context.brokers and context.mode is Mode.AUTO and not is_plain_git(line.parts)


def _judge(access: Access, spec: ToolSpec, context: PolicyContext) -> _Judged:
    """Judge one access."""
    match access:
        case ReadPath(path=path, listing=listing):
            return _Judged(parts=[_judge_path(path, PathOp.LIST if listing else PathOp.READ, spec, context)])
        case WritePath(path=path):
            return _Judged(parts=[_judge_path(path, PathOp.WRITE, spec, context)])
        case RunCommand():
            return _judge_command(access, spec, context)
        case FetchUrl():
            return _Judged(parts=[_judge_url(access, spec, context)])
        case _:
            assert_never(access)


def _judge_path(path: str, op: PathOp, spec: ToolSpec, context: PolicyContext) -> Part:
    check = check_path(path, op, context.roots[0] if context.roots else "/", context)
    reason = check.reasons[0]
    text = reason.text
    match check.where:
        case Where.PROTECTED:
            risk = Risk.CRITICAL
        case Where.OUTSIDE if op is PathOp.WRITE:
            risk = Risk.CRITICAL
        case Where.OUTSIDE:
            # What a confined command sees without asking may be read here too.
            risk = Risk.READ if context.confined and not context.is_hidden(check.resolved) else Risk.READ_OUTSIDE
        case Where.INSIDE:
            risk = Risk.WRITE if op is PathOp.WRITE else Risk.READ
            text = f"{'changes' if op is PathOp.WRITE else 'reads'} a file of the workspace"
        case _:
            assert_never(check.where)
    subject = Subject(tool=spec.name, trace=Trace(paths=[(op, check.resolved)]))
    found = [Finding(risk, reason.rule, text)]
    if context.tainted and op is PathOp.WRITE and check.where is Where.PROTECTED:
        found.append(Finding(Risk.WRITE, "taint", _FROM_OUTSIDE))
    return _answer(path, tuple(found), subject, context)[0]


def _judge_url(access: FetchUrl, spec: ToolSpec, context: PolicyContext) -> Part:
    url = access.url
    check = check_url(url)
    subject = Subject(tool=spec.name, trace=Trace(hosts=[check.host]))
    if check.kind is HostKind.INVALID:
        return _refused(url, "url-form", check.problem or "the host cannot be read")
    if check.kind is HostKind.METADATA:
        return _refused(url, "private-host", f"{check.host} reveals secrets of the machine that it runs on")
    if matches_host(check.host, context.denied_hosts):
        return _refused(url, "denied-host", f"the setting network.deny names {check.host}")
    if access.own and check.kind is HostKind.LOOPBACK:
        finding = Finding(Risk.READ, "own-server", "reaches a server that a command of this session runs")
    elif check.kind is HostKind.PRIVATE:
        finding = dangerous("private-host", f"{check.host} is in a private network")
    elif access.method.upper() in _READING_METHODS:
        finding = Finding(Risk.READ_OUTSIDE, "fetch-url", f"reads from {check.host}")
    else:
        finding = Finding(Risk.REMOTE, "fetch-url", f"sends data to {check.host}")
    new = () if access.own else _new_hosts(subject.trace.hosts, context)
    return _answer(url, (finding, *new), subject, context)[0]


def _new_hosts(hosts: Iterable[str], context: PolicyContext) -> tuple[Finding, ...]:
    """Ask for each host that text from outside may have named (rule 39)."""
    if not context.tainted:
        return ()
    new = [host for host in hosts if host not in context.hosts]
    text = "text from outside was read in this turn, and this host is new: "
    return tuple(Finding(Risk.READ_OUTSIDE, "taint", text + host, always_asks=True) for host in new)


def _refused(text: str, rule: str, why: str) -> Part:
    return Part(text=text, verdict=Verdict.DENY, risk=Risk.CRITICAL, reasons=(Reason(rule=rule, text=why),))


def _judge_command(access: RunCommand, spec: ToolSpec, context: PolicyContext) -> _Judged:
    """Judge every command of a line, and what was found about the whole."""
    line = classify_command(access.command, access.cwd, context)
    asked, named = asked_rights(access.needs, context)
    line = structs.replace(line, findings=(*line.findings, *asked))
    found = line.findings or (Finding(Risk.READ, "empty", "runs nothing"),)
    whole = JudgedCommand(access.command, (), own=found, trace=line.trace)
    parts = (*line.parts, *([] if line.parts and not line.findings else [whole]))
    # Servers and watchers would see old files in a copy, and half of a repository's change is worse than none of it:
    # both are asked about where the mode lets commands change nothing. In auto, git's own work alone runs in `git`.
    tried = context.mode is Mode.PLAN or not (access.background or line.writes_git)
    hosts = [*(host for part in parts for host in part.trace.hosts), *named]
    rights = rights_beyond(line.every, hosts, context)
    # What one part takes the sandbox away for, or has opened, is so for the whole line.
    inside = context.confined and not any(right.right is Right.UNSANDBOXED for right in rights)
    opened = rules_opened(rights, in_git=line.writes_git and not _writes_through_broker(line, context))
    confined = inside and (tried or context.mode is Mode.AUTO)
    mixed = line.writes_git and context.mode is Mode.AUTO and not (context.brokers or is_plain_git(line.parts))
    holds = inside and context.trusts(access.cwd)
    answers: list[tuple[Part, bool]] = []
    for part in parts:
        subject = Subject(tool=spec.name, trace=part.trace)
        # A host that is asked about when it is connected to is not asked about before.
        later = holds and context.brokers and any(one.brokered and one.rule not in opened for one in part.findings)
        # What a confined command calls localhost is the session's own.
        others = [host for host in part.trace.hosts if not (holds and host_kind(host) is HostKind.LOOPBACK)]
        own, around = part.own, (*part.around, *(() if later else _new_hosts(others, context)))
        alone = confined and not (mixed and any(found.rule == WRITES_GIT for found in part.findings))
        if holds:
            own, around = (when_confined(one, brokers=context.brokers, opened=opened) for one in (own, around))
        answers.append(_answer(part.text, own, subject, context, around=around, confined=alone))
    refused = [_refused(need, "outside", why) for need, why in needs_not_given(access.needs, context)]
    refused += [_refused(host, "denied-host", why) for host, why in hosts_never_reached(hosts, rights, context)]
    return _Judged(
        parts=[*(part for part, _ in answers), *refused],
        command=line,
        rights=rights,
        ruled=any(ruled for _, ruled in answers),
        later=rights_when_used(line.every, hosts, context) if holds else (),
    )


def _answer(
    text: str,
    findings: tuple[Finding, ...],
    subject: Subject,
    context: PolicyContext,
    *,
    around: tuple[Finding, ...] = (),
    confined: bool = False,
) -> tuple[Part, bool]:
    """Judge one part, and say whether a rule is what lets it do more than read.

    `around` is what stands beside the command itself: a rule that allows the command leaves it. `confined`: it can be
    tried without harm where the mode would ask, but for code of a folder that is not trusted.
    """
    every = tuple(dict.fromkeys((*around, *findings)))
    resolved = map(context.files.resolve, context.roots)
    places = Places(roots=tuple(dict.fromkeys((*resolved, *context.roots))), home=context.home)
    rule = apply_rules(context.rules.rules, subject, places, trusted=context.trusted)
    lifts = rule is not None and rule.verdict is Verdict.ALLOW and _may_lift(rule, worst(every), subject, context)
    trusted = context.trusted and not any(map(context.is_in_untrusted, subject.trace.places))
    can_try = confined and (trusted or worst(every) in _LOOKS)

    def by_mode(found: Sequence[Finding]) -> tuple[Verdict, str]:
        publishes = any(finding.rule == PUBLISHES for finding in found)
        risks = [worst(found)]
        # Who may change the workspace may not for that read what is outside of it, as `cp` does both.
        if risks == [Risk.WRITE] and any(finding.risk is Risk.READ_OUTSIDE for finding in found):
            risks.append(Risk.READ_OUTSIDE)
        # What asks in a trusted folder as well does not wait for trust.
        waits = confined and not can_try and any(one.risk not in _LOOKS and not one.always_asks for one in found)
        answers = [
            verdict_for(risk, context, can_try=can_try, publishes=publishes, trusted=not waits) for risk in risks
        ]
        return min(answers, key=lambda answer: STRICTEST_FIRST.index(answer[0]))

    verdict, reasons = _verdict(every, rule, context, (by_mode(every), by_mode(around if lifts else every)))
    part = Part(text=text, verdict=verdict, risk=worst(every), reasons=reasons)
    return part, lifts and verdict is Verdict.ALLOW and part.risk not in _LOOKS


def _verdict(
    every: Sequence[Finding], rule: Rule | None, context: PolicyContext, modes: tuple[tuple[Verdict, str], ...]
) -> tuple[Verdict, tuple[Reason, ...]]:
    """Answer for one part, by what the mode says of all of it and of what a rule leaves; the first reason decides."""
    (verdict, why), (beside, why_beside) = modes
    found = tuple(Reason(rule=finding.rule, text=finding.text) for finding in _telling(every))
    ruled = () if rule is None else (reason_of(rule),)
    mode = (Reason(rule=NOT_TRUSTED if why == UNTRUSTED else _MODE, text=why),)
    if rule is not None and rule.verdict is Verdict.DENY:
        return Verdict.DENY, (*ruled, *found, *(mode if verdict is Verdict.DENY else ()))
    if verdict is Verdict.DENY:
        return Verdict.DENY, (*mode, *found, *ruled)
    # Where the mode would allow it, the reason is what was found, or the rule.
    asked = mode if verdict is not Verdict.ALLOW else ()
    if worst(every) is Risk.CRITICAL or any(finding.always_asks for finding in every):
        return Verdict.REQUIRE_USER_CONFIRMATION, (*found, *ruled, *asked)
    if rule is not None and rule.verdict is Verdict.REQUIRE_USER_CONFIRMATION:
        return Verdict.REQUIRE_USER_CONFIRMATION, (*ruled, *found, *asked)
    if context.rules.problems and worst(every) is not Risk.NONE:
        problem = Reason(rule="broken-rules", text=f"automatic approval is off: {context.rules.problems[0]}")
        return Verdict.REQUIRE_USER_CONFIRMATION, (problem, *ruled, *found)
    if rule is None:
        # In a trusted folder the same would run: that this one is not is what decides.
        return verdict, (*mode, *found) if why == UNTRUSTED else (*found, *mode)
    if beside is Verdict.ALLOW:
        return beside, (*ruled, *found)
    return beside, (*found, *ruled, Reason(rule=_MODE, text=why_beside))


def _may_lift(rule: Rule, risk: Risk, subject: Subject, context: PolicyContext) -> bool:
    """Whether a rule that allows counts: before trust only one that was given for this folder lets its code run.

    None was given for a further root that is not trusted.
    """
    if risk is Risk.REMOTE and context.tainted:
        return False
    given_here = rule.scope is Scope.SESSION or bool(rule.workspace)
    if risk in (Risk.NONE, Risk.READ, Risk.READ_OUTSIDE):
        return True
    return (context.trusted or given_here) and not any(map(context.is_in_untrusted, subject.trace.places))


def _telling(findings: Iterable[Finding]) -> list[Finding]:
    """Keep what explains the answer, what decides first: the findings that are more than reading, or else one."""

    def weight(finding: Finding) -> tuple[bool, bool, int, int]:
        risk = _RISKS.index(finding.risk)
        return finding.risk is Risk.CRITICAL, finding.always_asks, risk, strength_of((finding.rule,))

    listed = sorted(findings, key=weight, reverse=True)
    return [found for found in listed if found.always_asks or not is_plain([found])] or listed[:1]


def _digest(
    call: tuple[Any, ...], accesses: Sequence[Access], confinement: Confinement | None, context: PolicyContext
) -> str:
    """Name what was judged: the call, the files it names as they are now, what it was judged by, and for what."""
    files = [_identity(access.path, context) for access in accesses if isinstance(access, ReadPath | WritePath)]
    judged_by = (_POLICY_VERSION, context.rules.version, context.roots, confinement)
    return hashlib.sha256(encode((*call, files, judged_by))).hexdigest()


def _identity(path: str, context: PolicyContext) -> tuple[str, tuple[int, int] | None]:
    if refusal(path) is not None:
        return path, None
    resolved = context.files.resolve(path)
    facts = context.files.facts(resolved)
    return resolved, None if facts is None else facts.inode
