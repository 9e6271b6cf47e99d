"""A session that is shown as text, or loaded into an editor, reads as it was seen, whatever happened in it."""

import json
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Any, TypeGuard

import msgspec
import pytest
from msgspec.structs import replace

from tests.present.test_told_once import Streaming, seen, told, wander
from treadle.acp.updates import BROKE_OFF, WITHDRAWN, Update, Updates
from treadle.app.reports.session_text import record_lines
from treadle.present.items import NoteItem
from treadle.present.record_words import recorded
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.notifications import CallChanged, Notice, Notification, PromptDelivered
from treadle.protocol.tools import Flow

SEEDS = [*range(60), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(60, 1_000))]


def text_of(stamped: Sequence[Stamped], world: Streaming) -> list[str]:
    """What `treadle show` would say, but for notices, which no log has."""
    view, items = recorded(stamped, SessionView(root="/w"))
    shown = [one for one in items if not isinstance(one.item, NoteItem)]
    alike = zip(shown, seen(shown, world), strict=True)
    placed = [replace(one, item=item) for one, item in alike if item is not None]
    return list(record_lines(view, placed))


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_text_of_a_session_is_that_of_what_was_seen(seed: int, streams: bool) -> None:
    world = wander(seed, streams=streams)
    lines = text_of(told(world), world)
    assert lines == text_of(world.stamped, world)
    assert lines or not any(isinstance(one.notification, PromptDelivered) for one in world.stamped)


class Client:
    """A client that keeps what it is shown: messages that follow on each other, and calls as they are by now."""

    def __init__(self, updates: Iterable[Update]) -> None:
        self._shown: list[tuple[str, str, str]] = []
        self.calls: dict[str, dict[str, Any]] = {}
        self.plan: Any = None
        for update in updates:
            self._take(json.loads(msgspec.json.encode(update)))

    def _take(self, update: dict[str, Any]) -> None:
        match update.pop("sessionUpdate"):
            case "tool_call":
                number = update.pop("toolCallId")
                assert number not in self.calls
                self.calls[number] = update
                self._shown.append(("call", number, number))
            case "tool_call_update":
                number = update.pop("toolCallId")
                self.calls[number].update(update)
                if WITHDRAWN in json.dumps(update):
                    del self.calls[number]
                    self._shown = [one for one in self._shown if one[1] != number]
            case "plan":
                self.plan = update
            case kind:
                self._say(kind, update["messageId"], update["content"]["text"])

    def _say(self, kind: str, message: str, text: str) -> None:
        if text == BROKE_OFF:
            self._shown = [one for one in self._shown if one[1] != message]
        else:
            self._shown.append((kind, message, text))

    def shown(self, silent: Collection[str]) -> list[tuple[str, str]]:
        """What stands on its screen, one after the other; white space at the ends of a text says nothing."""
        found = []
        for kind, texts in groupby((one for one in self._shown if one[1] not in silent), lambda one: one[0]):
            if kind == "call":
                found += [(kind, number) for _, number, _ in texts]
            else:
                found.append((kind, "".join(text for _, _, text in texts).strip()))
        return [one for one in found if one[1]]


def _is_silent(notification: Notification) -> TypeGuard[CallChanged]:
    return isinstance(notification, CallChanged) and notification.flow is not Flow.RUN


def _is_unlogged(notification: Notification) -> bool:
    """Whether it is said once: a log has only those that tell what was used outside of turns."""
    return isinstance(notification, Notice) and not notification.usage.context_tokens


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_an_editor_that_loads_a_session_shows_what_it_showed_live(seed: int, streams: bool) -> None:
    world = wander(seed, streams=streams)
    heard = [one for one in world.stamped if not _is_unlogged(one.notification)]
    updates = Updates("/w")
    live = Client(update for stamped in heard for update in updates.take(stamped))
    loaded = Client(Updates("/w").past(told(world)))
    # A call that does not run is shown only once it failed: live after what came meanwhile, loaded in its place.
    notifications = (one.notification for one in heard)
    silent = {one.call.id for one in notifications if _is_silent(one)}
    assert loaded.shown(silent) == live.shown(silent)
    assert loaded.calls == live.calls
    assert loaded.plan == live.plan
