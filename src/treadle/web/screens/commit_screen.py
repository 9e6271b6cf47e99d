"""Committing what a session changed: its files and its message, then the push and the pull request."""

import asyncio
import re
import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.history import WriterCopy, copy_worked_in
from treadle.door.open_session import LiveSession, Reach
from treadle.door.opening import session_log, session_workspace
from treadle.door.review import (
    CommitPlan,
    FileToReview,
    HandingOn,
    ListedCheckpoint,
    SessionReview,
    commit_files,
    commit_programs,
    handing_on,
    in_repository,
    last_message,
    last_subjects,
    listed_checkpoints,
    open_review,
    plan_commit,
    push_line,
    request_line,
    review_marks,
    run_shown,
)
from treadle.door.settings import load_settings
from treadle.protocol.errors import ConfigError, SessionError, TreadleError
from treadle.protocol.sealed import OF_COMMIT
from treadle.web.book import SessionBook
from treadle.web.page_requests import answer, body_of, book_of, opened_session, visitor_of
from treadle.web.rights import PageRoute, may, require
from treadle.web.templating import render

_LONGEST_SUBJECT = 72

_ASKED = (
    "Write the message of a commit of what you changed in these files: {files}. A subject of at most 72 characters in "
    "the imperative, an empty line, and a short body if there is something to explain. {style}Answer with the message "
    "alone, without quotes and fences."
)

_APART = (
    "{copy.child_id} is a copy of {copy.workspace}, with a repository of its own: that folder does not get this "
    "commit. “Take the changes” in the review brings the files into it."
)


async def _show(request: Request) -> Response:
    """Give the form of a commit: the files that differ from the last one, and a field for the message."""
    session_id = request.path_params["session_id"]
    if kept := await asyncio.to_thread(_kept_elsewhere, session_id):
        return HTMLResponse(render("commit_kept.html", session_id=session_id, kept=kept))
    title, plan, copy = await asyncio.to_thread(_planned, book_of(request), session_id)
    who = visitor_of(request)
    opened = book_of(request).find(session_id)
    return HTMLResponse(
        render(
            "commit.html",
            plan=plan,
            apart=_apart(copy),
            title=title if len(title) <= _LONGEST_SUBJECT else "",
            may_commit=not plan.programs or may(who, Reach.OWN_COMMANDS),
            last=plan.last if may(who, Reach.OWN_COMMANDS) else None,
            handing=await asyncio.to_thread(_handing_later, request),
            writes=opened is not None and opened.own and not opened.session.status.turn_active,
        )
    )


def _handing_later(request: Request) -> str:
    """Make what is offered for commits that are there already; empty where nobody may, and where git does not say."""
    if not may(visitor_of(request), Reach.OWN_COMMANDS):
        return ""
    try:
        root = _trusted_folder(book_of(request), request.path_params["session_id"])
        way, (title, _, body) = handing_on(root), last_message(root).partition("\n")
    except TreadleError:
        return ""
    shown = {"push": _push_shown(way) if way.ahead else "", "title": [title], "body": body.strip(), "made": False}
    return render("commit_handing.html", way=way, **shown)


def _push_shown(way: HandingOn) -> str:
    return shlex.join(push_line(way)) if way.remote and way.branch else ""


def _kept_elsewhere(session_id: str) -> ListedCheckpoint | None:
    """Give the last checkpoint of a session whose folder is in no repository."""
    if in_repository(str(session_workspace(session_id))):
        return None
    with session_log(session_id) as (row, store):
        return next(reversed(listed_checkpoints(store, row.id)), None)


def _planned(book: SessionBook, session_id: str) -> tuple[str, CommitPlan, WriterCopy | None]:
    """Find what can be committed, the title of the session, which may be cut, and the copy that it works in, if any.

    Raises `TreadleError`.
    """
    root = _trusted_folder(book, session_id)
    with session_log(session_id) as (row, store):
        copy = copy_worked_in(row)
        copied = _copied(copy)
        review = open_review(store, row)
        try:
            if review is None:
                return row.title, plan_commit(root, (), copied=copied), copy
            accepted = _accepted(review, review_marks(row.id))
            return row.title, plan_commit(root, review.files, accepted, copied=copied), copy
        finally:
            if review is not None:
                review.close()


def _copy_of(session_id: str) -> WriterCopy | None:
    with session_log(session_id) as (row, _):
        return copy_worked_in(row)


def _copied(copy: WriterCopy | None) -> str:
    """Name the folder that a copy is one of, as long as it is there."""
    return str(copy.workspace) if copy is not None and copy.workspace.is_dir() else ""


def _apart(copy: WriterCopy | None) -> str:
    """Say where a commit is made in a copy; empty without one."""
    return "" if copy is None else _APART.format(copy=copy)


def _accepted(review: SessionReview, marks: Mapping[str, str]) -> set[str]:
    """Name the files of which a person accepted each change."""
    if "accepted" not in marks.values():
        return set()

    def is_accepted(file: FileToReview) -> bool:
        hunks = review.hunks(file)
        return bool(hunks) and all(marks.get(hunk.key) == "accepted" for hunk in hunks)

    return {file.path for file in review.files if file.own and is_accepted(file)}


def _trusted_folder(book: SessionBook, session_id: str) -> str:
    """Give the folder of a session in which git may run. Raises `TreadleError`."""
    root = session_workspace(session_id)
    if not book.trust(root).trusted:
        raise ConfigError("commit-trust", "This folder is not trusted.", fix="Trust it, or commit in a terminal.")
    return str(root)


async def _folder(request: Request) -> str:
    return await asyncio.to_thread(_trusted_folder, book_of(request), request.path_params["session_id"])


def _passed(book: SessionBook, root: str) -> tuple[str, ...]:
    """Name the variables that the user lets commands of this folder have."""
    return load_settings(book.flags, workspace=Path(root), trusted=True).pass_variables


class _Commit(Struct):
    message: str
    paths: dict[str, str]
    branch: str = ""
    amends: str = ""


async def _commit(request: Request) -> Response:
    """Commit the chosen files as the form had them: each path has the digest that it came with.

    Where that makes git run programs of the repository, or rewrites history, only on this computer.
    """
    said, who, root = await body_of(request, _Commit), visitor_of(request), await _folder(request)
    programs = await asyncio.to_thread(commit_programs, root)
    if programs or said.amends:
        require(who, Reach.OWN_COMMANDS)
    pass_on = await asyncio.to_thread(_passed, book_of(request), root)
    branch = said.branch.strip()
    copy = await asyncio.to_thread(_copy_of, request.path_params["session_id"])
    how = {"branch": branch, "amends": said.amends, "copied": _copied(copy)}
    ran = await asyncio.to_thread(partial(commit_files, root, said.paths, said.message, pass_on=pass_on, **how))
    book_of(request).relist()  # the branch may be another one
    found: dict[str, Any] = {"good": ran.status == 0, "line": ran.line, "output": ran.output, "branch": said.branch}
    found["within"] = "" if copy is None else f" in {copy.child_id}"
    apart = _apart(copy)
    try:
        way = await asyncio.to_thread(handing_on, root)
    except TreadleError as error:  # the commit is made all the same
        note = " ".join(filter(None, (apart, f"{error.what} Push it in a terminal.")))
        return answer({**found, "handing": "", "note": note})
    title, _, body = said.message.partition("\n")
    shown = {"push": _push_shown(way), "title": [title], "body": body.strip(), "made": True}
    handing = render("commit_handing.html", way=way, **shown) if may(who, Reach.OWN_COMMANDS) else ""
    return answer({**found, "branch": way.branch, "handing": handing, "note": apart})


class _Files(Struct):
    paths: tuple[str, ...]


async def _message(request: Request) -> Response:
    """Let the model of the session write the message, beside the work."""
    said, page = await body_of(request, _Files), opened_session(request)
    if not isinstance(page.session, LiveSession):
        raise SessionError("session-elsewhere", "This session is open in another program.", fix="Write the message.")
    subjects = await asyncio.to_thread(last_subjects, await _folder(request))
    style = f"The last ones were: {'; '.join(subjects)}. " if subjects else ""
    asked = _ASKED.format(files=", ".join(said.paths), style=style)
    found = await page.session.ask_unseen(asked, OF_COMMIT)
    if found.error:
        raise SessionError("commit-message", "The model wrote no message.", why=found.error, fix="Write one.")
    return answer({"text": found.text.strip()})


async def _way(root: str) -> HandingOn:
    """Find where the branch goes; raises `ConfigError` where it goes nowhere."""
    way = await asyncio.to_thread(handing_on, root)
    if way.remote and way.branch:
        return way
    why = "The repository has no remote." if way.branch else "No branch is checked out."
    raise ConfigError(
        "commit-gone", "There is nothing that can be pushed.", why=why, fix="Look with git in a terminal."
    )


class _Push(Struct):
    line: str


async def _push(request: Request) -> Response:
    """Bring the branch to its remote, by the line that was shown."""
    said, root = await body_of(request, _Push), await _folder(request)
    return await _ran(request, root, said.line, push_line(await _way(root)))


class _Request(Struct):
    title: str
    body: str = ""
    base: str = ""
    line: str = ""


async def _open_request(request: Request) -> Response:
    """Show the line that opens a pull request; with that `line` it runs."""
    said, root = await body_of(request, _Request), await _folder(request)
    way = await _way(root)
    words = request_line(said.title.strip(), said.body, said.base.strip(), way.branch)
    return await _ran(request, root, said.line, words) if said.line else answer({"line": shlex.join(words)})


async def _ran(request: Request, root: str, shown: str, words: tuple[str, ...]) -> Response:
    if shown != shlex.join(words):
        raise ConfigError("commit-gone", "The command is another one now.", why=shlex.join(words), fix="Look again.")
    pass_on = await asyncio.to_thread(_passed, book_of(request), root)
    ran = await asyncio.to_thread(partial(run_shown, root, words, pass_on=pass_on))
    address = next(iter(re.findall(r"https://\S+", ran.output)), "") if words[0] == "gh" and ran.status == 0 else ""
    return answer({"good": ran.status == 0, "line": ran.line, "output": ran.output, "address": address})


ROUTES = (
    PageRoute("/s/{session_id}/commit", _show, Reach.SEE),
    PageRoute("/s/{session_id}/commit", _commit, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/commit/message", _message, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/push", _push, Reach.OWN_COMMANDS, methods=["POST"]),
    PageRoute("/s/{session_id}/pull-request", _open_request, Reach.OWN_COMMANDS, methods=["POST"]),
)
