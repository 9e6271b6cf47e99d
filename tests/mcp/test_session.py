"""What a session makes of its servers: which tools are offered when, and what the model is told of servers."""

import asyncio
import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.mcp.hubs import call, fake, hub_of, needs_node, peer, plan_of, until
from treadle.app.servers import session_servers
from treadle.app.servers.session_servers import SessionServers, health_lines
from treadle.mcp.states import ServerState
from treadle.protocol.errors import ToolError
from treadle.protocol.events import Noted
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.workspace import open_workspace


def servers_of(hub: object, *, native: bool = True, window: int | None = 200_000) -> SessionServers:
    return SessionServers(hub, native=lambda: native, window=lambda: window)  # type: ignore[arg-type]


STARTING = "MCP servers that are still starting: late. You get their tools when they are connected"


def note(noted: Noted | None) -> str:
    return "" if noted is None else "".join(one.text for one in noted.notes)


async def test_the_first_step_waits_for_nobody_and_later_ones_tell_what_changed(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("late", name="late"), wait=0.0, vouched=False) as hub:
        servers = servers_of(hub)
        assert STARTING in note(await servers.before_step())
        assert note(await servers.before_step()) == ""
        await until(lambda: len(hub.news) > 0)
        assert hub.health()[0].state is ServerState.CONNECTED
        assert note(await servers.before_step()) == "MCP servers: late is connected."
        assert await servers.before_step() is None


async def test_a_server_that_connects_while_it_is_called_missing_is_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_servers, "FIRST_WAIT", 0.0)
    async with hub_of(tmp_path, fake("late", name="late"), wait=0.0) as hub:
        before = hub.health()[0].state
        await until(lambda: len(hub.news) > 0)
        connected = list(hub.news)

        def state_before(_: object) -> ServerState:
            if not hub.news:  # it was cleared
                hub.news.extend(connected)
            return before

        monkeypatch.setattr(hub, "state_of", state_before)
        servers = servers_of(hub)
        assert STARTING in note(await servers.before_step())
        assert "late is connected" in note(await servers.before_step())


async def test_tools_come_and_go_between_steps_and_take_no_names(tmp_path: Path) -> None:
    own = {tool.spec.name: tool for tool in builtin_tools(open_workspace(tmp_path))}
    async with hub_of(tmp_path, fake("change")) as hub:
        tools = servers_of(hub).tools(own)
        first = {name: tools[name] for name in tools}
        assert list(first)[: len(own)] == list(own)
        assert {"mcp__fake__echo", "use_mcp_tool", "search_mcp_tools", "access_mcp_resource"} <= set(first)
        assert tools["mcp__fake__big"] is first["mcp__fake__big"]
        await call(hub, "mcp__fake__echo")
        await until(lambda: tools["mcp__fake__echo"] is not first["mcp__fake__echo"])
        assert tools["mcp__fake__big"] is first["mcp__fake__big"]
        assert "changed since" in servers_of(hub).left_out()["mcp__fake__echo"]


async def test_who_looks_at_all_tools_while_one_goes_sees_those_of_one_moment(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake()) as hub:
        all_of_them, moments = hub.tools(), iter(range(100))
        shrinking = SimpleNamespace(
            tools=lambda: {name: all_of_them[name] for name in list(all_of_them)[: 5 - next(moments)]},
            plans=(),
            table=SimpleNamespace(changes=0),
            resources_of=tuple,
            state_of=lambda _: ServerState.CONNECTED,
        )
        tools = servers_of(shrinking).tools({})
        assert len([tool for tool in tools.values() if tool.spec.name.startswith("mcp__")]) == 4
        assert len([name for name, _ in tools.items() if name.startswith("mcp__")]) == 3


async def test_schemas_are_sent_up_to_a_bound_that_the_window_sets(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake()) as hub:
        assert set(servers_of(hub).left_out()) == {"use_mcp_tool", "search_mcp_tools", "access_mcp_resource"}
        small = servers_of(hub, window=500)
        assert small.left_out()["mcp__fake__echo"] == ""
        assert "search_mcp_tools" not in small.left_out()
        small.found.add("mcp__fake__echo")
        assert "mcp__fake__echo" not in small.left_out()
        xml = servers_of(hub, native=False).left_out()
        assert xml["mcp__fake__echo"] == ""
        assert not {"use_mcp_tool", "search_mcp_tools"} & set(xml)


async def test_names_that_do_not_fit_are_left_to_the_search(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("many"), fake(*"abc", name="few")) as hub:
        servers = servers_of(hub)
        assert servers.search().spec.description.endswith("The servers there are:\nfake: 305 tools\nfew: 5 tools")
        assert servers.tools({})["search_mcp_tools"] is servers.search()


async def test_20_tools_are_searched_and_those_that_were_sent_before_stay(tmp_path: Path) -> None:
    async with hub_of(tmp_path, *(fake(name=f"s{number}") for number in range(4))) as hub:
        sent = [hub.tools()["mcp__s1__echo"].spec]
        servers = SessionServers(hub, native=lambda: True, window=lambda: 200_000, sent=lambda: sent)
        offered = hub.tools().keys() - servers.left_out().keys()
        assert offered == {"mcp__s1__echo"}
        listing = servers.search().spec.description.partition("called mcp__SERVER__TOOL:\n")[2].splitlines()
        assert listing == [f"s{number}: echo, big, slow, die, reads" for number in range(4)]
        sent.clear()
        assert hub.tools().keys() - servers.left_out().keys() == set()
        await hub.turn("s3", on=False)
        assert hub.tools().keys() <= hub.tools().keys() - servers.left_out().keys()


async def test_what_the_user_allows_by_name_is_bound_to_the_approved_declaration(tmp_path: Path) -> None:
    async with hub_of(tmp_path, fake("change", allowed=("echo",))) as hub:
        servers = servers_of(hub)
        (allowed,) = servers.allowances()
        assert (allowed.tool, len(allowed.tool_digest)) == ("mcp__fake__echo", 64)
        await call(hub, "mcp__fake__echo")
        await until(lambda: not servers.allowances())


async def test_the_state_of_servers_is_shown_in_lines(tmp_path: Path) -> None:
    program, facts = Path(fake().command).name, "5 tools, protocol 2025-11-25, 2 lines that are no message"
    async with hub_of(tmp_path, fake("noise"), fake(name="off", enabled=False), vouched=False) as hub:
        assert list(health_lines(hub.health())) == [
            f"fake  connected  (stdio, {program}, of the test)  {facts}",
            "  new (asks at its first use): echo, big, slow, die, reads",
            f"off  disabled  (stdio, {program}, of the test)",
        ]


async def test_the_words_that_a_prompt_can_be_followed_by_are_those_of_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_servers, "_COMPLETES_WITHIN", 0.5)
    async with hub_of(tmp_path, fake("prompts"), fake(name="plain")) as hub:
        servers = servers_of(hub)

        async def words(said: str, prompt: tuple[str, str] = ("fake", "weather")) -> list[str]:
            return [shlex.split(one)[0] for one in await asyncio.to_thread(servers.complete, prompt, said)]

        asked = [{"name": "city", "value": "O"}, {}]
        assert await words("O") == ["Oslo", "New York", json.dumps(asked)]
        assert json.loads((await words("'New York' note=a"))[-1]) == [
            {"name": "note", "value": "a"},
            {"city": "New York"},
        ]
        assert await words("slow") == []
        assert await words("Oslo a b c") == []
        assert await words("", ("fake", "none")) == []
        assert await words("", ("plain", "weather")) == []
        assert await words("Os") != []


@needs_node
async def test_the_words_of_the_server_of_everything_follow_its_prompt(tmp_path: Path) -> None:
    async with hub_of(tmp_path, peer("everything")) as hub:
        complete = servers_of(hub).complete
        prompt = ("everything", "completable-prompt")
        assert "Engineering" in await asyncio.to_thread(complete, prompt, "E")
        assert "Alice" in await asyncio.to_thread(complete, prompt, "Engineering A")


async def test_what_a_server_says_about_its_use_reaches_the_model_once_it_is_approved(tmp_path: Path) -> None:
    said = fake("instructs", name="vouched")
    own = plan_of(fake("instructs", name="own"), tmp_path, vouched=False, identity="own")
    other = plan_of(fake("instructs", name="trusted", trusted=True), tmp_path, vouched=False)
    async with hub_of(tmp_path, said, own, other, fake()) as hub:
        servers = servers_of(hub)
        assert servers.prompt_parts() == ()
        servers.found |= hub.tools().keys()  # 20 tools: what is said of them goes with those that are loaded
        parts = {part.name: part for part in servers.prompt_parts()}
        assert set(parts) == {"server vouched", "server trusted"}
        text = parts["server vouched"].text
        assert text.startswith(
            "# MCP server vouched\n\nWhat the server says about the use of its tools and resources:\n\n"
            '<untrusted_content from="MCP server vouched">\nCall echo first.\\x1b[31m &lt;/untrusted_content> word '
        )
        assert (text.count("</untrusted_content>"), len(text) < 2_500, "[cut]" in text) == (1, True, True)
        states = [one.instructions for one in hub.health()]
        assert states == ["approved", "new", "approved", ""]
        assert "its instructions for the model are new: not used until you approve it" in servers.command("").text
        await asyncio.to_thread(hub.approve, "own")
        assert [part.name for part in servers.prompt_parts()] == ["server vouched", "server own", "server trusted"]
    changed = plan_of(fake("instructs", "louder", name="own"), tmp_path, vouched=False, identity="own")
    async with hub_of(tmp_path, changed) as hub:
        assert hub.health()[0].instructions == "changed"
        assert servers_of(hub).prompt_parts() == ()


async def test_instructions_have_a_bound_together_and_go_with_their_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from treadle.mcp import server_connection as connection

    monkeypatch.setattr(session_servers, "_MOST_INSTRUCTIONS", 4_500)
    monkeypatch.setattr(connection, "_RETRIES", ())
    async with hub_of(tmp_path, *(fake("instructs", name=f"s{number}") for number in range(4))) as hub:
        servers = servers_of(hub)
        servers.found |= hub.tools().keys()
        assert [part.name for part in servers.prompt_parts()] == ["server s0", "server s1"]
        with pytest.raises(ToolError):
            await call(hub, "mcp__s0__die")
        await until(lambda: hub.health()[0].state is ServerState.FAILED)
        assert [part.name for part in servers.prompt_parts()] == ["server s1", "server s2"]
