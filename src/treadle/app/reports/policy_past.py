"""What past sessions tell of the policy: which calls another policy would decide otherwise, and what was approved."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from treadle.app.compose import list_sessions, session_log, tool_specs
from treadle.app.config.layers import load_settings
from treadle.app.security.approvals import bound_to, write_rules
from treadle.app.security.confining import confining_here
from treadle.app.security.policy_files import usual_places
from treadle.app.session.commands.judging import policy_context
from treadle.app.session.files.roots import Roots
from treadle.engine.core.advance import advance
from treadle.engine.core.state import State
from treadle.policy.allowances import suggest_rules
from treadle.policy.decide import decide
from treadle.policy.decision_context import PolicyContext
from treadle.policy.rulefile import RuleFile, load_rules, render_rule, with_examples
from treadle.policy.rules import Rule, Ruleset, Scope
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.events import Answer, CallJudged, CallProposed, Event, SessionStarted, SetMode
from treadle.protocol.permissions import Decision, Mode, OptionKind, Reason, Standing, Verdict
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.tools import (
    Access,
    FetchUrl,
    ReadPath,
    RunCommand,
    ToolCall,
    ToolSpec,
    ToolTraits,
    WritePath,
)
from treadle.store.sqlite import SessionRow

_APPROVED = (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """A call of the past as it was judged. `mode` is that of the session then, `roots` its further folders."""

    session: str
    seq: int
    at: int
    workspace: str
    mode: Mode
    call: ToolCall
    traits: ToolTraits
    accesses: tuple[Access, ...]
    decision: Decision
    roots: tuple[str, ...] = ()


class ChangedDecision(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A call that would be decided otherwise; `why` and `reasons` are those of the new decision."""

    session: str
    seq: int
    tool: str
    what: str
    mode: Mode
    before: Verdict
    after: Verdict
    why: str
    reasons: tuple[Reason, ...]


class Replayed(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The sum of a replay; `gone` are workspaces that are no more, whose calls were judged by their names alone."""

    calls: int
    changed: int
    sessions: int
    gone: tuple[str, ...]


class Suggestion(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A rule that would have answered for the user. `last` is milliseconds since 1970, UTC."""

    id: str
    count: int
    last: int
    sessions: int
    toml: str


def judged_calls(row: SessionRow, events: Iterable[Event]) -> Iterator[PastCall]:
    """Find the calls of a session that were judged, in order."""
    mode = Mode.ASK
    roots: tuple[str, ...] = ()
    proposed: dict[str, CallProposed] = {}
    for event in events:
        match event.data:
            case SessionStarted(mode=mode, roots=roots):
                pass
            case SetMode(mode=mode):
                pass
            case CallProposed() as proposal:
                proposed[proposal.call.id] = proposal
            case CallJudged(call_id=call_id) as data if call_id in proposed:
                proposal = proposed[call_id]
                yield PastCall(
                    session=row.id,
                    seq=event.seq,
                    at=event.at,
                    workspace=row.workspace,
                    mode=mode,
                    call=proposal.call,
                    traits=proposal.traits,
                    accesses=data.accesses,
                    decision=data.decision,
                    roots=roots,
                )
            case _:
                pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """What to judge by instead: None and empty mean as it is now, and as the session was."""

    rules: Ruleset | None = None
    mode: Mode | None = None
    workspace: Path | None = None
    trusted: bool = True
    try_first: bool = True


@dataclass(slots=True)
class Replay:
    """Judges past calls anew. It runs nothing, and looks only at where paths lead."""

    alternative: Alternative
    home: str = field(default_factory=lambda: str(Path.home()))
    calls: int = 0
    sessions: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    _contexts: dict[tuple[str, tuple[str, ...], Mode], PolicyContext] = field(default_factory=dict)
    _specs: Mapping[str, ToolSpec] = field(default_factory=lambda: {spec.name: spec for spec in tool_specs()})

    def judge(self, past: PastCall) -> ChangedDecision | None:
        """Judge one call anew; gives it if the verdict is another one."""
        self.calls += 1
        self.sessions.add(past.session)
        root = str(self.alternative.workspace or past.workspace)
        if not Path(root).is_dir():
            self.gone.add(root)
        accesses = tuple(moved(access, past.workspace, root) for access in past.accesses)
        decision = decide(
            self.spec_of(past), past.call.arguments, accesses, self.context_of(root, past.mode, past.roots)
        )
        if decision.verdict is past.decision.verdict:
            return None
        return ChangedDecision(
            session=past.session,
            seq=past.seq,
            tool=past.call.name,
            what=what_of(past),
            mode=self.alternative.mode or past.mode,
            before=past.decision.verdict,
            after=decision.verdict,
            why=words_of_decision(decision).headline,
            reasons=decision.reasons,
        )

    def sum(self, changed: int) -> Replayed:
        """Sum up."""
        return Replayed(calls=self.calls, changed=changed, sessions=len(self.sessions), gone=tuple(sorted(self.gone)))

    def spec_of(self, past: PastCall) -> ToolSpec:
        """Give the declaration of a call's tool; of one that is no more, what the past decision knew of it."""
        known = self._specs.get(past.call.name)
        if known is not None:
            return known
        risk = past.decision.risk
        return ToolSpec(name=past.call.name, description="", parameters={}, traits=past.traits, risk=risk)

    def context_of(self, root: str, past: Mode, roots: tuple[str, ...] = ()) -> PolicyContext:
        """Give the surroundings of a call in a folder and further ones, in the mode asked for or else the past one."""
        mode = self.alternative.mode or past
        if (root, roots, mode) not in self._contexts:
            self._contexts[root, roots, mode] = policy_context(
                os.path.realpath(root),
                Standing(mode=mode),
                home=self.home,
                trusted=self.alternative.trusted,
                further=Roots(folders=roots, untrusted=() if self.alternative.trusted else roots),
                confining=confining_here(try_first=self.alternative.try_first),
                rules=self.alternative.rules,
            )
        return self._contexts[root, roots, mode]


def read_policy_file(file: Path) -> Ruleset:
    """Read one rule file to try it out; raises `ConfigError`."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("rules-broken", f"The rule file {file} cannot be read.", why=str(error)) from error
    found = load_rules([RuleFile(name=str(file), text=text, scope=Scope.USER)])
    if found.problems:
        raise ConfigError("rules-broken", f"The rule file {file} has a mistake.", why=found.problems[0])
    return found


def moved(access: Access, old: str, new: str) -> Access:
    """Name in another folder what an access named in the old one."""

    def path(text: str) -> str:
        inside = text == old or text.startswith(f"{old}/")
        return f"{new}{text[len(old) :]}" if inside else text

    match access:
        case ReadPath() | WritePath():
            return _with(access, path=path(access.path))
        case RunCommand():
            return _with(access, cwd=path(access.cwd))
        case FetchUrl():
            return access


def _with(record: _T, **values: str) -> _T:
    return msgspec.structs.replace(record, **values)  # type: ignore[type-var]


def what_of(past: PastCall) -> str:
    """Say in one line what a call was about."""
    parts = []
    for access in past.accesses:
        match access:
            case RunCommand(command=command):
                parts.append(command)
            case WritePath(path=path):
                parts.append(f"write {path}")
            case ReadPath(path=path):
                parts.append(f"read {path}")
            case FetchUrl(url=url, method=method):
                parts.append(f"{method} {url}")
    return "; ".join(parts) or past.call.name


def approved_calls(row: SessionRow, events: Sequence[Event]) -> Iterator[PastCall]:
    """Find the calls of a session that the user was asked about and said yes to, with what they were asked."""
    by_id = {past.call.id: past for past in judged_calls(row, events)}
    state = State()
    for event in events:
        data = event.data
        if isinstance(data, Answer) and data.option in _APPROVED and data.arguments is None:
            question = next((one for one in state.questions if one.id == data.question_id), None)
            past = by_id.get(question.call_id) if question is not None else None
            if past is not None and question is not None and question.decision is not None:
                yield replace(past, at=event.at, decision=question.decision, accesses=question.accesses)
        state, _ = advance(state, event)


Bind = Callable[[Sequence[Rule], str], Sequence[Rule]]


def suggestions(calls: Iterable[PastCall], replay: Replay, bind: Bind) -> list[tuple[Rule, Suggestion]]:
    """Find the narrowest rules under which the approved calls would not have asked; the most used first.

    What the present rules allow by now is left out.
    """
    seen: dict[Rule, list[PastCall]] = {}
    for past in calls:
        context, spec = replay.context_of(past.workspace, Mode.ASK, past.roots), replay.spec_of(past)
        decision = decide(spec, past.call.arguments, past.accesses, context)
        for rule in bind(suggest_rules(decision, spec, past.accesses, context), past.workspace):
            seen.setdefault(rule, []).append(past)
    found = []
    for rule, uses in seen.items():
        written = with_examples(rule)
        if written is None:
            continue
        sessions, last = len({use.session for use in uses}), max(use.at for use in uses)
        times = f"you approved this {len(uses)} time{'s' if len(uses) > 1 else ''}"
        one = Suggestion(
            id=rule.id, count=len(uses), last=last, sessions=sessions, toml=render_rule(written, note=times)
        )
        found.append((rule, one))
    return sorted(found, key=lambda pair: (-pair[1].count, -pair[1].last, pair[0].id))


def past_calls(
    prefixes: Iterable[str], calls: "Callable[[SessionRow, Sequence[Event]], Iterable[PastCall]]"
) -> Iterator[PastCall]:
    """Read the calls of the sessions named, or of all; the oldest session first. Raises `SessionError`."""
    names = list(prefixes) or [row.id for row in reversed(list_sessions(None))]
    for name in names:
        with session_log(name) as (row, store):
            yield from calls(row, list(store.read(row.id)))


def found_suggestions(least: int = 1) -> list[tuple[Rule, Suggestion]]:
    """Suggest rules from what was approved in all sessions, `least` times or more."""
    replay = Replay(Alternative(try_first=load_settings({}).try_first))
    found = suggestions(past_calls((), approved_calls), replay, bound_to)
    return [pair for pair in found if pair[1].count >= least]


def add_suggestions(offered: Sequence[tuple[Rule, Suggestion]], ids: Sequence[str]) -> tuple[tuple[str, ...], Path]:
    """Add suggested rules to the user's own, all of them without ids; gives the ids of those that are new.

    Raises `ConfigError`, also for an id that is not suggested.
    """
    known = {one.id: rule for rule, one in offered}
    unknown = [one for one in ids if one not in known]
    if unknown:
        raise ConfigError(
            "rule-unknown",
            f"No rule with the id {unknown[0]!r} is suggested.",
            why="It is already in force, or nothing that you approved leads to it.",
            fix="`treadle policy suggest` lists them.",
        )
    file = usual_places(None).user / "policy.toml"
    rules = [known[one] for one in ids or known]
    return write_rules(rules, file, note="from what you approved in past sessions"), file
