"""Why a command, a path or an address would be decided as it would be, and what would change the answer."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import assert_never

from treadle.app.config.layers import load_settings
from treadle.app.security.confining import NOTHING, confining_here
from treadle.app.security.trusting import session_trust
from treadle.app.session.commands.judging import policy_context
from treadle.policy.allowances import suggest_rules
from treadle.policy.classify import classify_command
from treadle.policy.decide import decide
from treadle.policy.decision_context import PolicyContext
from treadle.policy.modes import NotGiven, granting, paths_not_given
from treadle.policy.rulefile import render_rule, with_examples
from treadle.policy.rules import Rule
from treadle.policy.urls import matches_host
from treadle.protocol.base import Record
from treadle.protocol.permissions import Decision, Mode, Part, Standing, Verdict
from treadle.protocol.reasons import words_of_decision
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
    ToolTraits,
    WritePath,
)
from treadle.tools.declarations import EXECUTE_COMMAND, READ_FILE, WEB_FETCH, WRITE_TO_FILE
from treadle.workspace.files.text import visible

_SPECS = {
    name: ToolSpec(name=name, description="", parameters={}, traits=ToolTraits(), risk=risk)
    for name, risk in (
        (EXECUTE_COMMAND.name, Risk.EXECUTE),
        (WRITE_TO_FILE.name, Risk.WRITE),
        (READ_FILE.name, Risk.READ),
        (WEB_FETCH.name, Risk.READ_OUTSIDE),
    )
}


_RUNS_IN = {
    Confinement.LOOK: "in a throw-away copy of the workspace (look)",
    Confinement.WORK: "in the workspace, and cannot change control files (work)",
    Confinement.GIT: "in the workspace and its repository, and cannot change hooks (git)",
    Confinement.OPEN: "as you, with nothing around it (open)",
}


class _Change(Record, frozen=True, kw_only=True):
    """One thing that would give another answer; `rule` is the text of a rule that would."""

    what: str
    verdict: Verdict
    rule: str = ""


class Explained(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A decision with its parts, and everything by itself that would change it. `shell_class` is empty for a path.

    `why` is what every surface says of it, `further` its other reasons. `not_given` is what no right lets it do, each
    as a clause.
    """

    asked: str
    mode: Mode
    trusted: bool
    shell_class: str
    verdict: Verdict
    risk: Risk
    why: str
    further: tuple[str, ...]
    confinement: Confinement | None
    grants: tuple[SandboxDenial, ...]
    not_given: tuple[str, ...]
    denied_hosts: tuple[str, ...]
    asks_when_used: tuple[SandboxDenial, ...]
    parts: tuple[Part, ...]
    changes: tuple[_Change, ...]


def asked_context(
    folder: Path,
    mode: Mode,
    *,
    trusted: bool,
    tainted: bool = False,
    home: Path | None = None,
    confined: bool = True,
) -> PolicyContext:
    """Give the surroundings in which something would be decided; looks at what confines commands here.

    `home` is another home directory; without `confined` nothing confines commands. Raises `ConfigError` for settings.
    """
    settings = load_settings({})
    here = confining_here(try_first=settings.try_first, keeps=settings.checkpoints.enabled, home=home)
    trust = session_trust(folder.resolve()) if trusted else None
    context = policy_context(
        os.path.realpath(folder),
        Standing(mode=mode),
        trusted=trusted,
        never_asked=trust is not None and trust.never_asked,
        home=str(home or Path.home()),
        confining=here if confined else NOTHING,
        approved=[risk for risk in settings.approve if trusted or risk in (Risk.NONE, Risk.READ)],
        hook_files=frozenset() if trust is None else trust.hook_files,
    )
    network = load_settings({}, workspace=folder, trusted=trusted).network
    return replace(context, tainted=tainted, open_hosts=network.allow, denied_hosts=network.deny)


def judge_access(access: Access, context: PolicyContext) -> Decision:
    """Decide about one access, as the tool that usually wants it would be; nothing is run."""
    return decide(_spec(access), {}, (access,), context)


def explain_access(access: Access, context: PolicyContext) -> Explained:
    """Say why one access would be decided as it would be, and what would change that; nothing is run."""
    spec = _spec(access)
    decision = decide(spec, {}, (access,), context)
    words = words_of_decision(decision)
    asked, shell_class = "", ""
    further = words.further
    not_given: NotGiven = {}
    match access:
        case RunCommand(command=asked, cwd=cwd):
            judged = classify_command(asked, cwd, context)
            shell_class = judged.command_class.value
            outside = any(right.right is Right.UNSANDBOXED for right in decision.grants)
            named = [host for part in judged.parts for host in part.trace.hosts]
            refused = [host for host in dict.fromkeys(named) if matches_host(host, context.denied_hosts)]
            if decision.verdict is not Verdict.DENY:
                further += tuple(f"the setting network.deny names {host}: no connection to it" for host in refused)
            not_given = {} if outside or decision.confinement is None else paths_not_given(judged.every, context)
        case ReadPath(path=asked) | WritePath(path=asked) | FetchUrl(url=asked):
            pass
        case _:
            assert_never(access)
    return Explained(
        asked=asked,
        mode=context.mode,
        trusted=context.trusted,
        shell_class=shell_class,
        verdict=decision.verdict,
        risk=decision.risk,
        why=words.headline,
        further=further,
        confinement=decision.confinement,
        grants=decision.grants,
        denied_hosts=context.denied_hosts,
        not_given=tuple(f"{verb} {path} ({why})" for (verb, path), why in not_given.items()),
        asks_when_used=decision.asks_when_used,
        parts=decision.parts,
        changes=tuple(_changes(access, spec, decision, context)),
    )


def _spec(access: Access) -> ToolSpec:
    match access:
        case RunCommand():
            return _SPECS[EXECUTE_COMMAND.name]
        case WritePath():
            return _SPECS[WRITE_TO_FILE.name]
        case FetchUrl():
            return _SPECS[WEB_FETCH.name]
        case ReadPath():
            return _SPECS[READ_FILE.name]
        case _:
            assert_never(access)


def _changes(access: Access, spec: ToolSpec, decision: Decision, context: PolicyContext) -> Iterator[_Change]:
    for what, other in _alternatives(decision, context):
        verdict = decide(spec, {}, (access,), other).verdict
        if verdict is not decision.verdict:
            yield _Change(what=what, verdict=verdict)
    offered = [with_examples(rule) for rule in suggest_rules(decision, spec, (access,), context)]
    if offered and None not in offered:
        text = "\n".join(render_rule(rule) for rule in offered if rule is not None)
        yield _Change(what="a rule of your own", verdict=Verdict.ALLOW, rule=text)


def _alternatives(decision: Decision, context: PolicyContext) -> Iterator[tuple[str, PolicyContext]]:
    """Change one thing at a time."""
    if not context.trusted:
        yield "trusting the folder (`treadle trust`)", replace(context, trusted=True)
    for mode in Mode:
        if mode is not context.mode:
            yield f"mode {mode}", replace(context, mode=mode)
    if not context.confines:
        yield "a system that can confine commands", replace(context, confines=True)
    if context.tainted:
        yield "a new turn in which no text from outside was read", replace(context, tainted=False)
    if context.rules.problems:
        yield "fixing the broken rule file", replace(context, rules=replace(context.rules, problems=()))
    for rule in _speaking(decision, context):
        others = tuple(one for one in context.rules.rules if one is not rule)
        what = f"without the rule {rule.id} ({rule.source})"
        yield what, replace(context, rules=replace(context.rules, rules=others))


def _speaking(decision: Decision, context: PolicyContext) -> Iterator[Rule]:
    sources = {reason.source for reason in decision.reasons if reason.source}
    yield from (rule for rule in context.rules.rules if rule.source in sources)


def explanation_lines(explained: Explained) -> Iterator[str]:
    """Write an explanation for a person."""
    kind = f"{explained.shell_class}, " if explained.shell_class else ""
    folder = "trusted" if explained.trusted else "untrusted"
    yield f"{explained.verdict}  ({kind}risk {explained.risk}, mode {explained.mode}, {folder} folder)"
    yield from (visible(line) for line in (explained.why, *explained.further))
    if explained.confinement is not None:
        then = "it runs" if explained.verdict is Verdict.ALLOW else "after a yes it runs"
        yield f"{then} {_RUNS_IN[explained.confinement]}"
    for given in granting(explained.grants, denied_hosts=explained.denied_hosts):
        allowed = explained.verdict is Verdict.ALLOW
        yield visible(given.text.replace("approving also lets it", "it may also") if allowed else given.text)
    for refused in explained.not_given:
        yield visible(f"no right lets it {refused}")
    for right in explained.asks_when_used:
        yield visible(f"asks when it connects: {right.target or 'for each host that it looks up'}")
    for part in explained.parts:
        yield visible(f"  {part.text}: {part.verdict}")
        for reason in part.reasons:
            source = f"  [{reason.source}]" if reason.source else ""
            yield visible(f"    {reason.rule}: {reason.text}{source}")
    yield "what would change it:" if explained.changes else "what would change it: nothing by itself"
    for change in explained.changes:
        yield visible(f"  {change.what}: {change.verdict}")
        yield from (visible(f"    {line}") for line in change.rule.splitlines())


def path_access(path: str, op: str) -> Access:
    """Name what is done with a path: `list`, `read` or `write`."""
    return WritePath(path=path) if op == "write" else ReadPath(path=path, listing=op == "list")
