"""The lanes of subagents: each with how it is, what it cost, and its own conversation."""

import re
from pathlib import Path

import pytest

from tests.e2e.faults.driving import make
from tests.web.in_process import idle, page_here
from treadle.providers.scripted.script import Expectation, SayText, Texts, Turn

LOOKS = Expectation(last_user=Texts(contains=("Look at <a>",)))
TURNS = (
    Turn(when=LOOKS, items=(SayText(text="It has one function."),)),
    Turn(items=(make("use_subagents", tasks=[{"prompt": "Look at <a>"}]),)),
    Turn(items=(make("attempt_completion", result="Done."),)),
)


async def test_a_subagent_has_a_lane_that_leads_to_its_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, TURNS, mode="auto") as here:
        visit = here.visit()
        page = await here.start(visit, "Give it to one.")
        await idle(page)
        path = f"/s/{page.session.id}/agents"
        html = await visit.get(path)
        (lane,) = re.findall(r'<li class="lane depth-0" id="l-([^"]+)">', html)
        assert "1 subagent" in html
        assert '<span class="chip done">Done</span>' in html
        assert "Look at &lt;a&gt;" in html
        assert await visit.get(f"{path}/rows") in html
        child = await visit.get(f"/s/{lane}")
        assert "It has one function." in child
        assert re.search(r'id="chip"[^>]*>Done<', child), "as its log says"
        assert "This session has no subagents." in await visit.get(f"/s/{lane}/agents")
