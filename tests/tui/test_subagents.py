"""The subagents of a session in the terminal: a line for each that nobody waits for, and the list of all."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from treadle.app.reports.known_sessions import ListedSession, SessionState
from treadle.present.items import CallItem, Placed
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.children import ChildOutcome
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.notifications import CallChanged, CallStatus, ChildChanged, MessageDone
from treadle.protocol.tools import Flow, ToolCall, ToolKind
from treadle.protocol.usage import Usage
from treadle.tui.lists import subagent_picker
from treadle.tui.lists.filter_list import Pick, picker_lines
from treadle.tui.lists.subagent_picker import SubagentPicker
from treadle.tui.paint.lines import Line, line_text
from treadle.tui.paint.theme import Signs
from treadle.tui.session.bottom import BottomState, above_rule

SIGNS = Signs()


def child(name: str, call: str = "c", doing: str = "Read a.py") -> ChildChanged:
    return ChildChanged(session_id=name, agent="explore", task=f"Look {name}.", call_id=call, doing=doing, steps=1)


def running(call: str) -> Placed:
    changed = CallChanged(
        call=ToolCall(id=call, name="use_subagents", arguments={}),
        kind=ToolKind.OTHER,
        flow=Flow.RUN,
        status=CallStatus.RUNNING,
    )
    return Placed(position=0, seq=0, version=0, item=CallItem(changed))


def test_one_that_nobody_waits_for_has_a_line_above_the_rule() -> None:
    view = SessionView(children=(child("a", "over"), child("b", "open")), calls=(running("open"),))
    (row,) = above_rule(view, BottomState(), 80, SIGNS)
    assert '"Look a.": Read a.py, 1 step' in line_text(row)


class _AtOnce:
    """Does the work of the list at once."""

    def start(self, work: Callable[[], Any], done: Callable[[Any], None], instead: object) -> None:
        done(work())


def test_the_list_shows_a_transcript_and_stops_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    views = [SessionView(children=(child("a"), child("b")))]
    stopped: list[str] = []
    ended = ListedSession(
        id="c",
        title="Look c.",
        state=SessionState.DONE,
        cost=0.0,
        known_cost=0.0,
        ended=None,
        workspace=str(tmp_path),
        model="m/m",
        created_at=0,
        updated_at=0,
        events=3,
        open=False,
        steps=2,
        added=0,
        removed=0,
        first="",
        root="root",
        agent="explore",
        outcome=ChildOutcome.LIMIT,
    )
    said = MessageDone(
        step=1, message=Message(role=Role.ASSISTANT, content=(Text(text="It is at a.py:1."),)), usage=Usage(), cost=0.0
    )

    async def stop(names: Sequence[str]) -> list[Any]:
        stopped.extend(names)
        return []

    monkeypatch.setattr(subagent_picker, "listed_sessions", lambda *_, **__: [ended])
    monkeypatch.setattr(subagent_picker, "session_past", lambda _: (None, [Stamped(at=0, notification=said)]))
    monkeypatch.setattr(subagent_picker, "stop_sessions", stop)
    pages: list[Callable[[int, Signs], Sequence[Line]]] = []
    picker = SubagentPicker(
        tmp_path,
        "root",
        view=lambda: views[-1],
        aside=_AtOnce(),  # type: ignore[arg-type]
        changed=lambda: None,
        page=pages.append,
    )
    shown = [line_text(row) for row in picker_lines(picker.picker, 80, SIGNS)]
    assert [row.id for row in picker.picker.found] == ["a", "b", "c"]
    assert any("Look c." in row and "limit" in row for row in shown)
    picker.press(Pick.DOWN)
    picker.press(Pick.TAKE)
    assert "It is at a.py:1." in "\n".join(line_text(row) for row in pages[0](80, SIGNS))
    picker.press(Pick.STOP)
    assert stopped == ["b"]
    views.append(SessionView(children=(child("a"),)))
    picker.press(Pick.DOWN)
    assert picker.picker.row is not None
    picker.press(Pick.STOP)
    assert len(stopped) == 1 + (picker.picker.row.id == "a")
