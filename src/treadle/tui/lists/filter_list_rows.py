"""The models, the sessions and the turns of one as rows of a picker."""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from treadle.door.commands import ListedTurn
from treadle.door.known_models import OfferedModel
from treadle.door.past import ListedSession, SessionState
from treadle.present.escape import exact_line
from treadle.present.words import age, counted, tokens
from treadle.tui.lists.filter_list import Picker, PickerRow, Shape
from treadle.tui.session.greeting import short_path

MODELS = Picker(
    title="Model",
    shape=Shape(wide=0, right=frozenset({2, 3}), dropped=(3, 2, 1)),
    empty="No model is known.",
    keys=("↑↓ enter this session", "←→ thinking", "ctrl-d default", "ctrl-a all", "esc close"),
)

SESSIONS = Picker(
    title="Resume",
    shape=Shape(wide=1, right=frozenset({3, 5}), dropped=(4, 3, 5, 2)),
    empty="No other session in this folder yet. Ctrl-A shows all folders.",
    keys=("↑↓ enter resume", "ctrl-a all folders", "esc close"),
)

_NAMED_FILES = 8
"""Files of a turn that are named."""

_GOING_ON = (SessionState.WORKING, SessionState.WAITING)

TURNS = {
    "rewind": Picker(
        title="Go back to before",
        shape=Shape(wide=1, right=frozenset({0}), dropped=(2,)),
        empty="There is no message to go back to.",
        keys=("↑↓ enter preview", "esc close"),
    ),
    "fork": Picker(
        title="Copy up to",
        shape=Shape(wide=1, right=frozenset({0}), dropped=(2,)),
        empty="There is nothing to copy.",
        keys=("↑↓ enter copy the session", "esc close"),
    ),
}
"""By command."""


def turn_rows(turns: Sequence[ListedTurn]) -> Iterator[PickerRow]:
    """Give a row for each turn with what it left in the files, the last one first."""
    for turn in reversed(turns):
        asked, files = exact_line(turn.asked), turn.files or ()
        names = [f"{exact_line(one.path)} +{one.added} -{one.removed}" for one in files[:_NAMED_FILES]]
        below = ", ".join(names) if len(files) > 1 else ""
        yield PickerRow(
            id=str(turn.number),
            columns=(str(turn.number), asked, _changed(turn)),
            search=f"{turn.number} {asked} {' '.join(names)}".casefold(),
            below=f"Its files cannot be brought back. {exact_line(turn.flaw)}" if turn.flaw else below,
        )


def _changed(turn: ListedTurn) -> str:
    """Sum up what a turn left in the files: `cart.py +3 -1`, or how many files."""
    if turn.files is None:
        return "files not known"
    least = "" if turn.exact else "at least "
    match turn.files:
        case ():
            return ""
        case (one,):
            return f"{least}{exact_line(PurePath(one.path).name)} +{one.added} -{one.removed}"
        case many:
            sums = f"+{sum(one.added for one in many)} -{sum(one.removed for one in many)}"
            return f"{least}{len(many)} files {sums}"


def model_rows(models: Sequence[OfferedModel], now: str) -> Iterator[PickerRow]:
    """Give a row for each model, the one that is used `now` marked, also where the list does not have it."""
    if all(model.ref != now for model in models):
        yield _model(OfferedModel(ref=now, usable=True), now)
    for model in models:
        yield _model(model, now)


def _model(model: OfferedModel, now: str) -> PickerRow:
    provider, _, name = model.ref.partition("/")
    key = "in use" if model.ref == now else "no key" if not model.usable else "key" if model.key else "ready"
    title = exact_line(model.title or provider)
    return PickerRow(
        id=model.ref,
        columns=(
            exact_line(name),
            title,
            "" if model.window is None else tokens(model.window),
            _prices(model.price_in, model.price_out),
            key,
        ),
        search=f"{model.ref} {model.title} {key}".casefold(),
        quiet=not model.usable,
    )


def _prices(cost_in: float | None, cost_out: float | None) -> str:
    if cost_in is None or cost_out is None:
        return ""
    return f"${cost_in:g} / ${cost_out:g}" if cost_in or cost_out else "free"


def session_rows(
    sessions: Sequence[ListedSession], now: float, *, folders: bool, without: str = ""
) -> Iterator[PickerRow]:
    """Give a row for each session but one; `now` is in seconds since 1970, with `folders` each says where it was."""
    for session in sessions:
        if session.id == without:
            continue
        title, first = exact_line(session.title), exact_line(session.first)
        where = exact_line(short_path(session.workspace))
        below = [where] if folders else []
        if first and first != title:
            below.append(first)
        yield PickerRow(
            id=session.id,
            columns=(
                age(now - session.updated_at / 1000),
                title,
                _state(session),
                "" if session.steps is None else counted(session.steps, "step"),
                f"+{session.added} -{session.removed}" if session.added or session.removed else "",
                "" if session.steps is None else session.spending.words,
            ),
            search=f"{title} {first} {session.id} {_state(session)} {where if folders else ''}".casefold(),
            below=" · ".join(below),
            flaw=_flaw(session),
        )


def _state(session: ListedSession) -> str:
    """Say how a session is that is not just done; one that is open is joined when it is chosen."""
    if session.open:
        return session.state if session.state in _GOING_ON else "open"
    return session.state if session.state is SessionState.STOPPED and session.steps is not None else ""


def _flaw(session: ListedSession) -> str:
    if not Path(session.workspace).is_dir():
        return f"Its folder is gone: {exact_line(short_path(session.workspace))}"
    return ""
