"""The page as a value: a browser that misses anything ends with what stands there, and a log gives the same page."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from treadle.web.items import CallCard, Note, PageItem, TurnEnd
from treadle.web.past_view import left_view, viewed

from tests.web.streams import Told, sessions
from treadle.protocol.messages import Message, Role
from treadle.protocol.notifications import CallChanged, CallStatus, MessageDone, Notice, Notification
from treadle.protocol.tools import ToolCall, ToolKind
from treadle.protocol.usage import Usage
from treadle.web.item_html import entry_html
from treadle.web.page_view import PageContent
from treadle.web.stream import missed

SHOWN = 4


def stands(view: PageContent) -> list[PageItem]:
    return [entry.item for entry in view.entries if entry.item is not None]


def in_a_log(items: Sequence[PageItem]) -> list[PageItem]:
    """Leave out what only those know who saw it: times, what was printed, and words that nothing waited for."""
    kept: list[PageItem] = []
    for item in items:
        match item:
            case CallCard():
                kept.append(replace(item, output="", above=0, since=None, seconds=None))
            case TurnEnd():
                kept.append(replace(item, seconds=None))
            case Note(text="Something happened."):
                pass
            case _:
                kept.append(item)
    return kept


class Browser:
    """What a browser does with a page: it loads its end, and puts in place what comes."""

    def __init__(self, view: PageContent) -> None:
        self.view = view
        self.load()

    def load(self) -> None:
        entries = self.view.before(None, SHOWN)
        self.first = entries[0].position if entries else 0
        self.places = {entry.position: entry.item for entry in entries}
        self.run, self.version, self.known = self.view.run, self.view.version, [self.view.version]

    def hear(self, *, id_is_lost: bool) -> None:
        changed = missed(self.view, self.run, self.version)
        if changed is None:
            self.load()
            return
        self.places |= {one.position: one.item for one in changed if one.position >= self.first}
        if not id_is_lost:
            self.version = self.view.version
            self.known.append(self.version)

    def look_back(self) -> None:
        earlier = self.view.before(self.first, SHOWN)
        self.places |= {entry.position: entry.item for entry in earlier}
        self.first = earlier[0].position if earlier else self.first

    def shown(self) -> list[PageItem]:
        return [item for _, item in sorted(self.places.items(), key=lambda place: place[0]) if item is not None]


@settings(max_examples=30)
@given(sessions(), st.data())
def test_a_browser_ends_with_what_stands_on_the_page_whatever_it_missed(told: Told, data: st.DataObject) -> None:
    view = PageContent("/ws")
    browser = Browser(view)
    for at, notification in enumerate(told.live):
        view.take(notification, float(at))
        match data.draw(st.integers(0, 9)):
            case 0 | 1:
                browser.hear(id_is_lost=False)
            case 2:
                browser.hear(id_is_lost=True)
            case 3:
                browser.version = data.draw(
                    st.sampled_from(tuple(browser.known))
                )  # it comes again with an older number
            case 4:
                browser.look_back()
            case 5 if at % 7 == 0:
                browser.load()
            case _:
                pass  # lost
    browser.hear(id_is_lost=False)
    while browser.first:
        browser.look_back()
        if not view.before(browser.first, 1):
            break
    assert browser.shown() == stands(view)


def test_a_browser_that_knows_another_run_or_what_never_was_loads_the_page_anew() -> None:
    view = PageContent("/ws")
    view.take(Notice(text="Hello."))
    assert missed(view, view.run, 0) == [view.entries[0]]
    assert missed(view, view.run, 1) == []
    assert missed(view, "another", 1) is missed(view, view.run, 2) is missed(view, view.run, -1) is None


@settings(max_examples=30)
@given(sessions())
def test_the_page_of_a_log_is_the_page_that_saw_it_happen(told: Told) -> None:
    live = PageContent("/ws")
    for at, notification in enumerate(told.live):
        live.take(notification, float(at))
    assert in_a_log(stands(live)) == in_a_log(stands(viewed("/ws", "", told.logged)))


@settings(max_examples=30)
@given(sessions())
def test_nothing_grows_or_is_being_written_once_a_turn_has_ended(told: Told) -> None:
    view = viewed("/ws", "", told.live)
    assert not [item for item in stands(view) if getattr(item, "growing", False) or type(item).__name__ == "Writing"]
    assert (view.facts.active, view.facts.retry) == (False, "")


LEFT = {
    CallStatus.PROPOSED: "did not run",
    CallStatus.JUDGING: "did not run",
    CallStatus.ASKING: "waited for an answer",
    CallStatus.STARTING: "cut off",
    CallStatus.RUNNING: "cut off",
}


@pytest.mark.parametrize("status", LEFT)
def test_no_call_of_a_session_that_was_killed_is_still_under_way(status: CallStatus) -> None:
    call = ToolCall(id="c", name="execute_command", arguments={"command": "git push"})
    first = CallChanged(call=call, status=CallStatus.PROPOSED, kind=ToolKind.EXECUTE)
    done = MessageDone(message=Message(role=Role.ASSISTANT, content=()), step=1, usage=Usage())
    past: list[Notification] = [first, replace(first, status=status), done]
    (open_one,), (killed,) = viewed("/ws", "m", past).entries, left_view("/ws", "m", past).entries
    assert f'"state">{status.value}<' in entry_html(open_one)
    assert f'"state">{LEFT[status]}<' in entry_html(killed)
