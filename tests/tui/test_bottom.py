"""The rows around the input, as they are drawn at three widths."""

import pytest
from msgspec.structs import replace
from prompt_toolkit.utils import get_cwidth

from tests.tui.asked import RUN
from tests.tui.snapshots import same_as_before
from treadle.protocol.messages import Text
from treadle.protocol.models import ErrorKind, ModelError
from treadle.protocol.notifications import CallChanged, CallStatus, Phase, QueuedPrompt
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Preview, ToolCall, ToolKind
from treadle.tui.bottom import Around, above_rule, clock_runs, placeholder, rule, status
from treadle.tui.calls import OpenCall
from treadle.tui.lines import Line, text_of
from treadle.tui.theme import ASCII_SIGNS, Signs
from treadle.tui.view import Retry, Spending, View

TODO = "- [x] Look\n- [x] Think\n- [ ] Fix the total\n- [ ] Test the discount\n"
SLOW = CallChanged(
    call=ToolCall(id="c", name="execute_command", arguments={}),
    kind=ToolKind.EXECUTE,
    status=CallStatus.RUNNING,
    preview=Preview(title="Run", text="./slow.sh 16"),
)


def waiting(*texts: str) -> tuple[QueuedPrompt, ...]:
    return tuple(QueuedPrompt(id=text, content=(Text(text=text),)) for text in texts)


IDLE = View(model="anthropic/claude-sonnet-4-5", window=200_000)
WORKING = View(
    phase=Phase.EXECUTING_TOOL,
    model="anthropic/claude-sonnet-4-5",
    tokens=4_230,
    window=200_000,
    busy=True,
    started=100.0,
    since=150.0,
    received=205,
    step=4,
    spending=Spending(ended=0.02),
    queue=waiting("also update the changelog", "and the README"),
    calls=(OpenCall(changed=SLOW, running=152.0),),
    checklist=TODO,
    progress="2/4 · Fix the total",
    added=3,
    removed=1,
)
ERROR = ModelError(kind=ErrorKind.OVERLOADED, message="Too busy.")
STATES = {
    "idle": (IDLE, Around(hint="? for keys", branch="master")),
    "working": (WORKING, Around(now=164.0, hint="esc to stop", branch="master", frame=2)),
    "to-do": (WORKING, Around(now=164.0, unfolded=True, steered=frozenset({"and the README"}))),
    "retry": (replace(WORKING, calls=(), retry=Retry(ERROR, 168.0, 2)), Around(now=164.0, hint="esc to stop")),
    "asked": (
        replace(WORKING, questions=(RUN,), asking=160.0, phase=Phase.AWAITING_USER_CONFIRMATION),
        Around(now=164.0, hint="tab to answer"),
    ),
    "held": (replace(IDLE, tokens=151_000), Around(held=("also update the changelog", "b", "c", "d"))),
    "full": (replace(IDLE, tokens=190_000, mode=Mode.FULL), Around(flash="Mode is now full.")),
}


def picture(view: View, around: Around, width: int, signs: Signs | None = None) -> str:
    signs = signs or Signs()
    rows: list[Line] = [*above_rule(view, around, width, signs), rule(view, width, signs)]
    rows += [(("", f"› {placeholder(view, around)}"[:width]),), status(view, around, width, signs)]
    return "".join(f"{text_of(row)}\n" for row in rows)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_every_state_has_its_picture(width: int) -> None:
    same_as_before(
        f"bottom-{width}",
        "\n".join(f"== {name}\n{picture(view, around, width)}" for name, (view, around) in STATES.items()),
    )


def test_nothing_is_wider_than_the_screen() -> None:
    for width in range(20, 130):
        for view, around in STATES.values():
            rows = picture(view, around, width).split("\n")
            assert max(map(get_cwidth, rows)) <= width, (width, rows)


def test_without_utf_8_the_signs_are_ascii() -> None:
    shown = picture(*STATES["working"], 80, ASCII_SIGNS).replace("›", "").replace("⠹", "").replace("·", "")
    assert shown.isascii()


@pytest.mark.parametrize("phase", [Phase.WAITING_FOR_EVENT, Phase.AWAITING_USER_CONFIRMATION])
def test_no_clock_runs_while_a_person_is_awaited(phase: Phase) -> None:
    assert clock_runs(WORKING)
    assert not clock_runs(replace(WORKING, phase=phase))


def test_a_call_counts_its_own_seconds_and_the_turn_leaves_out_what_the_person_took() -> None:
    view = replace(WORKING, waited=30.0)
    shown = text_of(above_rule(view, Around(now=164.0), 80, Signs())[0])
    assert "Running ./slow.sh 16 · 12 s · turn 34 s" in shown


def test_the_context_warns_before_it_is_full() -> None:
    views = [replace(IDLE, tokens=tokens) for tokens in (10_000, 151_000, 190_000)]
    roles = [{text: role for role, text in status(view, Around(), 80, Signs())} for view in views]
    assert [roles[0]["10k of 200k (5%)"], roles[1]["151k of 200k (76%)"], roles[2]["190k of 200k (95%)"]] == [
        "dim",
        "warn",
        "danger",
    ]
