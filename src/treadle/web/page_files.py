"""The fixed files of the page, named with a digest of them all: a browser that has them once does not ask again."""

import re
from functools import cache
from hashlib import sha256
from pathlib import Path

from markupsafe import Markup
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

_FOLDER = Path(__file__).parent / "static"
_BELOW = re.compile(r"(?:/~[^/]+)?/static/([^/]+)(/?)")
"""The path of a fixed file, which is below that of the page for who was let in."""

_IMPORT = re.compile(r'^(?:import|} from).*?"\./(\w+\.js)";$', re.MULTILINE)
_ON_EVERY_SCREEN = ("app.js", "column.js", "palette.js", "notify.js")
"""One that does not load takes only its part of the screen with it: what all need is imported, nothing else."""


class PageFiles(StaticFiles):
    """Serves them, with the digest in their path or without."""

    def __init__(self) -> None:
        super().__init__(directory=_FOLDER)

    def get_path(self, scope: Scope) -> str:
        """Give the file that is asked for."""
        return super().get_path(scope).removeprefix(f"{_digest()}/")


def files_path() -> str:
    """Give where they are, below the path of the page."""
    return f"/static/{_digest()}"


def how_long_kept(path: str) -> str:
    """Say how long a browser may keep what is at a path: for good where its name never comes to mean another file."""
    found = _BELOW.match(path)
    if found is None:
        return "no-store"
    return "private, max-age=31536000, immutable" if found[1] == _digest() and found[2] else "no-cache"


def module_tags(base: str, *names: str) -> Markup:
    """Load modules of a screen, and what they import at the same time: else each import is found after another."""
    known: dict[str, None] = {}
    for name in names or _ON_EVERY_SCREEN:
        _add_imports(name, known)
    if names:
        known = {name: None for name in known if name not in _always()}
    at = f"{base}{files_path()}"
    imported = (Markup('<link rel="modulepreload" href="{}/{}">\n').format(at, name) for name in known)
    tag = Markup('<script type="module" src="{}/{}"></script>\n')
    return Markup("").join((*imported, *(tag.format(at, name) for name in names or _ON_EVERY_SCREEN)))


@cache
def _always() -> frozenset[str]:
    known: dict[str, None] = {}
    for name in _ON_EVERY_SCREEN:
        _add_imports(name, known)
    return frozenset(known)


def _add_imports(name: str, known: dict[str, None]) -> None:
    """Note a module and all that it imports."""
    if name not in known:
        known[name] = None
        for one in _imported(name):
            _add_imports(one, known)


@cache
def _imported(name: str) -> tuple[str, ...]:
    return tuple(_IMPORT.findall((_FOLDER / name).read_text("utf-8")))


@cache
def _digest() -> str:
    made = sha256()
    for file in sorted(_FOLDER.iterdir()):
        made.update(f"{file.name} {file.stat().st_size}\n".encode() + file.read_bytes())
    return made.hexdigest()[:16]
