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
            assert "xxd" not in said, "a person on the page runs no command to read a file"


PARTS = (
    Turn(items=(make("write_to_file", path="one.py", content="a = 1\n"),)),
    Turn(items=(make("write_to_file", path="two.py", content="b = 2\nc = 3\n"),)),
    Turn(items=(make("attempt_completion", result="Done."),)),
    Turn(items=(make("write_to_file", path="one.py", content="a = 1\nd = 4\n"),)),
    Turn(items=(make("attempt_completion", result="Done again."),)),
)


async def test_the_panel_shows_the_changes_of_all_of_a_turn_or_of_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, PARTS, mode="edits") as here:
        visit = here.visit()
        page = await here.start(visit, "Write.")
        await idle(page)
        status, _ = await visit.post(f"/s/{page.session.id}/say", text="More.", id="m2", steer=False)
        assert status == 200
        await idle(page)
        path = f"/s/{page.session.id}/review/panel"

        async def shown(query: str = "") -> tuple[list[str], list[str]]:
            html = await visit.get(f"{path}{query}")
            assert 'data-own="2"' in html, "the tab counts the files of the whole session"
            return re.findall(r'data-path="([^"]*)"', html), re.findall(r'class="added">\+(\d+)', html)[:1]

        assert await shown() == (["one.py", "two.py"], ["4"])
        assert await shown("?scope=turn") == (["one.py"], ["1"])
        steps = re.findall(r'value="(\d+-\d+)"', await visit.get(path))
        assert [await shown(f"?scope={one}") for one in steps] == [
            (["one.py"], ["1"]),
            (["two.py"], ["2"]),
            (["one.py"], ["1"]),
        ]
        (here.folder / "two.py").unlink()  # somebody takes back what the session did
        html = await visit.get(f"/s/{page.session.id}/review")
        assert re.findall(r'data-count="changes">(\d*)<', html)[:1] == ["1"], "as many as the review shows"
        assert "<strong>1 file</strong>" in html
        for wrong in ("?scope=x", "?scope=1-x", "?scope=99999999999-1", "?scope=-"):
            assert (await visit.look(f"{path}{wrong}"))[0] == 400, wrong


async def test_a_file_is_opened_in_the_editor_of_the_person_and_in_none_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_, folder = tmp_path / "bin", tmp_path / "ws"
    for place, name, words in (
        (bin_, "codium", f'echo "$@" > {tmp_path}/opened'),
        (folder, "code", f"touch {tmp_path}/fooled"),
    ):
        place.mkdir()
        (place / name).write_text(f"#!/bin/sh\n{words}\n")
        (place / name).chmod(0o755)
    (folder / "a b.py").write_text("x = 1\n")
    monkeypatch.setenv("PATH", f"{folder}:{bin_}:/usr/bin:/bin")
    monkeypatch.setenv("VISUAL", str(folder / "code"))
    monkeypatch.setenv("DISPLAY", ":0")
    async with page_here(tmp_path, monkeypatch, TURNS, mode="edits") as here:
        visit = here.visit()
        page = await here.start(visit, "Write.")
        await idle(page)
        path = f"/s/{page.session.id}/file"
        assert "Open in VSCodium" in await visit.get(f"{path}?path=a%20b.py")
        assert await visit.post(f"{path}/open", file="a b.py") == (200, {})
        assert (tmp_path / "opened").read_text() == f"{folder}/a b.py\n"
        assert not (tmp_path / "fooled").exists(), "the model could have written it"
        for name in (".git/config", "../outside", "nowhere"):
            assert (await visit.post(f"{path}/open", file=name))[0] == 400, name
        (bin_ / "codium").write_text("#!/bin/sh\nexit 3\n")
        status, said = await visit.post(f"{path}/open", file="a b.py")
        assert (status, "VSCodium did not open the file." in said["what"]) == (400, True)
        monkeypatch.delenv("DISPLAY")
        monkeypatch.delenv("TERM_PROGRAM", raising=False)
        assert "Open in" not in await visit.get(f"{path}?path=a%20b.py")
        assert (await visit.post(f"{path}/open", file="a b.py"))[0] == 400
