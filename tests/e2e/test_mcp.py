"""MCP servers in the real program: from `treadle mcp add` to a run that calls them, and to their end."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import left_of, log_of, model, running
from tests.mcp.hubs import FAKE, needs_node, peer
from tests.needed import needs
from tests.person import CTRL_D, ENTER
from treadle.app.errors.exits import Exit
from treadle.protocol.events import CallProposed
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.trusted_folders import TrustStore

DONE = Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "Done."}),))


def calls(name: str, **arguments: Any) -> Turn:
    return Turn(items=(MakeCall(name=name, arguments=arguments),))


class Place:
    """A home and a folder to work in."""

    def __init__(self, folder: Path, **extra: str) -> None:
        self.home, self.folder = folder / "home", folder / "ws"
        self.home.mkdir()
        self.folder.mkdir()
        self.program = Program(self.home, extra)

    async def mcp(self, *arguments: str) -> Ended:
        return await self.program.run("mcp", *arguments, cwd=self.folder)

    async def add(self, *behaviour: str, flags: tuple[str, ...] = ()) -> Ended:
        """Add the server that misbehaves."""
        return await self.mcp("add", "fake", *flags, "--", sys.executable, str(FAKE), *behaviour)

    def configure(self, **servers: Any) -> None:
        (self.home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))

    def trust(self) -> None:
        store = TrustStore(self.home / "trust")
        store.grant(store.read(self.folder))

    async def work(self, *turns: Turn, mode: str = "full", flags: tuple[str, ...] = ()) -> tuple[Ended, list[str], Any]:
        """Run a task; gives how it ended, the results that the model read, and the requests."""
        async with ScriptedServer(Script(turns=(*turns, DONE))) as server:
            ended = await self.program.run(
                "-p",
                "Go.",
                *model(server),
                "--mode",
                mode,
                "-C",
                str(self.folder),
                *flags,
                "--output-format",
                "stream-json",
            )
            requests = list(server.requests)
        records = [msgspec.json.decode(line) for line in ended.out.splitlines()]
        results = [record["result"]["content"] for record in records if record.get("status") == "finished"]
        return ended, ["".join(block.get("text", "") for block in content) for content in results][:-1], requests


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def system_of(request: Any) -> str:
    return "\n\n".join(block["text"] for block in request.body["system"])


def text_of(request: Any) -> str:
    return "".join(block.get("text", "") for message in request.body["messages"] for block in message["content"])


def offered(requests: Any) -> set[str]:
    return {tool["name"] for tool in requests[0].body["tools"]}


@needs_node
async def test_a_server_that_was_added_is_called_as_the_mode_allows(place: Place) -> None:
    server = peer("everything")
    added = await place.mcp("add", "every", "--allow", "get-sum", "--", server.command, *server.args)
    assert (added.code, added.out.splitlines()[0]) == (0, "Added every with 16 tools, approved as they are now.")
    echo, total = calls("mcp__every__echo", message="hi"), calls("mcp__every__get-sum", a=2, b=3)
    ended, results, requests = await place.work(echo, total)
    assert ended.code == Exit.DONE, ended.err
    assert [("Echo: hi" in results[0]), ("is 5." in results[1])] == [True, True]
    assert {"mcp__every__echo", "access_mcp_resource"} <= offered(requests)
    assert "use_mcp_tool" not in offered(requests)
    ended, results, _ = await place.work(echo, total, mode="ask")
    assert results[0].startswith("Denied [no-user]: a tool of an MCP server.")
    assert "is 5." in results[1]
    assert ended.code != Exit.DONE
    assert left_of(str(place.home)) == []


async def test_permissions_of_claude_code_for_approved_tools_are_taken_over(tmp_path: Path) -> None:
    place = Place(tmp_path, HOME=str(tmp_path))
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    said = {"allow": ["mcp__fake__echo", "mcp__gone__x"], "deny": ["mcp__fake__big"]}
    settings.write_text(json.dumps({"permissions": said}))
    assert (await place.add()).code == 0
    taken = await place.program.run("import", "--from", "claude-code", "-C", str(place.folder), "--yes")
    assert "as approved now: mcp__fake__echo" in taken.out
    assert "no such tool is approved here" in taken.out
    _, results, _ = await place.work(calls("mcp__fake__echo"), mode="ask")
    assert "echo {}" in results[0]
    _, results, _ = await place.work(calls("mcp__fake__reads"), mode="ask")
    assert results[0].startswith("Denied [no-user]")
    _, results, _ = await place.work(calls("mcp__fake__big"))
    assert results[0].startswith("Denied: the rule deny-mcp-fake-big-")
    table = json.loads((place.home / "mcp.json").read_text())
    table["mcpServers"]["fake"]["args"].append("changed")
    (place.home / "mcp.json").write_text(json.dumps(table))
    assert (await place.mcp("tools", "fake", "--approve")).code == 0
    _, results, _ = await place.work(calls("mcp__fake__echo"), mode="ask")
    assert results[0].startswith("Denied [no-user]: a tool of an MCP server")


@needs_node
async def test_what_an_approved_server_says_of_its_use_is_sent_once_with_the_prompt(place: Place) -> None:
    server = peer("everything")
    place.configure(every={"command": server.command, "args": list(server.args)})
    heading = "# MCP server every\n\nWhat the server says about the use of its tools and resources:"
    _, _, requests = await place.work()
    assert heading not in system_of(requests[0])
    shown = (await place.mcp("tools", "every", "--approve")).out
    assert "Instructions for the model  [new]\n  # Everything Server" in shown
    for flags in ((), ("--tool-protocol", "xml")):
        _, _, requests = await place.work(calls("list_files", path="."), flags=flags)
        assert [system_of(one).count(heading) for one in requests] == [1, 1]
        assert requests[0].body["system"] == requests[1].body["system"]
        assert system_of(requests[0]).count('<untrusted_content from="MCP server every">\n# Everything Server') == 1
        assert "# Everything Server" not in json.dumps(requests[1].body["messages"])


@needs_node
async def test_a_resource_that_changed_after_it_was_read_is_told_with_the_next_step(place: Place) -> None:
    server = peer("everything")
    assert (await place.mcp("add", "every", "--", server.command, *server.args)).code == 0
    uri = "demo://resource/dynamic/text/1"
    read = calls("access_mcp_resource", server_name="every", uri=uri)
    change, wait = (
        calls("mcp__every__toggle-subscriber-updates"),
        calls("execute_command", command="sleep 6"),
    )  # it tells every 5 s
    _, results, requests = await place.work(read, change, wait)
    assert "Resource 1" in results[0]
    note = f"<note>\nMCP servers: the resource {uri} of every changed since it was read.\n</note>"
    assert [text_of(one).count(note) for one in requests][-1] == 1
    assert all("<note>\n<note>" not in text_of(one) for one in requests)


async def test_nothing_is_added_that_cannot_be_connected_to(place: Place) -> None:
    added = await place.mcp("add", "gone", "--", "/no/such/program")
    assert (added.code, "[mcp-connect]" in added.err) == (Exit.CONFIG, True)
    assert not (place.home / "mcp.json").exists()
    assert (await place.mcp("test", "gone")).code == 1


async def test_servers_are_listed_tested_shown_and_removed(place: Place) -> None:
    assert (await place.add("task")).code == 0
    (line,) = (await place.mcp("list", "--json")).out.splitlines()
    listed = json.loads(line)
    assert (listed["name"], listed["state"], listed["tools"]["echo"]) == ("fake", "connected", "approved")
    assert listed["tools"]["task"].startswith("not used: it only runs as a task")
    tested = await place.mcp("test", "fake")
    assert (tested.code, tested.out.startswith("fake  connected  (stdio, python")) == (0, True)
    assert "mcp__fake__reads  [approved; says of itself: reads only]" in (await place.mcp("tools", "fake")).out
    assert "connecting -> connected" in (await place.mcp("logs", "fake")).out
    nobodys = await place.mcp("logs", "fale")
    assert (nobodys.code, nobodys.out, "There is no MCP server 'fale'." in nobodys.err) == (78, "", True)
    assert (await place.mcp("remove", "fake")).out == "Removed fake.\n"
    assert (await place.mcp("list")).err == "No MCP servers are configured. Add one: treadle mcp add NAME -- COMMAND\n"
    assert list((place.home / "mcp" / "pins").iterdir()) == []


async def test_a_changed_tool_is_left_out_until_it_is_approved(place: Place) -> None:
    assert (await place.add()).code == 0
    (file,) = (place.home / "mcp" / "pins").iterdir()
    pinned = json.loads(file.read_text())
    pinned["tools"]["echo"] = "0" * 64
    file.write_text(json.dumps(pinned))
    ended, results, requests = await place.work(calls("mcp__fake__echo"), calls("mcp__fake__big"))
    assert "mcp__fake__echo" not in offered(requests)
    assert "its declaration changed since the user approved it" in results[0]
    assert "MCP server fake changed its tool echo since you approved it" in ended.out
    assert "changed (not used until you approve it): echo" in (await place.mcp("list")).out
    assert (await place.mcp("tools", "fake", "--approve")).out.endswith("Approved 5 tools as they are now.\n")
    _, results, _ = await place.work(calls("mcp__fake__echo"))
    assert "echo {}" in results[0]


async def test_only_what_was_shown_is_approved(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.configure(fake={"command": sys.executable, "args": [str(FAKE), "changes"], "env": {"FAKE_STATE": "state"}})
    place.trust()
    shown = await place.mcp("tools", "fake", "--approve")
    assert ("A tool." in shown.out, "Approved 5 tools" in shown.out) == (True, True)
    assert "  [changed" in (await place.mcp("tools", "fake")).out


async def test_names_of_a_server_do_not_steer_the_terminal(place: Place) -> None:
    added = await place.add("steers")
    assert ("\x1b" in added.out, "\\x1b[2Jx (not used: it only runs as a task" in added.out) == (False, True)


async def test_a_tool_that_is_not_allowed_has_no_other_name(place: Place) -> None:
    assert (await place.add()).code == 0
    flags = ("--tool-protocol", "xml", "--disallowed-tools", "mcp__fake__echo")
    ways = (("fake", "echo"), ("fake", "mcp__fake__echo"), ("other", "mcp__fake__echo"), ("", "mcp__fake__echo"))
    turns = [calls("use_mcp_tool", server_name=server, tool_name=tool) for server, tool in ways]
    _, results, _ = await place.work(*turns, flags=flags)
    assert ["echo {}" in result for result in results] == [False] * 4


async def test_lists_of_tools_name_those_of_servers_as_claude_code_does(place: Place) -> None:
    name = "a-server-with-a-long-name.x"
    assert (await place.mcp("add", name, "--", sys.executable, str(FAKE))).code == 0
    claudes, ours = "mcp__a-server-with-a-long-name_x", "mcp__a-server-with-a-l"
    _, _, requests = await place.work()
    tool = next(tool for tool in offered(requests) if tool.startswith(ours) and tool.endswith("__echo"))
    for flags, first in (
        (("--allowed-tools", f"{claudes}__echo"), "allowed"),
        (("--allowed-tools", f"{claudes}__big"), "asked"),
        (("--allowed-tools", claudes, "--disallowed-tools", f"{claudes}__echo"), "removed"),
        (("--disallowed-tools", claudes), "removed"),
    ):
        mode = "full" if "--allowed-tools" not in flags else "ask"
        _, results, requests = await place.work(calls(tool), mode=mode, flags=flags)
        said = "allowed" if "echo {}" in results[0] else "asked" if "[no-user]" in results[0] else "removed"
        assert (flags, said) == (flags, first)
        assert (tool in offered(requests)) == (said == "allowed")


async def test_the_first_use_of_a_tool_asks_in_the_widest_mode(place: Place) -> None:
    place.configure(fake={"command": sys.executable, "args": [str(FAKE)]})
    _, results, _ = await place.work(calls("mcp__fake__echo"))
    assert results[0].startswith("Denied [no-user]: the first use of a tool of an MCP server")


async def test_the_servers_of_a_folder_start_only_after_trust_and_as_they_were_trusted(place: Place) -> None:
    mark = place.folder / "started"
    # Paths that stand as arguments are shown to the server's sandbox, also where this checkout is in /tmp.
    args = ["-c", f'echo x >> {mark}; exec "$0" "$1"', sys.executable, str(FAKE)]
    entry: dict[str, Any] = {"command": "sh", "args": args}
    (place.folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"fake": entry}}))
    shown = await place.program.run("trust", str(place.folder))
    assert f"starts fake: sh -c 'echo x >> {mark}" in shown.out
    _, _, requests = await place.work()
    assert not any(name.startswith("mcp__") for name in offered(requests))
    assert (await place.mcp("list", "--json")).out == ""
    assert not mark.exists()
    place.trust()
    _, _, requests = await place.work(calls("mcp__fake__echo"))  # which waits for its server
    assert "fake (not approved)" in text_of(requests[0])
    assert mark.exists()
    mark.unlink()
    args[1] += " # changed"
    (place.folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"fake": entry}}))
    _, _, requests = await place.work()
    assert not any(name.startswith("mcp__") for name in offered(requests))
    assert not mark.exists()


async def test_adding_a_server_to_a_folder_is_the_yes_to_it(place: Place) -> None:
    assert (await place.add(flags=("--project",))).code == 0
    assert json.loads((place.folder / ".mcp.json").read_text())["mcpServers"]["fake"]["command"] == sys.executable
    _, results, _ = await place.work(calls("mcp__fake__echo"))
    assert "echo {}" in results[0]


async def test_a_folder_gives_its_servers_no_rights(place: Place) -> None:
    entry = {"command": sys.executable, "args": [str(FAKE)], "alwaysAllow": ["*"], "trusted": True, "sandbox": False}
    (place.folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"fake": entry}}))
    place.trust()
    _, results, _ = await place.work(calls("mcp__fake__reads"), mode="ask")
    assert results[0].startswith("Denied [no-user]")


async def test_the_first_request_says_which_servers_are_missing(place: Place) -> None:
    place.configure(gone={"command": "/no/such/program"}, unset={"command": "x", "env": {"A": "${NOT_SET_ANYWHERE}"}})
    ended, _, requests = await place.work()
    said = json.dumps(requests[0].body["messages"])
    assert "MCP servers that are not connected, so that their tools are missing: unset." in said
    assert "Tools of MCP servers that are not offered: gone (not approved)." in said
    assert ended.code == 0  # no request waits for a server that is not approved


async def test_many_tools_are_searched_and_then_offered(place: Place) -> None:
    assert (await place.add("many", "--", "x")).code == 0
    found = "mcp__fake__find_issue_7"
    _, results, requests = await place.work(
        calls(found, n="seven"), calls(found, n=7), calls("search_mcp_tools", query="find_issue_7"), calls(found)
    )
    assert {name for name in offered(requests) if name.startswith("mcp__")} == set()
    assert "search_mcp_tools" in offered(requests)
    assert '"n":{"type":"integer"}' in results[0]
    assert "find_issue_7 {'n': 7}" in results[1]
    assert f"{found} (server fake, tool find_issue_7)" in results[2]
    assert [[tool["name"] for tool in one.body["tools"]].count(found) for one in requests] == [0, 0, 0, 1, 1]
    assert "find_issue_7 {}" in results[3]


async def test_tools_that_nobody_could_allow_are_not_offered_and_it_is_said_how_to_allow_them(place: Place) -> None:
    assert (await place.add(flags=("--allow", "big"))).code == 0
    place.configure(
        **json.loads((place.home / "mcp.json").read_text())["mcpServers"],
        new={"command": sys.executable, "args": [str(FAKE), "x"]},
    )
    ended, results, requests = await place.work(calls("mcp__fake__echo"), mode="ask")
    assert {name for name in offered(requests) if "mcp" in name} == {"mcp__fake__big"}
    line = "Tools of MCP servers that are not offered: fake (4 tools), new (not approved)."
    for said in (text_of(requests[0]), ended.out):
        assert said.count(line) == 1
        assert "`treadle mcp tools new --approve`" in said
        assert "`alwaysAllow` in mcp.json" in said
    assert line not in json.dumps(requests[1].body["messages"][2:])
    assert results[0].startswith("Denied [no-user]: a tool of an MCP server.")
    (place.home / "policy.toml").write_text(
        'version = 1\n[[rule]]\nid = "x"\nverdict = "allow"\ntool = "mcp__fake__echo"\n'
    )
    _, results, requests = await place.work(calls("mcp__fake__echo"), mode="ask")
    assert "mcp__fake__echo" in offered(requests), results
    assert "fake (3 tools)" in text_of(requests[0])


async def test_of_many_tools_only_those_are_found_that_may_be_called_without_a_person(place: Place) -> None:
    assert (await place.add("many", flags=("--allow", "find_issue_7"))).code == 0
    search = calls("search_mcp_tools", query="find_issue_7")
    _, _, requests = await place.work(search, mode="ask")
    assert {name for name in offered(requests) if "mcp" in name} == {"mcp__fake__find_issue_7"}
    assert "fake (304 tools)" in text_of(requests[0])
    _, results, requests = await place.work(search, mode="full")
    assert "search_mcp_tools" in offered(requests)
    assert results[0].count("(server fake, tool find_issue_") == 1


async def test_with_calls_written_as_xml_one_tool_calls_the_others(place: Place) -> None:
    assert (await place.add()).code == 0
    use = calls("use_mcp_tool", server_name="fake", tool_name="echo", arguments='{"n": 1}')
    odd = calls("use_mcp_tool", server="fake", tool_name="echo", arguments='{}{"n": "2"}{"n": "2"}')
    _, results, requests = await place.work(use, odd, flags=("--tool-protocol", "xml"))
    assert ["echo {'n': 1}" in results[0], "echo {'n': 2}" in results[1]] == [True, True]
    read = [one.data.readings for one in log_of(place.home) if isinstance(one.data, CallProposed)]
    assert read[:2] == [(), ("parameter_name", "empty_objects", "repeated_object", "text_value")]
    system = json.dumps(requests[0].body["system"])
    assert ("use_mcp_tool" in system, "search_mcp_tools" in system, "mcp__" in system) == (True, True, False)
    _, results, _ = await place.work(use, flags=("--tool-protocol", "xml"), mode="ask")
    assert results[0].startswith("Denied [no-user]: a tool of an MCP server.")


async def test_secrets_of_a_server_are_hidden_where_it_says_them(tmp_path: Path) -> None:
    place = Place(tmp_path, MY_TOKEN="swordfish-47-11-xyz")
    place.configure(fake={"command": sys.executable, "args": [str(FAKE)], "env": {"FAKE_TOKEN": "${MY_TOKEN}"}})
    (await place.mcp("tools", "fake", "--approve"))
    ended, results, _ = await place.work(calls("mcp__fake__echo"))
    assert "swordfish" not in "".join(results) + ended.out + ended.err
    assert "echo {} [hidden: FAKE_TOKEN]" in results[0]


@needs_node
async def test_a_prompt_of_a_server_is_a_slash_command(place: Place) -> None:
    server = peer("everything")
    assert (await place.mcp("add", "every", "--", server.command, *server.args)).code == 0
    async with ScriptedServer(Script(turns=(DONE,))) as scripted:
        flags = (*model(scripted), "-C", str(place.folder))
        ended = await place.program.run("-p", "/every:args-prompt Oslo", *flags)
        assert ended.code == Exit.DONE, ended.err
        assert "weather in Oslo" in json.dumps(scripted.requests[0].body["messages"])
        ended = await place.program.run("-p", "/mcp", *flags)
        assert ended.out.startswith("every  connected  (stdio, node, of the user)  16 tools, 4 prompts, resources")


@needs_node
async def test_a_person_says_yes_to_the_first_use_and_answers_what_the_server_asks(place: Place) -> None:
    server = peer("everything")
    place.configure(every={"command": server.command, "args": list(server.args)})
    ask = calls("mcp__every__trigger-elicitation-request")
    async with ScriptedServer(Script(turns=(ask, DONE))) as scripted:
        async with on_terminal(place.program, *model(scripted), "-C", str(place.folder)) as terminal:
            await terminal.until_shown("? for keys")
            terminal.type(f"Go.{ENTER}")
            await terminal.until_shown("the first use of a tool of an MCP server", "❯ Yes")
            await terminal.confirm()
            await terminal.until_shown("MCP server every asks: Please provide inputs", "❯ Fill in")
            await terminal.confirm()
            await terminal.until_shown("Your answer:")
            terminal.type("name=Ada")
            await terminal.until_shown("Your answer: name=Ada")
            await terminal.confirm()
            await terminal.until(lambda shown: "❯ Send this" in shown or "■ Done · " in shown, "the filled form")
            if "■ Done · " not in terminal.shown:
                await terminal.confirm()
            await terminal.until_shown("■ Done · ")
            terminal.type(CTRL_D)
            assert await terminal.ended() == Exit.DONE
        assert "- Name: Ada" in json.dumps(scripted.requests[1].body["messages"])


@needs("sandbox")
async def test_servers_run_in_the_sandbox_and_see_what_their_arguments_name(place: Place, tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys\n"
        "seen = [os.access(sys.argv[1], os.R_OK), os.path.exists(sys.argv[3][1:])]\n"
        "pathlib.Path(sys.argv[2]).write_text(repr(seen))\n"
    )
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "data.txt").write_text("x")
    (tmp_path / "hidden.txt").write_text("x")
    script = tmp_path / "given" / "probe.py"
    script.write_text(code + FAKE.read_text())
    out = place.folder / "out"
    words = [str(script), str(tmp_path / "given" / "data.txt"), str(out), f"x{tmp_path / 'hidden.txt'}"]
    place.configure(fake={"command": str(Path(sys.base_prefix) / "bin" / "python3"), "args": words})
    place.trust()
    _, results, requests = await place.work(calls("mcp__fake__echo"))
    assert "fake (not approved)" in text_of(requests[0])
    assert results[0].startswith("Denied [no-user]: the first use of a tool of an MCP server")
    assert out.read_text() == "[True, False]"


async def test_nothing_is_left_of_the_servers_of_a_killed_program(place: Place) -> None:
    assert (await place.add("stubborn", str(place.home))).code == 0
    async with ScriptedServer(Script(turns=(calls("mcp__fake__slow"), DONE))) as server:
        flags = ("-p", "Go.", *model(server), "--mode", "full", "-C", str(place.folder))
        async with running(place.program, *flags) as program:
            await program.until("call_changed", status="running")
            program.send(signal.SIGKILL)
            await program.end()
    assert left_of(str(place.home)) == []


async def test_a_run_without_servers_loads_nothing_of_them(place: Place) -> None:
    code = "import sys; from treadle.cli.main import run; run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    async with ScriptedServer(Script(turns=(DONE,))) as server:
        ended = await place.program.run(
            "-p", "Go.", *model(server), "-C", str(place.folder), command=(sys.executable, "-c", code)
        )
    loaded = ended.err.split()
    assert not [name for name in loaded if name.startswith(("treadle.mcp", "treadle.app.servers", "mcp", "pydantic"))]
