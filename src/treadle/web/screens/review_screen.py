"""The screen of what a session changed: read, accepted, taken back, rewritten, and commented on."""

import asyncio
import json
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.history import copy_worked_in, times_taken
from treadle.door.open_session import Reach
from treadle.door.opening import session_log
from treadle.door.past import Points
from treadle.door.reports import steps_so_far
from treadle.door.review import (
    FileChoice,
    FileToReview,
    HunkChoice,
    ReviewComment,
    SessionReview,
    answered_prompts,
    comments_message,
    listed_checkpoints,
    mark_reviewed,
    open_review,
    review_marks,
    review_steps,
    turn_checkpoint,
)
from treadle.present.question_words import QuestionStyle, asked_in_words
from treadle.protocol.base import Record
from treadle.protocol.checkpoints import Restore
from treadle.web.changed_lines import LineColours, conflict_html, hunk_blocks, hunk_html
from treadle.web.page_requests import answer, body_of, book_of, done, page
from treadle.web.question_cards import why_blocks
from treadle.web.restoring_files import restore_in, went_back_words
from treadle.web.rights import PageRoute
from treadle.web.templating import render

_MOST_INLINE = 3_000
"""Changed lines that the page begins with; the files behind them are loaded when they are looked at."""

_MOST_OF_ONE = 1_500
_MOST_SHOWN = 4_000
"""Changed lines of one file that are shown at all."""

_LONGEST_KEY = 80
_LONGEST_NUMBER = 9
_MARKS = ("accepted", "rejected", "amended", "")


class _Range(Struct):
    """What is compared: two checkpoints, or (with `new` 0) one and the files as the `trees` saw them."""

    old: int = 0
    new: int = 0
    trees: tuple[str, ...] = ()


async def _show(request: Request) -> Response:
    session_id, wanted = request.path_params["session_id"], _range_of(request)
    return await page(
        request,
        "review.html",
        session_id=session_id,
        copies=_copies(request, session_id),
        **await asyncio.to_thread(_whole, session_id, wanted),
    )


def _range_of(request: Request) -> _Range:
    given = request.query_params
    old, new = (given.get(name, "") for name in ("from", "to"))
    if not all(one in ("", "now") or _is_number(one) for one in (old, new)):
        raise HTTPException(400, "A checkpoint is a number.")
    trees = given.get("trees")
    return _Range(
        old=int(old) if old.isdecimal() else 0,
        new=int(new) if new.isdecimal() else 0,
        trees=() if trees is None else tuple(trees.split(",")),
    )


@contextmanager
def _opened(session_id: str, wanted: _Range) -> Iterator[SessionReview]:
    with session_log(session_id) as (row, store):
        review = open_review(store, row, old=wanted.old, new=wanted.new or None, trees=wanted.trees)
        if review is None:
            raise HTTPException(404, Points(store, row.id).unkept() or "This session has changed no files.")
        try:
            yield review
        finally:
            review.close()


def _whole(session_id: str, wanted: _Range) -> dict[str, Any]:
    with session_log(session_id) as (row, store):
        copy = copy_worked_in(row)
        said = {
            "title": row.title or row.id,
            "workspace": row.workspace,
            "steps": review_steps(store, row.id),
            "unkept": "",
            "wanted": wanted,
            "marks": review_marks(row.id),
            "answered": json.dumps(answered_prompts(store, row.id)),
            "checkpoints": len(listed_checkpoints(store, row.id)),
            "steps_so_far": steps_so_far(store, row.id),
            "copied": copy,
            "taken": times_taken(store, row, copy) if copy is not None else 0,
        }
        review = open_review(store, row, old=wanted.old, new=wanted.new or None, trees=wanted.trees)
        if review is None:
            said["unkept"] = Points(store, row.id).unkept()
            return {**said, "files": [], "others": [], "trees": "", "added": 0, "removed": 0}
        try:
            shown: list[dict[str, Any]] = []
            colours = LineColours()
            left = _MOST_INLINE
            for number, file in enumerate(review.files):
                size = (file.change.added or 0) + (file.change.removed or 0)
                inline = size <= min(left, _MOST_OF_ONE)
                left -= size if inline else 0
                body = _body(review, file, colours) if inline else None
                shown.append({"number": number, "file": file, "size": size, "body": body})
        finally:
            review.close()
    own = [one for one in shown if one["file"].own]
    if not (wanted.old or wanted.new):
        said["own_count"] = len(own)  # as the files are now: the log does not know what others took back since
    return {
        **said,
        "files": shown,
        "others": [one for one in shown if not one["file"].own],
        "trees": ",".join(review.new),
        "added": sum(one["file"].added for one in own),
        "removed": sum(one["file"].removed for one in own),
    }


def _body(review: SessionReview, file: FileToReview, colours: LineColours) -> dict[str, Any]:
    """Give the changes of a file with their lines, as far as they are shown."""
    hunks: list[Mapping[str, Any]] = []
    left = _MOST_SHOWN
    found = review.hunks(file)
    old, new = (colours.of(file.path, lines) for lines in review.lines(file))
    for hunk in found:
        if left <= 0:
            break
        hunks.append(hunk_html(hunk, left, old, new))
        left -= len(hunk.old) + len(hunk.new)
    return {"hunks": hunks, "left_out": len(found) - len(hunks)}


def _copies(request: Request, session_id: str) -> list[dict[str, Any]]:
    """Give what commands that a question is open about left in their throw-away copies."""
    opened = book_of(request).find(session_id)
    if opened is None:
        return []
    roots = (str(opened.session.workspace), *opened.session.roots)
    found = [(one, one.copy, asked_in_words(one, roots)) for one in opened.questions if one.copy is not None]
    return [
        {
            "words": words,
            "danger": words.style is QuestionStyle.DANGER,
            "why": why_blocks(question, words),
            "diff": copy.diff,
        }
        for question, copy, words in found
    ]


async def _file(request: Request) -> Response:
    """Give the changes of one file, for a page that is open already."""
    session_id, path = request.path_params["session_id"], request.query_params.get("path", "")

    def rendered() -> str:
        with _opened(session_id, _range_of(request)) as review:
            file = review.file(path)
            number = review.files.index(file)
            one = {"number": number, "file": file, "body": _body(review, file, LineColours())}
            return render("review_file.html", one=one, marks=review_marks(session_id))

    return HTMLResponse(await asyncio.to_thread(rendered))


async def _panel(request: Request) -> Response:
    """Give the changes of a session for the panel beside its conversation, with the diff of one file.

    They are those of the whole session, or as its `scope` says of the `turn`, or of a step: `OLD-NEW`, two checkpoints.
    """
    session_id, path = request.path_params["session_id"], request.query_params.get("path", "")
    scope = request.query_params.get("scope", "")
    old, _, new = scope.partition("-")
    if scope not in ("", "turn") and not all(_is_number(one) for one in (old, new)):
        raise HTTPException(400, "The changes are those of the turn, or of a step: OLD-NEW.")

    def rendered() -> str:
        with session_log(session_id) as (row, store):
            first = turn_checkpoint(store, row.id) if scope == "turn" else int(old or 0)
            wanted = _Range(old=first, new=int(new or 0))
            parts = {
                "session_id": row.id,
                "scope": scope,
                "wanted": wanted,
                "steps": review_steps(store, row.id),
                "unkept": "",
            }
            review = open_review(store, row)
            if review is None:
                parts["unkept"] = Points(store, row.id).unkept()
                return render("changes_panel.html", **parts, files=[], own=0, others=False)
            try:
                own = sum(file.own for file in review.files)
                listed = {} if scope else _listed(review, path)
            finally:
                review.close()
            if scope:
                with _opened(session_id, wanted) as part:
                    listed = _listed(part, path)
            return render("changes_panel.html", **parts, **listed, own=own)

    return HTMLResponse(await asyncio.to_thread(rendered))


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _LONGEST_NUMBER


def _listed(review: SessionReview, wanted: str) -> dict[str, Any]:
    own = [(number, file) for number, file in enumerate(review.files) if file.own]
    if not own:
        return {"files": [], "others": bool(review.files)}
    number, shown = next(((number, file) for number, file in own if file.path == wanted), own[0])
    size = (shown.change.added or 0) + (shown.change.removed or 0)
    fits = shown.change.by_lines and size <= _MOST_OF_ONE
    files = [
        {
            "number": at,
            "path": file.path,
            "folder": f"{folder}/" if (folder := posixpath.dirname(file.path)) else "",
            "name": posixpath.basename(file.path),
            "kind": file.kind,
            "added": file.added,
            "removed": file.removed,
        }
        for at, file in own
    ]
    return {
        "files": files,
        "others": False,
        "added": sum(file.added for _, file in own),
        "removed": sum(file.removed for _, file in own),
        "shown": shown.path,
        "shown_added": shown.added,
        "shown_removed": shown.removed,
        "number": number,
        "blocks": hunk_blocks(_body(review, shown, LineColours())["hunks"]) if fits else [],
        "why_not": _why_not(shown),
    }


def _why_not(file: FileToReview) -> str:
    if file.change.by_lines and not (file.change.added or file.change.removed):
        return "No line of it differs."
    if file.change.by_lines:
        return "Too much to show here."
    return "This is not text." if file.change.added is None else "Text in this encoding is not shown by its lines."


async def _text(request: Request) -> Response:
    """Give the new lines of a change to be edited."""
    session_id, path = request.path_params["session_id"], request.query_params.get("path", "")
    index = request.query_params.get("index", "")

    def found() -> str:
        with _opened(session_id, _range_of(request)) as review:
            return review.amendable(path, int(index) if _is_number(index) else -1)

    return answer({"text": await asyncio.to_thread(found)})


class _TakeBack(_Range):
    path: str = ""
    hunks: tuple[HunkChoice, ...] = ()
    marks: dict[str, str] = {}


async def _take_back(request: Request) -> Response:
    """Take changes of a file back, or put other lines in their place; what is there now is merged with it."""
    said = await body_of(request, _TakeBack)
    session_id = request.path_params["session_id"]

    def wish() -> Restore:
        with _opened(session_id, said) as review:
            return review.take_back([FileChoice(said.path, said.hunks)])

    went = await restore_in(request, await asyncio.to_thread(wish))
    if not went.result.error and not went.result.conflicts:
        await asyncio.to_thread(_note, session_id, said.marks)

    def conflict() -> str:
        with _opened(session_id, said) as review:
            found = conflict_html(review.conflict(said.path))
            return render("review_conflict.html", conflict=found, why=went.result.conflicts[0].why)

    shown = await asyncio.to_thread(conflict) if went.result.conflicts else ""
    return answer({**went_back_words(session_id, went), "conflict": shown})


def _note(session_id: str, marks: Mapping[str, str]) -> None:
    with session_log(session_id) as (row, _):
        mark_reviewed(row.id, {key[:_LONGEST_KEY]: mark for key, mark in marks.items() if mark in _MARKS})


class _Marks(Struct):
    marks: dict[str, str]


async def _mark(request: Request) -> Response:
    """Note which changes a person accepted."""
    said = await body_of(request, _Marks)
    await asyncio.to_thread(_note, request.path_params["session_id"], said.marks)
    return done()


class _Said(Record, frozen=True):
    path: str
    index: int
    text: str
    side: str = ""
    first: int = 0
    last: int = 0


class _Comments(_Range):
    comments: tuple[_Said, ...] = ()


async def _message(request: Request) -> Response:
    """Make one message of the comments, which the person reads before it is sent."""
    said = await body_of(request, _Comments)
    comments = [
        ReviewComment(path=one.path, index=one.index, text=one.text, side=one.side, first=one.first, last=one.last)
        for one in said.comments
    ]

    def written() -> str:
        with _opened(request.path_params["session_id"], said) as review:
            return comments_message(review, comments)

    return answer({"text": await asyncio.to_thread(written)})


ROUTES = (
    PageRoute("/s/{session_id}/review", _show, Reach.SEE),
    PageRoute("/s/{session_id}/review/file", _file, Reach.SEE),
    PageRoute("/s/{session_id}/review/panel", _panel, Reach.SEE),
    PageRoute("/s/{session_id}/review/text", _text, Reach.SEE),
    PageRoute("/s/{session_id}/review/take-back", _take_back, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/review/marks", _mark, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/review/message", _message, Reach.WORK, methods=["POST"]),
)
