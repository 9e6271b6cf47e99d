"""Budgets, time limits, fallback, modes with models of their own and the checklist, as a user meets them."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.e2e.process import Ended, Program
from treadle.app.errors.exits import Exit
from treadle.protocol.models import ReplyStop
from treadle.protocol.usage import Usage
from treadle.providers.scripted.script import Expectation, MakeCall, Refuse, SayText, Script, Texts, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer

MODEL = "anthropic-compatible/scripted"
PRICES = f"""
[models."{MODEL}"]
context_window = 200000
max_output = 8000
input_price = 1.0
output_price = 10.0
"""
LIST = "- [x] look\n- [ ] change\n- [ ] test"


def look(number: int, **more: Any) -> Turn:
    """Look at the folder; each call is another one, so that it is no loop."""
    arguments = {"path": ".", "regex": f"word {number}", **more}
    return Turn(items=(MakeCall(name="search_files", arguments=arguments),), usage=Usage(input_tokens=20_000))


DONE = Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "Done."}),))


def asked(text: str) -> Expectation:
    return Expectation(last_user=Texts(contains=(text,)))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "home" / "config.toml").write_text(PRICES)
    return Program(tmp_path / "home")


async def run(program: Program, server: ScriptedServer, *flags: str, task: str = "Look.") -> Ended:
    work = str(program.home.parent / "work")
    return await program.run(
        "-p", task, "-C", work, "--model", MODEL, "--base-url", server.base_url, "--mode", "full", *flags
    )


def configure(program: Program, more: str) -> None:
    """Add to the settings; tables stand after plain values."""
    (program.home / "config.toml").write_text(f"{more}\n{PRICES}")


async def test_a_session_over_its_budget_ends_with_54_and_goes_on_with_a_larger_one(program: Program) -> None:
    async with ScriptedServer(Script(turns=(look(1), look(2), DONE))) as server:
        stopped = await run(program, server, "--max-cost", "0.06")
        assert (stopped.code, int(Exit.BUDGET)) == (Exit.BUDGET, 54)
        assert "stopped by the session's budget of $0.06: $0.04 is spent" in stopped.err
        assert len(server.requests) == 2
        again = await run(program, server, "--continue", "--max-cost", "1", task="Go on.")
        assert (again.code, again.out.strip()) == (Exit.DONE, "Done.")
    assert server.requests[0].body["max_tokens"] < 8_000


async def test_a_budget_of_tokens_counts_over_the_turns_of_a_session(program: Program) -> None:
    async with ScriptedServer(Script(turns=(look(1), look(2), DONE))) as server:
        ended = await run(program, server, "--max-tokens", "45000")
    assert ended.code == Exit.BUDGET
    assert "45,000 tokens: 40,000 are used" in ended.err


async def test_the_days_budget_holds_for_sessions_that_run_side_by_side(program: Program) -> None:
    configure(program, "budget.day_cost = 0.2")
    turns = tuple(look(number) for number in range(1, 9))
    async with ScriptedServer(Script(turns=(*turns, DONE))) as first, ScriptedServer(Script(turns=turns)) as second:
        ended = await asyncio.gather(run(program, first), run(program, second))
        later = await run(program, first)
    assert {one.code for one in ended} == {Exit.BUDGET}
    assert all("the day's budget of $0.20" in one.err for one in ended)
    spent = 0.02 * (len(first.requests) + len(second.requests))
    assert 0.1 < spent <= 0.2
    assert later.code == Exit.BUDGET


async def test_an_unknown_price_stops_a_budget_in_money_where_nobody_can_be_asked(program: Program) -> None:
    (program.home / "config.toml").write_text("")
    async with ScriptedServer(Script(turns=(DONE,))) as server:
        proxy = ("--model", "litellm/any", "--base-url", f"{server.base_url}/v1")
        ended = await run(program, server, "--max-cost", "5", *proxy)
    assert ended.code == Exit.BUDGET
    assert "The price of litellm/any is not known" in ended.err
    assert server.requests == []


async def test_a_turn_ends_when_its_time_is_up_and_can_be_resumed(program: Program) -> None:
    waiting = Turn(when=asked("Look."), items=(SayText(text="Hm"), Wait(seconds=600)))
    going_on = Turn(when=asked("Go on."), items=DONE.items)
    async with ScriptedServer(Script(turns=(going_on, waiting))) as server:
        ended = await run(program, server, "--max-seconds", "1")
        assert ended.code == Exit.BUDGET
        assert "stopped by the turn's limit of 1 s" in ended.err
        again = await run(program, server, "--continue", "--max-seconds", "600", task="Go on.")
    assert (again.code, again.out.strip()) == (Exit.DONE, "Done.")


async def test_the_fallback_takes_over_visibly_when_the_provider_keeps_failing(program: Program) -> None:
    down = Turn(items=(Refuse(status=529, headers={"retry-after": "30"}),))
    async with ScriptedServer(Script(turns=(down,))) as server:
        script = program.home / "spare.json"
        script.write_text(json.dumps({"turns": [{"items": [{"type": "text", "text": "From the spare."}]}]}))
        ended = await run(program, server, "--fallback", f"scripted/{script}")
    assert (ended.code, ended.out.strip()) == (Exit.DONE, "From the spare.")
    assert f"Model: scripted/{script} ({MODEL} keeps failing" in ended.err


async def test_the_thinking_budget_goes_into_the_request(program: Program) -> None:
    async with ScriptedServer(Script(turns=(DONE,))) as server:
        ended = await run(program, server, "--thinking-budget", "2000")
    assert ended.code == Exit.DONE
    assert server.requests[0].body["thinking"] == {"type": "enabled", "budget_tokens": 2000}


async def test_the_checklist_is_shown_kept_in_a_file_and_the_users_change_of_it_reaches_the_model(
    program: Program,
) -> None:
    turns = (look(1, task_progress=LIST), look(2), DONE)
    async with ScriptedServer(Script(turns=turns)) as server:
        first = await run(program, server)
        assert "checklist: 1/3 · change" in first.err
        (file,) = (program.home / "checklists").glob("*.md")
        assert file.read_text() == f"# Checklist\n\n{LIST}\n"
        file.write_text(f"# Checklist\n\n{LIST}\n- [ ] by the user\n")
        await run(program, server, "--continue", task="Go on.")
    assert "task_progress" in server.requests[0].body["tools"][0]["input_schema"]["properties"]
    told = json.dumps(server.requests[-1].body["messages"])
    assert "The user changed the task's checklist." in told
    assert "by the user" in told


async def test_without_the_checklist_no_tool_carries_one(program: Program) -> None:
    configure(program, "checklist = false")
    async with ScriptedServer(Script(turns=(DONE,))) as server:
        await run(program, server)
    assert "task_progress" not in json.dumps(server.requests[0].body)


def piece(text: str, *, cut: bool = True) -> Turn:
    return Turn(items=(SayText(text=text),), stop=ReplyStop.MAX_TOKENS if cut else None)


async def test_an_answer_that_the_output_limit_cuts_off_is_given_whole(program: Program) -> None:
    pieces = (piece("The answer is: first ha"), piece("lf, second half", cut=True), piece(" and the end.", cut=False))
    async with ScriptedServer(Script(turns=pieces)) as server:
        ended = await run(program, server, "--output-format", "json")
        assert (ended.code, json.loads(ended.out)["text"]) == (
            Exit.DONE,
            "The answer is: first half, second half and the end.",
        )
        assert "Continue where it ended" in str(server.requests[1].body["messages"][-1])
    calls = (piece("I look first"), look(1), piece("Nothing is there.", cut=False))
    async with ScriptedServer(Script(turns=calls)) as server:
        ended = await run(program, server)
        assert (ended.code, ended.out.strip()) == (Exit.DONE, "Nothing is there."), (
            "what led to a call is no part of it"
        )
    assert "The same:" in (await program.run("replay", "--strict", cwd=program.home.parent / "work")).out


async def test_the_answer_of_a_subagent_that_was_cut_off_reaches_its_parent_whole(program: Program) -> None:
    child = Expectation(system=Texts(contains=("You are a subagent",)))
    told = msgspec.structs.replace(child, last_user=Texts(contains=("Continue where it ended",)))
    tasks = [{"prompt": "Look for bugs.", "agent": "explore"}]
    turns = (
        Turn(items=(MakeCall(name="use_subagents", arguments={"tasks": tasks}),)),
        msgspec.structs.replace(piece(" second half.", cut=False), when=told),
        msgspec.structs.replace(piece("FIRST HALF: a bug in a.py;"), when=child),
        DONE,
    )
    async with ScriptedServer(Script(turns=turns)) as server:
        ended = await run(program, server)
        assert ended.code == Exit.DONE, ended.err
        assert "FIRST HALF: a bug in a.py; second half." in str(server.requests[-1].body["messages"])
