"""What browsers say to a session: answers of which the first counts, and messages that arrive once."""

import asyncio
import json
import re
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.faults.driving import block, make, run
from tests.mcp.hubs import FAKE
from tests.needed import require
from tests.web.in_process import idle, page_here, until
from tests.web.test_page_view import shown
from tests.workspace.test_documents import pdf_of
from treadle.door.commands import SLASH_TABLE
from treadle.present.items import OwnCommandItem, SaidItem
from treadle.protocol.messages import text_of
from treadle.protocol.permissions import Mode
from treadle.providers.scripted.script import SayText, SayThinking, Turn
from treadle.web.entered import about_here, commands_here, works_here
from treadle.web.page_keys import Visitor
from treadle.web.status import page_status

SOURCE = "one = 1\ntwo = 2\n"
EDIT = make("replace_in_file", path="a.py", diff=block("one = 1\n", "one = 10\n") + block("two = 2\n", "two = 20\n"))
PUSH = run("git push origin main")
DONE = Turn(items=(make("attempt_completion", result="Done."),))
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


HERE = Visitor(name="browser 1", here=True)


async def test_the_first_answer_wins_and_the_other_browser_hears_whose_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [Turn(items=(PUSH,)), DONE]) as here:
        first, second = here.visit(), here.visit()
        page = await here.start(first)
        question = await here.asked(page)
        path = f"/s/{page.session.id}/answer"
        no = {"question_id": question.id, "option": "reject_once", "text": "not today"}
        answers = await asyncio.gather(second.post(path, **no), first.post(path, **no))
        assert answers[0] == (200, {})
        assert answers[1] == (
            409,
            {"code": "answered", "what": "Answered in browser 2: rejected.", "why": "", "fix": ""},
        )
        await idle(page)
        assert (await first.post(path, **no))[0] == 409
        assert "not today" in str(here.server.requests[-1].body)
        cards = await second.get("/inbox/cards")
        assert "Nothing waits for you" in cards


async def test_a_device_is_said_to_have_answered_by_the_name_that_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [Turn(items=(PUSH,)), DONE]) as here:
        first, second = here.visit(), here.visit()
        assert here.keys.rename("browser 2", "Pixel 8")
        page = await here.start(first)
        question = await here.asked(page)
        yes = {"question_id": question.id, "option": "allow_once"}
        await second.done(f"/s/{page.session.id}/answer", **yes)
        status, said = await first.post(f"/s/{page.session.id}/answer", **yes)
        assert (status, said["what"]) == (409, "Answered on Pixel 8: allowed once.")
        await idle(page)


async def test_calls_are_changed_before_they_run_and_edits_block_by_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = make("replace_in_file", path="c.py", diff=EDIT.arguments["diff"])
    turns = [Turn(items=(more,)), Turn(items=(EDIT,)), Turn(items=(PUSH,)), DONE]
    async with page_here(tmp_path, monkeypatch, turns) as here:
        for name in "ac":
            (here.folder / f"{name}.py").write_text(SOURCE)
        visit = here.visit()
        page = await here.start(visit)
        path = f"/s/{page.session.id}/answer"
        question = await here.asked(page, about="c.py")
        yes = {"question_id": question.id, "option": "allow_once"}
        for texts in (["one = 10\n"], ["one = 10\n", "=======\n"]):
            status, said = await visit.post(path, **yes, texts=texts)
            assert (status, said["code"]) == (400, "block-texts")
        await visit.done(path, **yes, texts=["one = 10\n", "two = 3\r\n\r\nthree = 4"])
        question = await here.asked(page, about="a.py")
        assert (here.folder / "c.py").read_text() == "one = 10\ntwo = 3\n\nthree = 4\n"
        status, said = await visit.post(path, question_id=question.id, option="allow_once", blocks=[True])
        assert (status, said["code"]) == (400, "blocks")
        yes = {"question_id": question.id, "option": "allow_once"}
        await visit.done(path, **yes, blocks=[False, True], edits=True)
        question = await here.asked(page, about="push")
        assert (here.folder / "a.py").read_text() == "one = 1\ntwo = 20\n"
        assert page.session.status.mode is Mode.EDITS
        yes["question_id"] = question.id
        status, said = await visit.post(path, **yes, changed="[1]")
        assert (status, said["code"]) == (400, "arguments-json")
        await visit.done(path, **yes, name="command", changed="echo changed > b.txt")
        await idle(page)
        assert (here.folder / "b.txt").read_text() == "changed\n"


async def test_an_edit_of_which_no_block_is_taken_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with page_here(tmp_path, monkeypatch, [Turn(items=(EDIT,)), DONE]) as here:
        (here.folder / "a.py").write_text(SOURCE)
        visit = here.visit()
        page = await here.start(visit)
        question = await here.asked(page)
        answer = {"question_id": question.id, "option": "allow_once", "blocks": [False, False]}
        await visit.done(f"/s/{page.session.id}/answer", **answer)
        await idle(page)
        assert page.content.answered == {question.id: "Answered in browser 1: rejected."}
        assert (here.folder / "a.py").read_text() == SOURCE


async def test_a_message_that_comes_twice_arrives_once_even_after_the_session_was_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [DONE, DONE, DONE]) as here:
        visit = here.visit()
        page = await here.start(visit)
        await idle(page)
        path = f"/s/{page.session.id}"
        said = {"text": "again", "id": "m1"}
        both = await asyncio.gather(visit.post(f"{path}/say", **said), visit.post(f"{path}/say", **said))
        assert list(both) == [(200, {"shown": ""}), (200, {"shown": ""})]
        await until(page, lambda: page.content.delivered >= {"m1"} and not page.session.status.turn_active)
        await visit.done(f"{path}/close")
        await visit.done(f"{path}/say", **said)
        again = here.book.opened[page.session.id]
        assert again is not page
        texts = [one.item.text for one in again.content.items() if isinstance(one.item, SaidItem)]
        assert texts.count("again") == 1
        assert not again.session.status.turn_active


async def test_what_comes_with_a_question_beside_the_work_is_kept_for_the_next_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [DONE, DONE, DONE]) as here:
        visit = here.visit()
        page = await here.start(visit)
        await idle(page)
        path = f"/s/{page.session.id}/say"
        await visit.done(path, text="!echo one")
        items = page.content.items
        await until(page, lambda: any(isinstance(one.item, OwnCommandItem) and one.item.said for one in items()))
        files = [{"name": "a.png", "data": PIXEL}]
        assert (await visit.done(path, text="/btw What is it?", files=files))["kept"] is True
        await until(page, lambda: len(here.server.requests) == 2)
        await visit.done(path, text="Look.", files=files)
        await until(page, lambda: len(here.server.requests) == 3)
        sent = [str(request.body) for request in here.server.requests]
        assert [("$ echo one" in one, PIXEL in one) for one in sent[1:]] == [(False, False), (True, True)]


async def test_what_waits_is_changed_sent_at_once_removed_or_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [Turn(items=(PUSH,)), DONE, DONE]) as here:
        visit = here.visit()
        page = await here.start(visit)
        await here.asked(page)
        path = f"/s/{page.session.id}"
        for name in ("m1", "m2", "m3"):
            images = [{"name": "a.png", "data": PIXEL}] if name == "m1" else []
            await visit.done(f"{path}/say", text=f"message {name}", id=name, files=images)
        await visit.done(f"{path}/queue", id="m1", text="changed")
        await visit.done(f"{path}/queue", id="m2", text="")
        await visit.done(f"{path}/queue", id="m3", send="steer")
        assert [text_of(one.content) for one in page.session.status.queue] == ["changed", "message m3"]
        status, said = await visit.post(f"{path}/queue", id="m2", text="late")
        assert (status, said["why"]) == (409, "the message does not wait any more")
        waiting = [(one["text"], one["steer"]) for one in page_status(page, HERE)["queue"]]
        assert waiting == [("changed", False), ("message m3", True)]
        await visit.done(f"{path}/interrupt")
        await idle(page)
        assert page.session.status.queue == ()
        held = [(one["text"], one["held"]) for one in page_status(page, HERE)["queue"]]
        assert held == [("changed", True), ("message m3", True)]
        assert not page.session.status.turn_active, "a stop starts nothing"
        await visit.done(f"{path}/queue", id="m1")
        await until(page, lambda: "m1" in page.content.delivered)
        await idle(page)
        assert str(here.server.requests[-1].body).count("image/png") == 1  # what went along with it still does
        assert [one.id for one in page.session.status.held] == ["m3"]


async def test_commands_are_done_and_those_of_terminals_say_what_to_do_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [DONE]) as here:
        visit = here.visit()
        page = await here.start(visit)
        await idle(page)

        fixes: list[str] = []

        async def say(text: str) -> str:
            status, answered = await visit.post(f"/s/{page.session.id}/say", text=text)
            fixes.append(str(answered.get("fix", "")))
            return str(answered["shown"] if status == 200 else f"{status} {answered['what']}")

        assert await say("/mode plan") == "", "the conversation says it"
        assert page.session.status.mode is Mode.PLAN
        assert await say("/new") == "422 /new does not work here. New session, in the column, begins one."
        elsewhere = [row for row in SLASH_TABLE if not works_here(row)]
        for said in [await say(f"/{row.name}") for row in elsewhere]:
            assert not any(sign in said for sign in ("treadle ", "`", " --")), said
        assert await say("/model nosuch") == "400 'nosuch' is not a model name."
        assert fixes[-1] == "Write PROVIDER/NAME."
        assert (await say("/hlp")).startswith("422 There is no command /hlp. Did you mean /help?")
        assert "/mode  go to another mode: plan, ask, edits, auto or full" in await say("/help")
        assert "/quit" not in await say("/help")
        assert await say("/help mode") == "/mode  go to another mode: plan, ask, edits, auto or full"
        assert "Shift-Tab" not in await say("/help"), "which is a key of the terminal app"
        assert (await say("!")).startswith("422 Write a command of your own behind the !")
        assert await say("/undo please") == "422 /undo takes no text behind it. Nothing was done."
        assert await say("/steer") == "422 Write the message after /steer."
        assert len(here.server.requests) == 1


async def test_commands_of_ones_own_run_are_stopped_and_go_along_with_the_next_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [DONE, DONE]) as here:
        visit = here.visit()
        page = await here.start(visit)
        await idle(page)
        path = f"/s/{page.session.id}"

        def ended() -> list[tuple[str, bool, str]]:
            items = [one.item for one in page.content.items() if isinstance(one.item, OwnCommandItem)]
            return [(item.line, item.good, item.output) for item in items if item.since is None]

        await visit.done(f"{path}/say", text="!echo '<b>'; exit 3")
        await until(page, lambda: ended() == [("echo '<b>'; exit 3", False, "<b>\n")])
        await visit.done(f"{path}/say", text="!sleep 300")
        await visit.done(f"{path}/commands/stop", number=2)
        await until(page, lambda: [line for line, *_ in ended()][1:] == ["sleep 300"])
        assert (await visit.post(f"{path}/commands/stop", number=2))[0] == 404
        assert "&lt;b&gt;" in await visit.get(path)
        assert len(here.server.requests) == 1
        await visit.done(f"{path}/say", text="What happened?", id="m")
        await until(page, lambda: "m" in page.content.delivered)
        await idle(page)
        sent = str(here.server.requests[-1].body["messages"][-1])
        assert "; exit 3" in sent
        assert "sleep 300" in sent


async def test_images_go_along_and_what_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with page_here(tmp_path, monkeypatch, [DONE, DONE]) as here:
        visit = here.visit()
        page = await here.start(visit)
        await idle(page)
        path = f"/s/{page.session.id}/say"
        for data in ("no base64!", "//4AbmVpdGhlcg=="):
            status, said = await visit.post(path, text="look", id="m", files=[{"name": "a.png", "data": data}])
            assert (status, said["code"]) == (400, "attachment")
        await visit.done(path, text="look", id="m", files=[{"name": "a.png", "data": PIXEL}])
        await until(page, lambda: "m" in page.content.delivered)
        await idle(page)
        assert "image/png" in str(here.server.requests[-1].body)


async def test_a_closed_session_of_a_folder_that_nobody_trusts_is_continued_after_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [DONE, DONE, DONE], trust=False) as here:
        (here.folder / "AGENTS.md").write_text("Be nice.\n")
        visit = here.visit()
        asked = await visit.done("/sessions", folder=str(here.folder), text="Work.")
        said = {"trust": "later", "seen": asked["trust"]["seen"]}
        session_id = (await visit.done("/sessions", folder=str(here.folder), text="Work.", **said))["session"]
        await idle(here.book.opened[session_id])
        again = await visit.done("/sessions", folder=str(here.folder), text="Work.")
        await idle(here.book.opened[again["session"]])
        assert not here.book.opened[again["session"]].session.trust.trusted, "of the same content nobody is asked again"
        for one in (session_id, again["session"]):
            await visit.done(f"/s/{one}/close")
        assert here.book.opened == {}
        assert (await visit.post(f"/s/{session_id}/close"))[0] == 404
        (here.folder / "AGENTS.md").write_text("Be calm.\n")
        path = f"/s/{session_id}/say"
        asked = await visit.done(path, text="more", id="m")
        assert asked["trust"]["title"].endswith("/ws?")
        assert here.book.opened == {}
        (here.folder / "AGENTS.md").write_text("Be quick.\n")
        changed = await visit.done(path, text="more", id="m", trust="always", seen=asked["trust"]["seen"])
        assert changed["trust"]["seen"] != asked["trust"]["seen"]
        assert await visit.done(path, text="more", id="m", trust="always", seen=changed["trust"]["seen"]) == {
            "shown": ""
        }
        page = here.book.opened[session_id]
        await until(page, lambda: "m" in page.content.delivered)
        assert page.session.trust.trusted


async def test_the_page_of_a_session_that_was_closed_is_the_one_that_saw_it_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [
        Turn(items=(SayThinking(text="Hm."), SayText(text="First.\n\n```py\n1\n\n2\n```\n"), run("echo one"), EDIT)),
        Turn(items=(SayText(text="Then."), PUSH)),
        DONE,
    ]
    async with page_here(tmp_path, monkeypatch, turns) as here:
        (here.folder / "a.py").write_text(SOURCE)
        visit = here.visit()
        page = await here.start(visit)
        for about in ("SEARCH", "push"):
            question = await here.asked(page, about=about)
            option = "allow_once" if about == "SEARCH" else "reject_once"
            await visit.done(f"/s/{page.session.id}/answer", question_id=question.id, option=option)
        await idle(page)
        seen = shown(page.content)
        await visit.done(f"/s/{page.session.id}/close")
        past = await asyncio.to_thread(here.book.past, page.session.id)
        assert shown(past) == seen


async def test_one_command_in_the_background_is_stopped_and_no_other_session_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [Turn(items=(run("sleep 300", background=True),)), DONE, DONE]
    async with page_here(tmp_path, monkeypatch, turns, mode="full") as here:
        visit = here.visit()
        page = await here.start(visit)
        await idle(page)
        jobs = await visit.get(f"/s/{page.session.id}/jobs")
        assert "sleep 300" in jobs
        job = jobs.partition('data-job="')[2].partition('"')[0]
        other = await here.start(visit, "Rest.")
        status, said = await visit.post(f"/s/{other.session.id}/jobs/stop", id=job)
        assert (status, said["code"]) == (404, "job-unknown")
        await visit.done(f"/s/{page.session.id}/jobs/stop", id=job)
        jobs = await visit.get(f"/s/{page.session.id}/jobs")
        assert "data-job" not in jobs
        assert "sleep 300" in jobs


async def test_commands_and_files_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with page_here(tmp_path, monkeypatch, [DONE]) as here:
        (here.folder / "shop").mkdir()
        (here.folder / "shop" / "my cart.py").write_text("")
        visit = here.visit()
        page = await here.start(visit)
        await idle(page)
        path = f"/s/{page.session.id}/complete?text="
        about = "go to another mode: plan, ask, edits, auto or full"
        assert f'"name":"/mode","about":"{about}","text":"/mode "' in await visit.get(f"{path}/mo")
        for row in commands_here():  # no marks are shown as text, no brackets, and no word that stands for another
            said = f"/{row.name} {about_here(row)}".replace("AGENTS.md", "").replace("MCP", "")
            assert not re.search(r"[`\[\]]|--|[A-Z]{2}|\bN\b", said), said
        assert '"text":"/mode edits"' in await visit.get(f"{path}/mode e")
        assert '"/quit"' not in await visit.get(f"{path}/q")
        found = await visit.get(f"{path}%F0%9F%98%80 look at @cart")
        assert '{"name":"shop/my cart.py","about":"","text":"@\\"shop/my cart.py\\" "}' in found
        assert found.endswith('"replaces":5,"free":false}')
        assert await visit.get(f"{path}mail a@cart") == '{"rows":[],"replaces":0,"free":false}'


async def test_what_a_prompt_of_a_server_can_be_followed_by_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    entry = {"command": sys.executable, "args": [str(FAKE), "prompts"]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"fake": entry}}))
    async with page_here(tmp_path, monkeypatch, [DONE]) as here:
        visit = here.visit()
        page = await here.start(visit)
        await idle(page)
        path = f"/s/{page.session.id}/complete?text="
        found: dict[str, Any] = {"rows": ()}
        async with asyncio.timeout(90):
            while not found["rows"]:  # until the server is up
                found = json.loads(await visit.get(f"{path}/fake:weather note=O"))
        assert [row["text"] for row in found["rows"][:2]] == [
            "/fake:weather note=Oslo",
            "/fake:weather note='New York'",
        ]
        assert (found["replaces"], found["free"]) == (len("/fake:weather note=O"), True)
        assert json.loads(await visit.get(f"{path}/fake:none O"))["rows"] == []


async def test_the_text_of_a_document_goes_along_and_what_is_none_says_so_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("pypdf")
    data = b64encode(pdf_of("Ship it on Friday")).decode()
    async with page_here(tmp_path, monkeypatch, [DONE, DONE]) as here:
        visit = here.visit()
        page = await here.start(visit)
        await idle(page)
        path = f"/s/{page.session.id}/say"
        for name in ("a.heic", "broken.pdf"):
            wrong = {"name": name, "data": b64encode(b"\0\xff\0").decode()}
            status, said = await visit.post(path, text="look", id="m", files=[wrong])
            assert (status, said["what"]) == (400, f"{name} cannot be attached."), "the message stays in the field"
        await visit.done(path, text="look", id="m", files=[{"name": "plan.pdf", "data": data}])
        await until(page, lambda: "m" in page.content.delivered)
        await idle(page)
        assert "Ship it on Friday" in str(here.server.requests[-1].body)
