"""Files beside a conversation: those that a message can name, and nothing hidden, outside or asked about."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.e2e.faults.driving import make
from tests.web.in_process import idle, page_here
from treadle.providers.scripted.script import Turn

TURNS = (
    Turn(items=(make("write_to_file", path="src/new.py", content="def f():\n    return '<b>'\n"),)),
    Turn(items=(make("attempt_completion", result="Done."),)),
)


async def test_files_are_listed_found_and_shown_with_what_the_session_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "ws"
    (folder / "src" / "deep").mkdir(parents=True)
    (tmp_path / "outside.txt").write_text("a secret of another folder\n")
    (folder / "odd\n\t.txt").write_text("all of it\n")
    (folder / ".gitignore").write_text(".env\n")
    (folder / ".env").write_text("TOKEN=1\n")
    (folder / "leads").symlink_to("../outside.txt")
    (folder / "src" / "old.py").write_text("x = 1\n")
    (folder / "large.txt").write_text("long line\n" * 50_000)
    (folder / "src" / "deep" / "data.bin").write_bytes(bytes(range(256)) * 4)
    async with page_here(tmp_path, monkeypatch, TURNS, mode="edits") as here:
        visit = here.visit()
        page = await here.start(visit, "Write.")
        await idle(page)
        path = f"/s/{page.session.id}"

        async def listed(query: str = "") -> list[str]:
            return re.findall(r'data-(?:folder|file)="([^"]*)"', await visit.get(f"{path}/files{query}"))

        assert (first := await listed())[0] == "src/", "folders first"
        assert ".env" not in first
        assert await listed("?folder=src/") == ["", "src/deep/", "src/new.py", "src/old.py"], "and the way back"
        assert await listed("?find=nwpy") == ["src/new.py"]
        html = await visit.get(f"{path}/file?path=src/new.py")
        assert html.count('class="add"') == 2
        assert "&lt;b&gt;" in html
        assert "<b>" not in html
        (odd,) = [one for one in await listed() if one.startswith("odd")]
        assert "all of it" in await visit.get(f"{path}/file?{urlencode({'path': unescape(odd)})}"), "by its shown name"
        assert 'class="add"' not in await visit.get(f"{path}/file?path=src/old.py"), "of others"
        for name in (".env", "leads", "large.txt", "src/deep/data.bin", "../outside.txt", "src/", "nowhere"):
            status, said = await visit.look(f"{path}/file?path={name}")
            assert status == 400, name
            assert "secret" not in said, name
