"""Replaying a session of the store: its log is made anew from its inputs, with no network and no tool run."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from treadle.app.compose import session_log, tool_specs
from treadle.app.config.layers import load_settings
from treadle.app.config.sections import Settings
from treadle.app.models.model_choice import Models
from treadle.app.session.own_tools import own_tools
from treadle.context.focus import with_progress
from treadle.engine.replay.difference import LogDifference, Recorded
from treadle.engine.replay.strict import Conditions, ReplayResult, read_rows, replay_strictly
from treadle.present.words import counted
from treadle.protocol.base import Record, StoredEvent
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ModelSpec
from treadle.protocol.tools import ToolSpec
from treadle.store.kept_tape import chained, tape_of


class ReplayReport(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What came of a replay. `made` events are the machine's own, of the `checked` ones parts were made anew.

    `chain` is the hash of the rebuilt log; `choices_taken` counts compactions whose choice today's settings would not
    make.
    """

    session: str
    events: int
    made: int
    checked: int
    choices_taken: int
    chain: str
    difference: LogDifference | None = None

    @property
    def same(self) -> bool:
        """Whether the rebuilt log is the recorded one."""
        return self.difference is None


def conditions_now(settings: Settings | None = None) -> Conditions:
    """Give what a session would run under today; raises `ConfigError` for settings that cannot be read."""
    settings = load_settings({}) if settings is None else settings
    models = Models(settings)

    def spec(ref: str) -> ModelSpec:
        try:
            return models.spec(ref)
        except ConfigError:  # its provider is not known any more
            return ModelSpec(provider="", name=ref)

    built_in = tool_specs()
    specs = (*built_in, *(tool.spec for tool in own_tools([one.name for one in built_in]).tools))
    return Conditions(model=spec, compaction=settings.context.compaction, tools=declared(settings, specs))


def declared(settings: Settings, specs: Sequence[ToolSpec]) -> dict[str, ToolSpec]:
    """Give declarations by name, with the checklist where any call may carry it."""
    return {one.name: with_progress(one) if settings.checklist else one for one in specs}


def session_tape(prefix: str) -> tuple[str, list[StoredEvent], list[bytes]]:
    """Read a session's id, rows and their hashes; raises `SessionError`, `StoreError`."""
    with session_log(prefix) as (row, store):
        rows = list(tape_of(store, row.id))
    return row.id, [stored for stored, _ in rows], [chain for _, chain in rows]


def replay_rows(
    session_id: str, rows: Sequence[StoredEvent], chains: Sequence[bytes] = (), conditions: Conditions | None = None
) -> ReplayReport:
    """Replay rows strictly; the hashes of the rebuilt ones must be those recorded, where there are any."""
    log = read_rows(rows)
    replayed = replay_strictly(log, conditions_now() if conditions is None else conditions)
    rebuilt = list(chained(session_id, iter(rows)))
    broken = _broken_chain(log, rebuilt, chains)
    difference = replayed.difference or broken
    if difference is not None and (not difference.why or (broken is not None and broken.seq <= difference.seq)):
        difference = replace(difference, why=_reason(broken, hashed=bool(chains)))
    return _report(session_id, replayed, rebuilt[-1] if rebuilt else b"", difference)


def _broken_chain(log: Sequence[Recorded], rebuilt: Sequence[bytes], chains: Sequence[bytes]) -> LogDifference | None:
    for number, (one, other) in enumerate(zip(chains, rebuilt, strict=bool(chains)), start=1):
        if one != other:
            event = next(one.event for one in log if one.event.seq == number)
            return LogDifference(
                seq=number,
                type=str(event.data.__struct_config__.tag),
                path="chain",
                recorded=one.hex(),
                rebuilt=other.hex(),
            )
    return None


def _reason(broken: LogDifference | None, *, hashed: bool) -> str:
    """Say why a row is not what is made anew, as far as the hashes tell."""
    if broken is not None:
        return f"The log was changed after it was written: from event {broken.seq} on its hashes are wrong."
    right = "The hashes of the log are right, so it was written like this: " * hashed
    return f"{right}by a Treadle with other rules, other tools or under other settings."


def _report(session_id: str, replayed: ReplayResult, chain: bytes, difference: LogDifference | None) -> ReplayReport:
    return ReplayReport(
        session=session_id,
        events=replayed.events,
        made=replayed.made,
        checked=replayed.derived,
        choices_taken=replayed.taken,
        chain=chain.hex(),
        difference=difference,
    )


def report_lines(report: ReplayReport) -> Iterator[str]:
    """Put a report into words."""
    if report.difference is not None:
        yield from difference_lines(report.difference)
        return
    taken = f", {counted(report.choices_taken, 'choice')} of compactions taken as recorded" * bool(report.choices_taken)
    yield (
        f"The same: {counted(report.events, 'event')}, {report.made:,} of them said by the machine and "
        f"{report.checked:,} made from replies and messages{taken}; {report.chain[:16]}"
    )


def difference_lines(difference: LogDifference) -> Iterator[str]:
    """Name the first difference."""
    where = f", {difference.path}" if difference.path else ""
    yield f"Differs at event {difference.seq} ({difference.type}){where}."
    yield f"  recorded: {difference.recorded}"
    yield f"  rebuilt:  {difference.rebuilt}"
    if difference.why:
        yield f"  why: {difference.why}"
