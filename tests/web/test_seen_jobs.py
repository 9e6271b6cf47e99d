"""What a call left in the background is shown as it is now: by its row, in the list beside it, and in the timeline."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.e2e.faults.driving import DONE, make, run
from tests.web.in_process import idle, page_here, until
from treadle.present.items import CallItem
from treadle.present.job_words import job_ended
from treadle.protocol.tools import Outcome
from treadle.providers.scripted.script import Turn
from treadle.web.page_session import PageSession

WAITS = "echo begun; until [ -e go ]; do sleep 0.05; done; seq 40; exit 3"
TURNS = [
    Turn(items=(run(WAITS, background=True), make("read_command_output", command_number=1))),
    Turn(items=(run("true"), make("write_to_file", path="a.txt", content="1\n"))),
    DONE,
]


def _rows(page: PageSession) -> list[str]:
    return [page.content.html(one) for one in page.content.items() if isinstance(one.item, CallItem)]


async def test_a_call_whose_command_goes_on_runs_until_that_ends_and_says_then_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, TURNS, mode="full") as here:
        visit = here.visit()
        page = await here.start(visit)
        path = f"/s/{page.session.id}"
        with here.book.changed.notifying(asyncio.Event()):  # somebody looks
            await until(page, lambda: any("begun</pre>" in row.partition("out tail")[2] for row in _rows(page)[:1]))
            await idle(page)
            row, look, *_ = _rows(page)
            (job,) = re.findall(r'data-job="([^"]+)"', row)
            assert ('<span class="spin"' in row, ">in the background<" in row, "above" in row) == (True, True, False)
            assert f'data-job="{job}"' in await visit.get(f"{path}/jobs"), "the list has the same command"
            assert ("data-job" in look, "data-item" in look) == (False, False), "nothing was left out of what it tells"
            (here.folder / "go").touch()
            await until(page, lambda: "data-job" not in _rows(page)[0])
        row = _rows(page)[0]
        assert ("#i-x" in row, ">exit 3, in the background<" in row, "31 lines above" in row) == (True, True, True)
        assert re.search(r"<small>exit 3</small>", await visit.get(f"{path}/jobs"))
        assert f"Output of <code>{WAITS}</code>" in await visit.get(f"{path}/jobs/output?id={job}")
        steps = re.findall(r'<p class="did cut"><b>(\w+).*?</p>', await visit.get(f"{path}/timeline"))
        assert steps[:2] == ["Run", "Look"]
        await visit.done(f"{path}/close")
        for screen in ("", "/timeline"):
            assert "exit 3, in the background" in await visit.get(f"{path}{screen}"), "a closed session says the same"
        timeline = await visit.get(f"{path}/timeline")
        assert ">exit 0</span>" in timeline
        files = await visit.get(f"{path}/timeline?topic=files")
        assert ("a.txt +1 −0</span>" in files, "Created a.txt" in files) == (True, False), "that is for the model"


@pytest.mark.parametrize(
    ("state", "ended"),
    [
        ("Exit status 0.", ("exit 0", Outcome.OK)),
        ("Exit status 143 (128 + SIGTERM).", ("stopped", Outcome.INTERRUPTED)),
        ("Killed by SIGTERM.", ("stopped", Outcome.INTERRUPTED)),
        ("Stopped: you asked for it.", ("stopped", Outcome.INTERRUPTED)),
        ("Stopped when its session was killed.", ("stopped when its session was killed", Outcome.INTERRUPTED)),
    ],
)
def test_what_somebody_stopped_has_not_failed(state: str, ended: tuple[str, Outcome]) -> None:
    assert job_ended(state) == ended
