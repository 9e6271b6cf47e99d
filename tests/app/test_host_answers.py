"""For how long an answer about a host holds: for a command, the session, or always; and what projects may say of it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.app.outside import Outside, outside
from tests.app.rehearsal import ME, Rehearsal, call, rehearse, run
from tests.workspace.sandbox.running import bubblewrap
from treadle.app.compose import Opening, open_session
from treadle.app.config.edit import set_value, unset_value
from treadle.app.config.layers import load_settings
from treadle.app.config.sections import NetworkSettings, Settings
from treadle.app.models.saving_model import check_setting
from treadle.app.security.trusting import session_trust
from treadle.app.session.commands.network_settings import CurrentNetwork
from treadle.app.session.live import LiveSession
from treadle.protocol.errors import ConfigError
from treadle.protocol.events import Answer, Interrupt, Op, Prompt, RevokeAllowance, SetPresence
from treadle.protocol.messages import Text
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import CallChanged, CallStatus, QuestionAsked, QuestionClosed, TurnEnded
from treadle.protocol.permissions import AllowScope, Mode, OptionKind, Question, QuestionKind
from treadle.protocol.tools import CallResult
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

CURL = "curl -sS http://example.com/"
OTHER = "curl -sS http://other.org/"
RUNNING = [Mode.ASK, Mode.EDITS, Mode.AUTO]


@pytest.fixture
async def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Outside]:
    bubblewrap()
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    async with outside(monkeypatch) as found:
        yield found


def own_file(tmp: Path) -> Path:
    return tmp / "home" / "config.toml"


async def ran(tmp: Path, *lines: str, **more: Any) -> Rehearsal:
    told = {"mode": Mode.AUTO, "present": True, **more}
    return await rehearse(tmp / "work", [run(line) for line in lines], **told)


def asked(found: Rehearsal) -> list[str]:
    return [one.text.partition("?")[0].partition(" (")[0] for one in found.asked]


EXAMPLE = "Let commands connect to example.com"


@pytest.mark.parametrize("mode", RUNNING)
async def test_a_yes_once_is_for_the_command_that_asked(tmp_path: Path, there: Outside, mode: Mode) -> None:
    found = await ran(tmp_path, f"{CURL}; {CURL}", CURL, mode=mode)
    assert asked(found) == [EXAMPLE, EXAMPLE]
    assert there.connected == ["example.com:80"] * 3
    assert not own_file(tmp_path).exists()


@pytest.mark.parametrize("mode", RUNNING)
async def test_a_yes_for_the_session_is_for_all_its_commands(tmp_path: Path, there: Outside, mode: Mode) -> None:
    found = await ran(tmp_path, CURL, CURL, mode=mode, option=OptionKind.ALLOW_ALWAYS)
    assert (asked(found), there.connected) == ([EXAMPLE], ["example.com:80"] * 2)
    again = await ran(tmp_path, CURL, mode=mode, option=OptionKind.REJECT_ONCE)
    assert (asked(again), own_file(tmp_path).exists()) == ([EXAMPLE], False)


@pytest.mark.parametrize("mode", RUNNING)
async def test_always_writes_the_users_own_setting_and_says_how_to_take_it_back(
    tmp_path: Path, there: Outside, mode: Mode
) -> None:
    text = '# mine\nlanguage = "German"  # as I like it\n\n[network]\n# hosts\nallow = [\n  "pypi.org",  # wheels\n]\n'
    own_file(tmp_path).write_text(text)
    found = await ran(tmp_path, CURL, CURL, mode=mode, option=OptionKind.ALLOW_ALWAYS, scope=AllowScope.USER)
    assert (asked(found), there.connected) == ([EXAMPLE], ["example.com:80"] * 2)
    back = "treadle config set network.allow '[\"pypi.org\"]'"
    said = f"Your settings allow example.com from now on: network.allow in {own_file(tmp_path)}. To undo that: {back}"
    assert said in found.notices
    written = own_file(tmp_path).read_text()
    assert all(comment in written for comment in ("# mine", "# as I like it", "# hosts", "# wheels"))
    assert load_settings({}).network.allow == ("pypi.org", "example.com")
    network = load_settings({}).network
    later = await ran(tmp_path, CURL, mode=mode, option=OptionKind.REJECT_ONCE, network=network)
    assert later.asked == []
    set_value("network.allow", '["pypi.org"]', check_setting)
    assert asked(await ran(tmp_path, CURL, mode=mode, option=OptionKind.REJECT_ONCE)) == [EXAMPLE]


async def test_hosts_of_one_service_are_written_together(tmp_path: Path, there: Outside) -> None:
    line = "curl -sS http://pypi.org/ http://files.pythonhosted.org/"
    found = await ran(tmp_path, line, option=OptionKind.ALLOW_ALWAYS, scope=AllowScope.USER)
    assert asked(found) == ["Let commands connect to pypi.org and files.pythonhosted.org"]
    assert load_settings({}).network.allow == ("pypi.org", "files.pythonhosted.org")
    assert any(text.endswith("treadle config unset network.allow") for text in found.notices)


async def test_a_file_with_a_mistake_is_not_written_and_the_answer_holds_for_the_session(
    tmp_path: Path, there: Outside
) -> None:
    own_file(tmp_path).write_text("this is no TOML")
    found = await ran(tmp_path, CURL, CURL, option=OptionKind.ALLOW_ALWAYS, scope=AllowScope.USER)
    assert (asked(found), there.connected) == ([EXAMPLE], ["example.com:80"] * 2)
    assert own_file(tmp_path).read_text() == "this is no TOML"
    assert any("could not be written, so example.com can be reached in this session" in one for one in found.notices)


async def test_a_deny_wins_over_every_answer(tmp_path: Path, there: Outside) -> None:
    def denies(number: int) -> None:
        if number == 2:
            set_value("network.deny", '["example.com"]', check_setting)

    found = await two_commands(tmp_path, CURL, CURL, before=denies)
    assert there.connected == ["example.com:80"]
    assert "example.com was refused: the setting network.deny names it." in texts(found)[1]


async def test_what_is_written_counts_in_sessions_that_run_already(tmp_path: Path, there: Outside) -> None:
    def allows(number: int) -> None:
        if number == 2:
            set_value("network.allow", '["other.org"]', check_setting)

    results = await two_commands(tmp_path, CURL, OTHER, before=allows, option=OptionKind.REJECT_ONCE)
    assert there.connected == ["other.org:80"]
    assert "the user said no" in texts(results)[0]


async def test_an_answer_for_the_session_is_listed_and_taken_back_as_others_are(tmp_path: Path, there: Outside) -> None:
    async def revokes(live: LiveSession) -> None:
        (allowance,) = live.status.allowances
        await live.post(RevokeAllowance(allowance_id=allowance.id), ME)

    results, questions = await turns_of(
        tmp_path, [run(CURL)], [run(CURL)], between=revokes, answers=[OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ONCE]
    )
    assert (len(questions), there.connected) == (2, ["example.com:80"])
    assert "was refused" in texts(results)[1]


async def test_an_answer_for_the_session_allows_no_upload(tmp_path: Path, there: Outside) -> None:
    (tmp_path / "work" / "data").write_text("mine")
    upload = run("curl -sS -T data http://example.com/")
    answers = [OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ONCE]
    _, questions = await turns_of(tmp_path, [run(CURL), upload], between=None, answers=answers)
    assert [one.kind for one in questions] == [QuestionKind.ELICITATION, QuestionKind.PERMISSION]


# What a project says.


def project(tmp: Path, text: str) -> NetworkSettings:
    folder = tmp / "work"
    (folder / ".treadle").mkdir(exist_ok=True)
    (folder / ".treadle" / "config.toml").write_text(text)
    return load_settings({}, workspace=folder, trusted=True).network


async def test_hosts_that_a_project_needs_are_asked_about_in_one_question(tmp_path: Path, there: Outside) -> None:
    network = project(tmp_path, '[network]\nneeds = ["example.com", "other.org"]\n')
    found = await ran(tmp_path, f"{CURL}; {OTHER}", network=network)
    question = (
        "Let commands connect to example.com and other.org? The settings of this project, or yours, say that they"
    )
    assert [one.text.partition(" are needed")[0] for one in found.asked] == [question]
    assert there.connected == ["example.com:80", "other.org:80"]


async def test_a_no_to_all_that_a_project_needs_asks_about_each(tmp_path: Path, there: Outside) -> None:
    network = project(tmp_path, '[network]\nneeds = ["example.com", "other.org", "third.org"]\n')
    found = await ran(tmp_path, f"{CURL}; {OTHER}; true", network=network, option=OptionKind.REJECT_ONCE)
    assert asked(found)[1:] == ["Let commands connect to other.org"]
    assert there.connected == []


async def test_what_a_project_needs_is_never_allowed_without_a_person(tmp_path: Path, there: Outside) -> None:
    network = project(tmp_path, '[network]\nneeds = ["example.com"]\n')
    found = await ran(tmp_path, CURL, network=network, present=False)
    assert (found.asked, there.connected) == ([], [])


async def test_a_project_adds_to_what_is_denied_and_lifts_nothing(tmp_path: Path, there: Outside) -> None:
    own_file(tmp_path).write_text('[network]\nallow = [".example.com", "other.org"]\ndeny = ["bad.example.com"]\n')
    network = project(tmp_path, '[network]\ndeny = ["other.org"]\n')
    assert (network.allow, network.deny) == ((".example.com", "other.org"), ("bad.example.com", "other.org"))
    found = await ran(tmp_path, OTHER, "curl http://bad.example.com/", network=network)
    assert (found.asked, there.connected) == ([], [])


@pytest.mark.parametrize("key", ['allow = ["example.com"]', "loopback_ports = [8080]"])
def test_a_project_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    with pytest.raises(ConfigError, match=f"a workspace may not set network.{key.partition(' ')[0]}"):
        project(tmp_path, f"[network]\n{key}\n")


@pytest.mark.parametrize("text", ['needs = [".example.com"]', 'needs = ["nodot"]'])
def test_what_is_needed_is_named_host_by_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    with pytest.raises(ConfigError):
        project(tmp_path, f"[network]\n{text}\n")


def test_settings_that_change_are_followed_and_those_of_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    own_file(tmp_path).write_text('[network]\nallow = ["a.org"]\ndeny = ["b.org"]\n')
    now = CurrentNetwork(NetworkSettings(allow=("a.org", "given.org"), deny=("b.org", "project.org")))
    assert now().allow == ("a.org", "given.org")
    own_file(tmp_path).write_text('[network]\ndeny = ["c.org"]\n')
    assert (now().allow, now().deny) == (("given.org",), ("c.org", "project.org"))
    own_file(tmp_path).write_text("broken")
    assert now().deny == ("c.org", "project.org")
    own_file(tmp_path).unlink()
    assert (now().allow, now().deny) == (("given.org",), ("project.org",))


def test_two_sessions_that_write_at_once_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))

    async def write() -> None:
        sessions = [CurrentNetwork(NetworkSettings()) for _ in range(8)]
        hosts = [(f"h{number}.org",) for number in range(8)]
        await asyncio.gather(*(asyncio.to_thread(one.allow, each) for one, each in zip(sessions, hosts, strict=True)))

    asyncio.run(write())
    assert sorted(load_settings({}).network.allow) == [f"h{number}.org" for number in range(8)]
    unset_value("network.allow", check_setting)
    assert load_settings({}).network.allow == ()


# Commands in the background.


def behind(line: str) -> MakeCall:
    return call("execute_command", command=line, background=True)


SLOW = "sleep 1; curl -sS http://other.org/; sleep 30"


@pytest.mark.parametrize(
    "option",
    [
        OptionKind.ALLOW_ONCE,
        *(pytest.param(one, marks=pytest.mark.soak) for one in (OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ONCE)),
    ],
)
async def test_a_command_in_the_background_asks_when_its_call_is_over(
    tmp_path: Path, there: Outside, option: OptionKind
) -> None:
    calls = [behind(SLOW), run("sleep 3; true"), call("read_command_output", command_number=1, wait=1)]
    found = await rehearse(tmp_path / "work", calls, mode=Mode.AUTO, present=True, option=option)
    assert asked(found) == ["Let commands connect to other.org"]
    assert found.asked[0].text.endswith(f"? Looked up by: {SLOW} (in the background)")
    assert there.connected == ([] if option is OptionKind.REJECT_ONCE else ["other.org:80"])
    assert ("the user said no" in found.texts[2]) is (option is OptionKind.REJECT_ONCE), found.texts[2]


async def test_where_nobody_is_there_the_background_is_refused_with_the_way_on(tmp_path: Path, there: Outside) -> None:
    calls = [behind(SLOW), run("sleep 3; true"), call("read_command_output", command_number=1, wait=1)]
    found = await rehearse(tmp_path / "work", calls, mode=Mode.AUTO)
    assert (found.asked, there.connected) == ([], [])
    assert "other.org was refused: nobody could be asked" in found.texts[2]
    assert "network.allow" in found.texts[2]


@pytest.mark.parametrize("option", [OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE, None])
async def test_between_turns_the_background_asks_and_the_session_goes_on(
    tmp_path: Path, there: Outside, option: OptionKind | None
) -> None:
    arrived = asyncio.Event()

    async def waits(live: LiveSession) -> None:
        async with live.follow() as feed:
            if not live.status.questions:
                async for one in feed:
                    if isinstance(one, QuestionAsked):
                        break
        (question,) = live.status.questions
        assert question.text.endswith("(in the background)")
        arrived.set()
        if option is not None:
            await live.post(Answer(question_id=question.id, option=option), ME)
            async with asyncio.timeout(90):
                while option is OptionKind.ALLOW_ONCE and not there.connected:
                    await asyncio.sleep(0.05)

    results, _ = await turns_of(tmp_path, [behind(SLOW)], [run("echo went on")], between=waits, answers=[])
    assert arrived.is_set()
    assert "went on" in texts(results)[1], "a question that is open holds no turn up"
    assert there.connected == (["other.org:80"] if option is OptionKind.ALLOW_ONCE else [])


@pytest.mark.parametrize("op", [Interrupt(), SetPresence(user_present=False)])
async def test_an_interrupt_or_nobody_any_more_withdraws_the_question_of_the_background(
    tmp_path: Path, there: Outside, op: Op
) -> None:
    closed: list[str] = []
    asked_: list[str] = []
    turns = [Turn(items=(behind(SLOW),)), Turn(items=(run("sleep 20"),))]
    async with session(tmp_path, turns) as live, live.follow() as feed:
        await live.post(Prompt(id="p1", content=(Text(text="Try."),)), ME)
        async for one in feed:
            match one:
                case QuestionAsked(question=question):
                    asked_.append(question.id)
                    await live.post(op, ME)
                case QuestionClosed(question_id=question_id, option=None):
                    closed.append(question_id)
                    if isinstance(op, SetPresence):
                        await live.post(Interrupt(), ME)
                case TurnEnded():
                    break
                case _:
                    pass
        assert live.status.questions == ()
    assert (closed, len(asked_), there.connected) == (asked_, 1, [])


def texts(results: Sequence[CallResult]) -> list[str]:
    return ["".join(block.text for block in one.content if isinstance(block, Text)) for one in results]


@asynccontextmanager
async def session(tmp: Path, turns: Sequence[Turn]) -> AsyncIterator[LiveSession]:
    """Open a session in mode auto with somebody there, with a model that plays these turns."""
    async with ScriptedServer(Script(turns=tuple(turns))) as server:
        settings = Settings(
            model="anthropic-compatible/scripted",
            tool_protocol=ToolProtocol.NATIVE,
            base_url=server.base_url,
            mode=Mode.AUTO,
        )
        folder = tmp / "work"
        trust = session_trust(folder, once=True)
        opening = Opening(workspace=folder, settings=settings, user_present=True, trust=trust)
        async with await open_session(opening) as live:
            yield live


async def turns_of(
    tmp: Path, *calls: Sequence[MakeCall], between: Any, answers: Sequence[OptionKind]
) -> tuple[list[CallResult], list[Question]]:
    """Run a turn for each list of calls, with something in between."""
    done = call("attempt_completion", result="Done.")
    script = [Turn(items=(one,)) for each in calls for one in (*each, done)]
    results, questions = list[CallResult](), list[Question]()
    async with asyncio.timeout(90), session(tmp, script) as live:
        for number in range(len(calls)):
            if number:
                await between(live)
            async with live.follow() as feed:
                await live.post(Prompt(id=f"p{number}", content=(Text(text="Try."),)), ME)
                async for one in feed:
                    match one:
                        case QuestionAsked(question=question) if answers:
                            questions.append(question)
                            option = answers[len(questions) - 1]
                            await live.post(Answer(question_id=question.id, option=option), ME)
                        case CallChanged(status=CallStatus.FINISHED, call=made, result=CallResult() as result):
                            if made.name != "attempt_completion":
                                results.append(result)
                        case TurnEnded():
                            break
                        case _:
                            pass
    return results, questions


async def two_commands(
    tmp: Path, first: str, second: str, *, before: Any, option: OptionKind = OptionKind.ALLOW_ALWAYS
) -> list[CallResult]:
    async def between(_: LiveSession) -> None:
        await asyncio.to_thread(before, 2)

    results, _ = await turns_of(tmp, [run(first)], [run(second)], between=between, answers=[option] * 2)
    return results
