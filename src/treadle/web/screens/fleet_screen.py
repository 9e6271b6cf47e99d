"""The screen of batches and fleets: a square for each task, failures by kind, money, rate, and what time is left."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.open_session import Reach
from treadle.door.program import Exit
from treadle.door.reports import known_batches
from treadle.present.batch_progress import BatchProgress, TaskMark, long_span, spent_of
from treadle.protocol.models import money
from treadle.web.charts import length_of
from treadle.web.page_requests import page
from treadle.web.rights import PageRoute
from treadle.web.templating import render

_MOST_SQUARES = 2_000
"""Tasks of one batch that get a square of their own; the sums count all of them."""

_MOST_SHOWN, _MOST_NAMED = 20, 50


class TaskSquare(Struct, frozen=True, kw_only=True):
    """A task in the grid: how it is in a word, what a person reads of it, and its session where that is here."""

    sign: str
    said: str
    session: str = ""


class EndedKind(Struct, frozen=True, kw_only=True):
    """Tasks that came to the same end: in words, how many, how long their bar is, and some of them."""

    said: str
    number: int
    length: float
    tasks: Sequence[TaskSquare]


class ShownBatch(Struct, frozen=True, kw_only=True):
    """A batch as the screen has it: `signs` count all of its tasks by how they are; `more` of them have no square."""

    progress: BatchProgress
    sign: str
    words: str
    spent: str
    rate: str
    left: str
    kinds: Sequence[EndedKind]
    running: Mapping[str, str]
    signs: Mapping[str, int]
    squares: Sequence[TaskSquare]
    more: int
    ended: int
    whole: int


async def _show(request: Request) -> Response:
    return await page(request, "fleet.html", **await asyncio.to_thread(_found))


async def _rows(_: Request) -> Response:
    """Give the batches alone, for a page that is open already."""
    return HTMLResponse(render("fleet_rows.html", **await asyncio.to_thread(_found)))


def _found() -> dict[str, Any]:
    found = known_batches()
    return {"batches": [_shown(one, works=works) for one, works in found[:_MOST_SHOWN]], "all": len(found)}


def _shown(one: BatchProgress, *, works: bool) -> ShownBatch:
    marks = [*one.before, *one.ended]
    whole = len(one.before) + one.tasks
    squares = [*(_ended(mark, here=not one.database) for mark in marks), *_running(one, works=works)]
    signs = Counter(square.sign for square in squares)
    if (waits := whole - len(squares)) > 0:
        signs["waits"] = waits
        squares += [TaskSquare(sign="waits", said="waits")] * min(_MOST_SQUARES, waits)
    sign, words = _state(one, works=works)
    rate, left = one.a_minute, one.seconds_left
    return ShownBatch(
        progress=one,
        sign=sign,
        words=words,
        spent=spent_of(one),
        rate="not known yet" if rate is None else f"{rate:.1f} a minute",
        left="" if left is None or not works else long_span(left),
        kinds=_kinds(marks, here=not one.database),
        running=one.running if works else {},
        signs=signs,
        squares=squares[:_MOST_SQUARES],
        more=max(0, whole - _MOST_SQUARES),
        ended=len(marks),
        whole=whole,
    )


def _kinds(marks: Sequence[TaskMark], *, here: bool) -> Sequence[EndedKind]:
    """Put together the tasks that came to the same end, where that has a name; the most frequent one first."""
    found: dict[str, list[TaskMark]] = {}
    for mark in marks:
        if mark.kind:
            found.setdefault(f"{mark.state}: {mark.kind}", []).append(mark)
    most = max(map(len, found.values()), default=0)
    return [
        EndedKind(
            said=said,
            number=len(ones),
            length=length_of(len(ones), most),
            tasks=[_ended(mark, here=here) for mark in ones[:_MOST_NAMED]],
        )
        for said, ones in sorted(found.items(), key=lambda kind: (-len(kind[1]), kind[0]))
    ]


def _ended(mark: TaskMark, *, here: bool) -> TaskSquare:
    kind = f" ({mark.kind})" if mark.kind else ""
    said = f"{mark.id}: {mark.state}{kind}, {money(mark.cost)}"
    return TaskSquare(sign=mark.state, said=said, session=mark.session if here else "")


def _running(one: BatchProgress, *, works: bool) -> Sequence[TaskSquare]:
    if not works:
        return ()  # nobody says what became of them since
    return [TaskSquare(sign="working", said=f"{name}: {step or 'begins'}") for name, step in one.running.items()]


def _state(one: BatchProgress, *, works: bool) -> tuple[str, str]:
    """Say how a batch is, in a word."""
    if works:
        return "working", "Working"
    match one.exit_code:
        case Exit.DONE:
            return "done", "Done"
        case Exit.BUDGET:
            return "stopped", "Its money is used up"
        case None:
            return "gone", "Its program ended while it worked"
        case _:
            return "stopped", "Stopped"


ROUTES = (
    PageRoute("/fleet", _show, Reach.SEE),
    PageRoute("/fleet/rows", _rows, Reach.SEE),
)
