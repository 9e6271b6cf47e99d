"""The screen of what goes to the model: the next request or one that was sent, block by block, and what left it."""

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.open_session import Reach
from treadle.door.opening import session_log
from treadle.door.reports import (
    ContextReport,
    PricedBlock,
    block_text,
    context_report,
    context_shares,
    known_model,
    left_report,
    next_request,
    pinned_texts,
    request_steps,
    sent_request,
)
from treadle.protocol.errors import ConfigError, SessionError
from treadle.protocol.events import CompactNow, Event, Pin
from treadle.web.charts import stacked_bars
from treadle.web.markup import page_text
from treadle.web.page_requests import body_of, book_of, done, opened_session, page, visitor_of
from treadle.web.rights import PageRoute
from treadle.web.templating import render

_MOST_BLOCKS = 400
"""Blocks that are listed; of a request with more the smallest are summed up."""

_MOST_LEFT = 200
_LONGEST_PIN = 20_000


def _events(session_id: str, step: int | None) -> tuple[str, str, list[Event]]:
    with session_log(session_id) as (row, store):
        return row.id, row.title or row.id, list(store.read(row.id, whole=step is not None))


def _step_of(request: Request) -> int | None:
    """Read which request is looked at: None for the next one."""
    said = request.query_params.get("step", "").strip()
    if not said:
        return None
    if not said.isdecimal() or len(said) > 9:
        raise ConfigError("step-missing", f"{said[:40]!r} is not a step.", fix="Write the number of a step.")
    return int(said)


async def _show(request: Request) -> Response:
    session_id, step = request.path_params["session_id"], _step_of(request)
    opened = book_of(request).find(session_id)
    cursor = "" if opened is None else f"{opened.content.run}.{opened.content.version}"
    found = await asyncio.to_thread(_parts, session_id, step)
    return await page(request, "context.html", cursor=cursor, opened=opened is not None, **found)


async def _refresh(request: Request) -> Response:
    """Give the parts that change as the session works."""
    session_id = request.path_params["session_id"]
    opened = session_id in book_of(request).opened
    found = await asyncio.to_thread(_parts, session_id, _step_of(request))
    return HTMLResponse(render("context_parts.html", opened=opened, **found))


async def _shares(request: Request) -> Response:
    """Give what the next request consists of in short, for the screen of the session."""
    session_id = request.path_params["session_id"]

    def rendered() -> str:
        *_, events = _events(session_id, None)
        sent = next_request(events, _now()) if request_steps(events) else None
        shares = () if sent is None else context_shares(context_report(sent, None))
        return render("window_parts.html", shares=shares, whole=sum(one.tokens for one in shares))

    return HTMLResponse(await asyncio.to_thread(rendered))


async def _text(request: Request) -> Response:
    """Give the text of one block."""
    session_id, step = request.path_params["session_id"], _step_of(request)
    at = request.query_params.get("at", "")
    text = await asyncio.to_thread(_block, session_id, step, int(at) if at.isdecimal() else -1)
    return HTMLResponse(render("block_text.html", text=page_text(text), size=len(text)))


def _block(session_id: str, step: int | None, at: int) -> str:
    *_, events = _events(session_id, step)
    blocks = (next_request(events, _now()) if step is None else sent_request(events, step)).blocks
    if not 0 <= at < len(blocks):
        raise SessionError("block-missing", "This block is not in the request any more.", fix="Load the page again.")
    return block_text(blocks[at])


def _parts(session_id: str, step: int | None) -> Mapping[str, Any]:
    found_id, title, events = _events(session_id, step)
    named = {"session_id": found_id, "title": title, "step": step, "steps": request_steps(events)[-50:]}
    if step is None and not named["steps"]:
        return {**named, "report": None}
    sent = next_request(events, _now()) if step is None else sent_request(events, step)
    spec = known_model(sent.model)
    prices = None if spec is None else spec.prices
    report = context_report(sent, prices)
    shares = context_shares(report)
    window = None if spec is None else spec.context_window
    parts = [(one.kind, f"{one.tokens:,} tokens", float(one.tokens)) for one in shares]
    listed = _listed(report)
    left = None
    with suppress(SessionError):
        left = left_report(events)
    priced = [block.price for block in report.blocks if block.price is not None]
    return {
        **named,
        "model": sent.model,
        "report": report,
        "shares": shares,
        "spoken": ", ".join(f"{one.kind} {one.tokens:,}" for one in shares),
        "bars": stacked_bars(parts, max(report.estimated, 1)),
        "window": window,
        "price": sum(priced) if len(priced) == len(report.blocks) else None,
        "before": _before(events) if step is None else "",
        "listed": listed,
        "smaller": _smaller(report, listed),
        "pins": pinned_texts(events),
        "left": left,
        "left_blocks": () if left is None else left.blocks[:_MOST_LEFT],
    }


def _before(events: Sequence[Event]) -> str:
    """Say how far the estimate of the last request was off, which the provider counted."""
    report = context_report(sent_request(events), None)
    if report.reported is None or report.difference is None:
        return "The provider has not counted the last request, so this is an estimate of its bytes alone."
    off = 100 * report.difference / max(1, report.reported)
    return (
        f"The last request was estimated at {report.estimated:,} tokens; the provider counted {report.reported:,}: "
        f"a difference of {report.difference:+,} ({off:+.1f} %)."
    )


def _listed(report: ContextReport) -> list[tuple[int, PricedBlock]]:
    blocks = list(enumerate(report.blocks))
    if len(blocks) <= _MOST_BLOCKS:
        return blocks
    largest = sorted(blocks, key=lambda one: -one[1].tokens)[:_MOST_BLOCKS]
    return sorted(largest, key=lambda one: one[0])


def _smaller(report: ContextReport, listed: Sequence[tuple[int, PricedBlock]]) -> tuple[int, int] | None:
    """Count the blocks that are not listed, and their tokens."""
    count = len(report.blocks) - len(listed)
    return (count, report.estimated - sum(one.tokens for _, one in listed)) if count else None


def _now() -> int:
    return int(time.time() * 1_000)


class _Focus(Struct):
    focus: str = ""


async def _compact(request: Request) -> Response:
    """Make room now, or before the next request."""
    said = await body_of(request, _Focus)
    await opened_session(request).post(CompactNow(focus=said.focus.strip()), visitor_of(request))
    return done()


class _Pinned(Struct):
    text: str


async def _pin(request: Request) -> Response:
    """Keep a text in the conversation."""
    text = (await body_of(request, _Pinned)).text.strip()
    if not text or len(text) > _LONGEST_PIN:
        why = f"It has {len(text):,} characters." if text else "It is empty."
        raise ConfigError("pin-text", "This text cannot be pinned.", why=why, fix=f"At most {_LONGEST_PIN:,}.")
    await opened_session(request).post(Pin(id=uuid.uuid4().hex[:12], text=text), visitor_of(request))
    return done()


class _Unpinned(Struct):
    id: str


async def _unpin(request: Request) -> Response:
    """Let a text go again."""
    wanted = (await body_of(request, _Unpinned)).id
    session = opened_session(request)
    if not any(pin.id == wanted for pin in session.session.status.pins):
        raise SessionError("pin-missing", "This text is not pinned any more.", fix="Load the page again.")
    await session.post(Pin(id=wanted), visitor_of(request))
    return done()


ROUTES = (
    PageRoute("/s/{session_id}/context", _show, Reach.SEE),
    PageRoute("/s/{session_id}/context/parts", _refresh, Reach.SEE),
    PageRoute("/s/{session_id}/context/shares", _shares, Reach.SEE),
    PageRoute("/s/{session_id}/context/block", _text, Reach.SEE),
    PageRoute("/s/{session_id}/context/compact", _compact, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/context/pin", _pin, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/context/unpin", _unpin, Reach.WORK, methods=["POST"]),
)
