"""Servers that are scripts, in the real sandbox: they see their own folder, and one that dies says what was hidden."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.e2e.process import Program
from tests.mcp.hubs import FAKE, NODE, call, fake, hub_of, needs_node, plan_of, told, until
from tests.needed import needs
from treadle.app.security.command_folders import CommandFolders
from treadle.app.servers.server_confining import confined_server, kept_from, readable_paths
from treadle.protocol.messages import Text
from treadle.protocol.servers import McpServer
from treadle.protocol.tools import Outcome, Right, SandboxDenial
from treadle.workspace.commands.confinement import Remark, Setup

needs_sandbox = needs("sandbox")

PYTHON = """import pathlib, sys
here = pathlib.Path(__file__).resolve().parent
assert (here / "data.txt").read_text() == "beside"
assert not (here.parent / "other" / "hidden.txt").exists()
import fake_server
"""
NODE_SCRIPT = """const fs = require("fs"), path = require("path");
if (fs.readFileSync(path.join(__dirname, "data.txt"), "utf8") !== "beside") process.exit(5);
if (fs.existsSync(path.join(__dirname, "..", "..", "other", "hidden.txt"))) process.exit(6);
require("child_process").spawnSync(process.argv[2], [path.join(__dirname, "fake_server.py")], {stdio: "inherit"});
"""


def folders(tmp_path: Path) -> tuple[Path, Path, Program]:
    """The folder of a server with what it loads, the folder to work in, and the program."""
    own, work, home = tmp_path / "own", tmp_path / "work", tmp_path / "home"
    for folder in (own / "dist", tmp_path / "other", work, home):
        folder.mkdir(parents=True)
    (tmp_path / "other" / "hidden.txt").write_text("x")
    for folder in (own, own / "dist"):
        (folder / "data.txt").write_text("beside")
        shutil.copy(FAKE, folder / "fake_server.py")
    (own / "server.py").write_text(PYTHON)
    (own / "dist" / "index.js").write_text(NODE_SCRIPT)
    return own, work, Program(home)


@needs_sandbox
@needs_node
async def test_a_script_sees_its_own_folder_and_no_other_one(tmp_path: Path) -> None:
    own, work, program = folders(tmp_path)
    python = str(Path(sys.base_prefix) / "bin" / "python3")
    servers = {
        "absolute": {"command": python, "args": [str(own / "server.py")]},
        "relative": {"command": python, "args": ["../own/server.py"]},
        "by-name": {"command": python, "args": ["-u", "server.py"], "cwd": str(own)},
        "node": {"command": str(NODE), "args": ["dist/index.js", python], "cwd": str(own)},
    }
    (tmp_path / "home" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    ended = await program.run("mcp", "list", "--json", cwd=work)
    listed = [json.loads(line) for line in ended.out.splitlines()]
    found = {one["name"]: (one["state"], one.get("why", "")) for one in listed}
    assert found == dict.fromkeys(servers, ("connected", ""))


@needs_sandbox
async def test_a_server_that_dies_says_what_was_hidden_and_what_opens_it(tmp_path: Path) -> None:
    _, work, program = folders(tmp_path)
    hidden = tmp_path / "other" / "hidden.txt"
    code = f"open({str(hidden)!r})"
    added = await program.run("mcp", "add", "dies", "--", sys.executable, "-c", code, cwd=work)
    assert f"The sandbox does not allow reading {hidden}." in added.err
    assert '"sandbox": false in its entry in mcp.json' in added.err
    added = await program.run("mcp", "add", "dies", "--", sys.executable, "-c", "raise SystemExit(3)", cwd=work)
    assert (
        "Exit status 3. It ran in the sandbox, which hides what its arguments and variables do not name." in added.err
    )


@needs_sandbox
async def test_control_files_of_a_person_stay_beside_a_server_and_those_that_it_writes_are_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treadle.workspace.commands.process._SETTLE_EVERY", 0.05)
    work, data = tmp_path / "work", tmp_path / "data"
    work.mkdir()
    server = fake("notes", state=work / "AGENTS.md")
    plan = plan_of(server, work)
    start = plan.program
    assert start is not None
    looks = []

    def set_up(line: str) -> Setup:
        place = CommandFolders(root=str(work), data=data, private=data / "private")
        setup = confined_server(line, server, place, trusted=True, own=True)

        def settle(output: str, *, ended: bool) -> tuple[Remark, ...]:
            found = setup.settle(output, ended=ended)
            looks.append(found)
            return found

        return replace(setup, settle=settle)

    async def look() -> None:
        seen = len(looks)
        await until(lambda: len(looks) > seen + 2)

    plan = replace(plan, program=lambda: replace(start(), set_up=set_up))
    async with hub_of(tmp_path, plan) as hub:
        await look()
        for name in ("CLAUDE.md", "sub/AGENTS.md", ".github/workflows/ci.yml"):
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text("of a person")
        await look()
        result = await call(hub, "mcp__fake__note")
        moved = result.content[-1]
        assert isinstance(moved, Text)
        assert result.outcome is Outcome.FAILED
        assert moved.text.startswith("\nAGENTS.md was made while the command ran. It can change what tools do, so it")
        assert not (work / "AGENTS.md").exists()
        assert (await call(hub, "mcp__fake__echo")).outcome is Outcome.OK
        await look()
        (work / "AGENTS.md").write_text("of a person, moved back")
    said = told(tmp_path)
    assert said.count("was made while the command ran") == said.count("AGENTS.md was made while the command ran") == 1
    assert "The MCP server fake was at work then and may have made it. If it is yours, move it back" in said
    kept = sorted(str(path.relative_to(work)) for path in work.rglob("*") if path.suffix in (".md", ".yml"))
    assert kept == [".github/workflows/ci.yml", "AGENTS.md", "CLAUDE.md", "sub/AGENTS.md"]


def test_scripts_are_found_from_the_folder_that_their_runner_is_given(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "x.py").write_text("")
    for arguments in (("--directory", str(own), "run", "x.py"), ("run", "--project", "own", "x.py"), ("own/x.py",)):
        found = set(readable_paths(McpServer(name="a", command="uv", args=arguments), str(tmp_path)))
        assert {str(own), str(own / "x.py")} <= found, arguments
        assert str(tmp_path) not in found
    (own / "notes.txt").write_text("")
    assert set(readable_paths(McpServer(name="a", command="x", args=("own/notes.txt",)), str(tmp_path))) == {
        str(own / "notes.txt")
    }


@needs_sandbox
def test_a_folders_server_is_opened_in_the_users_own_file_and_one_outside_the_sandbox_names_none() -> None:
    setup = Setup(find_denial=lambda _: SandboxDenial(right=Right.READ, target="/x/y"))
    said = kept_from(setup, "", McpServer(name="a", command="x"), own=False)
    assert said.startswith("The sandbox does not allow reading /x/y. To open it, name it in ")
    assert said.endswith('"sandbox": false in an entry of the same name in your own mcp.json.')
    assert kept_from(setup, "", McpServer(name="a", command="x", confined=False), own=True) == ""
