"""The timeline has messages where the conversation has them, and each that began a turn leads back to before it."""

import re
from pathlib import Path

import pytest

from tests.e2e.faults.driving import make
from tests.web.in_process import Visit, idle, page_here, until
from treadle.door.opening import session_log
from treadle.door.review import listed_checkpoints
from treadle.present.items import SaidItem
from treadle.providers.scripted.script import SayText, Turn

ROW = r'<li class="step[^"]*" id="step(\d+)"[^>]*data-checkpoint="(\d+)" data-to="(\d+)"[^>]*data-name="([^"]*)"'
SAID = r'class="said cut">([^<]*)<'
WRITES = (Turn(items=(make("write_to_file", path="a.txt", content="a\n"),)), Turn(items=(SayText(text="Written."),)))
ANSWERS = Turn(items=(SayText(text="So it is."),))
THREE = (
    Turn(items=(make("write_to_file", path="a.txt", content="a\n"),)),
    Turn(items=(make("write_to_file", path="b.txt", content="b\nb\n"),)),
    Turn(items=(SayText(text="Written."),)),
)
FIGURES = r'<span class="added">\+(\d+)</span><span class="removed">−(\d+)</span>'


async def test_a_message_that_waited_stands_where_it_was_sent_and_leads_back_to_before_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [*WRITES, ANSWERS, ANSWERS]) as here:
        visit = here.visit()
        page = await here.start(visit, "Write.")
        question = await here.asked(page)
        path = f"/s/{page.session.id}"
        await visit.done(f"{path}/say", text="Dropped.", id="m0", steer=False)
        await visit.done(f"{path}/say", text="Thn look.", id="m1", steer=False)
        await visit.done(f"{path}/say", text="Be brief.", id="m2", steer=True)
        await visit.done(f"{path}/queue", id="m0", text="")
        await visit.done(f"{path}/queue", id="m1", text="Then look.")
        assert re.findall(SAID, await visit.get(f"{path}/timeline")) == ["Write."], "no other is sent"
        await visit.done(f"{path}/answer", question_id=question.id, option="allow_once")
        await idle(page)
        said = [one.item.text for one in page.content.items() if isinstance(one.item, SaidItem)]
        assert said == ["Write.", "Be brief.", "Then look."]
        html = await visit.get(f"{path}/timeline")
        names = [name for _, _, _, name in re.findall(ROW, html)]
        message, steps = "before this message", ["step 1", "step 2", "step 3"]
        assert names == [message, steps[0], message, steps[1], message, steps[2]]
        assert [one for one in re.findall(SAID, html) if one in said] == said
        rows = [(int(seq), int(n), int(to)) for seq, n, to, name in re.findall(ROW, html) if name == message]
        assert [seq for seq, _, _ in rows] == sorted(seq for seq, _, _ in rows)
        (_, n, to), (_, after, back) = rows[0], rows[2]
        assert (n, after, to > 0, rows[1][2]) == (1, 2, True, 0)
        await visit.done(f"{path}/restore", checkpoint=after, files=True, conversation=True, to=back)
        left = [page.content.view.has_left(one) for one in page.content.items() if isinstance(one.item, SaidItem)]
        assert left == [False, False, True], "the message itself goes, and no more than its turn"
        assert (here.folder / "a.txt").read_text() == "a\n"
        await visit.done(f"{path}/restore", checkpoint=n, files=True, conversation=True, to=to)
        assert not (here.folder / "a.txt").exists()
        assert all(page.content.view.has_left(one) for one in page.content.items() if isinstance(one.item, SaidItem))


async def test_messages_before_the_first_change_lead_back_to_the_files_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [ANSWERS, *WRITES], mode="edits") as here:
        visit = here.visit()
        page = await here.start(visit, "Look.")
        await idle(page)
        path = f"/s/{page.session.id}"
        assert re.findall(ROW, await visit.get(f"{path}/timeline"))[0][1] == "0"
        await visit.done(f"{path}/say", text="Write.", id="m1", steer=False)
        await until(page, lambda: page.content.view.turn == 2 and not page.session.status.turn_active)
        rows = re.findall(ROW, await visit.get(f"{path}/timeline"))
        assert [n for _, n, _, name in rows if name == "before this message"] == ["1", "1"]


async def _steps(visit: Visit, path: str) -> dict[str, int]:
    return {name: int(n) for _, n, _, name in re.findall(ROW, await visit.get(f"{path}/timeline"))}


async def test_what_a_restore_and_a_rejected_file_leave_is_no_checkpoint_of_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, THREE, mode="edits") as here:
        visit = here.visit()
        page = await here.start(visit, "Write.")
        await idle(page)
        path = f"/s/{page.session.id}"
        began = await _steps(visit, path)
        assert began == {"before this message": 1, "step 1": 2, "step 2": 3, "step 3": 0}
        review = await visit.get(f"{path}/review")
        trees = re.findall(r'data-trees="([^"]*)"', review)[0].split(",")
        for wish, body in (
            ("restore", {"checkpoint": 2, "files": True, "conversation": True}),
            ("restore", {"checkpoint": 3, "files": True, "conversation": True}),
            ("review/take-back", {"path": "a.txt", "trees": trees}),
        ):
            await visit.done(f"{path}/{wish}", **body)
            assert await _steps(visit, path) == began
        assert [one.name for one in here.folder.iterdir()] == ["b.txt"]
        await visit.done(f"{path}/restore", checkpoint=3, files=True, conversation=True)
        assert sorted(one.name for one in here.folder.iterdir()) == ["a.txt", "b.txt"]
        with session_log(page.session.id) as (row, store):
            listed = listed_checkpoints(store, row.id)
        assert {(one.step > 0, "restored" in one.why) for one in listed} == {(True, False), (False, True)}


@pytest.mark.parametrize(("name", "files", "lines"), [("step 1", 1, 1), ("step 2", 2, 3), ("step 3", 2, 3)])
async def test_a_copy_from_a_step_owns_what_that_step_did_and_says_so_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, files: int, lines: int
) -> None:
    async with page_here(tmp_path, monkeypatch, (*THREE, ANSWERS), mode="edits") as here:
        visit = here.visit()
        page = await here.start(visit, "Write.")
        await idle(page)
        timeline = await visit.get(f"/s/{page.session.id}/timeline")
        seqs = {row: int(seq) for seq, _, _, row in re.findall(ROW, timeline)}
        copy = (await visit.done(f"/s/{page.session.id}/timeline/fork", seq=seqs[name]))["session"]
        path = f"/s/{copy}"
        live, review, panel = [await visit.get(f"{path}{one}") for one in ("", "/review", "/review/panel")]
        ended = live.partition('class="item end')[2].partition("</section>")[0]
        own = (str(lines), "0")
        assert re.findall(FIGURES, ended)[0] == own, "at the end of the turn"
        assert ("at least" in ended, f"{files} file" in ended) == (False, True)
        assert f" {name[-1]} step" in ended, "no step more was begun"
        for html, before in (
            (live, f'id="r-{copy}"'),
            (live, 'id="changes"'),
            (review, 'class="sum"'),
            (panel, "psum"),
        ):
            assert re.findall(FIGURES, html.partition(before)[2])[0] == own, before
        steps = await _steps(visit, path)
        assert list(steps) == [row for row in seqs if seqs[row] <= seqs[name]]
        assert f">From {name}: Write.<" in live
        await visit.done(f"{path}/say", text="And now?", id="m1", steer=False)
        again = here.book.opened[copy]
        await idle(again)
        numbers = re.findall(r"data-name=\"step (\d+)", await visit.get(f"{path}/timeline"))
        assert numbers == [str(number) for number in range(1, len(numbers) + 1)], "the next one is the next"


async def test_a_copy_from_before_a_message_has_nothing_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with page_here(tmp_path, monkeypatch, (*THREE, *WRITES), mode="edits") as here:
        visit = here.visit()
        page = await here.start(visit, "Write.")
        await idle(page)
        path = f"/s/{page.session.id}"
        await visit.done(f"{path}/say", text="Once more.", id="m1", steer=False)
        await until(page, lambda: page.content.view.turn == 2 and not page.session.status.turn_active)
        rows = re.findall(ROW, await visit.get(f"{path}/timeline"))
        said = [int(seq) for seq, _, _, row in rows if row == "before this message"]
        copies = [(await visit.done(f"{path}/timeline/fork", seq=seq))["session"] for seq in said]
        assert [len(await _steps(visit, f"/s/{copy}")) for copy in copies] == [0, 4]
