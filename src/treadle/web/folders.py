"""The folders that screens are about: which a person can choose from, and how the chosen one stands."""

import os
from collections.abc import Sequence
from pathlib import Path

from starlette.requests import Request

from treadle.door.open_session import Reach
from treadle.door.opening import check_workspace
from treadle.door.past import worked_folders
from treadle.door.trust import SessionTrust
from treadle.protocol.errors import ConfigError
from treadle.web.book import SessionBook
from treadle.web.page_requests import book_of, folder_of, visitor_of
from treadle.web.rights import may, require

_MOST = 50
"""Folders that are offered for what is typed."""


def folders_known(book: SessionBook) -> list[str]:
    """Name the folders that were worked in, the one of the command line first. Takes its time."""
    return list(dict.fromkeys([str(book.folder), *worked_folders()]))


def folders_there(book: SessionBook) -> list[str]:
    """Name the folders to choose from: those known that are still there. Takes its time."""
    return [one for one in folders_known(book) if Path(one).is_dir()]


def folders_typed(book: SessionBook, typed: str) -> list[str]:
    """Name the folders that a path can go on with, hidden ones where it begins so, and known ones with it in them."""
    known = [one for one in folders_there(book) if typed.lower() in one.lower()]
    if not typed.startswith(("/", "~")):
        return known[:_MOST]
    above, _, begun = typed.rpartition("/")
    try:
        with os.scandir(folder_of(f"{above}/")) as found:
            below = sorted(one.name for one in found if one.is_dir() and one.name.lower().startswith(begun.lower()))
    except (OSError, ConfigError):
        return known[:_MOST]
    names = (f"{above}/{one}" for one in below if begun.startswith(".") or not one.startswith("."))
    return [*dict.fromkeys((*names, *known))][:_MOST]


def names_apart(folders: Sequence[str]) -> Sequence[str]:
    """Name each folder by the end of its path, with as much of that as tells it from the others."""
    parts = [[one for one in folder.split("/") if one] for folder in folders]
    return [_apart(own, parts) or folder for folder, own in zip(folders, parts, strict=True)]


def _apart(own: Sequence[str], parts: Sequence[Sequence[str]]) -> str:
    ends = (own[-length:] for length in range(1, len(own) + 1))
    found = next((end for end in ends if sum(one[-len(end) :] == end for one in parts) == 1), own)
    return "/".join(found)


def require_known(request: Request, workspace: Path) -> None:
    """Raise `HTTPException` for a folder in which nobody has worked, where the browser may not choose such a one."""
    if not may(visitor_of(request), Reach.TRUST) and str(workspace) not in folders_known(book_of(request)):
        require(visitor_of(request), Reach.TRUST)


def trust_of(request: Request) -> SessionTrust:
    """Say how the folder stands that a request names, or that of the command line.

    Raises `ConfigError`, and `HTTPException` for one that the browser may not choose.
    """
    book = book_of(request)
    said = request.query_params.get("folder", "").strip()
    workspace = check_workspace(folder_of(said) if said else book.folder)
    require_known(request, workspace)
    return book.trust(workspace)
