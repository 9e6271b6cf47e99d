"""Agents of five programs: what a field comes to, what is told, whose file is used, and only after trust."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import asdict

from treadle.app.importing.claude_rules import listed_tools
from treadle.app.reports.agent_list import agents_text
from treadle.app.security.trusting import session_trust, trust_store
from treadle.app.subagents.agent_files import AgentFile, built_in_agents, read_agent_file, read_agents
from treadle.protocol.errors import ConfigError
from treadle.protocol.permissions import Mode
from treadle.protocol.protected_names import control_name
from treadle.store.activation import AGENT_FOLDERS
from treadle.tools.tool_catalogue import SPECS

COMMANDS = ("execute_command", "read_command_output")
READS = ("read_file", "list_code_definition_names")
EDITS = ("replace_in_file", "apply_patch", "write_to_file", "new_rule", "edit_notebook")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home/treadle"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    return (tmp_path / "work").resolve()


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def found(folder: Path, *, trusted: bool = True) -> tuple[dict[str, AgentFile], tuple[str, ...]]:
    """Read the agents of a folder and of the user, without those that are built in."""
    agents, notices = read_agents(session_trust(folder, once=trusted), folder.parent / "home")
    return {name: one for name, one in agents.items() if one.origin != "Treadle"}, notices


def said(agent: AgentFile) -> dict[str, object]:
    """Give what an agent has beyond an agent without any field."""
    plain = asdict(AgentFile(name="", description="", prompt="", origin=""))
    return {name: value for name, value in asdict(agent).items() if value != plain[name]}


def agent(header: str, *, name: str = "name: a\n") -> str:
    return f"---\n{name}description: d\n{header}\n---\nDo it.\n"


COMMON = {"name": "a", "description": "d", "prompt": "Do it."}

HEADERS = [
    # Claude Code
    (".claude", "tools: Read, Grep, Bash", {"tools": (*READS, "search_files", *COMMANDS)}, ()),
    (".claude", "tools: Read, Grep, Glob", {"tools": (*READS, "search_files", "list_files"), "writes": False}, ()),
    (".claude", "tools: [Edit, 'mcp__git hub', \"mcp__x__y\"]", None, ("tools that there are not here: hub",)),
    (".claude", "tools: mcp__github, mcp__x__y", {"tools": ("mcp__github__*", "mcp__x__y"), "writes": False}, ()),
    (".claude", "tools:\n  - Write # the page\n  - WebSearch", {"tools": ("write_to_file", "new_rule")},
     ("tools that there are not here: WebSearch",)),
    (".claude", "tools: Bash(git diff:*), Bash(git log *), Read", {"tools": READS, "writes": False},
     ("it has not Bash(git diff:*), Bash(git log *): a part of a tool cannot be given, and the whole would be more",)),
    (".claude", "tools: Bash(*)", {"tools": COMMANDS}, ()),
    (".claude", "tools: '*'", {}, ()),
    (".claude", "tools:", {"tools": (), "writes": False}, ("it has no tools",)),
    (".claude", "disallowedTools: Bash, Edit, Write, NotebookEdit",
     {"without": (*COMMANDS, *EDITS), "writes": False}, ()),
    (".claude", "disallowedTools: Bash(rm:*)", {"without": COMMANDS},
     ("Bash(rm:*) in disallowedTools leaves out all of Bash",)),
    (".claude", "model: inherit\neffort: high\nbackground: true\nskills: [tests, pdf]",
     {"effort": "high", "background": True, "skills": ("tests", "pdf")}, ()),
    (".claude", "model: haiku\nmaxTurns: 7\ncolor: red\nhooks:\n  Stop:\n    - x",
     {"model": "haiku", "max_steps": 7, "unknown": ("color", "hooks")},
     ("fields that mean nothing here: color, hooks",)),
    (".claude", "maxTurns: many", {}, ("its maxTurns is not a number from 1 to 1,000, so the usual limit applies",)),
    *((".claude", f"permissionMode: {name}", {"mode": mode} | ({"writes": False} if mode is Mode.PLAN else {}), ())
      for name, mode in (("plan", Mode.PLAN), ("default", Mode.ASK), ("acceptEdits", Mode.EDITS), ("auto", Mode.AUTO),
                         ("bypassPermissions", Mode.FULL), ("dontAsk", Mode.ASK))),
    (".claude", "permissionMode: anything", {"mode": Mode.ASK},
     ("its permissionMode anything is not known, so it asks as in the mode ask",)),
    # ours, and the common one
    (".treadle", "tools: read_file execute_command", {"tools": ("read_file", "execute_command")}, ()),
    (".agents", "tools: [read_file]\ntimeout_mins: 2.5",
     {"tools": ("read_file",), "writes": False, "seconds": 150.0}, ()),
    # Gemini
    (".gemini", "kind: local\ntools:\n  - read_file\n  - run_shell_command\n  - mcp_docs_*\nmax_turns: 12",
     {"tools": ("read_file", *COMMANDS, "mcp__docs__*"), "max_steps": 12}, ()),
    (".gemini", "timeout_mins: 5\ntemperature: 0.2", {"seconds": 300.0, "unknown": ("temperature",)},
     ("fields that mean nothing here: temperature",)),
    (".gemini", "timeout_mins: nan", {}, ("its timeout_mins is not a number up to 1440, so the usual limit applies",)),
    (".gemini", "tools: [google_web_search]", {"tools": (), "writes": False},
     ("tools that there are not here: google_web_search", "it has no tools")),
    # OpenCode
    (".opencode", "mode: subagent\ntools:\n  write: false\n  edit: false # never\n  'docs_*': false",
     {"without": ("write_to_file", "new_rule", "replace_in_file", "apply_patch", "edit_notebook", "mcp__docs__*")}, ()),
    (".opencode", "mode: all\ntools: {'*': false, read: true, grep: true}",
     {"tools": (*READS, "search_files"), "writes": False}, ()),
    (".opencode", 'permission:\n  edit: deny\n  bash:\n    "git push *": ask\n    "*": allow\nsteps: 9',
     {"without": ("replace_in_file", "apply_patch", "edit_notebook", "write_to_file", "new_rule"), "mode": Mode.ASK,
      "max_steps": 9}, ()),
    (".opencode", "permission:\n  bash:\n    '*': deny\n    'git log': allow\n  task:\n    my-task: allow",
     {"without": COMMANDS}, ("its permission for bash goes by patterns, so it has nothing of that tool",)),
    (".opencode", "permission:\n  '*': deny\n  read: allow\n  grep: allow",
     {"tools": ("list_code_definition_names", "read_file", "search_files"), "writes": False}, ()),
    (".opencode", "permission: {edit: ask, webfetch: deny}",
     {"without": ("web_fetch", "browser_action"), "mode": Mode.ASK}, ()),
]  # fmt: skip


@pytest.mark.parametrize(("program", "header", "fields", "told"), HEADERS)
def test_each_field_of_each_program_becomes_ours_or_is_told(
    folder: Path, program: str, header: str, fields: dict[str, object] | None, told: tuple[str, ...]
) -> None:
    path = f"{program}/agents/a.md"
    write(folder, {path: agent(header, name="" if program == ".opencode" else "name: a\n")})
    agents, notices = found(folder)
    assert notices == tuple(f"{path}: {one}." for one in told)
    if fields is not None:
        assert said(agents["a"]) == {**COMMON, "origin": path, **fields}
    own = {*(agents["a"].tools or ()), *agents["a"].without}
    assert [name for name in own if name not in SPECS and not name.startswith("mcp__")] == []


SPELLINGS = {
    "a byte order mark": "\ufeff" + agent("tools: Read"),
    "CRLF": agent("tools: Read").replace("\n", "\r\n"),
    "quotes": agent("tools: 'Read'").replace("name: a", 'name: "a"').replace("description: d", "description: 'd'"),
    "a folded description": agent("tools: Read").replace("description: d", "description: >\n  d"),
    "a comment": agent("# tools: Bash\ntools: Read # that is all"),
    "a list below": agent("tools:\n- Read"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_header_means_the_same_however_it_is_spelled(folder: Path, spelling: str) -> None:
    write(folder, {".agents/agents/a.md": SPELLINGS[spelling]})
    agents, notices = found(folder)
    assert notices == ()
    assert said(agents["a"]) == {**COMMON, "origin": ".agents/agents/a.md", "tools": READS, "writes": False}


BROKEN: dict[str, tuple[str | bytes, str]] = {
    "plain text": ("Do it.", "it has no header with a name and a description."),
    "an open header": ("---\nname: a\nDo it.", "its header begins with --- and has no --- at its end."),
    "an open quote": (agent('tools: "Read'), "line 4 of its header has a value that cannot be read."),
    "no entry": (agent("tools Read"), "line 4 of its header is not `name: value`."),
    "a field twice": (agent("tools: Bash\ntools: Read"),
                      "its header has 'tools' more than once; the last one applies."),
    "no name": ("---\ndescription: d\n---\nDo it.", "its header has no name."),
    "no description": ("---\nname: a\n---\nDo it.", "its header has no description."),
    "a path as name": (agent("").replace("name: a", "name: ../a"),
                       "its name '../a' is not letters, digits, hyphens, dots and underscores."),
    "no prompt": ("---\nname: a\ndescription: d\n---\n\n",
                  "it has no text below its header, which would be the agent's prompt."),
    "bytes": (b"---\nname: a\ndescription: d\n---\n\0", "it is not text in UTF-8."),
    "very long": (agent("") + "x" * 140_000, "it has more than 131,072 bytes."),
    "remote": (agent("kind: remote"), "its kind is remote, and only local agents run here."),
}  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_no_agent_is_told_with_its_reason_and_hides_no_other(folder: Path, broken: str) -> None:
    content, why = BROKEN[broken]
    write(folder, {".agents/agents/a.md": content, ".claude/agents/a.md": agent("")})
    agents, notices = found(folder)
    assert [one.origin for one in agents.values()] == [".claude/agents/a.md"]
    assert notices == (f".agents/agents/a.md is not used: {why}",)
    with pytest.raises(ConfigError) as raised:
        read_agent_file(folder / ".agents/agents/a.md")
    assert (raised.value.code, raised.value.why) == ("agent-file", why)


@pytest.mark.parametrize(("header", "why"), [
    ("mode: primary", "its mode is primary, so it is no subagent."), ("disable: true", "it is disabled."),
])  # fmt: skip
def test_what_opencode_gives_no_model_is_no_subagent(folder: Path, header: str, why: str) -> None:
    write(folder, {".opencode/agent/deep/b.md": agent(header, name="")})
    assert found(folder) == ({}, (f".opencode/agent/deep/b.md is not used: {why}",))


def test_of_two_with_one_name_the_nearest_is_used_and_the_other_told(folder: Path) -> None:
    places = (*AGENT_FOLDERS, "home")
    own = (".agents/agents", "treadle/agents", ".claude/agents", ".config/opencode/agents", ".config/opencode/agent",
           ".gemini/agents")  # fmt: skip
    write(folder, {f"{place}/a.md": agent("") for place in AGENT_FOLDERS})
    write(folder.parent / "home", {f"{place}/a.md": agent("") for place in own})
    order = [*(f"{place}/a.md" for place in places[:-1]), *(f"~/{place}/a.md" for place in own)]
    for at, nearest in enumerate(order):
        agents, notices = found(folder)
        assert agents["a"].origin == nearest
        assert notices == tuple(f"{one} is not used: {nearest} has the same name, a." for one in order[at + 1 :])
        (folder.parent / "home" / nearest[2:] if nearest.startswith("~") else folder / nearest).unlink()


def test_agents_that_a_session_is_given_come_first_and_are_listed(folder: Path) -> None:
    own = {"given.md": "name: a\ndescription: Given.", "b.md": "name: b\ndescription: B."}
    files = {".agents/agents/a.md": "name: a\ndescription: Of the folder.", **own}
    write(folder, {name: f"---\n{header}\n---\nDo it.\n" for name, header in files.items()})
    given = [read_agent_file(folder / name)[0] for name in ("given.md", "b.md")]
    trust = session_trust(folder, once=True)
    listed = agents_text(trust, "none", [one.listed for one in given])
    assert f".agents/agents/a.md is not used: {given[0].origin} has the same name, a." in listed
    assert all(f"{one.name} (may write, {one.origin}): {one.description}" in listed for one in given)
    assert "Of the folder." not in listed


def test_agents_of_a_folder_act_only_as_they_were_trusted_and_those_of_the_user_always(folder: Path) -> None:
    write(folder, {".claude/agents/a.md": agent("")})
    write(folder.parent / "home", {".claude/agents/b.md": agent("").replace("name: a", "name: b")})
    agents, notices = found(folder, trusted=False)
    assert list(agents) == ["b"]
    assert notices == (f"The agents of this folder are not used: see `treadle trust {folder}`.",)
    trust_store().grant(session_trust(folder).trust)
    assert list(found(folder, trusted=False)[0]) == ["a", "b"]
    listed = session_trust(folder)
    write(folder, {".claude/agents/a.md": agent("permissionMode: bypassPermissions")})
    assert list(found(folder, trusted=False)[0]) == ["b"]
    changed, notices = read_agents(listed, folder.parent / "home")
    assert "a" not in changed
    why = "it cannot be read, is not a file, leads out of the folder, or is not as you trusted it."
    assert notices == (f".claude/agents/a.md is not used: {why}",)


def test_a_link_out_of_the_folder_and_a_pipe_are_no_agents(folder: Path) -> None:
    write(folder.parent, {"elsewhere.md": agent("")})
    (folder / ".claude/agents").mkdir(parents=True)
    (folder / ".claude/agents/a.md").symlink_to(folder.parent / "elsewhere.md")
    os.mkfifo(folder / ".claude/agents/b.md")
    agents, notices = found(folder)
    assert agents == {}
    assert [one.partition(" is not used: ")[0] for one in notices] == [".claude/agents/a.md", ".claude/agents/b.md"]


def test_a_model_cannot_write_an_agent_without_a_question() -> None:
    assert [place for place in AGENT_FOLDERS if control_name(f"{place}/a.md") is None] == []


def test_the_built_in_agents_are_there_and_yield_to_files_of_their_name(folder: Path) -> None:
    agents, _ = read_agents(session_trust(folder), folder.parent / "home")
    explore, worker = agents["explore"], agents["worker"]
    assert (explore.mode, explore.writes, worker.mode, worker.writes) == (Mode.PLAN, False, None, True)
    assert [name for name in explore.tools or () if name not in SPECS] == []
    for one in built_in_agents().values():
        assert len(one.prompt.split()) <= 120
        assert all(word in one.prompt for word in ("subagent", "one message", "path:line", "Do not ask questions"))
    write(folder.parent / "home", {".agents/agents/x.md": agent("").replace("name: a", "name: explore")})
    assert found(folder)[0]["explore"].origin == "~/.agents/agents/x.md"


def test_a_file_that_the_user_names_is_read_without_trust(folder: Path) -> None:
    write(folder, {"own/reviewer.md": agent("tools: Read\ncolor: red")})
    read, told = read_agent_file(folder / "own/reviewer.md")
    path = str(folder / "own/reviewer.md")
    assert (read.name, read.tools, told) == ("a", READS, (f"{path}: fields that mean nothing here: color.",))
    with pytest.raises(ConfigError):
        read_agent_file(folder / "own/missing.md")


def test_a_list_of_tools_may_deny_one_agent_or_all(tmp_path: Path) -> None:
    listed = listed_tools(tmp_path, disallowed=("Agent(check)", "Task(Explore)"))
    assert listed.shape.removed == {"Agent(check)", "Agent(Explore)"}
    assert listed.notes == ()
    assert listed_tools(tmp_path, disallowed=("Task",)).shape.removed == {"Task", "use_subagents"}
