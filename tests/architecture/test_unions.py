"""Closed unions: every op is handled, every notification rendered, every tool and wire API is known."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.architecture.samples import members, samples
from treadle import tools
from treadle.app.reports.session_text import record_lines
from treadle.cli.task_words import COMMANDS
from treadle.engine.core.advance import advance
from treadle.engine.core.state import State
from treadle.headless.progress import Progress
from treadle.present.record_words import recorded
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.codec import decode_data, encode
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Event, EventData, Op, SessionStarted, Source
from treadle.protocol.models import ModelChoice, ToolProtocol
from treadle.protocol.notifications import Notification
from treadle.protocol.permissions import Mode
from treadle.providers.connect import provider_for
from treadle.providers.endpoint import Endpoint
from treadle.providers.http_provider import HttpProvider
from treadle.providers.provider_rows import ProviderRow, Wire
from treadle.tools.tool_catalogue import builtin_tools
from treadle.tui.paint.painter import Painter
from treadle.tui.paint.scrollback import Scrollback
from treadle.tui.paint.theme import Theme
from treadle.workspace.workspace import open_workspace

SOURCE = Source(kind="test")
STARTED = SessionStarted(
    choice=ModelChoice(model="m/m", tool_protocol=ToolProtocol.NATIVE), session_id="s", workspace="/w", mode=Mode.ASK
)


def name_of(value: type) -> str:
    return value.__name__


def started() -> State:
    state, _ = advance(State(), Event(seq=1, at=1, source=SOURCE, data=STARTED))
    return state


@pytest.mark.parametrize("record", members(EventData), ids=name_of)
def test_every_event_is_taken_or_refused_with_the_reason(record: type[Any]) -> None:
    for data in samples(record):
        event = Event(seq=2, at=2, source=SOURCE, data=data)  # type: ignore[arg-type]
        assert taken_or_refused(event)


def taken_or_refused(event: Event) -> str:
    """What became of an event in a session that has just started."""
    try:
        state, _ = advance(started(), event)
    except RefusedError as refusal:
        return refusal.why
    return "taken" if state.seq == event.seq else ""


def test_every_op_is_an_event() -> None:
    assert set(members(Op)) < set(members(EventData))


@pytest.mark.parametrize("record", members(EventData), ids=name_of)
def test_every_event_comes_back_from_the_log_as_it_was(record: type[Any]) -> None:
    for data in samples(record):
        assert decode_data(encode(data)) == data


@pytest.mark.parametrize("record", members(Notification), ids=name_of)
def test_every_notification_comes_back_from_its_json_as_it_was(record: type[Any]) -> None:
    for notification in samples(record):
        assert msgspec.json.decode(encode(notification), type=Notification) == notification


@pytest.mark.parametrize("record", members(Notification), ids=name_of)
def test_every_notification_is_rendered_by_the_script_surface(record: type[Any]) -> None:
    for notification in samples(record):
        lines = Progress().take(notification)  # type: ignore[arg-type]
        assert all(line.strip() for line in lines)


@pytest.mark.parametrize("record", members(Notification), ids=name_of)
def test_every_notification_is_rendered_in_the_text_of_a_session(record: type[Any]) -> None:
    for notification in samples(record):
        view, items = recorded([Stamped(notification=notification)], SessionView())  # type: ignore[arg-type]
        assert all(isinstance(line, str) for line in record_lines(view, items))


@pytest.mark.parametrize("record", members(Notification), ids=name_of)
def test_every_notification_is_rendered_by_the_terminal(record: type[Any]) -> None:
    for notification in samples(record):
        scrollback = Scrollback(SessionView(model="m/m"), "tui:main")
        items = scrollback.take(Stamped(notification=notification, at=1_000))  # type: ignore[arg-type]
        painter = Painter(80, Theme())
        assert painter.items(items).endswith("\n") or not items
        painter.living(scrollback.unprinted, 20, 1.0)


async def test_every_tool_has_its_prompt_text_beside_it(tmp_path: Path) -> None:
    folder = Path(tools.__file__).parent
    names = {tool.spec.name for tool in builtin_tools(open_workspace(tmp_path))}
    assert {file.stem for file in folder.glob("*.md")} == names
    assert all((folder / f"{name}.py").exists() for name in names)
    assert all((folder / f"{name}.md").read_text().strip() for name in names)


@pytest.mark.parametrize("wire", Wire)
def test_every_wire_api_can_be_spoken(wire: Wire) -> None:
    row = ProviderRow(name="x", title="X", base_url="http://127.0.0.1:9", wire=wire)
    assert isinstance(provider_for(row, Endpoint(name="x", base_url=row.base_url)), HttpProvider)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_module(name: str) -> None:
    module = __import__(f"treadle.cli.{name}_command", fromlist=["configure", "execute"])
    assert callable(module.configure)
    assert callable(module.execute)
