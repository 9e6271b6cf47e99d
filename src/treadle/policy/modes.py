"""What each mode lets run without asking, and the rights beyond the sandbox that a yes gives before a call runs."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from treadle.policy.decision_context import FileKind, FileView, PolicyContext, is_below
from treadle.policy.findings import USES_NETWORK, WITHOUT_SANDBOX, WRITES_GIT, Finding, PathOp, dangerous
from treadle.policy.path_check import Where, check_path
from treadle.policy.urls import matches_host
from treadle.protocol.opened_paths import NAME_IT, is_plain_folder, why_never_opened
from treadle.protocol.permissions import CONTROL_WRITE, Mode, Reason, Verdict
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
    return Verdict.REQUIRE_USER_CONFIRMATION, f"mode {mode} asks{_way_out(risk, context)}"


def _way_out(risk: Risk, context: PolicyContext) -> str:
    """Say what would change the answer, where something would."""
    if risk is Risk.CRITICAL:
        return "; no mode allows it"
    if context.mode is Mode.AUTO and risk is Risk.EXECUTE and not context.confined:
        return "; in a sandbox it would run"
    return "; mode edits would allow it" if context.mode is Mode.ASK and risk is Risk.WRITE else ""


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
                rule = CONTROL_WRITE if protected else "write-outside"
                new = "/" if what.endswith("/") and check.resolved not in ("", "/") else ""
                findings.append(dangerous(rule, text, path=f"{check.resolved}{new}"))
            case "git":
                text = "the model asks to change the repository's data"
                risk = Risk.CRITICAL if context.mode is Mode.PLAN else Risk.EXECUTE  # no copy takes that
                findings.append(Finding(risk, WRITES_GIT, text, always_asks=True))
            case _:
                findings.append(dangerous(WITHOUT_SANDBOX, "the model asks to run it without the sandbox"))
    return findings, hosts


def needs_not_given(needs: Iterable[str], context: PolicyContext) -> Iterator[tuple[str, str]]:
    """Give what the model asks for and no right opens, each with the reason and the way on."""
    for need in needs if context.confined and context.mode is not Mode.PLAN else ():
        kind, _, what = need.partition(":")
        if kind == "outside":
            path = check_path(what, PathOp.WRITE, context.roots[0], context).resolved
            if path and (why := why_not_given(path, context)):
                yield need, f"no right opens {path}: {why}. {NAME_IT}".removesuffix(".")


NotGiven = Mapping[tuple[str, str], str]
"""Why no right opens a path: by the verb that a right would stand for, and the path."""

_NOTHING: NotGiven = MappingProxyType({})
_LISTS = 0o5
"""The bits of a mode that let somebody list a folder and go into it."""

_NETWORK = frozenset({"network", "download", "upload", "private-host"})
_READS = frozenset({"secret-read", "read-outside"})
_WRITES = frozenset({CONTROL_WRITE, "write-outside"})
_OPENED = {Right.NETWORK: _NETWORK | {USES_NETWORK}, Right.READ: _READS, Right.WRITE: _WRITES}


def rules_opened(rights: Iterable[SandboxDenial], *, in_git: bool) -> frozenset[str]:
    """Name the rules of which a right beside a confinement lets a whole line do what they find in a part of it.

    Where the line runs `in_git`, what git or its helpers run, as variables tell them, could drop history.
    """
    always = ("variable",) if in_git else ()
    return frozenset[str](always).union(*(_OPENED.get(one.right, ()) for one in rights if not one.usual))


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
    decided = (*context.open_hosts, *context.denied_hosts)
    asked = [host for host in named if not matches_host(host, decided)]
    return () if named and not asked else (SandboxDenial(right=Right.NETWORK, target=", ".join(asked)),)


def hosts_never_reached(
    hosts: Iterable[str], rights: Iterable[SandboxDenial], context: PolicyContext
) -> Iterator[tuple[str, str]]:
    """Give the named hosts that the setting denies and nothing else would keep from a command, each with the reason.

    Where a command has no network of its own, a connection is refused when its host is looked up.
    """
    if context.confined and context.brokers and not _opens_hosts(rights):
        return
    for host in dict.fromkeys(hosts):
        if matches_host(host, context.denied_hosts):
            yield host, f"the setting network.deny names {host}"


def _opens_hosts(rights: Iterable[SandboxDenial]) -> bool:
    return any(one.right in (Right.NETWORK, Right.UNSANDBOXED) for one in rights)


def _needs(found: Finding, hosts: str, context: PolicyContext) -> Iterator[SandboxDenial]:
    if (found.risk is Risk.REMOTE or found.rule in _NETWORK) and not (found.brokered and context.brokers):
        yield SandboxDenial(right=Right.NETWORK, target=hosts)
    if _is_read_beyond(found, context) and not why_not_given(found.path, context):
        yield SandboxDenial(right=Right.READ, target=found.path, usual=found.risk is not Risk.CRITICAL)
    if found.path and found.rule in _WRITES and (place := _to_open(found.path, context)):
        if secret_name(place) is not None:  # what can be written there can be read, too
            yield SandboxDenial(right=Right.READ, target=place)
        yield SandboxDenial(right=Right.WRITE, target=place)


def _is_read_beyond(found: Finding, context: PolicyContext) -> bool:
    shown = found.rule == "read-outside" and not context.is_hidden(found.path)
    return bool(found.path) and found.rule in _READS and not shown


def _to_open(path: str, context: PolicyContext) -> str:
    """Name what is opened so that a path can be changed: the path itself, or a plain folder in which it is to be made.

    In the workspace it is what is there, or its folder; at the top of it what is new there: a command can make that,
    but it would not stay. A slash at the end says that it is to be a new folder.
    """
    named, path = path, path.rstrip("/") or "/"
    above, new = path, ""
    while (facts := context.files.facts(above)) is None and above != "/":
        above, new = posixpath.dirname(above), above
    roots = (*context.roots, *map(context.files.resolve, context.roots))
    if new and above in roots:
        return new
    if facts is None or facts.kind not in (FileKind.FILE, FileKind.DIRECTORY) or why_not_given(path, context):
        return ""
    if is_below(path, roots) or not new:
        return above
    kept = _resolved((context.home, *context.hidden, *context.state, *context.own, *roots), context)
    return above if is_plain_folder(above, partial(_entries, context.files), kept=kept) else named


def why_not_given(path: str, context: PolicyContext) -> str:
    """Say why no right opens a resolved path, as a clause; empty where one can, as in the workspace."""
    roots = _resolved(context.roots, context)
    if is_below(path, (*roots, *context.roots)):
        return ""
    homes = _resolved((context.home, *context.hidden), context)
    return why_never_opened(path, homes=homes, own=_resolved((*context.state, *context.own), context), roots=roots)


def _resolved(paths: Iterable[str], context: PolicyContext) -> tuple[str, ...]:
    return tuple(context.files.resolve(path) for path in paths if path)


def _entries(files: FileView, folder: str) -> list[tuple[str, bool]] | None:
    facts = files.facts(folder)
    if facts is None or not any((facts.mode >> shift) & _LISTS == _LISTS for shift in (0, 3, 6)):
        return None
    if (names := files.names(folder)) is None:
        return None
    found = ((name, files.facts(posixpath.join(folder, name))) for name in names)
    return [(name, there is not None and there.kind is FileKind.DIRECTORY) for name, there in found]


def paths_not_given(findings: Iterable[Finding], context: PolicyContext) -> NotGiven:
    """Give what a confined command would read or change and no right opens, each with the reason."""
    if not context.confined or context.mode is Mode.PLAN:
        return {}
    named = dict.fromkeys(
        ("change" if found.rule in _WRITES else "read", found.path.rstrip("/") or "/")
        for found in findings
        if found.path and (found.rule in _WRITES or _is_read_beyond(found, context))
    )
    return {(verb, path): why for verb, path in named if (why := why_not_given(path, context))}


def granting(
    rights: Sequence[SandboxDenial], not_given: NotGiven = _NOTHING, *, denied_hosts: Sequence[str] = ()
) -> tuple[Reason, ...]:
    """Say what a yes gives, also against the setting, and which paths it does not open, each with the reason."""
    said = [_SAID[right.right].format(right.target) for right in rights]
    text = f"approving also lets it {', '.join(said)}".replace("the network ()", "the network") if said else ""
    refused = ", ".join(f"{verb} {path} ({why})" for (verb, path), why in not_given.items())
    more = f"{'it' if said else 'approving'} does not let it {refused}" if refused else ""
    hosts = f"nothing keeps it from {', '.join(denied_hosts)} then, which the setting network.deny names"
    beside = hosts if denied_hosts and _opens_hosts(rights) else ""
    return (Reason(rule="grants", text="; ".join(filter(None, (text, more, beside)))),) if text or more else ()


_SAID: Mapping[Right, str] = {
    Right.NETWORK: "reach the network ({})",
    Right.READ: "read {}",
    Right.WRITE: "change {}",
    Right.UNSANDBOXED: "run outside the sandbox",
}
