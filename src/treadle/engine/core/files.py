"""Which checkpoints of the files are taken, and how the user goes back to one."""

from treadle.engine.core import goal, learning, texts
from treadle.engine.core.machine_effects import Effect, Notify, RestoreCheckpoint, TakeCheckpoint, Transition
from treadle.engine.core.state import CallState, FilesState, Guard, Idle, State, replace, with_note
from treadle.protocol.checkpoints import CheckpointTaken, Moment, Restore, Restored, Rewound
from treadle.protocol.children import ChildMerges
from treadle.protocol.notifications import CallStatus, FilesRestored, Notice, OwnWorkChanged
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Confinement, Flow, RunCommand, ToolKind, WritePath

_EDITS = (ToolKind.EDIT, ToolKind.DELETE, ToolKind.MOVE)
_MAY_CHANGE = (*_EDITS, ToolKind.EXECUTE, ToolKind.OTHER)


def _with(state: State, files: FilesState) -> State:
    return replace(state, files=files)


def expect_change(state: State, call: CallState) -> Transition:
    """Begin with the first checkpoint, which takes longest, as soon as the model writes an edit.

    The one right before the change then finds little to do, and has what the user did meanwhile.
    """
    files = state.files
    if call.traits.kind not in _EDITS or state.mode is Mode.PLAN or files.taken or files.covered:
        return state, []
    return _before(state, replace(files, covered=-state.step))


def may_change(call: CallState, confinement: Confinement | None) -> bool:
    """Whether running a call so may change files of the workspace."""
    if call.keep:
        return True
    if call.pure or call.traits.apart or call.traits.flow not in (Flow.RUN, Flow.END_TURN):
        return False
    if confinement is Confinement.LOOK:
        return False
    touches = any(isinstance(access, WritePath | RunCommand) for access in call.accesses)
    return touches or (call.traits.kind in _MAY_CHANGE and call.traits.flow is Flow.RUN)


def _confinement(call: CallState) -> Confinement | None:
    if call.rights is not None:
        return call.rights.confinement
    return None if call.decision is None else call.decision.confinement


def before_change(state: State) -> Transition:
    """Keep the files before a call may change them; again where the step's changes so far were kept meanwhile."""
    effects: list[Effect] = []
    if state.files.covered != state.step or state.files.changing != state.step:
        state, effects = _before(state, replace(state.files, covered=state.step))
    return _with(state, replace(state.files, changing=state.step)), effects


def merges(state: State, data: ChildMerges) -> Transition:
    """Keep the files as they are right before and after a subagent's changes come in: around them others may work."""
    if data.over:
        return replace(state, merging=tuple(one for one in state.merging if one != data.session_id)), []
    moment = Moment.AFTER if state.files.changing > 0 else Moment.BEFORE
    files = replace(state.files, covered=state.step, changing=state.step)
    state = replace(state, files=files, merging=(*state.merging, data.session_id))
    return state, [TakeCheckpoint(step=state.step, moment=moment)]


def _before(state: State, files: FilesState) -> Transition:
    return _with(state, files), [TakeCheckpoint(step=state.step, moment=Moment.BEFORE)]


def after_change(state: State) -> Transition:
    """Keep the files after a step that may have changed them, and within it before the time of somebody else begins."""
    changing = state.files.changing
    if changing <= 0 or state.merging or (state.turn is not None and changing == state.step and not _others_act(state)):
        return state, []
    # Until it is taken, a restart knows by the sign that it is still to be.
    state = _with(state, replace(state.files, changing=-changing))
    return state, [TakeCheckpoint(step=changing, moment=Moment.AFTER)]


def _others_act(state: State) -> bool:
    """Whether nothing of the session changes files now, as long as a person or a throw-away copy takes, or any more."""
    going = [call for call in state.calls if call.status in (CallStatus.STARTING, CallStatus.RUNNING)]
    if any(may_change(call, _confinement(call)) for call in going):
        return False
    others = (
        one.flow is Flow.END_TURN or one.kind is ToolKind.EXECUTE or one.apart for one in (c.traits for c in going)
    )
    return bool(state.questions) or any(others)


def go_on_after_restart(state: State) -> Transition:
    """Go on after a restart with what was not finished."""
    step, restoring = abs(state.files.changing), state.files.restoring
    effects: list[Effect] = []
    # Whatever was kept before, others may have worked since.
    state = _with(replace(state, merging=()), replace(state.files, covered=0, changing=-step))
    if step:
        effects.append(TakeCheckpoint(step=step, moment=Moment.FOUND))
    if restoring is not None:
        effects.append(RestoreCheckpoint(wanted=restoring))
    return state, effects


def taken(state: State, data: CheckpointTaken) -> Transition:
    """Take note of a checkpoint."""
    files = replace(state.files, taken=data.n, trees=data.trees)
    # What may have changed files since it was wanted is not in it.
    if data.moment.may_end_work and -data.step <= files.changing < 0:
        files = replace(files, changing=0)
    state = learning.learn_own(state, data)
    told: list[Effect] = []
    if data.total is not None:
        told.append(Notify(notification=OwnWorkChanged(total=data.total, restored=data.recounted)))
    return _with(state, files), [*told, *([Notify(notification=Notice(text=data.notice))] if data.notice else [])]


def changes_are_known(state: State) -> bool:
    """Whether the last checkpoint said all that the session's own work is, and nothing changed files since."""
    return state.files.changing == 0 and 0 < state.known_at == state.files.taken


def restore(state: State, data: Restore) -> Transition:
    """Begin to bring back what the user wants."""
    return _with(state, replace(state.files, restoring=data)), [RestoreCheckpoint(wanted=data)]


def restored(state: State, data: Restored) -> Transition:
    """Tell the model and the user what was restored."""
    wanted = state.files.restoring
    back = wanted is not None and wanted.conversation
    state = _with(state, replace(state.files, restoring=None))
    if data.written or data.removed:
        state = with_note(state, texts.files_restored(data))
    return state, [Notify(notification=FilesRestored(restored=data, conversation=back))]


def rewound(state: State, data: Rewound, past: State) -> Transition:
    """Take the conversation back to what it was; what the user said of the session, and what it cost, stays.

    Calls that were open then have a result; numbers go on, so that each still names one thing only.
    """
    told = {one.started for one in past.children}
    working = [one for one in state.children if one.ended is None]
    back = replace(
        past,
        session_id=state.session_id,
        seq=state.seq,
        mode=state.mode,
        model=state.model,
        limits=state.limits,
        user_present=state.user_present,
        activity=Idle(),
        step=max(state.step, past.step),
        turns=max(state.turns, past.turns),
        turn=None,
        reply=None,
        hint="",
        calls=(),
        unread=(*past.unread, *(call.call.id for call in past.calls)),
        questions=state.questions,  # of commands in the background, as no turn goes on
        children=tuple(replace(one, left=one.started not in told) for one in working),
        queue=state.queue,
        held=state.held,
        allowances=state.allowances,
        money=replace(state.money, terms=None),
        guard=Guard(),
        files=state.files,
        space=replace(past.space, wanted=None, given="", reviewed=False, pins=state.space.pins),
        cancelling=False,
        stopping=None,
        stopped_by="",
        merging=state.merging,
        asked=state.asked,
        since=state.since,
        asked_at=state.asked_at,
        made=state.made,
        unbilled=state.unbilled,
    )
    back, effects = goal.keep_goal(state, back)
    back = with_note(back, texts.back_in_conversation(files=data.files))
    if gone := _no_more_at_work(state, past):
        back = with_note(back, texts.works_no_more(gone))
    return back, effects


def _no_more_at_work(state: State, past: State) -> list[str]:
    """Name the subagents that the past counts on, and of which nothing comes: they ended, or an original has them."""
    comes = {one.started.session_id for one in state.children} | {one.source.id for one in (*state.queue, *state.held)}
    awaited = [one.started.session_id for one in past.children if one.started.background and not one.left]
    return [one for one in awaited if one not in comes]
