"""The fixed files of the page: a browser keeps those that are named with their digest, and nothing else for good."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.web.asking import Asked, asked
from treadle.web import page_files
from treadle.web.page_files import files_path, how_long_kept, module_tags

FILES = Path(page_files.__file__).parent / "static"
FOREVER = "private, max-age=31536000, immutable"


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Asked]:
    async with asked(tmp_path / "home", monkeypatch) as found:
        yield found


async def test_a_file_named_with_the_digest_is_kept_for_good_and_all_else_is_asked_for_again(server: Asked) -> None:
    entrance = server.enter()
    kept = {
        f"{files_path()}/app.js": (200, FOREVER),
        "/static/app.js": (200, "no-cache"),
        f"{files_path()}/none.js": (404, "no-store"),
        "/static/0123456789abcdef/app.js": (404, "no-store"),
        f"/static/app.js{files_path()}": (404, "no-store"),
        "/": (200, "no-store"),
        "/inbox/cards": (200, "no-store"),
    }
    answers = {path: await server.ask(path, entrance) for path in kept}
    assert {path: (one.status, one.headers["cache-control"]) for path, one in answers.items()} == kept
    assert answers[f"{files_path()}/app.js"].body == (FILES / "app.js").read_bytes() == answers["/static/app.js"].body


async def test_files_are_compressed_on_the_wire_and_what_a_screen_loads_stays_small(server: Asked) -> None:
    sizes: dict[str, int] = {}
    async with server.client(server.enter()) as client:
        for name in sorted(
            {"page.css", *imported_by("live.js"), *imported_by("column.js"), *imported_by("palette.js")}
        ):
            answer = await client.get(f"{files_path()}/{name}")
            assert answer.content == (FILES / name).read_bytes()
            sizes[name] = answer.num_bytes_downloaded
        plain = await client.get(f"{files_path()}/page.css", headers={"accept-encoding": "identity"})
        assert plain.num_bytes_downloaded == (FILES / "page.css").stat().st_size
    assert sizes.pop("page.css") < 45_000
    assert sum(sizes.values()) < 140_000


@pytest.mark.parametrize("path", ["/s/static/x", "/s/x/static/app.js", "/x/static/app.js", "/static", "/~a/b/static/x"])
def test_what_only_looks_like_a_file_of_the_page_is_not_kept(path: str) -> None:
    assert how_long_kept(path) == "no-store"


def imported_by(name: str) -> set[str]:
    """All that a module loads, as a browser finds it."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += re.findall(r'(?:from|import) "\./([\w-]+\.js)"', (FILES / one).read_text())
    return found


@pytest.mark.parametrize("name", sorted(file.name for file in FILES.glob("*.js") if "import" in file.read_text()))
def test_all_that_a_module_imports_is_loaded_with_it(name: str) -> None:
    named = set(re.findall(r'"/base/static/\w+/([\w-]+\.js)"', module_tags("/base") + module_tags("/base", name)))
    assert named >= imported_by(name)
    assert named == imported_by(name) | imported_by("app.js") | imported_by("column.js") | imported_by(
        "palette.js"
    ) | imported_by("notify.js")


def test_no_page_shows_a_command_line_but_the_one_that_a_session_is_opened_with_in_a_terminal() -> None:
    lines = [line for file in (FILES.parent / "templates").glob("*.html") for line in file.read_text().splitlines()]
    named = [line for line in lines if re.search(r"\btreadle [a-z{-]|`", line)]
    assert ["Copy the terminal command" in line for line in named] == [True]
