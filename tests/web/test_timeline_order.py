"""The timeline has messages where the conversation has them, and each that began a turn leads back to before it."""

import re
from pathlib import Path

import pytest

from tests.e2e.faults.driving import make
from tests.web.in_process import idle, page_here, until
from treadle.present.items import SaidItem
from treadle.providers.scripted.script import SayText, Turn

ROW = r'<li class="step[^"]*" id="step(\d+)"[^>]*data-checkpoint="(\d+)" data-to="(\d+)"[^>]*data-name="([^"]*)"'
SAID = r'class="said cut">([^<]*)<'
WRITES = (Turn(items=(make("write_to_file", path="a.txt", content="a\n"),)), Turn(items=(SayText(text="Written."),)))
ANSWERS = Turn(items=(SayText(text="So it is."),))


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
