"""The folders that screens are about: which a person can choose from, and how the chosen one stands."""

from starlette.requests import Request

from treadle.door.opening import check_workspace, list_sessions
from treadle.door.trust import SessionTrust
from treadle.web.book import SessionBook
from treadle.web.page_requests import book_of, folder_of


def folders_known(book: SessionBook) -> list[str]:
    """Name the folders to choose from, the one of the command line first. Takes its time."""
    return list(dict.fromkeys([str(book.folder), *(row.workspace for row in list_sessions(None))]))


def trust_of(request: Request) -> SessionTrust:
    """Say how the folder stands that a request names, or that of the command line. Raises `ConfigError`."""
    book = book_of(request)
    said = request.query_params.get("folder", "").strip()
    return book.trust(check_workspace(folder_of(said) if said else book.folder))
