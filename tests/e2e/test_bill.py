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
from treadle.protocol.events import Event, ReplyFailed, ReplyFinished
from treadle.protocol.sealed import TurnSettled
from treadle.protocol.usage import Usage
from treadle.providers.scripted.script import SayText, Script, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer

QUICK = Script(turns=(Turn(items=(SayText(text="Done."),)),))
SLOW = Script(turns=(Turn(items=(SayText(text="Let me look. " * 10), Wait(seconds=60), SayText(text="no"))),))
PRICES = '[models."anthropic-compatible/scripted"]\ninput_price = 3.0\noutput_price = 15.0\n'


def priced(tmp_path: Path) -> Program:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(PRICES)
    (tmp_path / "w").mkdir()
    return Program(tmp_path / "home")


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
        process = await program.start("-p", "Go.", *flags(server, tmp_path / "w"))
        while not server.requests:
            await asyncio.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        await process.communicate()
        while server.billing is None or not server.billing.bills:
            await asyncio.sleep(0.01)
        killed = server.billing.bills[0].usage
    assert used(events_of(tmp_path / "home")) == Usage()
    (row,) = map(json.loads, (await program.run("sessions", "--json", "--all")).out.splitlines())
    assert (row["cost"], row["known_cost"], row["tree_cost"]) == (None, 0.0, None), "what was cut is in no event yet"
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
