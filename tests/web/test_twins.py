"""What the page shows and changes, the command line shows and changes too: the same numbers, the same files."""

import json

import pytest

from tests.web.recorded import Visit
from treadle.cli.main import run


def treadle(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that must work; gives what it wrote."""
    capsys.readouterr()
    assert run([*arguments]) == 0
    return capsys.readouterr().out


def test_the_next_request_is_that_of_the_command(visit: Visit, capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(treadle(capsys, "context", visit.recorded.session, "--next", "--json"))
    sent = json.loads(treadle(capsys, "context", visit.recorded.session, "--json"))
    assert len(said["blocks"]) == len(sent["blocks"]) + 2
    page = visit.text("/s/ID/context")
    assert f"{said['estimated']:,} tokens" in page
    assert all(block["source"].replace("'", "&#39;") in page for block in said["blocks"] if "<" not in block["source"])


def test_sessions_are_summed_up_as_on_the_page(visit: Visit, capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(treadle(capsys, "usage", "--by", "session", "--json"))
    assert [row["name"] for row in said["rows"]] == [visit.recorded.session]
    assert said["total"] == {**said["rows"][0], "name": "total"}


def test_a_part_is_exported_as_on_the_page(visit: Visit, capsys: pytest.CaptureFixture[str]) -> None:
    session = visit.recorded.session
    for turn in ("1", "2"):
        said = treadle(capsys, "export", session, "--format", "html", "--from-turn", turn)
        assert said == visit.get(f"/s/ID/share/file?form=html&turn={turn}").text
    assert run(["export", session, "--format", "json", "--from-turn", "2"]) != 0


def test_a_server_is_switched_as_on_the_page(visit: Visit, capsys: pytest.CaptureFixture[str]) -> None:
    file = visit.recorded.home / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"one": {"command": "false"}}}))
    folder = str(visit.recorded.folder)
    assert treadle(capsys, "mcp", "disable", "one", "-C", folder) == "one is not used in new sessions.\n"
    assert ">disabled<" in visit.text("/settings/servers")
    assert treadle(capsys, "mcp", "enable", "one", "-C", folder) == "one is used in new sessions.\n"
    assert json.loads(file.read_text()) == {"mcpServers": {"one": {"command": "false"}}}
    assert run(["mcp", "enable", "two", "-C", folder]) != 0
