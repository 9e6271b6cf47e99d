"""A session is started with what was chosen and attached there, once, whatever the browser hears of it."""

import asyncio
import json
import re
from base64 import b64encode
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.async_api import FilePayload

from tests.e2e.faults.driving import make
from tests.web.driving import becomes, needs_chromium, page_with_model
from tests.web.in_process import idle, page_here, until
from tests.web.test_fleet_page import progress
from tests.web.test_saying import PIXEL
from treadle.app.compose import open_store
from treadle.app.reports.known_batches import keep_progress
from treadle.present.items import SaidItem
from treadle.protocol.errors import ConfigError
from treadle.providers.scripted.script import SayText, Turn
from treadle.store.sqlite import SessionRow
from treadle.web.folders import names_apart

TYPED = FilePayload(name="notes.txt", mimeType="text/plain", buffer=b"Buy bread.")
DONE = Turn(items=(SayText(text="Done."),))
NOTES = {"name": "notes.txt", "data": b64encode(b"Buy bread.\n").decode()}


async def refuse(*_: object) -> None:
    """Be a session that takes nothing now."""
    raise ConfigError("refused", "Not now.", fix="Send it again.")


async def test_a_session_begins_with_the_chosen_model_else_with_that_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-one")
    turns = [Turn(items=(SayText(text="Done."),))] * 2
    async with page_here(tmp_path, monkeypatch, turns) as here:
        visit = here.visit()
        offered = re.findall(r'<option value="(\w+/[^"]+)" data-about="[^"]*tokens', await visit.get("/"))
        assert any(one.startswith("anthropic/") for one in offered)
        assert not [one for one in offered if one.startswith("openai/")], "there is no key for them"
        for chosen in ("anthropic-compatible/another", ""):
            said = {"folder": str(here.folder), "text": "Begin.", "model": chosen, "trust": "once"}
            status, answered = await visit.post("/sessions", **said)
            assert status == 200, answered
            model = here.book.opened[answered["session"]].session.status.model
            assert model == (chosen or "anthropic-compatible/scripted")


async def test_without_a_key_no_other_model_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with page_here(tmp_path, monkeypatch, ()) as here:
        offered = (await here.visit().get("/")).partition('<select name="model"')[2].partition("</select>")[0]
        assert re.findall(r"<option[^>]*>([^<]+)", offered) == ["scripted", "Another provider…"]


async def test_without_a_model_a_key_is_taken_in_place_and_then_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, (), model="") as here:
        visit = here.visit()
        html = await visit.get("/")
        form = html.partition('data-post="/settings/key"')[2].partition("</form>")[0]
        assert re.findall(r'<option value="([^"]+)"', form)[:2] == ["anthropic", "openai"], "the usual ones first"
        assert "Test and save" in form
        assert '<form id="start" hidden>' in html
        assert 'data-filled="/settings/models/local"' in html, "models of this computer are looked for by themselves"
        await visit.done("/settings/key", provider="anthropic", key="sk-ant-one-two-three-four", untried=True)
        html = await visit.get("/")
        assert ('<form id="start">' in html, "/settings/models/local" in html) == (True, False)


async def test_texts_and_images_go_along_and_a_second_request_starts_no_second_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [DONE] * 2) as here:
        visit = here.visit()
        said = {
            "folder": str(here.folder),
            "files": [NOTES, {"name": "a.png", "data": PIXEL}],
            "id": "m",
            "text": "Look.",
        }
        first, second = await asyncio.gather(*(visit.done("/sessions", **said) for _ in range(2)))
        assert first == second
        (page,) = here.book.opened.values()
        await idle(page)
        assert [one.item.enclosed for one in page.content.items() if isinstance(one.item, SaidItem)] == [("notes.txt",)]
        (request,) = here.server.requests
        assert "Buy bread." in str(request.body)
        assert "image/png" in str(request.body)
        await visit.done("/sessions", **{**said, "text": "", "files": [NOTES], "id": "n"})
        await idle(list(here.book.opened.values())[-1])
        assert "Buy bread." in str(here.server.requests[-1].body), "no words are needed"


async def test_what_is_neither_text_nor_image_starts_nothing_and_a_command_says_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, []) as here:
        visit = here.visit()
        said = {"folder": str(here.folder), "text": "Look."}
        for name, data in (("a.bin", bytes(range(256))), ("long.txt", b"x" * 400_001)):
            wrong = {"name": name, "data": b64encode(data).decode()}
            status, answered = await visit.post("/sessions", **said, files=[wrong])
            assert (status, answered["code"]) == (400, "attachment")
            assert name in answered["what"]
            assert "image that its name says" not in answered["why"]
        assert not here.book.opened
        came = await visit.done("/sessions", **{**said, "text": "/status"})
        assert came["session"] in here.book.opened
        assert str(here.folder) in came["shown"]
        assert not here.server.requests


async def test_files_of_the_chosen_folder_are_named_while_the_task_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, []) as here:
        (here.folder / "plan.md").write_text("plan\n")
        other = tmp_path / "elsewhere"
        other.mkdir()
        (other / "plot.md").write_text("plot\n")
        visit = here.visit()
        assert "plan.md" in await visit.get("/complete?text=Read @pl")
        found = await visit.get(f"/complete?folder={other}&text=Read @pl")
        assert "plot.md" in found
        assert "plan.md" not in found
        assert "/review" in await visit.get("/complete?text=/rev")


async def test_what_waits_keeps_the_texts_that_were_attached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asks = Turn(items=(make("ask_followup_question", question="Which one?"),))
    async with page_here(tmp_path, monkeypatch, [asks, DONE, DONE, DONE]) as here:
        visit = here.visit()
        page = await here.start(visit)
        question = await here.asked(page)
        path = f"/s/{page.session.id}"
        for name in ("m1", "m2", "m3"):
            text = {"name": f"{name}.txt", "data": b64encode(f"text of {name}".encode()).decode()}
            await visit.done(f"{path}/say", text=f"message {name}", id=name, files=[text])
        await visit.done(f"{path}/queue", id="m1", text="changed")
        await visit.done(f"{path}/queue", id="m2", steer=True)
        await visit.done(f"{path}/answer", question_id=question.id, option="answer", text="This one.")
        await until(page, lambda: len(page.content.delivered) == 4)
        await idle(page)
        sent = str(here.server.requests[-1].body)
        assert [sent.count(f"text of {name}") for name in ("m1", "m2", "m3")] == [1] * 3


async def test_a_text_whose_message_is_refused_goes_along_once_when_it_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [DONE] * 2) as here:
        visit = here.visit()
        page = await here.start(visit)
        await idle(page)
        said = {"text": "Look.", "id": "m", "files": [NOTES]}
        with monkeypatch.context() as broken:
            broken.setattr(page, "post", refuse)
            status, _ = await visit.post(f"/s/{page.session.id}/say", **said)
        assert status != 200
        await visit.done(f"/s/{page.session.id}/say", **said)
        await until(page, lambda: "m" in page.content.delivered)
        await idle(page)
        assert str(here.server.requests[-1].body).count("Buy bread.") == 1


@needs_chromium
async def test_a_task_is_started_with_a_file_that_was_named_and_one_that_was_attached(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [DONE], own=True) as (served, seen):
        (served.folder / "plan.md").write_text("The plan.\n")
        (other := tmp_path / "other").mkdir()
        page = await seen.page(served)
        await becomes(page, "document.activeElement.id === 'text'")
        await page.keyboard.type("Read @pl")
        await page.wait_for_selector("#menu li:has-text('plan.md')")
        await page.keyboard.press("Enter")
        assert await page.input_value("#text") == "Read @plan.md "
        await page.set_input_files("#files", [TYPED])
        await page.wait_for_selector("#images li:has-text('notes.txt')")
        await page.click("label:has(#another)")
        await becomes(page, "document.activeElement.name === 'other'")
        await page.keyboard.type(str(other))
        await page.get_by_role("switch", name="in its own copy").check()
        await page.click("#choose-mode")
        await page.wait_for_selector("#palette[open]")
        await page.keyboard.press("ArrowUp")
        await page.keyboard.press("Enter")
        await page.reload()
        await page.wait_for_selector("#mode-about:text('Nothing is changed.')")
        assert await page.input_value("#text") == "Read @plan.md ", "the draft is kept"
        chosen = (
            "({ elements: { folder, other, copy, mode } }) => [folder.value, other.value, copy.checked, mode.value]"
        )
        assert await page.locator("#start").evaluate(chosen) == ["", str(other), True, "plan"], "and what goes with it"
        await page.check("[name=folder] >> nth=0", force=True)
        await page.get_by_role("switch", name="in its own copy").uncheck()
        await page.set_input_files("#files", [TYPED])
        await page.wait_for_selector("#images li:has-text('notes.txt')")
        await page.focus("#text")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/s/*")
        await page.wait_for_selector(".item.said:has-text('notes.txt')")
        await page.wait_for_selector(".item:has-text('Done.')")


async def test_what_is_attached_to_a_held_message_outlives_a_change_of_its_words_and_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = Turn(items=(make("ask_followup_question", question="Which one?"),))
    async with page_here(tmp_path, monkeypatch, [asks, DONE]) as here:
        visit = here.visit()
        page = await here.start(visit)
        await here.asked(page)
        path = f"/s/{page.session.id}"
        await visit.done(f"{path}/say", text="Look.", id="m", files=[NOTES])
        await visit.done(f"{path}/interrupt")
        await idle(page)
        await visit.done(f"{path}/queue", id="m", text="Look here.")
        await visit.done(f"{path}/close")
        await visit.done(f"{path}/open")
        again = here.book.opened[page.session.id]
        assert again is not page
        assert [one.id for one in again.session.status.held] == ["m"]
        await visit.done(f"{path}/queue", id="m")
        await until(again, lambda: "m" in again.content.delivered)
        await idle(again)
        assert str(here.server.requests[-1].body).count("Buy bread.") == 1
        assert "Look here." in str(here.server.requests[-1].body)


async def test_folders_of_batch_tasks_and_those_that_are_gone_are_offered_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, ()) as here:
        store = open_store()
        for at, (name, place) in enumerate((("mine", "shop"), ("left", "gone"), ("run-1.a", "copies/a")), 1):
            if name != "left":
                (tmp_path / place).mkdir(parents=True)
            row = SessionRow(
                id=name,
                workspace=f"{tmp_path}/{place}",
                model="p/a",
                title="go",
                created_at=at,
                updated_at=at,
                events=0,
            )
            await store.create(row)
        store.close()
        keep_progress(progress(command=("tasks.jsonl",), began_in=str(tmp_path), exit_code=75))
        visit = here.visit()
        for screen in ("/", "/settings", "/settings/servers", "/policy", "/fleet/run-1"):
            shown = (await visit.get(screen)).partition("<main")[2]
            assert f"{tmp_path}/copies/a" not in shown, screen
            assert f"{tmp_path}/gone" not in shown, screen
            assert f"{tmp_path}/shop" in shown, screen
        assert json.loads(await visit.get(f"/folders?typed={tmp_path.name}")) == [str(here.folder), f"{tmp_path}/shop"]
        assert f'value="{tmp_path}/gone"' in await visit.get("/sessions"), "its session is found all the same"


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["/home/me/shop", "/home/me/notes"], ["shop", "notes"]),
        (["/work/a/harbor", "/work/b/harbor", "/harbor"], ["a/harbor", "b/harbor", "harbor"]),
        (["/a/src/app", "/b/src/app", "/b/app"], ["a/src/app", "b/src/app", "b/app"]),
        (["/"], ["/"]),
    ],
)
def test_folders_of_one_name_are_told_apart_by_what_differs_in_their_paths(
    folders: list[str], names: list[str]
) -> None:
    assert names_apart(folders) == names


async def test_a_path_that_is_typed_is_completed_to_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("shop/src", "Shopping", ".shell", "other"):
        (tmp_path / "places" / name).mkdir(parents=True)
    (tmp_path / "places" / "shop.txt").write_text("no folder")
    async with page_here(tmp_path, monkeypatch, ()) as here:
        visit, places = here.visit(), f"{tmp_path}/places"

        async def typed(text: str) -> list[str]:
            found: list[str] = json.loads(await visit.get(f"/folders?{urlencode({'typed': text})}"))
            return [one.removeprefix(f"{places}/") for one in found]

        assert await typed(f"{places}/sho") == ["Shopping", "shop"]
        assert await typed(f"{places}/") == ["Shopping", "other", "shop"]
        assert await typed(f"{places}/.s") == [".shell"]
        assert await typed(f"{places}/shop/") == ["shop/src"]
        assert await typed("ws") == [str(here.folder)], "one that is known, by a part of its name"
        for nothing in (f"{places}/none/", "/root\0", "~nobody-at-all/", "../"):
            assert await typed(nothing) == [], nothing
