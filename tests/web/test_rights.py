"""What a browser may do goes by the effect: every route, command, op and answer, from each kind of device."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.e2e.faults.driving import run
from tests.web.in_process import HOST, Here, Visit, page_here
from treadle.app.config.places import config_file
from treadle.app.security.op_effects import FROM_AFAR, Reach, mode_effect
from treadle.app.session.files.answer_effects import answer_effect
from treadle.app.session.own_commands.slash_commands import SLASH_TABLE
from treadle.protocol.events import Answer
from treadle.protocol.permissions import (
    AllowScope,
    Decision,
    Mode,
    OptionKind,
    Part,
    Question,
    QuestionKind,
    Reason,
    Verdict,
)
from treadle.protocol.tools import Risk
from treadle.providers.scripted.script import SayText, Turn
from treadle.web.entered import works_here
from treadle.web.request_guard import OPEN_PATHS
from treadle.web.rights import PageRoute

ACTING: Mapping[str, Reach] = {
    "/login": Reach.ENTER,
    "/attached": Reach.WORK,
    "/sessions": Reach.WORK,
    "/fleet/{run}/stop": Reach.WORK,
    "/fleet/{run}/add": Reach.CONTROL,
    "/fleet/{run}/start": Reach.CONTROL,
    **{
        f"/s/{{session_id}}/{act}": Reach.WORK
        for act in (
            *(
                "say",
                "open",
                "answer",
                "change",
                "queue",
                "interrupt",
                "commands/stop",
                "close",
                "jobs/stop",
                "agents/stop",
                "agents/{agent}/stop",
            ),
            *(
                "commit",
                "commit/message",
                "undo",
                "rename",
                "archive",
                "pin",
                "unpin",
                "unarchive",
                "delete",
                "fork",
                "timeline/fork",
                "replay",
                "copy/take",
                "copy/undo",
                "restore/preview",
                "restore",
            ),
            *("review/take-back", "review/marks", "review/message"),
            *("context/compact", "context/pin", "context/unpin"),
        )
    },
    **dict.fromkeys(("/s/{session_id}/push", "/s/{session_id}/pull-request"), Reach.OWN_COMMANDS),
    "/s/{session_id}/file/open": Reach.OWN_COMMANDS,
    **dict.fromkeys(("/s/{session_id}/ports/open", "/s/{session_id}/ports/close"), Reach.PORTS),
    "/devices/out": Reach.WORK,
    "/shells": Reach.OWN_COMMANDS,
    "/s/{session_id}/shell": Reach.OWN_COMMANDS,
    "/s/{session_id}/shell/type": Reach.OWN_COMMANDS,
    "/s/{session_id}/shell/size": Reach.OWN_COMMANDS,
    "/devices/link": Reach.DEVICES,
    "/devices/name": Reach.DEVICES,
    "/devices/keep": Reach.DEVICES,
    "/devices/knock": Reach.DEVICES,
    "/health/check": Reach.WORK,
    "/health/verify": Reach.SEE,
    "/policy/add": Reach.POLICY,
    "/policy/remove": Reach.POLICY,
    "/policy/revoke": Reach.WORK,
    "/settings/row": Reach.SETTINGS,
    "/settings/set": Reach.SETTINGS,
    "/settings/unset": Reach.SETTINGS,
    "/settings/key": Reach.KEYS,
    "/settings/key/remove": Reach.KEYS,
    "/settings/servers/add": Reach.SERVERS,
    "/settings/servers/remove": Reach.SERVERS,
    "/settings/servers/switch": Reach.SERVERS,
    "/settings/servers/look": Reach.SERVERS,
    "/settings/servers/log": Reach.SEE,
    "/settings/servers/approve": Reach.SERVERS,
    "/settings/rules/turn": Reach.RULES,
    "/settings/folders/revoke": Reach.TRUST,
}
"""What each route does that acts. One that is not here fails: say what it does, here and at the route."""

REFUSED = "only on the computer that runs Treadle"
TALK = tuple(Turn(items=(SayText(text="Hello."),)) for _ in range(80))


def routes_of(here: Here) -> list[PageRoute]:
    application = here.application.application
    assert isinstance(application, Starlette)
    found = [route for route in application.routes if isinstance(route, PageRoute)]
    assert [type(route) for route in application.routes if route not in found] == [Mount], "a route says what it does"
    return found


def phone(here: Here) -> Visit:
    return Visit(here.application, here.keys.let_in(here.keys.new_link()), here.keys.base)


async def test_every_route_says_what_it_does_and_what_only_shows_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, TALK) as here:
        routes = routes_of(here)
    posted = {one.path: one.effect for one in routes if "POST" in (one.methods or ())}
    assert posted == dict(ACTING)
    shown = {one.path: one.effect for one in routes if one.path not in posted}
    assert {path: effect for path, effect in shown.items() if effect is not Reach.SEE} == {
        "/healthz": Reach.ENTER,
        "/folders": Reach.TRUST,  # shows folders in which nobody has worked
    }
    entered = {one.path for one in routes if one.effect is Reach.ENTER}
    assert entered == OPEN_PATHS, "what needs nobody is what the guard lets pass"


@pytest.mark.parametrize(
    "query",
    [
        "?device=owner&paired=false&x-treadle-key=1&method=GET",
        *(pytest.param(query, marks=pytest.mark.soak) for query in ("", "?method=GET")),
    ],
)
async def test_each_device_reaches_what_it_may_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    async with page_here(tmp_path, monkeypatch, TALK) as here:
        owner, paired = here.keys.let_in(here.keys.token), here.keys.let_in(here.keys.new_link())
        devices = {
            "owner": (owner, "127.0.0.1", frozenset(Reach)),
            "paired": (paired, "192.0.2.7", FROM_AFAR),
            "paired, through a tunnel": (paired, "127.0.0.1", FROM_AFAR),
            "owner's cookie, elsewhere": (owner, "192.0.2.8", FROM_AFAR),
            "nobody": (None, "127.0.0.1", frozenset({Reach.ENTER})),
        }
        for name, (entrance, address, may) in devices.items():
            transport = httpx2.ASGITransport(app=here.application, client=(address, 5_000))
            site = f"{'http' if address == '127.0.0.1' else 'https'}://{HOST}"
            headers = {"origin": site, "content-type": "application/json"}
            if entrance is not None:
                headers |= {"cookie": f"page={entrance.cookie}", "x-treadle-key": entrance.key}
            async with httpx2.AsyncClient(
                transport=transport, base_url=f"{site}{here.keys.base}", headers=headers
            ) as client:
                for route in routes_of(here):
                    if route.path == "/events":
                        continue  # a stream without an end: who is not let in is tested with the guard
                    path = (
                        route.path.replace("{session_id}", "none").replace("{seq}", "1").replace("{run}", "1") + query
                    )
                    method = "POST" if "POST" in (route.methods or ()) else "GET"
                    found = await client.request(method, path, content=b"[]" if method == "POST" else b"")
                    if entrance is None and route.effect not in may:
                        entering = route.path == "/" and "Open the link" in found.text
                        assert entering or found.status_code == 401, (name, path)
                        assert str(here.folder) not in found.text
                    else:
                        assert (REFUSED in found.text) == (route.effect not in may), (name, path, found.text[:200])
                        assert found.status_code != 401, (name, path)


FOLLOWS = ("", "approve all", "reconnect all", "off 1", "on 1", "md /tmp/elsewhere.md", "full", "auto", "edits", "ask")


async def test_a_command_typed_on_a_phone_does_what_the_phone_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, TALK) as here:
        page, device = await here.start(here.visit()), phone(here)
        refused: set[str] = set()
        for row in SLASH_TABLE:
            if not works_here(row) or row.name in ("fork", "compact", "init", "newrule", "btw", "doctor"):
                continue
            for follows in FOLLOWS:
                text = f"/{row.name} {follows}".strip()
                status, said = await device.post(f"/s/{page.session.id}/say", text=text)
                assert (status == 403) == (REFUSED in str(said)), said
                if status == 403:
                    refused.add(text)
        widened = {f"/mode {mode}" for mode in ("full", "auto", "edits")}
        servers = {f"/mcp {follows}" for follows in FOLLOWS if follows}
        rules = {f"/{name} {follows}" for name in ("rules", "memory") for follows in FOLLOWS if follows}
        files = {f"/export {follows}" for follows in FOLLOWS if follows}
        ports = {f"/ports {follows}" for follows in FOLLOWS if follows}
        assert refused == widened | servers | rules | files | ports
        assert page.session.status.mode is Mode.ASK
        for text in ("!id", " ! id", "!treadle config set model x"):
            assert (await device.post(f"/s/{page.session.id}/say", text=text))[0] == 403, text
        assert not Path("/tmp/elsewhere.md").exists()


async def test_a_phone_widens_no_mode_trusts_no_folder_and_makes_no_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [Turn(items=(run("git push origin main"),)), *TALK]
    async with page_here(tmp_path, monkeypatch, turns) as here:
        owner, device = here.visit(), phone(here)
        page = await here.start(owner)
        question, path = await here.asked(page), f"/s/{page.session.id}"
        refusals: tuple[tuple[str, dict[str, Any]], ...] = (
            (f"{path}/change", {"mode": "full"}),
            (f"{path}/change", {"mode": "edits"}),
            (f"{path}/answer", {"question_id": question.id, "option": "allow_always", "scope": "user"}),
            (f"{path}/answer", {"question_id": question.id, "option": "reject_always", "scope": "user"}),
            ("/sessions", {"folder": str(here.folder), "text": "go", "mode": "full"}),
        )
        for where, body in refusals:
            status, said = await device.post(where, **body)
            assert (status, REFUSED in str(said)) == (403, True), (where, body, said)
        assert [one.id for one in page.questions] == [question.id]
        assert len(here.book.opened) == 1
        await device.done(f"{path}/change", mode="plan")
        await device.done(f"{path}/change", mode="ask")
        await owner.done(f"{path}/change", mode="auto")
        await device.done(f"{path}/change", mode="edits")  # narrower than what the owner chose
        await device.done(f"{path}/answer", question_id=question.id, option="reject_once")


async def test_settings_with_a_mistake_keep_no_browser_from_a_narrower_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, TALK, mode="auto") as here:
        owner, device = here.visit(), phone(here)
        page = await here.start(owner)
        path = f"/s/{page.session.id}/change"
        config_file().parent.mkdir(parents=True, exist_ok=True)
        config_file().write_text("mode = ")
        await device.done(path, mode="ask")
        status, said = await device.post(path, mode="auto")
        assert (status, REFUSED in str(said)) == (403, True), "nobody knows that the user's own mode is as wide"
        await owner.done(path, mode="plan")


async def test_a_phone_says_of_no_folder_that_it_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with page_here(tmp_path, monkeypatch, TALK, trust=False) as here:
        (here.folder / ".treadle").mkdir()
        (here.folder / ".treadle" / "config.toml").write_text('language = "French"\n')
        device, body = phone(here), {"folder": str(here.folder), "text": "go"}
        asked = (await device.done("/sessions", **body))["trust"]
        assert asked["answers"] == [["later", "Continue without trusting it"]]
        for said in ("always", "once", "never"):
            status, why = await device.post("/sessions", **body, trust=said, seen=asked["seen"])
            assert (status, REFUSED in str(why)) == (403, True), said
        assert not here.book.trust(here.folder).trusted
        assert "session" in await device.done("/sessions", **body, trust="later", seen=asked["seen"])
        assert "session" in await device.done("/sessions", **body), "of the same content it is not asked again"
        assert (await here.visit().done("/sessions", **body))["trust"]["seen"] == asked["seen"], "who may say yes is"


async def test_a_phone_approves_nothing_dangerous_and_no_change_of_what_decides_over_later_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dangerous = "rm -rf /usr/share/doc"
    lines = ("echo 'model = 1' >> ~/.config/treadle/config.toml", "treadle config set mode full", "sudo id", dangerous)
    for number, line in enumerate(lines):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with page_here(folder, monkeypatch, [Turn(items=(run(line),)), *TALK]) as here:
            page, device = await here.start(here.visit()), phone(here)
            question = await here.asked(page)
            path = f"/s/{page.session.id}/answer"
            for option in ("allow_once", "allow_always", "run_for_real"):
                status, said = await device.post(path, question_id=question.id, option=option)
                assert (status, REFUSED in str(said)) == (403, True), (line, option, said)
            await device.done(path, question_id=question.id, option="reject_once")


def test_a_mode_is_wider_than_all_that_the_user_chose_or_it_is_work() -> None:
    order = list(Mode)
    for mode in order:
        for one in order:
            for other in order:
                wider = order.index(mode) > max(order.index(one), order.index(other))
                assert mode_effect(mode, one, other) is (Reach.WIDER if wider else Reach.WORK)


@pytest.mark.parametrize("option", list(OptionKind))
@pytest.mark.parametrize("scope", list(AllowScope))
@pytest.mark.parametrize("risk", [Risk.CRITICAL, Risk.EXECUTE])
@pytest.mark.parametrize("rule", ["control-write", "program", "delete"])
def test_an_answer_does_what_was_asked_about(option: OptionKind, scope: AllowScope, rule: str, risk: Risk) -> None:
    part = Part(text="x", verdict=Verdict.DENY, risk=risk, reasons=(Reason(rule=rule, text="x"),))
    decision = Decision(verdict=Verdict.REQUIRE_USER_CONFIRMATION, risk=risk, parts=(part,))
    question = Question(id="q", kind=QuestionKind.PERMISSION, text="?", decision=decision)
    found = answer_effect(Answer(question_id="q", option=option, scope=scope), question)
    yes = option in (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.RUN_FOR_REAL)
    if option in (OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ALWAYS) and scope is AllowScope.USER:
        assert found is Reach.POLICY
    else:
        danger = risk is Risk.CRITICAL or rule == "control-write"
        assert found is (Reach.CONTROL if yes and danger else Reach.WORK)


async def test_a_device_starts_and_reads_only_where_somebody_has_worked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (private := tmp_path / "private").mkdir()
    async with page_here(tmp_path, monkeypatch, TALK) as here:
        device = phone(here)
        for path, body in (("/sessions", {"folder": str(private), "text": "Read all of it."}),):
            status, said = await device.post(path, **body)
            assert (status, REFUSED in said["what"]) == (403, True)
        status, _ = await device.look(f"/settings?folder={private}")
        assert status == 403
        await here.start(device, "Where the page was started.")
        await here.visit().done("/sessions", folder=str(private), text="Work here.")
        assert (await device.done("/sessions", folder=str(private), text="Now I may."))["session"]


async def test_a_device_raises_a_budget_once_and_no_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "config.toml").write_text("[budget]\nturn_tokens = 500\n")
    async with page_here(tmp_path, monkeypatch, TALK) as here:
        page, device = await here.start(here.visit()), phone(here)
        path = f"/s/{page.session.id}/answer"
        first = await here.asked(page)
        assert (first.kind, first.more) == (QuestionKind.BUDGET, "up to 1,000 tokens")
        assert await device.done(path, question_id=first.id, option="allow_once") == {}
        second = await here.asked(page)
        assert second.more == "up to 1,500 tokens"
        status, said = await device.post(path, question_id=second.id, option="allow_once")
        assert (status, REFUSED in str(said)) == (403, True)
        assert "raises a budget that was raised before" in await device.get("/inbox")
        await here.visit().done(path, question_id=second.id, option="allow_once")  # on the computer itself it may
        third = await here.asked(page)
        assert await device.done(path, question_id=third.id, option="reject_once") == {}


@pytest.mark.parametrize(
    ("more", "effect"),
    [("up to $2.00", Reach.SPENDING), ("wait for 45 min", Reach.WORK), ("50 more steps", Reach.WORK)],
)
def test_only_what_raises_a_budget_is_held_to_its_double(more: str, effect: Reach) -> None:
    question = Question(id="q", kind=QuestionKind.BUDGET, text="?", more=more)
    yes, no = (Answer(question_id="q", option=one) for one in (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE))
    assert answer_effect(yes, question) is Reach.WORK
    assert answer_effect(yes, question, raised=True) is effect
    assert answer_effect(no, question, raised=True) is Reach.WORK
