"""A yes gives the rights beyond the sandbox that it names, so that a command runs once: its effects come once."""

import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.app.rehearsal import rehearse, run
from tests.needed import needs
from treadle.protocol.permissions import Mode, OptionKind
from treadle.protocol.tools import Outcome, Right, Risk

pytestmark = needs("sandbox", "curl")


class Counter(BaseHTTPRequestHandler):
    """Answers everything, and keeps what was asked for."""

    seen: list[str]

    def do_GET(self) -> None:
        self.seen.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"served\n")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def seen() -> list[str]:
    return []


@pytest.fixture
def url(seen: list[str]) -> Iterator[str]:
    """A real server of this machine; what it was asked for is in `seen`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Counting", (Counter,), {"seen": seen}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    (tmp_path / "ws").mkdir()
    return (tmp_path / "ws").resolve()


async def test_an_approved_network_command_runs_once_with_the_network(folder: Path, url: str, seen: list[str]) -> None:
    line = f"echo x >> count; curl -sS {url}/a"
    rehearsal = await rehearse(folder, [run(line)], mode=Mode.AUTO, present=True)
    assert [question.denial for question in rehearsal.asked] == [None], "one question, and none about a second run"
    assert "reach the network (127.0.0.1)" in rehearsal.asked[0].text
    assert rehearsal.results[0].outcome is Outcome.OK
    assert "served" in rehearsal.texts[0]
    assert (seen, (folder / "count").read_text()) == (["/a"], "x\n")


async def test_a_no_runs_nothing(folder: Path, url: str, seen: list[str]) -> None:
    line = f"echo x >> count; curl -sS {url}/a"
    rehearsal = await rehearse(folder, [run(line)], mode=Mode.AUTO, present=True, option=OptionKind.REJECT_ONCE)
    assert rehearsal.results[0].outcome is Outcome.REJECTED
    assert (seen, list(folder.iterdir())) == ([], [])


async def test_what_the_user_approves_beforehand_has_the_network_too(folder: Path, url: str, seen: list[str]) -> None:
    rehearsal = await rehearse(folder, [run(f"curl -sS {url}/a")], mode=Mode.AUTO, approve=(Risk.REMOTE,))
    assert (rehearsal.asked, rehearsal.results[0].outcome, seen) == ([], Outcome.OK, ["/a"])


async def test_code_that_runs_for_being_confined_never_gets_the_network_that_another_part_may_have(
    folder: Path, url: str, seen: list[str]
) -> None:
    (folder / "evil.py").write_text(f"import urllib.request\nurllib.request.urlopen('{url}/evil')\n")
    line = f"curl -sS {url}/a; python3 evil.py"
    approve = (Risk.REMOTE,)
    rehearsal = await rehearse(folder, [run("python3 evil.py"), run(line)], mode=Mode.AUTO, approve=approve)
    assert [result.outcome for result in rehearsal.results[:2]] == [Outcome.FAILED, Outcome.DENIED]
    assert f"Called separately, `curl -sS {url}/a`" in rehearsal.texts[1]
    assert seen == []


async def test_a_yes_to_a_command_without_the_network_opens_nothing(folder: Path, url: str, seen: list[str]) -> None:
    (folder / "evil.py").write_text(f"import urllib.request\nurllib.request.urlopen('{url}/evil')\n")
    line = "python3 evil.py; git reset --hard"
    rehearsal = await rehearse(folder, [run(line)], mode=Mode.AUTO, present=True)
    assert [question.decision.grants for question in rehearsal.asked[:1] if question.decision] == [()]
    assert seen == [] or rehearsal.asked[1].denial is not None


async def test_a_yes_opens_the_path_outside_that_the_line_names(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="treadle-test-") as beside:
        line = f"echo x >> count; cp count {beside}/made"
        rehearsal = await rehearse(folder, [run(line)], mode=Mode.AUTO, present=True)
        assert len(rehearsal.asked) == 1
        assert f"change {beside}" in rehearsal.asked[0].text
        assert rehearsal.results[0].outcome is Outcome.OK
        assert (Path(beside, "made").read_text(), (folder / "count").read_text()) == ("x\n", "x\n")


async def test_a_yes_shows_the_secret_that_the_line_names_and_no_other(folder: Path) -> None:
    (folder / ".env").write_text("GREETING=hello there\n")
    (folder / ".npmrc").write_text("other = hidden words\n")
    lines = ("echo x >> count; cat .env", "cat .env; python3 -c 'print(open(\".npmrc\").read())'")
    rehearsal = await rehearse(folder, list(map(run, lines)), mode=Mode.AUTO, present=True)
    assert "hello there" in rehearsal.texts[0]
    assert (folder / "count").read_text() == "x\n"
    first, second = rehearsal.asked
    granted = [question.decision.grants for question in (first, second) if question.decision is not None]
    env = str(folder / ".env")
    assert [[(one.right, one.target) for one in grants] for grants in granted] == [[(Right.READ, env)]] * 2
    assert "hidden words" not in rehearsal.texts[1]
    assert ".npmrc reads as empty for commands" in rehearsal.texts[1]


async def test_no_yes_opens_a_whole_home(folder: Path) -> None:
    file = f"{Path.home()}/treadle-test-file"
    line = f"echo x > {file}"
    rehearsal = await rehearse(folder, [run(line)], mode=Mode.AUTO, present=True, option=OptionKind.REJECT_ONCE)
    decision = rehearsal.asked[0].decision
    assert decision is not None
    assert [one.target for one in decision.grants if one.right is Right.WRITE] == [file]
