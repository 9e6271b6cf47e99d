"""Imported, renamed and archived sessions as a person goes on with them."""

import json
from pathlib import Path

from tests.app.foreign_corpus import claude_lines, write_lines
from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import model
from tests.person import ENTER, ESCAPE
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

HELLO = Script(turns=(Turn(items=(SayText(text="Hello to you."),)),) * 5)


async def sessions(program: Program, folder: Path, *flags: str) -> list[dict[str, object]]:
    said = await program.run("sessions", "--json", *flags, cwd=folder)
    return [json.loads(line) for line in said.out.splitlines()]


async def test_an_imported_session_is_continued_with_what_was_said_in_it(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    folder = tmp_path / "project"
    folder.mkdir()
    lines = [{**line, "cwd": str(folder)} if "cwd" in line else line for line in claude_lines()]
    assert (await program.run("import", str(write_lines(tmp_path / "t.jsonl", lines)))).code == Exit.DONE
    async with ScriptedServer(HELLO) as server:
        ended = await program.run("-p", "Go on.", "--continue", *model(server), cwd=folder)
        assert (ended.code, "Hello to you." in ended.out) == (Exit.DONE, True), ended.err
        (request,) = server.requests
    sent = json.dumps(request.body)
    for part in ("Why does the cart fail?", "pytest -q 'zebra'", "1 failed", "Go on."):
        assert part in sent
    (session,) = await sessions(program, folder)
    assert (session["title"], session["state"], session["mode"]) == ("The failing cart", "done", "ask")
    assert (await program.run("audit", "verify", cwd=folder)).code == Exit.DONE


async def test_the_picker_shows_names_and_hides_what_is_archived_and_resuming_unpacks(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(HELLO) as server:
        for task in ("Fix the cart total.", "Test the discount."):
            await program.run("-p", task, *model(server), cwd=tmp_path)
        second, first = [str(one["id"]) for one in await sessions(program, tmp_path)]
        await program.run("rename", first, "cart work")
        await program.run("archive", second)
        async with on_terminal(program, "--resume", *model(server)) as terminal:
            await terminal.until_shown("Resume ›", "cart work")
            assert "Test the discount" not in terminal.shown
            terminal.type(ESCAPE)
            assert await terminal.ended() == Exit.DONE
        ended = await program.run("-p", "More.", "--resume", second, *model(server), cwd=tmp_path)
        assert ended.code == Exit.DONE, ended.err
    assert [one["id"] for one in await sessions(program, tmp_path)] == [second, first]


async def test_a_session_is_renamed_and_exported_from_within(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(HELLO) as server:
        await program.run("-p", "Fix the cart total.", *model(server), cwd=tmp_path)
        renamed = await program.run("-p", "/rename cart work", "--continue", *model(server), cwd=tmp_path)
        assert (renamed.code, "cart work" in renamed.out) == (Exit.DONE, True), renamed.err
        for words in ("/export html page.html", "/export notes.md", "/export json"):
            ended = await program.run("-p", words, "--continue", *model(server), cwd=tmp_path)
            assert ended.code == Exit.DONE, ended.err
        wrong = await program.run("-p", "/export xml", "--continue", *model(server), cwd=tmp_path)
        assert (wrong.code, "no format: md, html, json" in " ".join(wrong.err.split())) == (Exit.USAGE, True)
        assert not (tmp_path / "xml").exists()
        named = await program.run("-p", "/export md xml", "--continue", *model(server), cwd=tmp_path)
        assert (named.code, (tmp_path / "xml").exists()) == (Exit.DONE, True), named.err
        again = await program.run("-p", "/export notes.md", "--continue", *model(server), cwd=tmp_path)
        assert (again.code, "exists already" in again.err) == (Exit.USAGE, True)
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "notes.md").read_text().startswith("# cart work")
    assert len(list(tmp_path.glob("treadle-*.json"))) == 1


async def test_a_question_before_deleting_is_answered_on_the_terminal(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(HELLO) as server:
        await program.run("-p", "Fix the cart total.", *model(server), cwd=tmp_path)
        (session,) = await sessions(program, tmp_path)
        for answer, left in (("n", 1), ("y", 0)):
            async with on_terminal(program, "delete", str(session["id"])) as terminal:
                await terminal.until_shown("for good? [y/N]")
                terminal.type(f"{answer}{ENTER}")
                await terminal.ended()
            assert len(await sessions(program, tmp_path)) == left
