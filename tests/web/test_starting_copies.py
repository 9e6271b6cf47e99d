"""A session that is started from the page in a copy of its folder: the folder stays, and the copy is applied later."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Route

from tests.e2e.faults.driving import make
from tests.web.driving import needs_chromium, page_with_model
from tests.web.in_process import idle, page_here
from tests.web.test_commit import MESSAGE, git, listed, repository
from tests.web.test_rights import phone
from treadle.app.history import taking_copies
from treadle.app.reports.copy_list import apply_copy, planned_copy
from treadle.app.subagents.writer_copies import found_copies
from treadle.app.subagents.writer_record import writers_folder
from treadle.providers.scripted.script import Turn


class KilledError(Exception):
    """The program ends here."""


def _killed_after(does: Callable[..., Any]) -> Callable[..., Any]:
    def ends(*arguments: Any) -> None:
        does(*arguments)
        raise KilledError

    return ends


WRITE = Turn(items=(make("write_to_file", path="a.txt", content="new\n"),))
DONE = Turn(items=(make("attempt_completion", result="All done."),))


async def test_a_session_in_a_copy_leaves_the_folder_and_a_second_request_makes_no_second_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [WRITE, DONE]) as here:
        (here.folder / "b.txt").write_text("there\n")
        visit = here.visit()
        said = {"folder": str(here.folder), "text": "Write.", "copy": True, "mode": "edits", "id": "m"}
        first, second = await asyncio.gather(*(visit.done("/sessions", **said) for _ in range(2)))
        assert first == second
        (copy,) = found_copies()
        assert copy.workspace == here.folder
        (page,) = here.book.opened.values()
        await idle(page)
        assert page.session.workspace == copy.folder
        assert (copy.folder / "a.txt").read_text() == "new\n"
        assert (copy.folder / "b.txt").read_text() == "there\n"
        assert not (here.folder / "a.txt").exists()
        assert f"works in {copy.child_id}, a copy of {here.folder}" in first["shown"]
        assert f"This session works in {copy.child_id}, a copy of" in first["shown"]
        assert [one.path for one in planned_copy(copy).would.merged] == [str(here.folder / "a.txt")]
        assert f'title="{copy.folder}"' in (shown := await visit.get(f"/s/{first['session']}"))
        assert f"</svg>{copy.child_id}</span>" in shown.replace("\n", ""), "the bar has the name of the copy"
        assert str(copy.folder) not in await visit.get("/"), "the folder is offered, not its copies"
        at = f"/s/{first['session']}"
        assert f'data-post="{at}/copy/take"' in await visit.get(f"{at}/review")
        assert (await visit.done(f"{at}/copy/take"))["said"] == "1 file taken."
        assert (here.folder / "a.txt").read_text() == "new\n"
        assert (await visit.done(f"{at}/copy/take"))["said"] == "The folder has all of it already."
        assert f'data-post="{at}/copy/undo"' in await visit.get(f"{at}/review")
        assert (await visit.done(f"{at}/copy/undo"))["said"] == "1 file deleted."
        assert (sorted(one.name for one in here.folder.iterdir()), copy.folder.is_dir()) == (["b.txt"], True)
        assert f'data-post="{at}/copy/undo"' not in await visit.get(f"{at}/review")
        monkeypatch.setattr(taking_copies, "apply_copy", _killed_after(apply_copy))
        with pytest.raises(KilledError):
            await asyncio.to_thread(taking_copies.take_changes, first["session"])
        (here.folder / "own.txt").write_text("mine\n")
        assert (here.folder / "a.txt").read_text() == "new\n"
        said = (await visit.done(f"{at}/copy/undo"))["said"]
        assert said.startswith("1 file deleted.")
        assert "own.txt" in said
        assert sorted(one.name for one in here.folder.iterdir()) == ["b.txt", "own.txt"]
        here.folder.rename(tmp_path / "elsewhere")
        assert "This session works in a copy" in await visit.get(f"{at}/review")
        assert (await visit.post(f"{at}/copy/take"))[1]["code"] == "workspace-missing"


async def test_a_commit_in_a_copy_says_so_and_amends_nothing_that_the_folder_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(tmp_path / "ws")
    async with page_here(tmp_path, monkeypatch, [WRITE, DONE, WRITE, DONE], mode="edits") as here:
        visit = here.visit()
        first = await visit.done("/sessions", folder=str(here.folder), text="Write.", copy=True)
        (page,) = here.book.opened.values()
        await idle(page)
        (copy,) = found_copies()
        path, begun = f"/s/{page.session.id}", git(here.folder, "rev-parse", "HEAD").strip()
        apart = f"{copy.child_id} is a copy of {here.folder}, with a repository of its own: that folder does not get"
        form = await visit.get(f"{path}/commit")
        assert apart in form
        assert "Amend" not in form, "the folder has the commit that the copy began with"
        status, said = await visit.post(f"{path}/commit", message="x", paths={}, amends=begun)
        assert (status, said["code"]) == (400, "commit-gone")
        review = await visit.get(f"{path}/review")
        assert '<button class="fill">Take the changes' in review
        assert '<button type="button" data-commit>' in review, "one filled button, the next sensible thing"
        said = await visit.done(f"{path}/commit", message=MESSAGE, paths=await listed(visit, path, "a.txt"))
        assert (said["good"], said["branch"], said["within"]) == (True, "main", f" in {copy.child_id}")
        assert said["note"].startswith(apart)
        assert git(here.folder, "rev-parse", "HEAD").strip() == begun
        assert f"Amend the last commit, “{MESSAGE}”" in await visit.get(f"{path}/commit"), "only the copy has it"
        said = (await visit.done(f"{path}/copy/take"))["said"]
        assert said.startswith("1 file taken. Not handed back: ")
        assert "branches, settings or hooks of the copy's repository; take them with git" in said
        assert "<button>Take the changes" in await visit.get(f"{path}/review")
        (here.folder / "a.txt").unlink()
        plain = await here.start(visit, "Write.")
        await idle(plain)
        path = f"/s/{plain.session.id}"
        assert '<button type="button" class="fill" data-commit>' in await visit.get(f"{path}/review")
        assert "a copy of" not in await visit.get(f"{path}/commit")
        assert first["session"] != plain.session.id


async def test_where_no_session_comes_of_it_no_copy_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with page_here(tmp_path, monkeypatch, []) as here:
        said = {"folder": str(here.folder), "text": "Look.", "copy": True}
        wrong = {"name": "a.bin", "data": "AAECAw=="}
        status, answered = await here.visit().post("/sessions", **said, files=[wrong])
        assert (status, answered["code"]) == (400, "attachment")
        home = str(here.folder.parent)  # Treadle's own data is in it
        status, answered = await here.visit().post("/sessions", **{**said, "folder": home}, trust="once")
        assert status == 400, answered
        assert home in answered["what"]
        assert answered["why"]
        assert not here.book.opened
        assert not list(found_copies())
        assert not [one for one in writers_folder().iterdir() if one.is_dir()]


async def test_a_device_starts_in_a_copy_only_where_it_may_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [DONE]) as here:
        device, other = phone(here), tmp_path / "private"
        other.mkdir()
        said = {"text": "Look.", "copy": True}
        assert (await device.post("/sessions", **said, folder=str(other)))[0] == 403
        assert (await device.post("/sessions", **said, folder=str(here.folder), mode="full"))[0] == 403
        assert not list(found_copies())
        came = await device.done("/sessions", **said, folder=str(here.folder))
        await idle(here.book.opened[came["session"]])
        assert [one.workspace for one in found_copies()] == [here.folder]


@needs_chromium
async def test_a_person_ticks_it_and_reads_where_the_session_works(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [WRITE, DONE], "--mode", "edits", own=True) as (served, seen):
        page = await seen.page(served)
        await page.fill("#start textarea", "Write.")
        await page.get_by_role("switch", name="in its own copy").check()
        held = asyncio.Event()

        async def hold(route: Route) -> None:
            await held.wait()
            await route.continue_()

        await page.route("**/sessions", hold)
        await page.click("#start button[type=submit]")
        await page.wait_for_selector("#hint:has-text('Copying the folder')")
        held.set()
        await page.wait_for_url("**/s/*")
        await page.wait_for_selector("#shown pre:has-text('until you take them in its review')")
        await page.wait_for_selector(".item.end:has-text('a.txt')")
        assert not (served.folder / "a.txt").exists()
        name = (await page.inner_text("#shown pre")).partition("works in ")[2].partition(",")[0]
        shown = await served.program.run("copies", "show", name)
        assert "a.txt" in shown.out, shown.err
