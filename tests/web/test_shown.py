"""What a page shows of what can be done is what its device may do: forms, cards and modes, from the same table."""

import re
import tempfile
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.e2e.faults.driving import run
from tests.needed import needs
from tests.tui.asked import DANGER, EDIT, EVERY_KIND, KEEP, RUN
from tests.web.in_process import Here, Visit, page_here
from tests.web.test_rights import REFUSED, TALK, phone, routes_of
from treadle.app.security.op_effects import FROM_AFAR, Reach
from treadle.app.session.files.answer_effects import answer_effect
from treadle.app.session.files.edit_blocks import block_spans, keep_blocks
from treadle.present.answer_rows import BLOCKS_ARGUMENT
from treadle.present.question_words import QuestionStyle, question_style
from treadle.protocol.events import Answer
from treadle.protocol.permissions import AllowScope, Decision, OptionKind, Part, Question, Reason, Verdict
from treadle.protocol.tools import ChangeKind, CopyChange, CopyChanges, Risk
from treadle.providers.scripted.script import Turn
from treadle.web.navigation import SCREENS, SESSION_SCREENS, SETTINGS_SCREENS
from treadle.web.page_keys import Visitor
from treadle.web.page_session import PageSession
from treadle.web.rights import may

HERE, PHONE = Visitor(name="browser 1", here=True), Visitor(name="browser 2", paired=True)
READ_ONLY = "You can only read this here. It is changed on the computer that Treadle runs on."
ELSEWHERE = "Answer this on the computer that Treadle runs on."

SENT: dict[str, dict[str, Any]] = {
    "allow": {"option": "allow_once"},
    "edits": {"option": "allow_once", "edits": True},
    "session": {"option": "allow_always", "scope": "session"},
    "save": {"option": "allow_always", "scope": "user"},
    "changed": {"option": "allow_once", "name": "command", "changed": "echo changed"},
    "for real": {"option": "run_for_real"},
    "noted": {"option": "allow_once", "text": "a comment"},
}
"""What questions.js sends for each button that says yes."""

OPENS = {"always", "blocks", "change", "close", "comment", "how", "no", "reasons", "whole"}
"""Buttons that open something of the card, close it, or say no."""


def acts_of(html: str) -> set[str]:
    return set(re.findall(r'data-act="([^"]+)"', unescape(html)))


async def _prepared(here: Here) -> tuple[PageSession, Visit]:
    """A home with something to change on every screen."""
    home, folder = here.folder.parent / "home", here.folder
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text('theme = "dark"\n')
    (home / "policy.toml").write_text(
        'version = 1\n[[rule]]\nid = "never"\nverdict = "deny"\nargv = ["npm", "publish"]\nmatch = ["npm publish"]\n'
    )
    (home / "mcp.json").write_text('{"mcpServers": {"one": {"command": "false"}}}')
    (folder / "AGENTS.md").write_text("Be short.")
    owner = here.visit()
    return await here.start(owner), owner


async def test_what_a_device_may_not_send_its_pages_do_not_offer_and_what_it_may_they_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, TALK) as here:
        page, owner = await _prepared(here)
        effects = {one.path: one.effect for one in routes_of(here)}
        paths = [one.path for one in SCREENS] + [path for path, _ in SETTINGS_SCREENS]
        paths += [f"/s/{page.session.id}{one.path}" for one in SESSION_SCREENS]
        offered: dict[str, set[str]] = {}
        for name, visit in (("owner", owner), ("phone", phone(here))):
            offered[name] = set()
            followed: set[str] = set()
            for path in paths:
                text = unescape((await visit.look(path))[1])
                found = {one.replace(page.session.id, "{session_id}") for one in _asked_for(text)}
                assert found <= set(effects), path
                offered[name] |= found
                for link in re.findall(r"<nav[^>]*>.*?</nav>", text, re.DOTALL):
                    for where in {*re.findall(rf'href="{here.keys.base}([^"]*)"', link)} - followed:
                        followed.add(where)
                        assert (await visit.look(where))[0] == 200, where
                if path.startswith("/settings") and path != "/settings/notifications":  # those of the browser itself
                    assert (READ_ONLY in text) == (name == "phone"), path
        beyond = {path for path in offered["owner"] if effects[path] not in FROM_AFAR}
        assert offered["phone"] == offered["owner"] - beyond
        assert {effects[path] for path in beyond} == {
            *(Reach.SETTINGS, Reach.KEYS, Reach.SERVERS, Reach.RULES, Reach.POLICY, Reach.DEVICES)
        }


def _asked_for(text: str) -> set[str]:
    """Find the routes that forms and buttons of a page send something to."""
    found = set(re.findall(r'data-(?:post|load)="([^"?]+)', text))
    found |= {"/devices/link"} if 'id="new"' in text else set()
    return found | ({"/policy/add"} if 'id="suggest"' in text else set())


@pytest.mark.parametrize("line", ["git push origin main", "sudo id", "treadle config set mode full"])
async def test_a_card_offers_what_the_server_takes_from_the_same_device_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    async with page_here(tmp_path, monkeypatch, [Turn(items=(run(line),)), *TALK]) as here:
        page, device = await here.start(here.visit()), phone(here)
        question = await here.asked(page)
        card = await device.get("/inbox/cards")
        shown, shown_here = acts_of(card), acts_of(page.cards(HERE)[0][1])
        for act in SENT.keys() & (shown_here - shown):
            status, said = await device.post(f"/s/{page.session.id}/answer", question_id=question.id, **SENT[act])
            assert (status, REFUSED in str(said)) == (403, True), (act, status, said)
        assert [one.id for one in page.questions] == [question.id]
        usual = line == "git push origin main"
        assert (ELSEWHERE in card) is not usual
        assert shown - OPENS == ({"allow", "session", "noted", "reject"} if usual else {"reject"})
        assert shown_here > shown
        yes = SENT["allow"] if usual else {"option": "reject_once"}
        await device.done(f"/s/{page.session.id}/answer", question_id=question.id, **yes)


@needs("sandbox")
@pytest.mark.parametrize("script", ["echo x >> ~/.bashrc", "echo Cannot connect to the Docker daemon; exit 1"])
async def test_a_device_gives_no_right_after_a_run_that_it_could_not_give_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="treadle-test-") as home:
        monkeypatch.setenv("HOME", home)
        Path(home, ".bashrc").write_text("")
        async with page_here(tmp_path, monkeypatch, [Turn(items=(run("sh x.sh"),)), *TALK], mode="auto") as here:
            (here.folder / "x.sh").write_text(script)
            page, device = await here.start(here.visit()), phone(here)
            question = await here.asked(page)
            assert question.denial is not None
            assert ELSEWHERE in await device.get("/inbox/cards")
            path = f"/s/{page.session.id}/answer"
            status, said = await device.post(path, question_id=question.id, option="allow_once")
            assert (status, REFUSED in str(said)) == (403, True)
            await device.done(path, question_id=question.id, option="reject_once")
            assert not Path(home, ".bashrc").read_text()


async def test_the_modes_that_a_device_can_choose_are_those_that_it_may_go_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, TALK) as here:
        owner, device = here.visit(), phone(here)
        page = await here.start(owner)
        assert [str(mode) for mode in page.modes(PHONE)] == ["plan", "ask"]
        assert [str(mode) for mode in page.modes(HERE)] == ["plan", "ask", "edits", "auto", "full"]
        await owner.done(f"/s/{page.session.id}/change", mode="auto")
        for mode in page.modes(HERE):
            status, _ = await device.post(f"/s/{page.session.id}/change", mode=str(mode))
            assert status == (200 if mode in page.modes(PHONE) else 403), mode
            await owner.done(f"/s/{page.session.id}/change", mode="auto")
        offered = (await device.get("/")).partition('<select name="mode"')[2].partition("</select>")[0]
        assert re.findall(r'<option value="(\w*)" data-mode="(\w+)"', offered) == [("plan", "plan"), ("", "ask")]


def is_danger(question: Question) -> bool:
    """Something dangerous, which nobody allows from afar."""
    return question_style(question) is QuestionStyle.DANGER


def _control(path: str) -> Question:
    copy = CopyChanges(changes=(CopyChange(path=path, kind=ChangeKind.ADDED, held="It decides what runs later."),))
    return replace(KEEP, copy=copy, options=(OptionKind.RUN_FOR_REAL, OptionKind.REJECT_ONCE))


PART = Part(text="x", verdict=Verdict.DENY, risk=Risk.CRITICAL, reasons=(Reason(rule="control-write", text="x"),))
JUDGED = Decision(verdict=Verdict.REQUIRE_USER_CONFIRMATION, risk=Risk.CRITICAL, parts=(PART,))


@pytest.mark.parametrize(
    ("question", "control"),
    [
        *((one, name == "run for real" or is_danger(one)) for name, one in EVERY_KIND.items()),
        (replace(DANGER, decision=JUDGED), True),
        (replace(EDIT, decision=JUDGED), True),
        (_control("/project/.github/workflows/x.yml"), True),
        (_control("/project/.git/hooks/pre-commit"), True),
        (_control("/project/src/a.py"), False),
    ],
)
@pytest.mark.parametrize("option", list(OptionKind))
@pytest.mark.parametrize("scope", list(AllowScope))
def test_an_answer_is_the_devices_to_give_by_what_it_does(
    question: Question, option: OptionKind, scope: AllowScope, *, control: bool
) -> None:
    yes = option in (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.RUN_FOR_REAL)
    for_all = option in (OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ALWAYS) and scope is AllowScope.USER
    answer = Answer(question_id=question.id, option=option, scope=scope)
    effect = answer_effect(answer, question)
    assert may(PHONE, effect) is not (for_all or (yes and control))
    assert may(HERE, effect)


def test_a_yes_to_another_call_than_the_one_asked_about_is_not_given_from_afar() -> None:
    def effect(
        question: Question, arguments: dict[str, Any] | None, option: OptionKind = OptionKind.ALLOW_ONCE
    ) -> Reach:
        return answer_effect(Answer(question_id="q", option=option, arguments=arguments), question)

    command = {**RUN.arguments, "command": "echo 'model = 1' >> ~/.config/treadle/config.toml"}
    for option in (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.RUN_FOR_REAL):
        assert effect(RUN, command, option) is Reach.CHANGED
    assert effect(RUN, dict(RUN.arguments)) is effect(RUN, None) is Reach.WORK
    assert effect(RUN, command, OptionKind.REJECT_ONCE) is Reach.WORK
    text = EDIT.arguments[BLOCKS_ARGUMENT]
    spans = block_spans(text)
    assert len(spans) == 2
    for kept in ((True, False), (False, True)):
        assert effect(EDIT, {**EDIT.arguments, BLOCKS_ARGUMENT: keep_blocks(text, spans, kept)}) is Reach.WORK
    some = keep_blocks(text, spans, (True, False))
    for changed in (some.replace("=======", "=======\nimport os"), text + text, f"{text}x"):
        assert effect(EDIT, {**EDIT.arguments, BLOCKS_ARGUMENT: changed}) is Reach.CHANGED, changed
    assert effect(EDIT, {**EDIT.arguments, "path": "other.py"}) is Reach.CHANGED
    assert not may(PHONE, Reach.CHANGED)
