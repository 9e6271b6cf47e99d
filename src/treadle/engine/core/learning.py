"""What a turn learns from the outcome of a call, and of subagents."""

from treadle.context.left_out import Ran, remember_run
from treadle.engine.core.budgets import bill_child
from treadle.engine.core.machine_effects import Notify, Transition
from treadle.engine.core.state import CallState, ChildState, State, replace
from treadle.protocol.checkpoints import MOST_NAMED, CheckpointTaken
from treadle.protocol.children import ChildEnded, ChildStarted
from treadle.protocol.messages import Text
from treadle.protocol.notifications import child_changed
from treadle.protocol.tools import OUTSIDE, CallResult, FetchUrl, FileChange, Flow, Outcome, RunCommand, ToolKind

_RAN = (Outcome.OK, Outcome.FAILED, Outcome.INTERRUPTED)


def learn_from(state: State, call: CallState, result: CallResult) -> State:
    """Take note of what a call changed, ran, and read from outside."""
    if state.turn is not None and result.changes:
        changes = _merge(state.turn.changes, result.changes)
        state = replace(state, turn=replace(state.turn, changes=changes, worked=True))
        state = replace(state, changed=_merge(state.changed, result.changes))
    if state.turn is not None and ran_something(call, result):
        state = replace(state, turn=replace(state.turn, worked=True), runs=with_run(state, call, result))
    if state.turn is not None and _from_outside(call, result):
        urls = (access.url for access in call.accesses if isinstance(access, FetchUrl))
        fetched = tuple(dict.fromkeys((*state.turn.fetched, *urls)))
        state = replace(state, turn=replace(state.turn, tainted=True, fetched=fetched))
    return state


def learn_own(state: State, taken: CheckpointTaken) -> State:
    """Take what a checkpoint says of the session's own work in the place of what calls have reported of these files."""
    if state.turn is not None and taken.turn is not None:
        state = replace(state, turn=replace(state.turn, changes=own_now(state.turn.changes, taken.turn)))
    elif taken.turn is not None and (taken.step > state.step or state.hooked):  # hooks, before the turn begins
        state = replace(state, hooked=own_now(state.hooked, taken.turn))
    if taken.unseen and taken.moment.may_end_work:
        state = replace(state, unseen=tuple(dict.fromkeys((*state.unseen, *taken.unseen)))[:MOST_NAMED])
    if taken.own is None:
        return state
    state = replace(state, changed=own_now(state.changed, taken.own))
    # One that had to leave files out is not all there is to know: the next one says it again.
    return state if len(taken.own) >= MOST_NAMED else replace(state, known_at=taken.n)


def own_now(known: tuple[FileChange, ...], now: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    """Put what is known now of files in the place of what was known; nothing is left of what has no hash."""
    merged = {change.path: change for change in (*known, *now)}
    return tuple(change for change in merged.values() if change.before or change.after)


def ran_something(call: CallState, result: CallResult) -> bool:
    """Whether a call ran a command."""
    return call.traits.kind is ToolKind.EXECUTE and call.traits.flow is Flow.RUN and result.outcome in _RAN


def with_run(state: State, call: CallState, result: CallResult) -> tuple[Ran, ...]:
    """Give the commands that ran, with this one."""
    command = next((access.command for access in call.accesses if isinstance(access, RunCommand)), None)
    if command is None:
        return state.runs
    said = "".join(block.text for block in result.content if isinstance(block, Text))
    return remember_run(state.runs, Ran(command=command, said=said, full_output=result.full_output))


def _from_outside(call: CallState, result: CallResult) -> bool:
    """Whether the model reads text with this result, or can read it from now on, that nobody on this machine wrote."""
    brought = call.decision is not None and call.decision.outside and result.outcome in _RAN
    return brought or result.origin in OUTSIDE


def _merge(known: tuple[FileChange, ...], new: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    merged = {change.path: change for change in known}
    for change in new:
        earlier = merged.get(change.path)
        if earlier is not None and earlier.after == change.after:
            continue  # a checkpoint that was taken since it was made has counted it
        if earlier is not None:
            change = replace(  # noqa: PLW2901 - the merged change stands for both
                change,
                before=earlier.before,
                added=change.added + earlier.added,
                removed=change.removed + earlier.removed,
            )
        merged[change.path] = change
    return tuple(merged.values())


def subagent_began(state: State, data: ChildStarted) -> Transition:
    """Take note of a subagent that begins."""
    children = (*state.children, ChildState(started=data))
    state = replace(state, children=children, subagents=state.subagents + 1)
    return state, [Notify(notification=child_changed(data))]


def subagent_ended(state: State, data: ChildEnded) -> Transition:
    """Take note of the end of a subagent; its call reads what came of it, in the order of its tasks."""
    child = next(one for one in state.children if one.started.session_id == data.session_id)
    children = tuple(
        replace(one, ended=data) if one is child else one
        for one in state.children
        if one is not child or not child.started.background
    )
    merging = tuple(one for one in state.merging if one != data.session_id)
    state = bill_child(replace(state, children=children, merging=merging), data)
    return state, [Notify(notification=child_changed(child.started, data))]


def awaits_subagents(state: State) -> bool:
    """Whether a subagent works that no call waits for, and whose end wakes the session."""
    return any(one.started.background and one.ended is None and not one.left for one in state.children)


def forget_subagents(state: State, call_id: str) -> State:
    """Forget the subagents of a call that is over, but those that still work."""
    if not state.children:
        return state
    kept = (one for one in state.children if one.ended is None or one.started.call_id != call_id)
    return replace(state, children=tuple(kept))
