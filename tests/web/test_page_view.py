"""The page as a value: a browser that misses anything ends with what stands there."""

import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.present.test_told_once import wander
from treadle.protocol.attach import Stamped
from treadle.protocol.messages import Message, Role
from treadle.protocol.notifications import CallChanged, CallStatus, ConversationRewound, MessageDone, Notice
from treadle.protocol.tools import ToolCall, ToolKind
from treadle.protocol.usage import Usage
from treadle.web.event_stream_out import missed
from treadle.web.page_view import PageContent, page_content

SHOWN = 4
_PLACE = re.compile(r' id="i[0-9]+"')


def shown(view: PageContent) -> list[str]:
    """What a browser that loads all of a page shows, whatever the numbers of the places are."""
    return _there(map(view.html, view.items()))


def _there(items: Iterable[str]) -> list[str]:
    return [_PLACE.sub("", html, count=1) for html in items if "hidden" not in html.partition(">")[0]]


class Browser:
    """What a browser does with a page: it loads its end, and puts in place what comes."""

    def __init__(self, view: PageContent) -> None:
        self.view = view
        self.load()

    def load(self) -> None:
        entries = self.view.before(None, SHOWN)
        self.first = entries[0].position if entries else 0
        self.places = {entry.position: self.view.html(entry) for entry in entries}
        self.run, self.version, self.known = self.view.run, self.view.version, [self.view.version]

    def hear(self, *, id_is_lost: bool) -> None:
        changed = missed(self.view, self.run, self.version)
        if changed is None:
            self.load()
            return
        self.places |= {one.position: self.view.html(one) for one in changed if one.position >= self.first}
        if not id_is_lost:
            self.version = self.view.version
            self.known.append(self.version)

    def look_back(self) -> None:
        earlier = self.view.before(self.first, SHOWN)
        self.places |= {entry.position: self.view.html(entry) for entry in earlier}
        self.first = earlier[0].position if earlier else self.first

    def shown(self) -> list[str]:
        return _there(html for _, html in sorted(self.places.items()))


def _happened(seed: int, data: st.DataObject) -> Sequence[Stamped]:
    """A session in which the user goes back now and then."""
    happened: list[Stamped] = []
    for stamped in wander(seed, streams=True).stamped:
        happened.append(stamped)
        if stamped.seq and data.draw(st.integers(0, 19)) == 0:
            to = data.draw(st.integers(0, stamped.seq))
            happened.append(Stamped(notification=ConversationRewound(to=to), seq=stamped.seq + 1, at=stamped.at))
    return happened


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.data())
def test_a_browser_ends_with_what_stands_on_the_page_whatever_it_missed(seed: int, data: st.DataObject) -> None:
    view = PageContent("/w")
    browser = Browser(view)
    for at, stamped in enumerate(_happened(seed, data)):
        view.take(stamped)
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
    assert browser.shown() == shown(view)


def test_a_browser_that_knows_another_run_or_what_never_was_loads_the_page_anew() -> None:
    view = PageContent("/w")
    view.take(Stamped(notification=Notice(text="Hello.")))
    assert missed(view, view.run, 0) == list(view.items())
    assert missed(view, view.run, 1) == []
    assert missed(view, "another", 1) is missed(view, view.run, 2) is missed(view, view.run, -1) is None


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
    past = [Stamped(notification=one) for one in (first, replace(first, status=status), done)]
    here, (killed,) = (shown(page_content("/w", "m", past, is_open=is_open)) for is_open in (True, False))
    open_one = "".join(here)
    assert ('class="state"' in open_one) is (status is not CallStatus.ASKING), "its question says it, and all else"
    assert len(here) == (status is not CallStatus.ASKING)
    assert ('"state">next<' in open_one) is (status in (CallStatus.PROPOSED, CallStatus.JUDGING))
    assert f'"state">{LEFT[status]}<' in killed
