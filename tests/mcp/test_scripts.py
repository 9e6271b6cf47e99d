"""Servers that are scripts, in the real sandbox: they see their own folder, and one that dies says what was hidden."""

import json
import shutil
import sys
from pathlib import Path

from tests.e2e.process import Program
from tests.mcp.hubs import FAKE, NODE, needs_node
from tests.needed import needs
from treadle.app.servers.server_confining import kept_from, readable_paths
from treadle.protocol.servers import McpServer
from treadle.protocol.tools import Right, SandboxDenial
from treadle.workspace.commands.confinement import Setup

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
