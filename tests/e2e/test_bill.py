"""What the program says of money: after an interrupt, after kill -9, and when nobody knows the price."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Program
from tests.e2e.test_kill import events_of, flags
from tests.rehearsal.bills import WITHIN, count_tokens
from treadle.app.errors.exits import Exit
from treadle.protocol.events import Event, ReplyFailed, ReplyFinished
from treadle.protocol.sealed import SideAnswered, TurnSettled
from treadle.protocol.usage import Usage
from treadle.providers.scripted.script import Expectation, SayText, Script, Texts, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer

QUICK = Script(turns=(Turn(items=(SayText(text="Done."),)),))
SLOW = Script(turns=(Turn(items=(SayText(text="Let me look. " * 10), Wait(seconds=60), SayText(text="no"))),))
PRICES = '[models."anthropic-compatible/scripted"]\ninput_price = 3.0\noutput_price = 15.0\n'


def priced(tmp_path: Path) -> Program:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(PRICES)
    (tmp_path / "w").mkdir()
    return Program(tmp_path / "home")


async def _end_in_reply(
    process: asyncio.subprocess.Process, server: ScriptedServer, number: signal.Signals = signal.SIGKILL
) -> None:
    while not server.requests:
        await asyncio.sleep(0.01)
    process.send_signal(number)
    await process.communicate()


def used(events: list[Event]) -> Usage:
    calls = (event.data for event in events if isinstance(event.data, ReplyFinished | ReplyFailed))
    return sum((call.usage for call in calls), start=Usage())


def settled(events: list[Event]) -> list[Any]:
    return [event.data.outcome for event in events if isinstance(event.data, TurnSettled)]


@pytest.mark.parametrize("shape", ["text", "json", "stream-json"])
async def test_a_turn_that_was_called_ended_is_ended_in_the_log_even_if_the_program_is_killed_at_once(
    tmp_path: Path, shape: str
) -> None:
    program = priced(tmp_path)
    async with ScriptedServer(QUICK, tokens=count_tokens) as server:
        arguments = ("-p", "Go.", "--output-format", shape, *flags(server, tmp_path / "w"))
        process = await program.start(*arguments)
        assert process.stdout is not None
        async for line in process.stdout:
            if b"Done." in line if shape != "stream-json" else json.loads(line).get("type") == "result":
                break
        process.send_signal(signal.SIGKILL)
        await process.communicate()
        assert server.billing is not None
        bill = server.billing.bills[0].usage
    (outcome,) = settled(events_of(tmp_path / "home"))
    assert (outcome.usage, outcome.text) == (bill, "Done.")


async def test_a_call_of_a_killed_program_is_counted_once_when_its_session_is_taken_up(tmp_path: Path) -> None:
    program = priced(tmp_path)
    async with ScriptedServer(SLOW, tokens=count_tokens) as server:
        await _end_in_reply(await program.start("-p", "Go.", *flags(server, tmp_path / "w")), server)
        while server.billing is None or not server.billing.bills:
            await asyncio.sleep(0.01)
        killed = server.billing.bills[0].usage
    assert used(events_of(tmp_path / "home")) == Usage()
    (row,) = map(json.loads, (await program.run("sessions", "--json", "--all")).out.splitlines())
    assert (row["cost"], row["known_cost"], row["tree_cost"]) == (None, 0.0, None), "what was cut is in no event yet"
    total = json.loads((await program.run("usage", "--json")).out)["total"]
    assert (total["cost"], total["requests"], total["unpriced"], total["uncounted"]) == (0.0, 1, 1, 1)
    async with ScriptedServer(QUICK, tokens=count_tokens) as server:
        ended = await program.run("-p", "", "--continue", "--output-format", "json", *flags(server, tmp_path / "w"))
        assert ended.code == 0, ended.err
        await program.run("-p", "", "--continue", *flags(server, tmp_path / "w"))
        assert server.billing is not None
        bills = [one.usage for one in server.billing.bills]
    events = events_of(tmp_path / "home")
    (lost,) = [event.data for event in events if isinstance(event.data, ReplyFailed)]
    assert (lost.left, lost.usage.estimated) == (True, True)
    assert lost.cost is not None
    assert lost.cost > 0
    assert abs(lost.usage.request_tokens - killed.request_tokens) <= WITHIN * killed.request_tokens
    assert used(events) == lost.usage + sum(bills, start=Usage())
    assert settled(events)[0].usage == used(events)
    assert json.loads(ended.out)["cost"] == settled(events)[0].cost
    (row,) = map(json.loads, (await program.run("sessions", "--json", "--all")).out.splitlines())
    assert (row["cost"], row["estimated"]) == (pytest.approx(settled(events)[0].cost), True)


async def test_an_interrupted_turn_says_about_and_one_without_a_price_says_that_it_is_unknown(tmp_path: Path) -> None:
    said = []
    for name, prices in (("priced", PRICES), ("unpriced", "")):
        (tmp_path / name).mkdir()
        program = priced(tmp_path / name)
        (program.home / "config.toml").write_text(prices)
        async with ScriptedServer(SLOW, tokens=count_tokens) as server:
            proxy = () if prices else ("--model", "litellm/scripted", "--base-url", f"{server.base_url}/v1")
            process = await program.start("-p", "Go.", *flags(server, tmp_path / name / "w"), *proxy)
            while not server.requests:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            process.send_signal(signal.SIGINT)
            _, err = await process.communicate()
        said.append(next(line for line in err.decode().splitlines() if line.startswith("# cancelled")))
    assert "about $0.0" in said[0]
    assert "$" not in said[1]
    assert "cost unknown, about" in said[1]


async def ended_at(program: Program, task: str, work: Path, number: signal.Signals = signal.SIGKILL) -> None:
    """End the program while the model answers a slash command."""
    always = Script(turns=(), otherwise=SLOW.turns[0])
    async with ScriptedServer(always, tokens=count_tokens) as server:
        await _end_in_reply(await program.start("-p", task, "--continue", *flags(server, work)), server, number)


async def told_of(program: Program) -> tuple[float | None, bool]:
    (row,) = map(json.loads, (await program.run("sessions", "--json", "--all")).out.splitlines())
    return row["cost"], row["estimated"]


async def test_a_turn_that_a_budget_ends_as_it_is_taken_up_is_not_called_done(tmp_path: Path) -> None:
    program = priced(tmp_path)
    async with ScriptedServer(SLOW, tokens=count_tokens) as server:
        await _end_in_reply(await program.start("-p", "Go.", *flags(server, tmp_path / "w")), server)
    async with ScriptedServer(QUICK, tokens=count_tokens) as server:
        more = ("--continue", "--max-cost", "0.000001", "--output-format", "json", *flags(server, tmp_path / "w"))
        for _ in range(2):
            ended = await program.run("-p", "", *more)
            told = json.loads(ended.out)
            assert (ended.code, told["stop"]) == (Exit.BUDGET, "budget"), ended.err
        assert not server.requests


async def test_a_side_question_of_a_killed_program_is_unknown_until_its_session_is_taken_up(tmp_path: Path) -> None:
    program, work = priced(tmp_path), tmp_path / "w"
    async with ScriptedServer(QUICK, tokens=count_tokens) as server:
        await program.run("-p", "Go.", *flags(server, work))
    before, _ = await told_of(program)
    assert before is not None
    await ended_at(program, "/btw why?", work)
    assert (await told_of(program))[0] is None
    async with ScriptedServer(QUICK, tokens=count_tokens) as server:
        for _ in range(2):
            await program.run("-p", "", "--continue", *flags(server, work))
        assert not server.requests
    cost, estimated = await told_of(program)
    assert cost is not None
    assert (cost > before, estimated) == (True, True)
    (answered,) = [event.data for event in events_of(tmp_path / "home") if isinstance(event.data, SideAnswered)]
    assert answered.question == "why?"
    assert answered.cost == pytest.approx(cost - before)


LONG = Script(turns=(), otherwise=Turn(items=(SayText(text="A long answer. " * 400),)))
ABOUT = Expectation(last_user=Texts(contains=("about to lose its older messages",)))
SUMMED = Script(
    turns=(Turn(when=ABOUT, items=(SayText(text="The user asked for long answers, and got them. " * 4),)),),
    otherwise=QUICK.turns[0],
)


async def ended_in_summary(tmp_path: Path, number: signal.Signals) -> Program:
    """A session of a few turns whose program was ended while the model wrote a summary."""
    program, work = priced(tmp_path), tmp_path / "w"
    async with ScriptedServer(LONG, tokens=count_tokens) as server:
        for more in ((), ("--continue",), ("--continue",)):
            assert (await program.run("-p", "Go on.", *more, *flags(server, work))).code == 0
    await ended_at(program, "/compact", work, number)
    return program


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_task_is_done_after_a_program_that_was_ended_while_it_made_room(
    tmp_path: Path, number: signal.Signals
) -> None:
    program = await ended_in_summary(tmp_path, number)
    async with ScriptedServer(SUMMED, tokens=count_tokens) as server:
        more = ("--continue", "--output-format", "json", *flags(server, tmp_path / "w"))
        ended = await program.run("-p", "Go.", *more)
        told = json.loads(ended.out)
        assert (ended.code, told["text"], told["steps"]) == (0, "Done.", 1), ended.err
        assert len(server.requests) == 2, "the summary, and the task"
    events = [event.data for event in events_of(tmp_path / "home")]
    assert len([one for one in events if isinstance(one, SideAnswered)]) == 1, "what was sent is billed, once"
    assert (await told_of(program))[0] is not None


async def test_room_that_was_being_made_is_made_before_it_is_said_that_nothing_is_left(tmp_path: Path) -> None:
    program = await ended_in_summary(tmp_path, signal.SIGKILL)
    async with ScriptedServer(SUMMED, tokens=count_tokens) as server:
        ended = await program.run("-p", "", "--continue", *flags(server, tmp_path / "w"))
        assert (ended.code, len(server.requests)) == (0, 1), ended.err
    assert "This session has nothing left to do." in ended.err
    kinds = [type(event.data).__name__ for event in events_of(tmp_path / "home")]
    assert [kinds.count(one) for one in ("SummaryWritten", "Compacted", "SideAnswered")] == [1, 1, 1]


ANSWERED = Turn(items=(SayText(text="It is so. " * 20),))


async def before_of_long(program: Program, work: Path) -> float | None:
    """Have a conversation that is long enough to be summed up, and give its cost."""
    async with ScriptedServer(LONG, tokens=count_tokens) as server:
        for more in ((), ("--continue",), ("--continue",)):
            assert (await program.run("-p", "Go on.", *more, *flags(server, work))).code == 0
    (before, _) = await told_of(program)
    return before


@pytest.mark.parametrize(
    ("command", "model_of"), [("/compact", SUMMED), ("/btw why?", Script(turns=(), otherwise=ANSWERED))]
)
async def test_a_command_that_asks_the_model_says_what_that_cost(
    tmp_path: Path, command: str, model_of: Script
) -> None:
    program, work = priced(tmp_path), tmp_path / "w"
    before = await before_of_long(program, work)
    async with ScriptedServer(model_of, tokens=count_tokens) as server:
        shape = ("--output-format", "json", *flags(server, work))
        ended = await program.run("-p", command, "--continue", *shape)
        record = json.loads(ended.out)
        (after, _) = await told_of(program)
        assert before is not None
        assert after is not None
        assert record["cost"] == pytest.approx(after - before)
        assert (record["cost"] > 0, record["usage"]["output_tokens"] > 0) == (True, True)
        status = json.loads((await program.run("-p", "/status", "--continue", *shape)).out)
        assert (status["cost"], status["usage"].get("output_tokens", 0)) == (0.0, 0)
        frames = ("--output-format", "stream-json", "--verbose", *flags(server, work))
        hosted = await program.run("-p", "/btw why?", "--continue", *frames)
        result = json.loads(hosted.out.splitlines()[-1])
        (last, _) = await told_of(program)
    assert last is not None
    assert result["total_cost_usd"] == pytest.approx(last - after, abs=1e-6)
    assert result["total_cost_usd"] > 0
    (used,) = result["modelUsage"].values()
    assert used["outputTokens"] == result["usage"]["output_tokens"] > 0


async def test_the_cost_names_every_model_that_it_is_of_also_of_turns_that_left(tmp_path: Path) -> None:
    program, work = priced(tmp_path), tmp_path / "w"
    for name, more in (("scripted", ()), ("other", ("--continue",)), ("third", ("--continue",))):
        async with ScriptedServer(Script(turns=(), otherwise=QUICK.turns[0], model=name)) as server:
            address = ("--model", f"anthropic-compatible/{name}", *flags(server, work)[2:])
            ended = await program.run("-p", "Go on.", *more, *address)
            assert ended.code == 0, ended.err
    async with ScriptedServer(QUICK) as server:
        back = await program.run("-p", "/rewind 2", "--continue", *flags(server, work))
        assert back.code == 0, back.err
        told = await program.run("-p", "/cost", "--continue", *flags(server, work))
    names = " and ".join(f"anthropic-compatible/{one}" for one in ("scripted", "other", "third"))
    assert told.out.endswith(f", 3 steps, {names}.\n"), told.out


@pytest.mark.parametrize("task", ["Go on.", "/btw why?", "/compact"])
async def test_an_imported_session_whose_program_was_killed_has_an_unknown_cost_and_is_replayed(
    tmp_path: Path, task: str
) -> None:
    program, work = priced(tmp_path), tmp_path / "w"
    before = await before_of_long(program, work)
    await ended_at(program, task, work)
    (row,) = map(json.loads, (await program.run("sessions", "--json", "--all")).out.splitlines())
    file = str(tmp_path / "export.jsonl")
    assert (await program.run("export", row["id"], "--format", "json", "-o", file)).code == 0
    other = Program(tmp_path / "other")
    assert (await other.run("import", file)).code == 0
    (there,) = map(json.loads, (await other.run("sessions", "--json", "--all")).out.splitlines())
    assert (there["cost"], there["known_cost"]) == (None, pytest.approx(before))
    total = json.loads((await other.run("usage", "--json")).out)["total"]
    assert (total["unpriced"], total["cost"]) == (1, pytest.approx(before))
    replayed = await other.run("replay", row["id"])
    assert replayed.code == 0, replayed.out
