"""The screens of batches and fleets: a square for each task, failures by kind, money, rate, time; of one its tasks."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.open_session import Reach
from treadle.door.program import Exit
from treadle.door.reports import (
    add_task,
    batch_results,
    begin_again,
    find_batch,
    has_results,
    known_batches,
    stop_batch,
)
from treadle.present.batch_progress import BatchProgress, TaskMark, long_span, spent_parts, step_words
from treadle.protocol.models import money
from treadle.web.batch_ends import batch_state, task_word
from treadle.web.charts import ChartBar, length_of, stacked_bars
from treadle.web.folders import folders_there
from treadle.web.page_requests import answer, body_of, book_of, page, whole_number
from treadle.web.rights import PageRoute
from treadle.web.screens.settings_rows import usable_refs
from treadle.web.templating import common, render

_MOST_SQUARES = 1_000
"""Tasks of one batch that get a square each; more are one bar, with as much of it as there are of a state."""

_MOST_SHOWN, _MOST_NAMED, _MOST_ROWS = 20, 50, 100
_LONGEST = 200

ALL_BAD = ("failed", "error")
"""What is done again where no kind is named."""


_KINDS = {
    "check": "The check failed",
    "steps": "Out of steps",
    "budget": "Out of money",
    "time": "Out of time",
    "mistakes": "Too many mistakes",
    "loop": "Went round in circles",
    "refusal": "The model refused",
    "denied": "A call was denied",
    "environment": "No environment",
    "setup": "Settings that cannot be used",
    "busy": "Open in another program",
}
"""Why a task ended so; the others are called by their name, as those of providers."""


def _why(kind: str) -> str:
    return _KINDS.get(kind) or kind.replace("provider-", "provider: ", 1).replace("_", " ").capitalize()


class TaskSquare(Struct, frozen=True, kw_only=True):
    """A task: how it is in a word, what a person reads of it in all, and its session where that is here.

    `id`, `how`, `steps` and `cost` are the parts of it; a task that waits has no cost, and of a fleet no name.
    """

    sign: str
    said: str
    session: str = ""
    id: str = ""
    how: str = ""
    steps: str = ""
    cost: str = ""


class EndedKind(Struct, frozen=True, kw_only=True):
    """Tasks that came to the same end: in words, how many, how long their bar is, and some of them."""

    state: str
    kind: str
    said: str
    number: int
    length: float
    tasks: Sequence[TaskSquare]


class ShownBatch(Struct, frozen=True, kw_only=True):
    """A batch as the screen has it: `signs` count all of its tasks by how they are, of which there are `squares` or, of
    too many, `bars`. `file` names that of its tasks, where its command does.
    """

    progress: BatchProgress
    sign: str
    words: str
    spent: tuple[str, str]
    rate: str
    left: str
    kinds: Sequence[EndedKind]
    remarks: Sequence[EndedKind]
    running: Sequence[TaskSquare]
    signs: Mapping[str, int]
    squares: Sequence[TaskSquare]
    bars: Sequence[ChartBar]
    file: str
    passed: str
    ended: int
    has_results: bool
    whole: int
    bad: int
    at_end: str
    startable: bool
    takes_more: bool
    rows: Sequence[TaskSquare] = ()
    found: int = 0


class _Filter(Struct, frozen=True):
    """Which tasks of a batch are listed: those of a state, with words in their line."""

    state: str = ""
    words: str = ""


async def _show(request: Request) -> Response:
    models = await asyncio.to_thread(usable_refs)
    return await page(
        request, "fleet.html", rows_at="/fleet/rows", models=models, **await asyncio.to_thread(_all, request)
    )


async def _rows(request: Request) -> Response:
    """Give the batches alone, for a page that is open already."""
    return HTMLResponse(render("fleet_rows.html", **common(request), **await asyncio.to_thread(_all, request)))


async def _show_one(request: Request) -> Response:
    found = await asyncio.to_thread(_one, request)
    folders = await asyncio.to_thread(folders_there, book_of(request)) if found["batches"][0].takes_more else []
    query = f"?{request.url.query}" if request.url.query else ""
    choices: dict[str, Any] = {"folders": folders, "models": await asyncio.to_thread(usable_refs)}
    return await page(request, "fleet.html", rows_at=f"/fleet/{found['only']}/rows{query}", **choices, **found)


async def _rows_of_one(request: Request) -> Response:
    return HTMLResponse(render("fleet_rows.html", **common(request), **await asyncio.to_thread(_one, request)))


def _all(request: Request) -> dict[str, Any]:
    found, service = known_batches(), _in_a_service(request)
    batches = [_shown(one, works=works, service=service) for one, works in found[:_MOST_SHOWN]]
    return {"batches": batches, "all": len(found), "only": "", "task_word": task_word}


def _one(request: Request) -> dict[str, Any]:
    found = find_batch(request.path_params["run"])
    if found is None:
        raise HTTPException(404, "There is no such batch on this computer.")
    asked = {name: request.query_params.get(name, "")[:_LONGEST] for name in ("state", "words")}
    one, works = found
    shown = _shown(one, works=works, service=_in_a_service(request), wanted=_Filter(**asked))
    return {"batches": [shown], "all": 1, "only": one.run, "task_word": task_word, **asked}


def _in_a_service(request: Request) -> bool:
    """Whether turns wait for their place here: a batch beside them would not."""
    return book_of(request).gate is not None


def _shown(one: BatchProgress, *, works: bool, service: bool, wanted: _Filter | None = None) -> ShownBatch:
    marks = [*one.before, *one.ended]
    whole = len(one.before) + one.tasks
    begun = [*_running(one, works=works), *_waiting(one, works=works)]
    squares = [*(_ended(mark, here=not one.database) for mark in marks), *begun]
    signs = Counter(square.sign for square in squares)
    if (waits := whole - len(squares)) > 0:  # a fleet, and an older version, say no names
        signs["waits"] += waits
        squares += [TaskSquare(sign="waits", said="waiting")] * min(_MOST_SQUARES, waits)
    parts = [(state, f"{number:,}", number) for state, number in signs.items()]
    many, passed = whole > _MOST_SQUARES, signs["done"]
    sign, words = batch_state(one, works=works)
    rate, left, at_end = one.a_minute, one.seconds_left, one.cost_at_end if works else None
    may_begin = bool(one.command) and not service
    listed = [] if wanted is None else [one for one in _listed(squares) if _fits(one, wanted)]
    return ShownBatch(
        progress=one,
        sign=sign,
        words=words,
        spent=spent_parts(one),
        rate="not known yet" if rate is None else f"{rate:.1f} a minute",
        left="" if left is None or not works else long_span(left),
        kinds=_kinds([mark for mark in marks if mark.state in ALL_BAD], here=not one.database),
        remarks=_kinds([mark for mark in marks if mark.state not in ALL_BAD], here=not one.database),
        running=_running(one, works=works),
        signs=signs,
        squares=[] if many else squares,
        bars=stacked_bars(parts, whole) if many else (),
        file=next((word for word in one.command if word.endswith(".jsonl") and not word.startswith("-")), ""),
        passed=f"{passed / len(marks):.0%}".replace("%", " %") if marks else "",
        ended=len(marks),
        has_results=bool(marks) and has_results(one),
        whole=whole,
        bad=sum(mark.state in ALL_BAD for mark in marks),
        at_end="" if at_end is None else money(at_end),
        startable=may_begin and not works and one.exit_code != Exit.BUDGET,
        takes_more=may_begin and not (works and one.stopping),
        rows=listed[:_MOST_ROWS],
        found=len(listed),
    )


def _listed(squares: Sequence[TaskSquare]) -> Sequence[TaskSquare]:
    """Give the tasks that have a name: those that are worked on first, then what ended last, then those that wait."""
    known = [one for one in squares if one.id]
    begun = [one for one in reversed(known) if one.sign != "waits"]
    waiting = [one for one in known if one.sign == "waits"]
    return [*sorted(begun, key=lambda one: one.sign != "working"), *waiting]


def _fits(task: TaskSquare, wanted: _Filter) -> bool:
    words = wanted.words.casefold().split()
    return wanted.state in ("", task.sign) and all(word in task.said.casefold() for word in words)


def _kinds(marks: Sequence[TaskMark], *, here: bool) -> Sequence[EndedKind]:
    """Put together the tasks that came to the same end, where that has a name, in the order in which these came.

    By how many they are they would change their places under whoever opens one.
    """
    found: dict[tuple[str, str], list[TaskMark]] = {}
    for mark in marks:
        if mark.kind:
            found.setdefault((mark.state, mark.kind), []).append(mark)
    most = max(map(len, found.values()), default=0)
    return [
        EndedKind(
            state=state,
            kind=kind,
            said=_why(kind),
            number=len(ones),
            length=length_of(len(ones), most),
            tasks=[_ended(mark, here=here) for mark in ones[:_MOST_NAMED]],
        )
        for (state, kind), ones in found.items()
    ]


def _ended(mark: TaskMark, *, here: bool) -> TaskSquare:
    how = _why(mark.kind)
    said = f"{mark.id}: {task_word(mark.state)}{f' ({how})' if how else ''}, {money(mark.cost)}"
    session = mark.session if here else ""
    return TaskSquare(sign=mark.state, said=said, session=session, id=mark.id, how=how, cost=money(mark.cost))


def _running(one: BatchProgress, *, works: bool) -> Sequence[TaskSquare]:
    if not works:
        return ()  # nobody says what became of them since
    return [_at_work(one, name, *step_words(step)) for name, step in one.running.items()]


def _at_work(one: BatchProgress, name: str, doing: str, steps: str) -> TaskSquare:
    said = ", ".join(filter(None, (f"{name}: {doing}", steps)))
    return TaskSquare(sign="working", said=said, session=_session(one, name), id=name, how=doing, steps=steps)


def _waiting(one: BatchProgress, *, works: bool) -> Sequence[TaskSquare]:
    names = one.waiting if works else [*one.running, *one.waiting]
    if not one.chosen:
        return ()
    return [TaskSquare(sign="waits", said=f"{name}: waiting", session=_session(one, name), id=name) for name in names]


def _session(one: BatchProgress, task: str) -> str:
    return "" if one.database else one.sessions.get(task, "")


def _require_own_page(request: Request) -> None:
    if _in_a_service(request):
        raise HTTPException(403, "A service starts no batches.")


class _Stop(Struct):
    at_once: bool = False


async def _stop(request: Request) -> Response:
    """Let a batch hand back what it works on, or end its workers where it does so already."""
    said = await body_of(request, _Stop)
    return _told(await asyncio.to_thread(stop_batch, request.path_params["run"], at_once=said.at_once))


class _Again(Struct):
    """What is done again: a kind, `bad` for all that failed, or nothing; with another model, and so many steps."""

    kind: str = ""
    model: str = ""
    steps: str = ""


async def _start(request: Request) -> Response:
    """Go on with a batch, or do tasks again that ended badly."""
    said = await body_of(request, _Again)
    _require_own_page(request)
    steps = whole_number(said.steps) if said.steps else None
    if said.steps and not steps:
        raise HTTPException(400, "The number of steps must be above 0.")
    more = [f"--model={said.model}"] if said.model else []
    more += [f"--max-steps={steps}"] if steps else []
    retry = ALL_BAD if said.kind == "bad" else (said.kind,) if said.kind else ()
    return _told(await asyncio.to_thread(begin_again, request.path_params["run"], retry=retry, more=more))


class _More(Struct):
    """A task that is added: what to do, in which project, how it is checked, and its name; empty is not said."""

    prompt: str
    repo: str = ""
    check: str = ""
    name: str = ""


async def _add(request: Request) -> Response:
    """Add a task to a batch, which works on it now or goes on with it."""
    said = await body_of(request, _More)
    _require_own_page(request)
    fields = {"id": said.name, "prompt": said.prompt, "repo": said.repo, "check": said.check}
    task = {name: value.strip() for name, value in fields.items() if value.strip()}
    if "prompt" not in task:
        raise HTTPException(400, "Say what should be done.")
    return _told(await asyncio.to_thread(add_task, request.path_params["run"], task))


def _told(trouble: str) -> Response:
    if trouble:
        raise HTTPException(409, trouble)
    return answer({})


async def _results(request: Request) -> Response:
    """Give how its tasks ended, a JSON object in each line."""
    run = request.path_params["run"]
    content = await asyncio.to_thread(batch_results, run)
    if content is None:
        raise HTTPException(404, "This batch has no results on this computer.")
    headers = {"content-disposition": f'attachment; filename="{run}.jsonl"', "cache-control": "no-store"}
    return Response(content, media_type="application/jsonl", headers=headers)


ROUTES = (
    PageRoute("/fleet", _show, Reach.SEE),
    PageRoute("/fleet/rows", _rows, Reach.SEE),
    PageRoute("/fleet/{run}", _show_one, Reach.SEE),
    PageRoute("/fleet/{run}/rows", _rows_of_one, Reach.SEE),
    PageRoute("/fleet/{run}/results", _results, Reach.SEE),
    PageRoute("/fleet/{run}/stop", _stop, Reach.WORK, methods=["POST"]),
    PageRoute("/fleet/{run}/add", _add, Reach.CONTROL, methods=["POST"]),
    PageRoute("/fleet/{run}/start", _start, Reach.CONTROL, methods=["POST"]),
)
