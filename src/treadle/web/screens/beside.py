"""What the screen of a session asks for beside its items: completions, models, jobs and ports."""

import asyncio
import time

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.known_models import EFFORT_BUDGETS, OfferedModel
from treadle.door.open_session import Reach
from treadle.door.reports import end_timer, find_job, kill_job, output_piece, session_jobs
from treadle.present.escape import output_of_command
from treadle.present.job_words import job_ended
from treadle.present.words import tokens
from treadle.protocol.attach import ServersAnswer
from treadle.protocol.errors import SessionError
from treadle.web.completion import MOST_TYPED, completions
from treadle.web.page_requests import answer, body_of, book_of, done, opened_session, page_session_trust, visitor_of
from treadle.web.rights import PageRoute, may
from treadle.web.templating import render

_MOST_PRINTED = 50_000
"""Bytes of what a command in the background printed that are shown, its end."""


async def _complete(request: Request) -> Response:
    """Say what the text before the cursor can go on with."""
    book = book_of(request)
    opened = book.find(request.path_params["session_id"])
    trust = await page_session_trust(request)
    text = request.query_params.get("text", "")[-MOST_TYPED:]
    servers = None if opened is None else opened.session.servers
    return answer(await completions(text, trust, book.files, servers))


async def _models(request: Request) -> Response:
    """Give the models to choose from: the one in use, those that can be called, and those without a key."""
    session = opened_session(request).session
    now, models = session.status.model, await asyncio.to_thread(session.offered_models)
    if not any(one.ref == now for one in models):
        models = (OfferedModel(ref=now, usable=True), *models)
    rows = [
        {
            "ref": one.ref,
            "about": " · ".join(filter(None, (one.title, _known_of(one), one.key if one.usable else "no key"))),
            "usable": one.usable,
            "thinks": one.thinks,
        }
        for one in sorted(models, key=lambda one: (one.ref != now, not one.usable))
    ]
    return answer({"now": now, "models": rows, "efforts": list(EFFORT_BUDGETS)})


def _known_of(one: OfferedModel) -> str:
    return model_words(one.window, one.price_in, one.price_out)


def model_words(window: int | None, price_in: float | None, price_out: float | None) -> str:
    """Say how large the window of a model is, in tokens, and what it costs, as far as that is known."""
    size = "" if window is None else f"{tokens(window)} tokens"
    known = price_in is not None and price_out is not None
    return " · ".join(filter(None, (size, f"${price_in:g} in, ${price_out:g} out for 1M tokens" if known else "")))


async def _jobs(request: Request) -> Response:
    """Give what the session runs in the background, and the ports on which its commands listen."""
    session_id = request.path_params["session_id"]
    now = int(time.time() * 1000)
    jobs = await asyncio.to_thread(lambda: session_jobs(session_id, now=now))
    opened = book_of(request).find(session_id)
    ports = ServersAnswer() if opened is None else await asyncio.to_thread(opened.session.ports().command, "")
    opens = may(visitor_of(request), Reach.PORTS)
    shown = [(one, *("", "")) if one.running else (one, *job_ended(one.state)) for one in reversed(jobs)]
    return HTMLResponse(render("jobs.html", jobs=shown, now=now, ports=ports, opens=opens))


class _Port(Struct):
    port: int


async def _open_port(request: Request) -> Response:
    """Open a port of the session's commands on this computer."""
    return await _do_ports(request, "{}")


async def _close_port(request: Request) -> Response:
    """Close one again."""
    return await _do_ports(request, "close {}")


async def _do_ports(request: Request, argument: str) -> Response:
    wanted = await body_of(request, _Port)
    ports = opened_session(request).session.ports()
    said = await asyncio.to_thread(ports.command, argument.format(wanted.port))
    if said.warning:
        raise SessionError("port-unknown", said.text)
    return answer({"said": said.text})


class _Job(Struct):
    id: str


async def _stop_job(request: Request) -> Response:
    """Stop one command in the background, or take a timer back."""
    wanted = await body_of(request, _Job)
    await asyncio.to_thread(_stop, wanted.id, request.path_params["session_id"])
    return done()


async def _printed(request: Request) -> Response:
    """Give the end of what a command in the background printed."""
    wanted, session_id = request.query_params.get("id", ""), request.path_params["session_id"]
    command, text = await asyncio.to_thread(_end_of, wanted, session_id)
    return HTMLResponse(render("printed.html", command=command, text=text))


def _end_of(wanted: str, session_id: str) -> tuple[str, str]:
    line = next((one for one in session_jobs(session_id, now=int(time.time() * 1000)) if one.id == wanted), None)
    if line is None or not line.number:
        raise SessionError("job-unknown", "This session has no such command in the background any more.")
    piece = output_piece(find_job(wanted)[1].output, _MOST_PRINTED)
    text = output_of_command(piece.text)
    before = f"… {(piece.begin + 999) // 1000:,} kB before this\n" if piece.begin else ""
    return line.command, f"{before}{text}" or "It has printed nothing yet."


def _stop(wanted: str, session_id: str) -> None:
    if not any(line.id == wanted for line in session_jobs(session_id, now=int(time.time() * 1000))):
        raise SessionError("job-unknown", "This session has no such command in the background any more.")
    if end_timer(wanted):
        return
    line, job = find_job(wanted)
    if line.running and not kill_job(job):
        raise SessionError("job-runs", "The command does not end.", why=line.command, fix="Stop its processes.")


ROUTES = (
    PageRoute("/s/{session_id}/complete", _complete, Reach.SEE),
    PageRoute("/s/{session_id}/models", _models, Reach.SEE),
    PageRoute("/s/{session_id}/jobs", _jobs, Reach.SEE),
    PageRoute("/s/{session_id}/jobs/output", _printed, Reach.SEE),
    PageRoute("/s/{session_id}/jobs/stop", _stop_job, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/ports/open", _open_port, Reach.PORTS, methods=["POST"]),
    PageRoute("/s/{session_id}/ports/close", _close_port, Reach.PORTS, methods=["POST"]),
)
