"""What each mode lets run without asking, and the rights beyond the sandbox that a yes gives before a call runs."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping

from treadle.policy.decision_context import FileKind, PolicyContext, is_below
from treadle.policy.findings import WITHOUT_SANDBOX, WRITES_GIT, Finding, PathOp, dangerous
from treadle.policy.path_check import Where, check_path
from treadle.policy.urls import matches_host
from treadle.protocol.permissions import Mode, Reason, Verdict
from treadle.protocol.protected_names import secret_name
from treadle.protocol.tools import Right, Risk, SandboxDenial

UNTRUSTED = "this folder is not trusted, so programs that do more than read do not run by themselves"

_HARMLESS = frozenset({Risk.NONE, Risk.READ})
_IN_A_COPY = _HARMLESS | {Risk.READ_OUTSIDE, Risk.WRITE, Risk.EXECUTE}
"""What can do no harm in a throw-away copy: it reads what is not hidden, and asks for each host."""

_ALLOWED: Mapping[Mode, frozenset[Risk]] = {
    Mode.PLAN: _HARMLESS,
    Mode.ASK: _HARMLESS,
    Mode.EDITS: _HARMLESS | {Risk.WRITE},
    Mode.AUTO: _HARMLESS | {Risk.WRITE},
    Mode.FULL: frozenset(Risk) - {Risk.CRITICAL},
}


def verdict_for(
    risk: Risk, context: PolicyContext, *, can_try: bool = False, publishes: bool = False, trusted: bool = True
) -> tuple[Verdict, str]:
    """Give the mode's answer to a risk, and that answer in words.

    `can_try`: it is a command that runs confined, in a throw-away copy where the mode lets it change nothing.
    `publishes`: others see what it does, which a rule or the setting `approve` may allow, but no mode. Not `trusted`:
    it could be tried if the user trusted the folder.
    """
    mode = context.mode
    if not trusted and risk in _IN_A_COPY - _HARMLESS and mode is not Mode.FULL and risk not in context.approved:
        return Verdict.DENY if mode is Mode.PLAN else Verdict.REQUIRE_USER_CONFIRMATION, UNTRUSTED
    if can_try and risk in _IN_A_COPY and (context.try_first or mode in (Mode.PLAN, Mode.AUTO)):
        return Verdict.ALLOW, f"mode {mode} runs it confined"
    if mode is Mode.PLAN and risk not in _HARMLESS:
        return Verdict.DENY, "plan mode changes nothing and stays in the workspace"
    if risk is Risk.REMOTE and context.tainted:
        return Verdict.REQUIRE_USER_CONFIRMATION, "text from outside was read in this turn, so network changes ask"
    if risk in context.approved and risk is not Risk.CRITICAL:
        return Verdict.ALLOW, f"your setting approve lets {risk} run"
    if publishes and risk in _ALLOWED[mode]:
        return Verdict.REQUIRE_USER_CONFIRMATION, "acting on another machine asks in every mode"
    if risk in _ALLOWED[mode]:
        return Verdict.ALLOW, f"mode {mode} allows it"
    return Verdict.REQUIRE_USER_CONFIRMATION, f"mode {mode} asks{_way_out(risk, mode)}"


def _way_out(risk: Risk, mode: Mode) -> str:
    """Say what would change the answer, where something would."""
    if risk is Risk.CRITICAL:
        return "; no mode allows it"
    if mode is Mode.AUTO and risk is Risk.EXECUTE:
        return "; in a sandbox it would run"
    return "; mode edits would allow it" if mode is Mode.ASK and risk is Risk.WRITE else ""


def asked_rights(needs: Iterable[str], context: PolicyContext) -> tuple[list[Finding], list[str]]:
    """Say what the rights are that the model asks for, and to which hosts; nothing where nothing is confined.

    To ask is never a yes: each of them asks in every mode.
    """
    findings: list[Finding] = []
    hosts: list[str] = []
    for need in needs if context.confined else ():
        kind, _, what = need.partition(":")
        match kind:
            case "network":
                hosts += [what] if what else []
                text = f"the model asks for the network{f' ({what})' if what else ''}"
                findings.append(Finding(Risk.REMOTE, "network", text, always_asks=True))
            case "outside":
                check = check_path(what, PathOp.WRITE, context.roots[0], context)
                protected = check.where is Where.PROTECTED
                text = check.reasons[0].text if protected else f"the model asks to change {what}"
                rule = "control-write" if protected else "write-outside"
                findings.append(dangerous(rule, text, path=check.resolved))
            case "git":
                text = "the model asks to change the repository's data"
                risk = Risk.CRITICAL if context.mode is Mode.PLAN else Risk.EXECUTE  # no copy takes that
                findings.append(Finding(risk, WRITES_GIT, text, always_asks=True))
            case _:
                findings.append(dangerous(WITHOUT_SANDBOX, "the model asks to run it without the sandbox"))
    return findings, hosts


_NETWORK = frozenset({"network", "download", "upload", "private-host"})
_READS = frozenset({"secret-read", "read-outside"})
_WRITES = frozenset({"control-write", "write-outside"})


def rights_beyond(
    findings: Iterable[Finding], hosts: Iterable[str], context: PolicyContext
) -> tuple[SandboxDenial, ...]:
    """Name the rights that a confinement would refuse; none where there is none, or where it never opens."""
    if not context.confined or context.mode is Mode.PLAN:
        return ()
    listed, named = tuple(findings), ", ".join(dict.fromkeys(hosts))
    if any(found.rule == WITHOUT_SANDBOX for found in listed):
        return (SandboxDenial(right=Right.UNSANDBOXED),)
    return tuple(dict.fromkeys(right for found in listed for right in _needs(found, named, context)))


def rights_when_used(
    findings: Iterable[Finding], hosts: Iterable[str], context: PolicyContext
) -> tuple[SandboxDenial, ...]:
    """Name the rights that are asked for when a command uses them: none where all of them are given before."""
    listed = tuple(findings)
    wanted = context.confined and context.brokers and context.mode is not Mode.PLAN
    if not wanted or not any(found.brokered for found in listed) or rights_beyond(listed, hosts, context):
        return ()
    named = list(dict.fromkeys(hosts))
    asked = [host for host in named if not matches_host(host, context.open_hosts)]
    return () if named and not asked else (SandboxDenial(right=Right.NETWORK, target=", ".join(asked)),)


def _needs(found: Finding, hosts: str, context: PolicyContext) -> Iterator[SandboxDenial]:
    if (found.risk is Risk.REMOTE or found.rule in _NETWORK) and not (found.brokered and context.brokers):
        yield SandboxDenial(right=Right.NETWORK, target=hosts)
    if found.path and found.rule in _READS and (found.rule != "read-outside" or context.is_hidden(found.path)):
        yield SandboxDenial(right=Right.READ, target=found.path)
    if found.path and found.rule in _WRITES and (place := _to_open(found.path, context)):
        if secret_name(place) is not None:  # what can be written there can be read, too
            yield SandboxDenial(right=Right.READ, target=place)
        yield SandboxDenial(right=Right.WRITE, target=place)


def _to_open(path: str, context: PolicyContext) -> str:
    """Name what is opened so that a path can be changed: what is there, or its folder; never what holds a home.

    At the top of the workspace it is what is new there: a command can make that, but it would not stay.
    """
    new = ""
    while (facts := context.files.facts(path)) is None and path != "/":
        path, new = posixpath.dirname(path), path
    if new and path in (*context.roots, *map(context.files.resolve, context.roots)):
        return new
    if facts is None or facts.kind not in (FileKind.FILE, FileKind.DIRECTORY):
        return ""
    kept = (context.home, *context.state, *context.own)
    too_wide = path == "/" or any(is_below(keep, (path,)) for keep in kept if keep)
    return "" if too_wide else path


def granting(rights: Iterable[SandboxDenial]) -> tuple[Reason, ...]:
    """Say what a yes gives."""
    said = [_SAID[right.right].format(right.target) for right in rights]
    text = f"approving also lets it {', '.join(said)}".replace("the network ()", "the network")
    return (Reason(rule="grants", text=text),) if said else ()


_SAID: Mapping[Right, str] = {
    Right.NETWORK: "reach the network ({})",
    Right.READ: "read {}",
    Right.WRITE: "change {}",
    Right.UNSANDBOXED: "run outside the sandbox",
}
