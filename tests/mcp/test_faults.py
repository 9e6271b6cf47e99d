"""Servers that misbehave: each fault has its end, in bounded time and space, and the others never notice."""

import asyncio
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mcp_types as types
import pytest
from msgspec.structs import replace

from tests.mcp.hubs import call, fake, hub_of, plan_of, text_of, told, until
from treadle.engine.ports import Asked, PersonReply
from treadle.mcp.callbacks import Callbacks
from treadle.mcp.fixed_tools import named_tool
from treadle.mcp.message_framing import Frames, TooLong
from treadle.mcp.pins import PinBook, server_identity
from treadle.mcp.server_program import ProgramStart, start_program
from treadle.mcp.states import PinState, ServerPlan, ServerState
from treadle.protocol.errors import ToolError
from treadle.protocol.servers import McpServer
from treadle.protocol.tools import Origin, Outcome, Risk


async def test_a_server_that_does_not_start_is_marked_failed_with_the_reason(tmp_path: Path) -> None:
    async with hub_of(tmp_path, McpServer(name="gone", command="/no/such/program"), fake()) as hub:
        gone, good = hub.health()
        assert (gone.state, good.state) == (ServerState.FAILED, ServerState.CONNECTED)
        assert "/no/such/program: No such file or directory" in gone.why
        assert text_of(await call(hub, "mcp__fake__echo", n=1)) == "echo {'n': 1}"
    assert "gone is not connected" in told(tmp_path)


async def test_a_tool_of_a_server_that_has_none_now_is_not_called_unknown(tmp_path: Path) -> None:
    async with hub_of(tmp_path, McpServer(name="gone", command="/no/such/program"), fake()) as hub:
        said = {}
        for server, name in (("gone", "echo"), ("gone", "mcp__gone__echo"), ("fake", "ecco"), ("nobody", "echo")):
            with pytest.raises(ToolError) as refused:
                named_tool(hub, {"server_name": server, "tool_name": name})
            said[server, name] = refused.value.text
    gone = "The MCP server gone is not connected. Continue without its tools."
    assert said["gone", "echo"] == said["gone", "mcp__gone__echo"] == gone
    assert said["fake", "ecco"].startswith("The MCP server fake has no tool ecco.")
    assert said["nobody", "echo"].startswith("The MCP server nobody has no tool echo.")


async def test_of_a_server_that_still_connects_that_is_said(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("silent"), wait=0) as hub:
        with pytest.raises(ToolError, match="The MCP server fake is still connecting"):
            named_tool(hub, {"server_name": "fake", "tool_name": "echo"})


async def test_a_command_that_no_system_takes_stops_no_other_server(tmp_path: Path) -> None:
    wrong = McpServer(name="wrong", command="sh", args=("a\0b",))

    def nothing() -> ProgramStart:
        raise NotADirectoryError(20, "Not a directory", "/proc/x")

    nowhere = plan_of(fake(name="nowhere"), tmp_path, program=nothing)
    async with hub_of(tmp_path, wrong, nowhere, fake()) as hub:
        states = [one.state for one in hub.health()]
        assert states == [ServerState.FAILED, ServerState.FAILED, ServerState.CONNECTED]
        assert "/proc/x" in hub.health()[1].why


async def test_a_close_that_comes_while_programs_still_start_ends_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[object] = []
    starts = threading.Event()

    async def never(_: object) -> None:
        starts.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(threading, "excepthook", failed.append)
    monkeypatch.setattr("treadle.mcp.hub._started", never)
    monkeypatch.setattr("treadle.mcp.hub._LONGEST_CLOSE", 0.05)
    async with hub_of(tmp_path, fake(), wait=0.05) as hub:
        await asyncio.to_thread(starts.wait)
    await asyncio.to_thread(hub._thread.join)
    assert failed == []


async def test_without_the_sdk_all_servers_have_failed_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "treadle.mcp.server_connection", None)
    async with hub_of(tmp_path, fake(), fake(name="other")) as hub:
        assert [one.state for one in hub.health()] == [ServerState.FAILED] * 2
        assert hub.health()[0].why.startswith("the extra 'mcp' cannot be loaded: ")
        with pytest.raises(ToolError, match="cannot be used: the extra"):
            await hub.request("fake", lambda _: asyncio.sleep(0))
    assert "MCP servers are not used: the extra 'mcp' cannot be loaded" in told(tmp_path)


async def test_a_form_or_an_address_beyond_its_bound_is_not_shown(tmp_path: Path) -> None:
    asked: list[Asked] = []

    async def ask(plan: ServerPlan, one: Asked) -> PersonReply:
        asked.append(one)
        return PersonReply(accepted=True)

    host: Any = SimpleNamespace(ask=ask)
    callbacks = Callbacks(plan_of(fake(), tmp_path), host, nullcontext)
    wide = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(9_000)}}
    form = types.ElicitRequestFormParams(message="Fill in.", requested_schema=wide)
    url = types.ElicitRequestURLParams(message="Go.", url=f"https://a.example/{'x' * 5_000}", elicitation_id="1")
    for params in (form, url):
        assert (await callbacks.elicit(None, params)).action == "cancel"
    assert asked == []


async def test_an_error_code_of_a_server_is_not_taken_for_its_end(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("refuses")) as hub:
        refused = await call(hub, "mcp__fake__refuse")
        assert (refused.outcome, refused.origin) == (Outcome.FAILED, Origin.SERVER)
        assert text_of(refused) == "Too many requests."
        assert hub.health()[0].restarts == 0


async def test_a_server_that_is_back_is_told_so_when_it_is(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake()) as hub:
        with pytest.raises(ToolError, match="ended during this call"):
            await call(hub, "mcp__fake__die")
        await until(lambda: "again" in told(tmp_path))
        assert told(tmp_path).startswith("The MCP server fake ended (")
        assert "Connecting again." in told(tmp_path)
        await until(lambda: hub.health()[0].state is ServerState.CONNECTED)
        await until(lambda: told(tmp_path).endswith("The MCP server fake is connected again.\n"))


async def test_what_a_server_asks_while_nothing_runs_is_told_once(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("asks")) as hub:
        assert text_of(await call(hub, "mcp__fake__echo")) == "echo {}"
        assert text_of(await call(hub, "mcp__fake__echo")) == "echo {}"
        await until(lambda: "asked something" in told(tmp_path))
    assert told(tmp_path).count("asked something while none of its tools ran") == 1


async def test_what_was_approved_applies_to_the_session_where_it_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "pins").write_text("a file where the folder should be")
    async with hub_of(tmp_path, fake(), plan_of(fake(name="own"), tmp_path, vouched=False)) as hub:
        assert [one.state for one in hub.health()] == [ServerState.CONNECTED] * 2
        assert text_of(await call(hub, "mcp__fake__echo")) == "echo {}"
        assert text_of(await call(hub, "mcp__own__echo")) == "echo {}"
        assert hub.tools()["mcp__own__echo"].pinned is PinState.APPROVED
    assert "cannot be saved" in told(tmp_path)


async def test_the_words_of_a_server_are_told_and_logged_without_secrets(tmp_path: Path) -> None:
    server = fake("logs", "asks")
    server = McpServer(name="fake", command=server.command, args=server.args, env={"FAKE_TOKEN": "swordfish-1"})
    async with hub_of(tmp_path, server, redact=lambda text: text.replace("swordfish-1", "[hidden]")) as hub:
        await call(hub, "mcp__fake__echo")
        await until(lambda: "asked something" in told(tmp_path))
    log = (tmp_path / "log" / "fake").read_text()
    assert ("the token is [hidden]" in log, "swordfish" in log + told(tmp_path)) == (True, False)


async def test_a_server_that_keeps_changing_a_tool_is_told_of_a_few_times(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("restless")) as hub:
        await call(hub, "mcp__fake__echo")
        await until(lambda: hub.table.changes > 12)
    assert told(tmp_path).count("changed its tool echo") == 3


async def test_a_server_is_connected_to_anew_when_the_person_wants_that(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake()) as hub:
        hub.reconnect("fake")
        await until(lambda: hub.health()[0].restarts == 1 and hub.health()[0].state is ServerState.CONNECTED)
        assert text_of(await call(hub, "mcp__fake__echo")) == "echo {}"


async def test_a_server_that_was_turned_off_keeps_what_was_approved_of_it(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake(), fake(name="unused", enabled=False)) as hub:
        approved = {name: one.pinned for name, one in hub.tools().items()}
        assert set(approved.values()) == {PinState.APPROVED}
        off = await hub.turn("fake", on=False)
        assert (off.state, off.tools, dict(hub.tools())) == (ServerState.DISABLED, {}, {})
        with pytest.raises(ToolError, match="The MCP server fake cannot be used: it is disabled"):
            hub.reconnect("fake")
        with pytest.raises(ToolError, match="The MCP server fake cannot be used: it is disabled"):
            await asyncio.to_thread(hub.approve, "fake")
        assert (await hub.turn("fake", on=True)).state is ServerState.CONNECTED
        assert {name: one.pinned for name, one in hub.tools().items()} == approved
        assert (await hub.turn("unused", on=True)).state is ServerState.CONNECTED
        assert text_of(await call(hub, "mcp__unused__echo", n=1)) == "echo {'n': 1}"


async def test_a_server_that_is_not_there_is_named_with_the_reason(tmp_path: Path) -> None:
    plan = plan_of(fake(name="unset"), tmp_path, problem="the variable A is not set")
    async with hub_of(tmp_path, plan, fake(name="off", enabled=False), fake()) as hub:
        for name, why in (
            ("unset", "The MCP server unset cannot be used: the variable A is not set. Continue without it."),
            ("off", "The MCP server off cannot be used: it is disabled. Continue without it."),
            ("none", "There is no MCP server 'none'. Use one of: unset, off, fake."),
        ):
            with pytest.raises(ToolError) as raised:
                hub.reconnect(name)
            assert raised.value.text == why


async def test_a_server_that_never_answers_has_a_time_limit_and_delays_nobody(tmp_path: Path) -> None:
    silent = fake("silent", name="silent", connect_seconds=1.5)
    async with hub_of(tmp_path, silent, fake(), wait=30) as hub:
        states = {one.name: (one.state, one.why.partition(".")[0]) for one in hub.health()}
        assert states["fake"] == (ServerState.CONNECTED, "")
        assert states["silent"] == (ServerState.FAILED, "it did not answer within 1")


async def test_a_server_that_is_still_starting_ends_with_the_session(tmp_path: Path) -> None:
    silent = fake("silent", name="silent", connect_seconds=3600.0)  # the test's own limit is far shorter
    async with hub_of(tmp_path, silent, wait=0.5) as hub:
        (one,) = hub.health()
        assert one.state is ServerState.CONNECTING


async def test_a_server_that_dies_in_a_call_ends_the_call_and_is_started_again(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake()) as hub:
        with pytest.raises(ToolError, match="ended during this call"):
            await call(hub, "mcp__fake__die")
        assert text_of(await call(hub, "mcp__fake__echo")) == "echo {}"
        assert hub.health()[0].restarts == 1


@pytest.mark.parametrize(("served", "kept"), [(False, "KEPT"), (True, "")])
async def test_what_the_sandbox_kept_from_a_server_is_told_of_one_that_ends_at_its_start(
    tmp_path: Path, served: bool, kept: str
) -> None:
    code = "import sys; sys.stderr.write('words ' * 500); sys.exit(3)"
    start = plan_of(McpServer(name="s", command=sys.executable, args=("-c", code)), tmp_path).program
    assert start is not None
    program = await start_program(replace(start(), stopped=lambda _setup, _said: "KEPT"))
    assert await program.read() == b""
    await program.close()
    said = program.errors(served=served)
    assert said.split()[:3] == ["Exit", "status", "3."]
    assert " ".join(filter(None, ("Exit status 3.", kept, "… words words "))) in said, "no word is cut"


async def test_a_server_that_ends_in_a_call_is_told_without_its_sandbox(tmp_path: Path) -> None:
    plan = plan_of(fake("once", state=tmp_path / "runs"), tmp_path)
    start = plan.program
    assert start is not None
    plan = replace(plan, program=lambda: replace(start(), stopped=lambda _setup, _said: "KEPT"))
    async with hub_of(tmp_path, plan) as hub:
        with pytest.raises(ToolError, match="ended during this call"):
            await call(hub, "mcp__fake__die")
        await until(lambda: hub.health()[0].state is not ServerState.CONNECTED)
        assert hub.health()[0].why.startswith("the connection ended. Killed by ")
        assert "KEPT" not in hub.health()[0].why


async def test_a_server_that_cannot_be_started_again_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from treadle.mcp import server_connection as connection

    monkeypatch.setattr(connection, "_RETRIES", (0.01, 0.01))
    async with hub_of(tmp_path, fake("once", state=tmp_path / "runs")) as hub:
        with pytest.raises(ToolError):
            await call(hub, "mcp__fake__die")
        await until(lambda: hub.health()[0].state is ServerState.FAILED)
        assert hub.health()[0].restarts == 2
        with pytest.raises(ToolError, match="is not connected"):
            await call(hub, "mcp__fake__echo")


async def test_lines_that_are_no_message_are_skipped_and_counted(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("noise")) as hub:
        assert text_of(await call(hub, "mcp__fake__echo")) == "echo {}"
        assert hub.health()[0].garbage == 2


async def test_too_many_lines_that_are_no_message_end_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from treadle.mcp import server_connection as connection

    monkeypatch.setattr(connection, "_RETRIES", ())
    async with hub_of(tmp_path, fake("garbage")) as hub:
        assert (hub.health()[0].state, hub.health()[0].garbage) == (ServerState.FAILED, 201)


async def test_a_flood_on_standard_error_is_drained_and_bounded(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("flood")) as hub:
        assert text_of(await call(hub, "mcp__fake__echo")) == "echo {}"
    (file,) = (tmp_path / "spool" / "fake").iterdir()
    assert 1_000_000 < file.stat().st_size <= 4 * 1024 * 1024


async def test_answers_with_unknown_or_repeated_ids_are_ignored(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("unknown-ids")) as hub:
        for number in range(3):
            assert text_of(await call(hub, "mcp__fake__echo", n=number)) == f"echo {{'n': {number}}}"


def _read(state: Path) -> str:
    """Give what the server noted: the file is there before its text is."""
    return state.read_text() if state.exists() else ""


async def test_a_call_beyond_its_time_is_cancelled_and_its_late_answer_dropped(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with hub_of(tmp_path, fake(state=state, call_seconds=0.5)) as hub:
        with pytest.raises(ToolError, match=r"did not answer within 0\.5 s"):
            await call(hub, "mcp__fake__slow")
        await until(lambda: _read(state) == "begun cancelled")
        assert text_of(await call(hub, "mcp__fake__echo")) == "echo {}"


async def test_an_interrupted_call_ends_and_the_server_goes_on(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with hub_of(tmp_path, fake(state=state)) as hub:
        running = asyncio.create_task(call(hub, "mcp__fake__slow"))
        await until(lambda: _read(state) == "begun ")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await until(lambda: _read(state) == "begun cancelled")
        assert text_of(await call(hub, "mcp__fake__echo")) == "echo {}"


async def test_a_tool_that_changes_is_not_used_until_it_is_approved(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("change")) as hub:
        before = hub.tools()["mcp__fake__echo"]
        assert before.pinned is PinState.APPROVED
        await call(hub, "mcp__fake__echo")
        await until(lambda: hub.tools()["mcp__fake__echo"].pinned is PinState.CHANGED)
        with pytest.raises(ToolError, match="changed since it was approved"):
            await call(hub, "mcp__fake__echo")
        with pytest.raises(ToolError, match=r"changed since the user approved it\. Continue without it\."):
            named_tool(hub, {"server_name": "fake", "tool_name": "echo"})
        assert "changed its tool echo" in told(tmp_path)
        await asyncio.to_thread(hub.approve, "fake")
        assert hub.tools()["mcp__fake__echo"].pinned is PinState.APPROVED
        assert hub.tools()["mcp__fake__echo"].spec.description == "Sends your keys elsewhere."


@pytest.mark.parametrize(
    ("wait", "why"), [(0.0, "it is still starting"), (5.0, "it did not answer within 0.05 s")], ids=["soon", "failed"]
)
async def test_a_yes_to_a_server_that_is_not_connected_leaves_earlier_ones(
    tmp_path: Path, wait: float, why: str
) -> None:
    async with hub_of(tmp_path, fake("late"), vouched=False) as hub:
        await asyncio.to_thread(hub.approve, "fake")
    identity = server_identity(fake("late"))
    before = PinBook(tmp_path / "pins").read(identity)
    assert set(before.tools) == {"echo", "big", "slow", "die", "reads"}
    late = fake("late", connect_seconds=0.05 if wait else 30.0)
    async with hub_of(tmp_path, late, vouched=False, wait=wait) as hub:
        await until(lambda: hub._connections != {})
        with pytest.raises(ToolError, match=why):
            await asyncio.to_thread(hub.approve, "fake")
    assert PinBook(tmp_path / "pins").read(identity) == before


async def test_a_change_while_nobody_looked_is_found_at_the_next_start(tmp_path: Path) -> None:
    plan = plan_of(fake(), tmp_path)
    async with hub_of(tmp_path, plan):
        pass
    other = plan_of(fake("changed"), tmp_path, vouched=False, identity=plan.identity)
    async with hub_of(tmp_path, other) as hub:
        states = {one.declared.name: one.pinned for one in hub.tools().values()}
        assert states["echo"] is PinState.CHANGED
        assert states["big"] is PinState.APPROVED


async def test_the_first_use_of_a_tool_approves_it(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake(), vouched=False) as hub:
        assert hub.tools()["mcp__fake__echo"].pinned is PinState.NEW
        await call(hub, "mcp__fake__echo")
        assert hub.tools()["mcp__fake__echo"].pinned is PinState.APPROVED
        assert hub.tools()["mcp__fake__big"].pinned is PinState.NEW
    async with hub_of(tmp_path, fake(), vouched=False) as hub:
        assert hub.tools()["mcp__fake__echo"].pinned is PinState.APPROVED


async def test_what_a_server_says_of_itself_lowers_no_risk_unless_it_is_trusted(tmp_path: Path) -> None:
    trusted = fake("poison", name="trusted", trusted=True)
    async with hub_of(tmp_path, fake("poison"), trusted) as hub:
        risks = {name: tool.spec.risk for name, tool in hub.tools().items() if "reads" in name or "poison" in name}
        assert risks == {
            "mcp__fake__reads": Risk.EXECUTE,
            "mcp__fake__poison": Risk.REMOTE,
            "mcp__trusted__reads": Risk.READ,
            "mcp__trusted__poison": Risk.REMOTE,
        }


async def test_two_servers_with_the_same_names_are_kept_apart(tmp_path: Path) -> None:
    taken = {"mcp__one__echo": None}
    async with hub_of(tmp_path, fake("clash", name="one"), fake(name="two"), taken=taken) as hub:
        names = set(hub.tools())
        assert len(names) == 13
        assert "mcp__one__echo" not in names
        assert "mcp__two__echo" in names
        assert all(len(name) <= 64 and name.replace("_", "a").replace("-", "a").isalnum() for name in names)


async def test_hidden_characters_of_a_description_are_shown(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("poison")) as hub:
        assert hub.tools()["mcp__fake__poison"].spec.description == "Say \\x1b[31mred\\U000e0041\\u202e"


async def test_tools_with_odd_declarations_do_not_take_the_others_with_them(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("untyped")) as hub:
        names = [name.removeprefix("mcp__fake__") for name in hub.tools()]
        assert names == ["odd", "bare", "untyped", "echo", "big", "slow", "die", "reads"]
        assert hub.tools()["mcp__fake__untyped"].spec.parameters == {"type": "object", "properties": {"n": {}}}


async def test_a_tool_that_only_runs_as_a_task_is_left_out_with_the_reason(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("task")) as hub:
        assert hub.health()[0].tools["task"] == "not used: it only runs as a task, which Treadle does not support"


async def test_a_result_that_breaks_its_own_schema_is_an_error_that_the_model_reads(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("structured")) as hub:
        result = await call(hub, "mcp__fake__structured")
        assert (result.outcome, result.origin) == (Outcome.FAILED, Origin.SERVER)
        assert "Invalid structured content returned by tool structured" in text_of(result)


async def test_a_large_result_is_cut_and_one_beyond_the_bound_is_an_error(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake()) as hub:
        cut = await call(hub, "mcp__fake__big", n=3_000_000)
        assert cut.outcome is Outcome.OK
        assert 60_000 <= len(text_of(cut)) < 61_000
        for size in (50_000_000, 100_000_000):
            refused = await call(hub, "mcp__fake__big", n=size)
            assert refused.outcome is Outcome.FAILED
            assert text_of(refused) == f"the answer has {size + 82:,} bytes, more than the 4,194,304 that are read"
        assert text_of(await call(hub, "mcp__fake__echo")) == "echo {}"


async def test_a_server_that_ignores_everything_is_gone_after_the_session(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("stubborn")) as hub:
        assert hub.health()[0].state is ServerState.CONNECTED


async def test_twenty_servers_are_all_connected_to(tmp_path: Path) -> None:
    servers = [fake(name=f"s{number}") for number in range(20)]
    async with hub_of(tmp_path, *servers, wait=60) as hub:
        assert [one.state for one in hub.health()] == [ServerState.CONNECTED] * 20
        assert len(hub.tools()) == 100


@pytest.mark.parametrize("step", [1, 7, 65_536])
def test_frames_are_the_same_whatever_the_chunks(step: int) -> None:
    text = (
        b'{"a": 1}\n\n  \n'
        b'{"id": 5, ' + b"x" * 200 + b'}\n{"b": "' + b"y" * 150 + b'", "jsonrpc": "2.0", "id": "k"}\n{"c": 2}\nrest'
    )
    frames = Frames(most=100)
    found = [one for at in range(0, len(text), step) for one in frames.feed(text[at : at + step])]
    shown = [(one.size, one.answers) if isinstance(one, TooLong) else one for one in found]
    assert shown == [b'{"a": 1}', (211, b"5"), (188, b'"k"'), b'{"c": 2}']
