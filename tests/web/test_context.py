"""The screen of the context: the request that the log tells of, block by block, and nothing in it comes alive."""

import re
import time

from tests.web.recorded import HOSTILE, Visit
from treadle.app.reports.context_report import (
    block_text,
    context_report,
    context_shares,
    context_use,
    next_request,
    sent_request,
)
from treadle.present.context_use import CONTEXT_GROUPS
from treadle.protocol.events import CallFinished, ContextReady, Event
from treadle.store.sqlite import Store


def events_of(visit: Visit) -> list[Event]:
    store = Store(visit.recorded.home / "sessions.db")
    try:
        return list(store.read(visit.recorded.session))
    finally:
        store.close()


def test_the_next_request_has_what_the_last_one_had_and_what_came_since(visit: Visit) -> None:
    events = events_of(visit)
    last = sent_request(events).blocks
    found = next_request(events, int(time.time() * 1_000)).blocks
    assert [block.source for block in found[: len(last)]] == [block.source for block in last]
    assert [block.why for block in found[len(last) :]] == ["call of the model", "result of a call"]


def test_a_result_that_no_request_had_yet_is_in_the_next_one(visit: Visit) -> None:
    events = events_of(visit)
    end = next(at for at, event in enumerate(events) if isinstance(event.data, CallFinished))
    report = context_report(next_request(events[: end + 1], 0), None)
    assert report.blocks[-1].why == "read by the model"
    assert report.blocks[-1].source == "README.md"


def test_the_next_request_is_the_one_that_is_sent_but_for_what_surrounds_a_step(visit: Visit) -> None:
    events = events_of(visit)
    for at, event in enumerate(events):
        if isinstance(event.data, ContextReady) and event.data.step > 1:
            expected = next_request(events[:at], 0).blocks
            sent = [block for block in sent_request(events, event.data.step).blocks if block not in expected]
            assert {block.why for block in sent} <= {"surroundings of the step"}


def test_what_the_provider_holds_is_expected_for_five_minutes_only(visit: Visit) -> None:
    events = events_of(visit)
    soon = context_report(next_request(events, events[-1].at), None)
    assert soon.blocks[0].cached is True
    late = context_report(next_request(events, events[-1].at + 301_000), None)
    assert {block.cached for block in late.blocks} == {False}


def test_the_bar_of_the_terminal_has_the_figures_of_the_report(visit: Visit) -> None:
    report = context_report(next_request(events_of(visit), int(time.time() * 1_000)), None)
    shares = {share.kind: share.tokens for share in context_shares(report)}
    use = context_use(report, 100_000)
    known = dict(zip(CONTEXT_GROUPS, use.groups, strict=True))
    assert known["system prompt"] == shares["system prompt"] > 0
    assert known["tools"] == shares["tools"] > 0
    assert known["results"] == shares.get("results", 0) + shares.get("files read", 0) > 0
    assert (use.used, use.free) == (report.estimated, 100_000 - report.estimated)


def test_the_page_has_the_sums_of_the_report_and_the_error_of_the_estimate(visit: Visit) -> None:
    events = events_of(visit)
    report = context_report(next_request(events, int(time.time() * 1_000)), None)
    page = visit.text("/s/ID/context")
    assert f"{report.estimated:,} tokens" in page
    assert all(f"{share.tokens:,}" in page for share in context_shares(report))
    assert page.count('<details data-at="') == len(report.blocks)
    last = context_report(sent_request(events), None)
    assert f"a difference of {last.difference:+,}" in page
    assert "% of 200k" in page
    step = visit.text("/s/ID/context?step=2")
    assert "10,000 tokens" in step
    assert "Counted by the provider" in step


def test_the_panel_says_what_each_part_is_of_the_whole(visit: Visit) -> None:
    shares = [int(one) for one in re.findall(r"(\d+)%", visit.text(f"/s/{visit.recorded.session}/context/shares"))]
    assert len(shares) > 2
    assert 97 <= sum(shares) <= 103


def test_each_block_has_its_text_and_nothing_in_it_comes_alive(visit: Visit) -> None:
    blocks = sent_request(events_of(visit), 2).blocks
    for at, block in enumerate(blocks):
        found = visit.text(f"/s/ID/context/block?step=2&at={at}")
        assert f"{len(block_text(block)):,} character" in found
    (prompt,) = (at for at, block in enumerate(blocks) if block.why == "said by the user")
    assert "Read &lt;script&gt;" in visit.text(f"/s/ID/context/block?step=2&at={prompt}")
    assert HOSTILE in block_text(blocks[prompt])


def test_what_is_not_there_is_said_on_a_page_and_to_a_script(visit: Visit) -> None:
    assert visit.get("/s/ID/context?step=99").status_code == 404
    page = visit.get("/s/ID/context?step=99").text
    assert "The session has no step 99." in page
    assert "<nav" in page
    assert visit.get("/s/ID/context/block?at=9999", accept="*/*").json()["code"] == "block-missing"
    assert visit.get("/s/nothing/context").status_code == 404
    assert visit.get("/s/ID/context?step=<b>").status_code == 400


def test_a_session_that_sent_nothing_yet_has_a_page_that_waits_for_its_first_request(visit: Visit) -> None:
    portal = visit.client.portal
    assert portal is not None
    trust = visit.book.trust(visit.recorded.folder)
    page = portal.call(visit.book.start, visit.book.opening(trust))
    try:
        assert "Nothing was sent to a model yet." in visit.text(f"/s/{page.session.id}/context")
        assert "Nothing was sent to a model yet." in visit.text(f"/s/{page.session.id}/context/parts")
        assert visit.get(f"/s/{page.session.id}/context?step=1").status_code == 404
    finally:
        portal.call(visit.book.close, page.session.id)


def test_pins_and_room_need_an_open_session(visit: Visit) -> None:
    for path, body in (("pin", {"text": "x"}), ("unpin", {"id": "x"}), ("compact", {"focus": ""})):
        refused = visit.post(f"/s/ID/context/{path}", **body)
        assert (refused.status_code, refused.json()["code"]) == (404, "session-not-open")


def test_a_text_is_pinned_shown_and_let_go(visit: Visit) -> None:
    with visit.opened() as opened:
        visit.done("/s/ID/context/pin", text=f"Keep {HOSTILE}")
        (pin,) = opened.session.status.pins
        assert pin.text == f"Keep {HOSTILE}"
        assert "Keep &lt;script&gt;" in visit.text("/s/ID/context/parts")
        assert visit.post("/s/ID/context/pin", text="  ").status_code == 400
        assert visit.post("/s/ID/context/unpin", id="other").json()["code"] == "pin-missing"
        visit.done("/s/ID/context/unpin", id=pin.id)
        assert opened.session.status.pins == ()


def test_making_room_is_asked_of_the_session(visit: Visit) -> None:
    with visit.opened():
        visit.done("/s/ID/context/compact", focus="the names")
    assert any(event.data.__struct_config__.tag == "compact_now" for event in events_of(visit))
