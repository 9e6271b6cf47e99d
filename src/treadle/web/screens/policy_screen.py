"""The screen of the policy: which rules there are and whose, what was decided, and what would be decided."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.open_session import Reach
from treadle.door.policy import (
    DecisionFilter,
    add_suggestions,
    asked_context,
    explain_access,
    explanation_lines,
    found_suggestions,
    mode_table,
    past_decisions,
    path_access,
    read_policy,
    revoke_rule,
)
from treadle.present.escape import exact_line
from treadle.present.words import describe_allowance
from treadle.protocol.errors import ConfigError, SessionError
from treadle.protocol.events import RevokeAllowance
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import FetchUrl, RunCommand
from treadle.web.book import SessionBook
from treadle.web.folders import folders_there, trust_of
from treadle.web.page_requests import answer, body_of, book_of, done, page, visitor_of
from treadle.web.rights import PageRoute
from treadle.web.templating import render

_MOST_DECISIONS = 100
_VERDICTS = {"allowed": Verdict.ALLOW, "asked": Verdict.REQUIRE_USER_CONFIRMATION, "denied": Verdict.DENY}
_OPS = ("read", "write", "list")
_LONGEST = 10_000


async def _show(request: Request) -> Response:
    found = await asyncio.to_thread(_rules, request)
    return await page(request, "policy.html", **found, allowed=_allowed(book_of(request)))


def _rules(request: Request) -> Mapping[str, Any]:
    trust = trust_of(request)
    return {
        "folder": str(trust.workspace),
        "folders": folders_there(book_of(request)),
        "policy": read_policy(trust.workspace, trusted=trust.trusted),
        "modes": list(Mode),
        "ops": _OPS,
        "verdicts": list(_VERDICTS),
        "table": mode_table(trust.workspace, trusted=trust.lets_code_run),
    }


def _allowed(book: SessionBook) -> list[Mapping[str, Any]]:
    """List what is allowed in the open sessions alone."""
    return [
        {
            "session": id_,
            "title": one.session.title or id_,
            "allowances": [
                (known.id, exact_line(describe_allowance(known))) for known in one.session.status.allowances
            ],
        }
        for id_, one in book.opened.items()
        if one.session.status.allowances
    ]


async def _explain(request: Request) -> Response:
    """Say what would be decided of a command, a path or an address; nothing is run."""
    explained, lines = await asyncio.to_thread(_explained, request)
    return HTMLResponse(render("explained.html", explained=explained, lines=lines))


def _explained(request: Request) -> tuple[Any, list[str]]:
    said = request.query_params
    trust = trust_of(request)
    what, kind = said.get("what", "").strip()[:_LONGEST], said.get("kind", "command")
    if not what:
        raise ConfigError(
            "policy-question", "There is nothing to explain.", fix="Write a command, a path or an address."
        )
    try:
        mode = Mode(said.get("mode", Mode.ASK))
    except ValueError as error:
        raise ConfigError("policy-question", "There is no such mode.", fix=f"Choose {', '.join(Mode)}.") from error
    trusted = {"trusted": True, "untrusted": False}.get(said.get("trust", ""), trust.lets_code_run)
    context = asked_context(trust.workspace, mode, trusted=trusted, tainted="tainted" in said)
    match kind:
        case "path":
            op = said.get("op", "read")
            found = explain_access(path_access(what, op if op in _OPS else "read"), context)
        case "url":
            found = explain_access(FetchUrl(url=what, method=said.get("method", "") or "GET"), context)
        case _:
            found = explain_access(RunCommand(command=what, cwd=context.roots[0]), context)
    return found, list(explanation_lines(found))


async def _decisions(request: Request) -> Response:
    """Give what was decided in past sessions."""
    said = request.query_params
    wanted = DecisionFilter(
        verdict=_VERDICTS.get(said.get("verdict", "")),
        rule=said.get("rule", "").strip(),
        text=said.get("text", "").strip(),
        session=said.get("session", "").strip(),
    )
    found = await asyncio.to_thread(past_decisions, wanted, most=_MOST_DECISIONS, start=said.get("start", ""))
    return HTMLResponse(render("decisions.html", found=found, words={value: name for name, value in _VERDICTS.items()}))


async def _suggest(request: Request) -> Response:  # noqa: ARG001 - as Starlette calls it
    """Give the rules that what was approved leads to."""
    found = await asyncio.to_thread(found_suggestions)
    return HTMLResponse(render("suggestions.html", found=[one for _, one in found]))


class _Rule(Struct):
    id: str


async def _add(request: Request) -> Response:
    """Add a suggested rule to the user's own."""
    wanted = (await body_of(request, _Rule)).id

    def add() -> tuple[tuple[str, ...], Path]:
        return add_suggestions(found_suggestions(), [wanted])

    added, file = await asyncio.to_thread(add)
    return answer({"said": f"The rule is in {file}." if added else "It was there already. Nothing was added."})


async def _remove(request: Request) -> Response:
    """Remove one of the user's own rules."""
    wanted = (await body_of(request, _Rule)).id
    files = await asyncio.to_thread(revoke_rule, wanted)
    return answer({"said": f"Removed {wanted} from {', '.join(map(str, files))}."})


class _Allowance(Struct):
    session: str
    allowance: str


async def _revoke(request: Request) -> Response:
    """Take back what was allowed in one session."""
    said = await body_of(request, _Allowance)
    opened = book_of(request).find(said.session)
    if opened is None or not any(one.id == said.allowance for one in opened.session.status.allowances):
        raise SessionError("allowance-missing", "This is not allowed any more.", fix="Load the page again.")
    await opened.post(RevokeAllowance(allowance_id=said.allowance), visitor_of(request))
    return done()


ROUTES = (
    PageRoute("/policy", _show, Reach.SEE),
    PageRoute("/policy/explain", _explain, Reach.SEE),
    PageRoute("/policy/decisions", _decisions, Reach.SEE),
    PageRoute("/policy/suggestions", _suggest, Reach.SEE),
    PageRoute("/policy/add", _add, Reach.POLICY, methods=["POST"]),
    PageRoute("/policy/remove", _remove, Reach.POLICY, methods=["POST"]),
    PageRoute("/policy/revoke", _revoke, Reach.WORK, methods=["POST"]),
)
