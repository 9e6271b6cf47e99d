"""200 tools of MCP servers in the real program: a search loads them, the next start keeps them, no start waits."""

import sys
from pathlib import Path
from typing import Any

import msgspec

from tests.e2e.running import log_of
from tests.e2e.test_mcp import Place, calls, offered, system_of, text_of
from treadle.app.errors.exits import Exit

MANY = Path(__file__).parents[1] / "mcp" / "many_server.py"
FOUND = "mcp__hub__merge_label"
CHARACTERS_PER_TOKEN = 3.6
"""Of declarations; real ones have more."""


async def with_servers(tmp_path: Path, *names: str) -> Place:
    """A place with servers of 100 tools each, all approved."""
    place = Place(tmp_path)
    for name in names:
        added = await place.mcp("add", name, "--", sys.executable, str(MANY), name, "100")
        assert added.code == 0, added.err
    return place


def named(request: Any, name: str = "mcp__") -> list[str]:
    return [tool["name"] for tool in request.body["tools"] if tool["name"].startswith(name)]


async def test_200_tools_take_few_tokens_until_a_search_loads_some_which_the_next_start_keeps(tmp_path: Path) -> None:
    place = await with_servers(tmp_path, "hub", "lab")
    search = calls("search_mcp_tools", query="merge labels of a repository, lab")
    by_name = calls("search_mcp_tools", query=f"{FOUND} and mcp__lab__get_issue")
    ended, results, requests = await place.work(search, by_name, calls(FOUND, owner="a", repo="b"))
    assert ended.code == Exit.DONE, ended.err
    first, second, third = requests[0], requests[1], requests[2]
    (tool,) = named(first, "search_mcp")
    size = sum(len(msgspec.json.encode(one)) for one in first.body["tools"] if "mcp" in one["name"])
    assert (named(first), tool, size <= 4_500) == ([], "search_mcp_tools", True)
    assert len(msgspec.json.encode(first.body["tools"])) / CHARACTERS_PER_TOKEN <= 5_000  # those of all kinds
    assert "is for repositories" not in system_of(first)
    assert "merge_label" in next(one["description"] for one in first.body["tools"] if one["name"] == tool)
    assert "mcp__lab__merge_label (server lab, tool merge_label): Merge label of a repository" in results[0]
    assert "Arguments:" not in results[0]
    assert 1 <= len(named(second)) <= 5
    assert system_of(second).count("# MCP server lab") == 1
    assert {FOUND, "mcp__lab__get_issue"} <= set(named(third))
    assert results[2].startswith('<untrusted_content from="MCP server hub">\nhub merge_label')
    _, _, again = await place.work(flags=("--continue",))
    assert named(again[0]) == named(third)
    assert again[0].body["tools"] == requests[-1].body["tools"]
    session = log_of(place.home)[0].data.session_id  # type: ignore[union-attr]
    replayed = await place.program.run("replay", session, cwd=place.folder)
    assert replayed.code == 0, replayed.out + replayed.err


async def test_deferred_tools_are_searched_and_asked_about_in_plan_mode_as_others(tmp_path: Path) -> None:
    place = await with_servers(tmp_path, "hub")
    _, results, requests = await place.work(
        calls("search_mcp_tools", query=FOUND), calls(FOUND, owner="a", repo="b"), mode="plan"
    )
    assert "No tool matches" in results[0]  # nobody is here, so that each call would be denied
    assert results[1].startswith("Denied")
    assert "hub (100 tools)" in text_of(requests[0])
    _, results, _ = await place.work(calls(FOUND, owner="a"))
    assert "repo" in results[0]
    assert '"required":["owner","repo"]' in results[0]


async def test_a_server_that_starts_slowly_is_waited_for_where_its_tool_is_called(tmp_path: Path) -> None:
    place = Place(tmp_path)
    mark = place.folder / "go"
    script = tmp_path / "own" / "late.py"
    script.parent.mkdir()
    script.write_text(
        "import os, sys, time\n"
        f"while not os.path.exists({str(mark)!r}): time.sleep(0.02)\n"
        f"sys.argv = ['x', 'slow', '3']\n{MANY.read_text()}"
    )
    entry = {"command": str(Path(sys.base_prefix) / "bin" / "python3"), "args": [str(script)]}
    place.configure(slow=entry)
    mark.touch()
    assert (await place.mcp("tools", "slow", "--approve")).code == 0
    mark.unlink()
    touch, called = calls("execute_command", command="touch go"), calls("mcp__slow__get_issue", owner="a", repo="b")
    _, results, requests = await place.work(touch, called)
    assert {"mcp__slow__get_issue", "mcp__slow__list_issue"} <= offered(requests)  # before it was up
    assert "slow get_issue" in results[1], results
