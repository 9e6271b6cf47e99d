"""Which hosts commands reach: asked about when a program looks them up, whatever program that is."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.outside import Outside, outside
from tests.app.rehearsal import ME, Rehearsal, call, rehearse, run
from tests.workspace.namespaces.test_names import hello
from tests.workspace.sandbox.running import bubblewrap
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import NetworkSettings, Settings
from treadle.app.security.trusting import session_trust
from treadle.app.session.commands.host_decisions import HostNotes, HostOutcome
from treadle.engine.core.texts import OLDER_IN_PLAN
from treadle.protocol.events import Answer, Interrupt, Prompt
from treadle.protocol.messages import Text
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import CallChanged, CallStatus, QuestionAsked, QuestionClosed, TurnEnded
from treadle.protocol.permissions import Mode, OptionKind, QuestionKind
from treadle.protocol.tools import CallResult, Outcome, Right
from treadle.providers.scripted.script import Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.workspace.namespaces.listeners import CommandServers
from treadle.workspace.namespaces.network_broker import CarriedConnection, NetworkBroker
from treadle.workspace.namespaces.session_space import SessionNamespaces

PYTHON = f"{sys.executable} -c \"import urllib.request as u; print(u.urlopen('http://example.com/').read())\""
CURL = "curl -sS http://example.com/"


@pytest.fixture
async def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Outside]:
    bubblewrap()
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    async with outside(monkeypatch) as found:
        yield found


async def ran(tmp: Path, *lines: str, answer: OptionKind = OptionKind.ALLOW_ONCE, **more: Any) -> Rehearsal:
    told = {"mode": Mode.AUTO, "present": True, **more}
    folder = tmp / "work"
    folder.mkdir()
    return await rehearse(folder, [run(line) for line in lines], option=answer, **told)


def asking(line: str, host: str = "example.com") -> str:
    shown = line if len(line) <= 80 else f"{line[:80]}…"
    return f"Let commands connect to {host}? Looked up by: {shown}"


@pytest.mark.parametrize(
    "line",
    [CURL, PYTHON, "url=http://example.com/; curl -sS $url", "echo 'curl -sS http://example.com/' > s.sh; sh s.sh"],
)
async def test_a_yes_in_the_middle_lets_a_program_go_on_whichever_it_is(
    tmp_path: Path, there: Outside, line: str
) -> None:
    found = await ran(tmp_path, line)
    assert "from it" in found.texts[0], found.texts[0]
    assert [(one.kind, one.text) for one in found.asked] == [(QuestionKind.ELICITATION, asking(line))]
    assert there.connected == ["example.com:80"]


async def test_a_no_is_final_for_the_session_and_nothing_is_asked_afterwards(tmp_path: Path, there: Outside) -> None:
    found = await ran(tmp_path, CURL, f"{CURL}again", answer=OptionKind.REJECT_ONCE)
    assert [one.kind for one in found.asked] == [QuestionKind.ELICITATION]
    assert [one.outcome for one in found.results[:2]] == [Outcome.FAILED, Outcome.FAILED]
    assert all("[Network: example.com was refused: the user said no." in text for text in found.texts[:2]), found.texts
    assert (there.connected, [one.denial for one in found.results[:2]]) == ([], [None, None])


async def test_where_nobody_can_answer_the_result_says_so_and_names_the_way(tmp_path: Path, there: Outside) -> None:
    found = await ran(tmp_path, CURL, present=False)
    assert "[Network: example.com was refused: nobody could be asked" in found.texts[0]
    assert "network.allow" in found.texts[0]
    denial = found.results[0].denial
    assert denial is not None
    assert (denial.right, denial.target, there.connected) == (Right.NETWORK, "example.com", [])
    assert found.denied == 1, "for which a run without a person ends with exit code 55"


async def test_settings_answer_in_the_place_of_a_person(tmp_path: Path, there: Outside) -> None:
    network = NetworkSettings(allow=(".example.com", "example.com"), deny=("bad.example.com",))
    found = await ran(
        tmp_path, CURL, "curl -sS http://sub.example.com/", "curl http://bad.example.com/", network=network
    )
    assert (found.asked, there.connected) == ([], ["example.com:80", "sub.example.com:80"])
    assert "bad.example.com was refused: the setting network.deny names it." in found.texts[2]


@pytest.mark.parametrize("verdict", ["deny", "allow"])
async def test_rules_of_people_decide_before_anybody_is_asked(tmp_path: Path, there: Outside, verdict: str) -> None:
    rule = f'version = 1\n[[rule]]\nverdict = "{verdict}"\nhost = "example.com"\nid = "mine"\n'
    rule += 'match = ["https://example.com/"]\n'
    (tmp_path / "home" / "policy.toml").write_text(rule)
    found = await ran(tmp_path, PYTHON)
    assert found.asked == []
    assert there.connected == (["example.com:80"] if verdict == "allow" else [])
    assert ("was refused" in found.texts[0]) is (verdict == "deny"), found.texts[0]


async def test_plan_mode_refuses_by_name_and_asks_nobody(tmp_path: Path, there: Outside) -> None:
    found = await ran(tmp_path, PYTHON, mode=Mode.PLAN)
    assert (found.asked, there.connected) == ([], [])
    assert "example.com was refused: plan mode" in found.texts[0]


async def test_no_earlier_yes_and_no_setting_opens_plan_mode(tmp_path: Path, there: Outside) -> None:
    network = NetworkSettings(allow=("allowed.org",))
    lines = (CURL, PYTHON, PYTHON.replace("example.com", "allowed.org"))
    found = await ran(tmp_path, *lines, later={2: Mode.PLAN}, network=network)
    assert [one.kind for one in found.asked] == [QuestionKind.ELICITATION] * 2
    assert there.connected == ["example.com:80"]
    assert all("was refused: plan mode" in text for text in found.texts[1:3]), found.texts
    assert [text for text in found.notices if "before you chose plan mode" in text] == [OLDER_IN_PLAN]


async def test_commands_that_begin_at_once_are_all_served(tmp_path: Path, there: Outside) -> None:
    namespaces = SessionNamespaces()

    async def yes(host: str, port: int) -> bool:
        return (host, port) != ("", 0)

    async def nowhere(host: str, port: int) -> CarriedConnection:
        raise OSError(f"{host}:{port}")

    broker = NetworkBroker(namespaces, yes, nowhere, tell=lambda *_: None)
    try:
        assert await asyncio.gather(*(broker.open() for _ in range(8))) == [True] * 8
        assert broker.serves
    finally:
        await broker.close()
        namespaces.close()


async def test_a_decision_that_fails_is_a_refusal_that_says_so_and_nobody_waits(
    tmp_path: Path, there: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: CommandServers, port: int) -> int:
        raise ValueError(f"port {port > 0}")

    monkeypatch.setattr(CommandServers, "asker", fail)
    found = await ran(tmp_path, CURL, present=False)
    assert "example.com was refused: it could not be decided on (ValueError: port True)." in found.texts[0]
    assert there.connected == []


async def test_hosts_of_one_service_are_asked_about_together(tmp_path: Path, there: Outside) -> None:
    found = await ran(tmp_path, "curl -sS http://pypi.org/ http://files.pythonhosted.org/")
    assert len(found.asked) == 1
    assert there.connected == ["pypi.org:80", "files.pythonhosted.org:80"]


async def test_a_trial_reaches_what_was_allowed_and_asks_about_its_changes(tmp_path: Path, there: Outside) -> None:
    found = await ran(tmp_path, f"{CURL} > page; test -s page", mode=Mode.ASK)
    assert [one.kind for one in found.asked] == [QuestionKind.ELICITATION, QuestionKind.PERMISSION]
    assert (found.asked[1].copy is not None, (tmp_path / "work" / "page").read_text()) == (True, "from it\n")


_CONNECTS = "s = socket.create_connection(('example.com', {}))"
_SENDS = f"{_CONNECTS}; s.sendall(b'GET / HTTP/1.1\\r\\nHost: {{}}\\r\\n\\r\\n')"
OTHERWISE = {
    "field": _SENDS.format(80, "other.org"),
    "two fields": _SENDS.format(80, "example.com\\r\\nHost: other.org"),
    "no TLS": _SENDS.format(443, "example.com"),
    "TLS": f"{_CONNECTS.format(443)}; s.sendall(bytes.fromhex('{hello('other.org').hex()}'))",
}


@pytest.mark.parametrize("code", OTHERWISE.values(), ids=OTHERWISE)
async def test_what_is_for_another_place_than_was_named_is_not_carried(
    tmp_path: Path, there: Outside, code: str
) -> None:
    found = await ran(tmp_path, f'{sys.executable} -c "import socket; {code}; s.recv(1)"')
    assert found.results[0].outcome is Outcome.FAILED, found.texts[0]
    assert "was for another host, or did not say for which one" in found.texts[0]
    assert ([one.kind for one in found.asked], there.connected) == ([QuestionKind.ELICITATION], [])


@pytest.mark.parametrize("line", ["curl -sS -m 5 http://198.18.0.77/", "curl -sS -m 5 http://198.18.0.77:8080/"])
async def test_addresses_that_stand_for_no_name_lead_nowhere(tmp_path: Path, there: Outside, line: str) -> None:
    found = await ran(tmp_path, line, present=False)
    assert (found.results[0].outcome, there.connected) == (Outcome.DENIED, [])


@pytest.mark.parametrize("host", ["localhost", "metadata.google.internal", "printer.local", "intranet", "x.onion"])
async def test_names_of_no_public_network_are_unknown_and_nobody_is_asked(
    tmp_path: Path, there: Outside, host: str
) -> None:
    line = f"{sys.executable} -c \"import urllib.request as u; u.urlopen('http://{host}/', timeout=5)\""
    found = await ran(tmp_path, line, answer=OptionKind.REJECT_ONCE)
    assert ([one.kind for one in found.asked if one.kind is QuestionKind.ELICITATION], there.connected) == ([], [])
    assert found.results[0].outcome is Outcome.FAILED


async def test_what_fails_outside_is_told_with_its_reason(tmp_path: Path, there: Outside) -> None:
    found = await ran(tmp_path, "curl -sS http://missing.example.com/")
    assert (
        "Network: your proxy does not connect to missing.example.com:80: HTTP/1.1 502 No such host." in found.texts[0]
    )
    assert found.results[0].denial is None


async def test_a_flood_of_names_asks_a_few_times_and_then_answers_by_itself(tmp_path: Path, there: Outside) -> None:
    line = "for n in $(seq 40); do getent hosts n$n.example.com & done; wait; true"
    found = await ran(tmp_path, line, answer=OptionKind.REJECT_ONCE)
    assert 1 <= len(found.asked) <= 12
    unsaid = "more hosts are not listed" in found.texts[0]  # where all that are listed were asked about
    assert unsaid or "too much was asked in the middle" in found.texts[0]
    assert found.texts[0].count(" was refused: ") <= 10


def test_however_often_remarks_are_asked_for_a_command_lists_ten_hosts() -> None:
    notes = HostNotes()
    told: list[str] = []
    for start in range(0, 40, 7):
        for number in range(start, min(start + 7, 40)):
            notes.note(f"n{number}.example.com", HostOutcome("no."))
        told += [one.text for one in notes.remarks()]
    assert len([one for one in told if " was refused: " in one]) == 10
    unlisted = [one.split()[1] for one in told if one.endswith("more hosts are not listed.")]
    assert sum(map(int, unlisted)) == 30


async def test_a_right_that_was_given_before_is_not_asked_about_again(tmp_path: Path, there: Outside) -> None:
    wanted = call("execute_command", command="true", needs=["network:example.com"], reason="To see it.")
    found = await rehearse(tmp_path, [wanted], mode=Mode.AUTO, present=True)
    assert [one.kind for one in found.asked] == [QuestionKind.PERMISSION]


async def test_the_program_that_looks_a_name_up_tells_which_command_asks(tmp_path: Path, there: Outside) -> None:
    server = call("execute_command", command="sleep 30; curl http://other.org/", background=True)
    found = await rehearse(tmp_path, [server, run(CURL)], mode=Mode.AUTO, present=True)
    assert [one.text.partition("by: ")[2] for one in found.asked] == [CURL]


async def test_a_port_of_this_machine_is_reached_where_the_user_says_so(tmp_path: Path, there: Outside) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\nconnection: close\r\n\r\nthis machine")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    line = f"{sys.executable} -c \"import urllib.request as u; print(u.urlopen('http://localhost:{port}/').read())\""
    async with server:
        opened = await ran(tmp_path, line, network=NetworkSettings(loopback_ports=(port,)), present=False)
        assert ("this machine" in opened.texts[0], opened.asked) == (True, [])
        (tmp_path / "other").mkdir()
        closed = await rehearse(tmp_path / "other", [run(line)], mode=Mode.AUTO)
        assert "this machine" not in closed.texts[0]


async def test_an_interrupt_closes_the_question_and_the_next_command_asks_again(tmp_path: Path, there: Outside) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    done = call("attempt_completion", result="Done.")
    turns = tuple(Turn(items=(one,)) for one in (run(CURL), run(CURL), done))
    async with ScriptedServer(Script(turns=turns)) as server, asyncio.timeout(60):
        settings = Settings(
            model="anthropic-compatible/scripted",
            tool_protocol=ToolProtocol.NATIVE,
            base_url=server.base_url,
            mode=Mode.AUTO,
        )
        trust = session_trust(folder, once=True)
        opening = Opening(workspace=folder, settings=settings, user_present=True, trust=trust)
        async with await open_session(opening) as live:
            feed = live.follow()
            await live.post(Prompt(id="p1", content=(Text(text="Try."),)), ME)
            closed, results = list[str](), list[CallResult]()
            async for notification in feed:
                match notification:
                    case QuestionAsked(question=question) if not closed:
                        await live.post(Interrupt(), ME)
                    case QuestionAsked(question=question):
                        await live.post(Answer(question_id=question.id, option=OptionKind.ALLOW_ONCE), ME)
                    case QuestionClosed(question_id=question_id):
                        closed.append(question_id)
                    case CallChanged(status=CallStatus.FINISHED, result=CallResult() as result):
                        results.append(result)
                    case TurnEnded() if len(results) == 1:
                        await live.post(Prompt(id="p2", content=(Text(text="Go on."),)), ME)
                    case TurnEnded():
                        break
                    case _:
                        pass
    assert [one.outcome for one in results[:2]] == [Outcome.INTERRUPTED, Outcome.OK]
    assert (len(set(closed)), there.connected) == (2, ["example.com:80"])
