"""A batch from the page in a real browser: paused, gone on with, killed and begun again; its tasks found and saved."""

import asyncio
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page

from tests.e2e.batches import CHECK, Place, Solver, children, tasks
from tests.web.driving import PATIENCE, becomes, browser, in_shared_browser, require_accessible, serving
from tests.web.in_process import Here, Visit, page_here
from tests.web.test_fleet_page import progress
from treadle.app.errors.exits import Exit
from treadle.app.hosting.batch_control import ADDED_TASKS
from treadle.app.reports.known_batches import keep_progress
from treadle.present.batch_progress import TaskMark
from treadle.providers.scripted.scripted_server import ScriptedServer

pytestmark = in_shared_browser

UNSOLVED = {"id": "unsolved", "prompt": "Fix.", "repo": "project", "check": "false"}


async def _says(page: Page, words: str) -> None:
    await page.wait_for_selector(f".batch h2:has-text('{words}')")


async def test_a_batch_is_paused_gone_on_with_and_what_failed_is_done_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.prepare([*tasks(3, check=CHECK), UNSOLVED])
    solver = Solver(seconds=0.5)
    async with (
        ScriptedServer(solver) as server,
        serving(tmp_path / "home", tmp_path / "ws") as served,
        browser() as seen,
    ):
        batch = await place.program.start(*place.words(server.base_url, workers=2))
        page = await seen.page(served, "/fleet")
        await page.click(".batch h2 a")
        await _says(page, "Working")
        await page.click("button:has-text('Pause')")
        async with asyncio.timeout(PATIENCE):
            await batch.communicate()
        assert batch.returncode == Exit.TRANSIENT
        ended = len(place.rows())
        assert ended < 4
        await _says(page, "Paused")
        await page.click("button:has-text('Go on')")
        await _says(page, "Done")
        states = {row["id"]: row["state"] for row in place.rows()}
        assert states == {"t00": "done", "t01": "done", "t02": "done", "unsolved": "failed"}
        assert all(number == 1 for calls in place.calls().values() for number in calls.values()), "nothing twice"
        requests = len(server.requests)
        await page.click("summary:has-text('Run 1 again…')")
        await page.fill("[name=steps]", "2")
        await page.click("button:has-text('Run again')")
        await page.wait_for_selector(".kinds summary:has-text('Out of steps')")
        assert len(server.requests) == requests + 2, "with the limit that was named, and of that task alone"
        async with page.expect_download() as downloading:
            await page.click("a:has-text('Download results')")
        lines = (Path(await (await downloading.value).path()).read_text()).splitlines()
        assert [json.loads(line) for line in lines] == place.rows()


async def test_a_task_is_added_to_a_batch_that_works_and_to_one_that_has_ended(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.prepare(tasks(1, check=CHECK))
    async with (
        ScriptedServer(Solver(seconds=1)) as server,
        serving(tmp_path / "home", tmp_path / "ws") as served,
        browser() as seen,
    ):
        batch = await place.program.start(*place.words(server.base_url))
        page = await seen.page(served, "/fleet")
        await page.click(".batch h2 a")
        await _says(page, "Working")
        await _add(page, prompt="Fix it, too.", repo=str(tmp_path / "project"), check=CHECK)
        async with asyncio.timeout(PATIENCE):
            await batch.communicate()
            while len(place.rows()) < 2:  # a slow browser adds it when the first one has ended
                await asyncio.sleep(0.05)
        await _says(page, "Done")
        assert {row["id"]: row["state"] for row in place.rows()} == {"t00": "done", "added-1": "done"}
        await _add(page, prompt="And then?", name="T00")
        await page.wait_for_selector(".failed-here >> text=Another task of this batch has the name 'T00'.")
        seen.complaints.clear()  # the browser notes the refusal
        await page.reload()
        assert await page.locator(":text('is left out')").count() == 0, "what is refused is not written"
        other = await page.context.new_page()
        await other.goto(page.url)
        more = {"prompt": "Fix once more.", "repo": str(tmp_path / "project"), "check": CHECK}
        await asyncio.gather(_add(page, **more), _add(other, **more))
        async with asyncio.timeout(PATIENCE):
            while len(place.rows()) < 4:
                await asyncio.sleep(0.05)
        await page.wait_for_selector("tbody th:has-text('added-3')")
        await require_accessible(page)
        assert {place.result(f"added-{number}")["state"] for number in (2, 3)} == {"done"}
        assert all(number == 1 for calls in place.calls().values() for number in calls.values()), "nothing twice"


async def test_the_column_follows_how_far_the_batch_is_on_every_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    async with serving(tmp_path / "home", tmp_path / "ws") as served, browser() as seen:
        first = await seen.page(served, "/inbox")
        second = await first.context.new_page()  # it hears of it through the first one
        await second.goto(f"{served.address}/usage")
        ended = tuple(TaskMark(id=f"t{number}", state="done") for number in range(6))
        for number, exit_code, words in ((2, None, "2 of 5"), (4, None, "4 of 5"), (5, 0, "")):
            keep_progress(progress(before=(), ended=ended[:number], exit_code=exit_code))
            for page in (first, second):
                await becomes(page, f"document.getElementById('reached').textContent === '{words}'")


async def test_a_task_whose_name_is_taken_or_is_none_is_refused_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, ()) as here:
        added = tmp_path / ADDED_TASKS
        added.write_text('{"id": "heard", "prompt": "x"}\n{"id": "Unread", "prompt": "x"}\n{broken\n')
        known: dict[str, Any] = {
            "folder": str(tmp_path),
            "began_in": str(tmp_path),
            "command": ("none.jsonl",),
            "heard": 1,
        }
        keep_progress(progress(chosen=("waits", "c"), besides=("unmeant",), **known))
        visit, before = here.visit(), added.read_bytes()
        for name in ("WAITS", "c", "a", "old", "unmeant", "unread"):
            status, said = await visit.post("/fleet/run-1/add", prompt="x", name=name)
            assert (status, said["what"]) == (
                409,
                f"Another task of this batch has the name {name!r}. Choose another one.",
            )
        for name in ("-x", "a b", "x" * 129, "a/b"):
            status, said = await visit.post("/fleet/run-1/add", prompt="x", name=name)
            assert (status, "A name has 1 to 128 letters" in said["what"]) == (409, True)
        assert added.read_bytes() == before
        keep_progress(progress(chosen=("added-4",), exit_code=0, **known))
        status, said = await visit.post("/fleet/run-1/add", prompt="x")
        assert (status, "The task is added, and waits" in said["what"]) == (409, True)
        assert added.read_bytes() == before + b'{"id":"added-5","prompt":"x"}\n', "a name that is free"


async def _add(page: Page, **fields: str) -> None:
    await page.click("summary:has-text('Add a task…')")
    for name, value in fields.items():
        await page.fill(f".again [name={name}]", value)
    await page.wait_for_event("response", lambda one: one.url.endswith("/rows"))
    await page.wait_for_timeout(100)
    assert await page.input_value(".again [name=prompt]") == fields["prompt"], "the list was read again meanwhile"
    await page.click(".again button:has-text('Add')")


async def test_workers_that_do_not_hand_back_are_stopped_at_once_and_nothing_is_done_twice(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.prepare(tasks(1, check=CHECK))
    async with (
        ScriptedServer(Solver(seconds=1.5)) as server,
        serving(tmp_path / "home", tmp_path / "ws") as served,
        browser() as seen,
    ):
        batch = await place.program.start(*place.words(server.base_url))
        page = await seen.page(served, "/fleet")
        await page.wait_for_selector(".kinds li:has-text('t00')")
        (worker,) = children(batch.pid)
        os.kill(worker, signal.SIGSTOP)
        await page.click("button:has-text('Pause')")
        await _says(page, "Pausing")
        await page.click("button:has-text('Stop now')")
        await page.click("dialog button:has-text('Stop now')")
        async with asyncio.timeout(PATIENCE):
            await batch.communicate()
        await _says(page, "Paused")
        await page.click("button:has-text('Go on')")
        await becomes(page, "document.querySelector('.batch h2').textContent.includes('Working')")
        await served.end()
        async with asyncio.timeout(PATIENCE):
            while not place.rows():  # the batch stays when the page has ended
                await asyncio.sleep(0.05)
        assert [row["state"] for row in place.rows()] == ["done"]
        assert all(number == 1 for calls in place.calls().values() for number in calls.values())
        seen.complaints.clear()  # the page that ended


async def test_why_a_batch_does_not_begin_is_read_on_the_page(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.prepare(tasks(2))
    async with ScriptedServer(Solver(seconds=30)) as server, serving(tmp_path / "home", tmp_path / "ws") as served:
        batch = await place.program.start(*place.words(server.base_url))
        async with browser() as seen, asyncio.timeout(PATIENCE):
            page = await seen.page(served, "/fleet")
            await _says(page, "Working")
            await page.click(".kinds li a:has-text('t00')")
            await page.wait_for_selector("#chip:has-text('Working')")
            assert page.url.endswith(".t00"), "a task that is worked on leads to its session"
            await page.go_back()
            batch.kill()
            await batch.communicate()
            await _says(page, "Paused, as its program ended")
            (place.folder / "tasks.jsonl").write_text("{broken")
            await page.click("button:has-text('Go on')")
            await page.wait_for_selector(".failed-here >> text=tasks.jsonl")
            for _ in range(2):  # the rows below are drawn anew meanwhile
                async with page.expect_response("**/fleet/rows*"):
                    pass
            await page.wait_for_timeout(100)
            assert await page.is_visible(".failed-here >> text=tasks.jsonl")
            seen.complaints.clear()  # the browser notes the refusal


async def test_tasks_are_found_by_their_state_and_words_and_the_address_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    async with serving(tmp_path / "home", tmp_path / "ws") as served, browser() as seen:
        keep_progress(progress())
        page = await seen.page(served, "/fleet/run-1")
        rows = "[...document.querySelectorAll('tbody th')].map((one) => one.textContent).join()"
        assert await page.evaluate(rows) == "c,b,a,old", "what is worked on first, then what ended last"
        await page.select_option("[name=state]", "error")
        await page.click("button:has-text('Show')")
        await page.wait_for_url("**?state=error")
        assert await page.evaluate(rows) == "b"
        await page.select_option("[name=state]", "")
        await page.fill("[name=words]", "CHECK old")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**?words=CHECK+old")
        assert await page.evaluate(rows) == "old"
        keep_progress(progress(running={"older": "check"}))
        await becomes(page, f"{rows} === 'older,old'")
        await page.reload()
        assert await page.evaluate(rows) == "older,old"


def _phone(here: Here) -> Visit:
    return Visit(here.application, here.keys.let_in(here.keys.new_link()), here.keys.base)


async def test_a_paired_device_pauses_a_batch_and_begins_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with page_here(tmp_path, monkeypatch, ()) as here:
        keep_progress(progress(command=("tasks.jsonl",), began_in=str(tmp_path), exit_code=75))
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-one")
        near, device = await here.visit().look("/fleet/run-1"), await _phone(here).look("/fleet/run-1")
        for words in ("Go on", "Run 2 again…", "Add a task…"):
            assert words in near[1], words
            assert words not in device[1], words
        offered = near[1].partition('<datalist id="models">')[2].partition("</datalist>")[0]
        assert '<option value="anthropic/' in offered, "a model is chosen as it is elsewhere"
        status, said = await _phone(here).post("/fleet/run-1/start")
        assert (status, "only on the computer" in str(said)) == (403, True)
        assert (await _phone(here).post("/fleet/run-1/add", prompt="x"))[0] == 403
        assert (await _phone(here).post("/fleet/run-1/stop"))[0] == 409, "it does not work now"
        assert (await _phone(here).post("/fleet/other/stop"))[0] == 409


async def test_what_cannot_be_done_with_a_batch_is_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with page_here(tmp_path, monkeypatch, ()) as here:
        visit = here.visit()
        there = tmp_path / "there"
        there.mkdir()
        (there / "results.jsonl").write_text("")
        keep_progress(progress("fleet", database="postgresql://host/f", folder=str(there)))
        keep_progress(progress("old", exit_code=75))
        keep_progress(progress("begun", tasks=0, states={}, running={}, ended=(), before=(), exit_code=0))
        keep_progress(progress("pausing", stopping=True, folder=str(there)))
        offered = {
            run: [words for words in ("Pause<", "Stop now…", "Go on<", " again…", "Add a", "Download") if words in html]
            for run in ("fleet", "old", "begun", "pausing")
            for html in [(await visit.look(f"/fleet/{run}"))[1]]
        }
        assert offered == {
            "fleet": ["Download"],
            "old": [],
            "begun": [],
            "pausing": ["Stop now…", "Download"],
        }
        assert (await visit.post("/fleet/old/start"))[0] == 409
        assert (await visit.post("/fleet/old/add", prompt="x"))[0] == 409
        assert (await visit.post("/fleet/old/add", prompt=" "))[0] == 400
        keep_progress(progress("pausing", stopping=True, command=("tasks.jsonl",)))
        assert "It is stopping." in str(await visit.post("/fleet/pausing/add", prompt="x"))
        assert (await visit.post("/fleet/pausing/stop"))[0] == 409, "a second press kills no worker"
        assert (await visit.post("/fleet/old/start", steps="-1"))[0] == 400
        assert (await visit.look("/fleet/nothing"))[0] == 404
        assert (await visit.look("/fleet/old/results"))[0] == 404
        (tmp_path / "out").mkdir()
        keep_progress(progress("linked", folder=str(tmp_path / "out"), exit_code=0))
        (tmp_path / "secret").write_text("secret")
        (tmp_path / "out" / "results.jsonl").symlink_to(tmp_path / "secret")
        assert (await visit.look("/fleet/linked/results"))[0] == 404, "no other file is read by a link"
        assert "Download" not in (await visit.look("/fleet/linked"))[1]


async def test_a_batch_is_begun_once_with_its_own_words_and_writes_through_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, ()) as here:
        out = tmp_path / "out"
        out.mkdir()
        words = (f"--out={out}", "--retry", "error", "--", "missing.jsonl")
        keep_progress(progress("twice", folder=str(out), command=words, began_in=str(tmp_path), exit_code=75))
        visit = here.visit()
        told = await asyncio.gather(*(visit.post("/fleet/twice/start", kind="bad", steps="2") for _ in range(2)))
        said = sorted((answer["what"] for status, answer in told if status == 409), key=len)
        assert said[0] == "A batch is being begun now. Try again when it works."
        assert said[1].startswith("missing.jsonl cannot be read. "), "the options stand before the tasks"
        assert not re.search(r"treadle: |why:|fix:|\[[a-z-]+\]$", said[1]), "sentences, as on a card"
        (out / "batch.log").unlink()
        (tmp_path / "mine").write_text("mine")
        (out / "batch.log").symlink_to(tmp_path / "mine")
        status, answer = await visit.post("/fleet/twice/start")
        assert (status, "cannot be begun" in str(answer)) == (409, True)
        assert (tmp_path / "mine").read_text() == "mine"
