"""The lanes of subagents: each with how it is, what it cost, and its own conversation."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.e2e.faults.driving import make, run
from tests.web.in_process import PATIENCE, idle, page_here, until
from treadle.present.spending_words import Spending
from treadle.providers.scripted.script import Expectation, Pace, SayText, Texts, Turn
from treadle.web.screens.lanes_screen import AgentLane, lane_sums
from treadle.web.templating import render

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
        (lane,) = re.findall(r'<li class="lane" id="l-([^"]+)">', html)
        assert "<dt>Working</dt><dd>0 <small>of 1</small></dd>" in html
        assert "<dt>Steps</dt><dd>1</dd>" in html
        assert f'{path}" data-key="b" aria-current="page">Subagents <span class="num">1</span>' in html, "it is a view"
        assert html.count('data-key="b"') == 1
        assert '<span class="chip done">Done</span>' in html
        assert "Look at &lt;a&gt;" in html
        assert "explore, only reads ·" in html
        assert "<p>It has one function.</p>" in html, "what it ended with"
        assert "<dt>Took</dt>" in html
        assert await visit.get(f"{path}/rows") in html
        child = await visit.get(f"/s/{lane}")
        assert "It has one function." in child
        assert re.search(r'id="chip"[^>]*>Done<', child), "as its log says"
        alone = await visit.get(f"/s/{lane}/agents")
        assert "This session has no subagents." in alone
        assert 'Subagents <span class="num">' not in alone


async def test_one_subagent_is_stopped_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Expectation(last_user=Texts(contains=("Look at <b>",)))
    both = make("use_subagents", tasks=[{"prompt": "Look at <a>"}, {"prompt": "Look at <b>"}])
    turns = (
        Turn(when=LOOKS, items=(SayText(text="One moment, please."),), pace=Pace(chunk=1, delay=60)),
        Turn(when=looks, items=(SayText(text="It has two functions."),)),
        Turn(items=(both,)),
        Turn(items=(make("attempt_completion", result="Done."),)),
    )
    async with page_here(tmp_path, monkeypatch, turns, mode="auto") as here:
        visit = here.visit()
        page = await here.start(visit, "Give it to two.")
        path = f"/s/{page.session.id}/agents"
        async with asyncio.timeout(PATIENCE):
            found, html = list[str](), ""
            while len(found) != 1 or 'aria-label="Stop Look at &lt;a&gt;"' not in html:  # until only that one works
                await asyncio.sleep(0.05)
                found = re.findall(rf'data-post="{path}/([^/]+)/stop"', html := await visit.get(path))
        status, said = await visit.post(f"{path}/{page.session.id}/stop")
        assert (status, said["code"]) == (404, "agent-unknown"), "only what is its own"
        assert await visit.done(f"{path}/{found[0]}/stop") == {"said": ""}
        await idle(page)
        html = await visit.get(path)
        assert '<span class="chip stopped">Stopped</span>' in html
        assert '<span class="chip done">Done</span>' in html
        assert "/stop" not in html
        assert await visit.done(f"{path}/{found[0]}/stop") == {"said": "It had ended."}
        told = str(here.server.requests[-1].body)
        assert 'outcome="interrupted"' in told.replace("\\", "")
        assert "It has two functions." in told


async def test_a_subagent_that_works_is_followed_and_told_more_on_its_own_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Expectation(last_user=Texts(contains=("Count its lines",)))
    turns = (
        Turn(when=told, items=(SayText(text="It has four lines."),)),
        Turn(when=LOOKS, items=(SayText(text="It has one function, as far as I see."),), pace=Pace(chunk=1, delay=0.1)),
        Turn(items=(make("use_subagents", tasks=[{"prompt": "Look at <a>"}]),)),
        Turn(items=(make("attempt_completion", result="Done."),)),
    )
    async with page_here(tmp_path, monkeypatch, turns, mode="auto") as here:
        visit = here.visit()
        page = await here.start(visit, "Give it to one.")
        root = page.session.id
        async with asyncio.timeout(PATIENCE):
            while not (found := re.findall(r'id="l-([^"]+)"', await visit.get(f"/s/{root}/agents"))):
                await asyncio.sleep(0.05)
            while "data-opened" not in (html := await visit.get(f"/s/{found[0]}")):
                await asyncio.sleep(0.05)
        assert re.search(
            rf'A subagent of <a href="[^"]*/s/{root}">Give it to one.</a> · its questions come there', html
        )
        assert "This session is closed" not in html
        assert list(here.book.opened) == [root], "it is no session of the list, of the inbox or of the bill"
        agent = here.book.find(found[0])
        assert agent is not None
        await visit.done(f"/s/{found[0]}/say", text="Count its lines, too.")
        await idle(page)
        told_parent = str(here.server.requests[-1].body)
        assert re.search(r"It has one function, as far as I see\..*It has four lines\.", told_parent)
        assert "<dt>Steps</dt><dd>2</dd>" in await visit.get(f"/s/{root}/agents")
        async with asyncio.timeout(PATIENCE):
            while here.book.find(found[0]) is not None:
                await asyncio.sleep(0.05)
        html = await visit.get(f"/s/{found[0]}")
        assert "It has four lines." in html
        assert re.search(r'id="chip"[^>]*>Done<', html)


async def test_what_a_subagent_changed_in_its_copy_can_be_taken_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = Expectation(last_user=Texts(contains=("Write a",)), assistant_messages=0)
    turns = (
        Turn(when=writes, items=(make("write_to_file", path="a.txt", content="one\n"),)),
        Turn(when=Expectation(last_result=Texts(contains=("a.txt",))), items=(SayText(text="Written."),)),
        Turn(
            when=Expectation(assistant_messages=0),
            items=(make("use_subagents", tasks=[{"prompt": "Write a.", "agent": "worker"}]),),
        ),
        Turn(items=(make("attempt_completion", result="Done."),)),
    )
    async with page_here(tmp_path, monkeypatch, turns, mode="ask") as here:
        visit = here.visit()
        page = await here.start(visit, "Give it to a writer.")
        root = page.session.id
        writing = await here.asked(page)
        await visit.done(f"/s/{root}/answer", question_id=writing.id, option="allow_once")
        await until(page, lambda: any(one.id != writing.id for one in page.questions))
        (question,) = page.questions
        agents = await visit.get(f"/s/{root}/agents")
        assert "<dt>Needs you</dt>" in agents, "what it changed is asked about when it has ended"
        assert f'href="/s/{root}#c-{root}-{question.id}" aria-label="Answer Write a."' in agents.replace(
            here.keys.base, ""
        )
        assert ("/stop" in agents.split("<ol")[1], "Changes of" in agents) == (False, False)
        await visit.done(f"/s/{root}/answer", question_id=question.id, option="reject_once")
        await idle(page)
        agents = await visit.get(f"/s/{root}/agents")
        (child,) = re.findall(r'id="left-([^"]+)"', agents)
        assert "worker, writes in a copy ·" in agents
        assert "1 file, merges cleanly" in agents
        assert "Take 1 file</button>" in agents
        assert '<span class="tx">one</span>' in agents.partition(f'id="left-{child}"')[2], "what would come is shown"
        assert not (here.folder / "a.txt").exists()
        (here.folder / "a.txt").write_text("other\n")
        agents = await visit.get(f"/s/{root}/agents")
        assert "so it stays in the copy: <code>a.txt</code>" in agents, "conflicts are named before anything is taken"
        assert "Take 1 file" not in agents
        (here.folder / "a.txt").unlink()
        assert (await visit.done(f"/s/{child}/copy/take"))["said"] == "1 file taken."
        assert (here.folder / "a.txt").read_text() == "one\n"
        assert "Changes of" not in await visit.get(f"/s/{root}/agents")


def test_the_sums_of_lanes_are_those_of_the_lanes_and_their_time_goes_on_while_one_waits() -> None:
    def lane(sign: str, cost: float) -> AgentLane:
        spent = Spending(ended=cost)
        return AgentLane(
            id=sign, task="Look.", role="reader", model="m", sign=sign, words="Needs you", spending=spent,
            budget="$2.50", created_at=1_000, updated_at=61_000, steps=3,
            asks="root#c-root-1" if sign == "waiting" else "",
        )  # fmt: skip

    both = [lane("waiting", 0.5), lane("done", 0.25)]
    html = render("lane_rows.html", session_id="root", left=(), **lane_sums(both))
    assert html.count('href="/s/root#c-root-1" aria-label="Answer Look.">Answer</a>') == 1
    for words in ('Needs you</dt><dd class="warns">1', "Steps</dt><dd>6", "Spent by subagents</dt><dd>$0.75"):
        assert words in html, words
    assert "$0.50 of $2.50" in html
    assert ("Running for" in html, lane_sums(both)["seconds"] > 1_000_000) == (True, True)
    assert "Took</dt><dd>1 min" in render("lane_rows.html", session_id="root", left=(), **lane_sums(both[1:]))


async def test_a_subagent_that_a_person_continues_asks_on_its_own_page_and_is_listed_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = Expectation(last_user=Texts(contains=("Push it",)))
    turns = (Turn(when=more, items=(run("git push origin main"),)), *TURNS, Turn(items=(SayText(text="Not pushed."),)))
    async with page_here(tmp_path, monkeypatch, turns, mode="auto") as here:
        visit = here.visit()
        page = await here.start(visit, "Give it to one.")
        await idle(page)
        lanes = f"/s/{page.session.id}/agents"
        (lane,) = re.findall(r'id="l-([^"]+)"', await visit.get(lanes))
        await visit.done(f"/s/{lane}/say", text="/mode auto", id="m0", steer=False)  # it was one that only reads
        await visit.done(f"/s/{lane}/say", text="Push it.", id="m1", steer=False)
        child = here.book.opened[lane]
        await here.asked(child)
        html = await visit.get(f"/s/{lane}")
        assert ("its questions come there" in html, 'class="question' in html) == (False, True)
        assert f'/s/{lane}#questions" aria-label="Answer Look at &lt;a&gt;"' in await visit.get(lanes)
        assert f'id="r-{lane}"' in await visit.get(f"/s/{page.session.id}"), "the column leads there"
        await visit.done(f"/s/{lane}/answer", question_id=child.questions[0].id, option="reject_once")
        await idle(child)
        html = await visit.get(lanes)
        async with asyncio.timeout(PATIENCE):
            while '<span class="chip done">Done</span>' not in html:  # its session ends a moment after its turn
                await asyncio.sleep(0.02)
                html = await visit.get(lanes)
        assert "<dt>Working</dt><dd>0 <small>of 1</small></dd>" in html
        assert "/stop" not in html


async def test_a_session_whose_folder_is_gone_is_read_and_not_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [Turn(items=(SayText(text="Hello."),))]) as here:
        visit = here.visit()
        page = await here.start(visit, "Hello.")
        await idle(page)
        path = f"/s/{page.session.id}"
        await visit.done(f"{path}/close")
        assert 'id="continue"' in await visit.get(path)
        here.folder.rename(tmp_path / "elsewhere")
        html = await visit.get(path)
        assert ("is not there any more. It can be read" in html, 'id="continue"' in html) == (True, False)
        assert "Hello." in html


async def test_what_subagents_ask_is_said_in_whole_sentences_and_nothing_runs_while_they_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = Expectation(last_user=Texts(contains=("Write b",)), assistant_messages=0)
    ends = Expectation(last_result=Texts(contains=("Written.",)))
    runs = Expectation(last_result=Texts(contains=("b.txt",)))
    tells = Expectation(last_result=Texts(contains=("hello",)))
    turns = (
        Turn(when=ends, items=(make("attempt_completion", result="Done."),)),
        Turn(when=works, items=(make("write_to_file", path="b.txt", content="one\n"),)),
        Turn(when=runs, items=(run("echo hello > c.txt; cat c.txt"),)),
        Turn(when=tells, items=(SayText(text="Written."),)),
        Turn(
            when=Expectation(assistant_messages=0),
            items=(make("use_subagents", tasks=[{"prompt": "Write b.", "agent": "worker"}]),),
        ),
    )
    async with page_here(tmp_path, monkeypatch, turns, try_first=False) as here:
        visit = here.visit()
        page = await here.start(visit, "Give it to a writer.")
        root, known = f"/s/{page.session.id}", set[str]()
        for _ in range(3):
            await until(page, lambda: any(one.id not in known for one in page.questions))
            (question,) = page.questions
            (row,) = re.findall(r'<li id="i\d+" class="item call.*?</li>', await visit.get(root), re.DOTALL)
            assert ("waits for your answer" in row, "spin" in row, "data-since" in row) == (True, False, False)
            known.add(question.id)
            await visit.done(f"{root}/answer", question_id=question.id, option="allow_once")
        await idle(page)
        html = await visit.get(root)
        notes = re.findall(r'class="item note">\s*<p[^>]*>([^<]*)</p>', html)
        assert notes[:2] == [
            "Subagent worker: create b.txt? Allowed once.",
            "Subagent worker: run echo hello &gt; c.txt; cat c.txt? Allowed once.",
        ]
        assert "Apply what the subagent worker changed? Allowed once." in notes
