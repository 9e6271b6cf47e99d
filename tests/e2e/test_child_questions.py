"""What a subagent asks, on each surface: answered with yes and no, or denied with nobody there."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.acp.driving import choosing, editor
from tests.app.subagents.families import events_of
from tests.e2e.faults.driving import make
from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import PATIENCE, model
from tests.hosts.driving import ASKS, BOTH, driving
from tests.hosts.place import Host
from tests.mcp_server.serving import ERAS, Person, Place, accept, client, until, use
from tests.person import ENTER, ESCAPE
from tests.ready import TREADLE, treadle
from tests.web.in_process import HOST, Here
from tests.web.in_process import until as until_on_page
from treadle import Treadle
from treadle.app.subagents.writer_record import writers_folder
from treadle.protocol.children import ChildEnded, ChildOutcome
from treadle.providers.scripted.script import Expectation, SayText, Script, Texts, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.web.application import web_application
from treadle.web.book import SessionBook
from treadle.web.page_keys import Keys

_OF_CHILD = Texts(contains=("You are a subagent",))
SCRIPT = Script(
    turns=(
        Turn(
            when=Expectation(system=_OF_CHILD, assistant_messages=0),
            items=(make("write_to_file", path="a.txt", content="one\n"),),
        ),
        Turn(when=Expectation(system=_OF_CHILD), items=(SayText(text="That is all."),)),
        Turn(
            when=Expectation(assistant_messages=0),
            items=(make("use_subagents", tasks=[{"prompt": "Write a.", "agent": "worker"}]),),
        ),
        Turn(when=Expectation(last_result=Texts(contains=("<subagent",))), items=(SayText(text="It has ended."),)),
    )
)
"""A worker writes a file in its copy, and its changes come back: two questions."""

_ASKS = ("❯ Yes", "❯ Apply")
"""The chosen answer of a question in the terminal, before a write and about what comes back from a copy."""


@dataclass(frozen=True)
class Run:
    """One run of a task on a surface; `answer` is yes, no, or nobody's."""

    place: Place
    server: ScriptedServer
    answer: str

    @property
    def flags(self) -> tuple[str, ...]:
        return model(self.server)


async def _print(run: Run) -> None:
    await Program(run.place.home).run("-p", "Go.", *run.flags, "-C", str(run.place.folder))


async def _library(run: Run) -> None:
    approve = None if run.answer == "nobody" else lambda _: run.answer == "yes"
    name, address = run.flags[1], run.flags[3]
    async with Treadle(run.place.folder, model=name, base_url=address, approve=approve) as agent:
        await agent.run("Go.")


async def _terminal(run: Run) -> None:
    flags = (*run.flags, "-C", str(run.place.folder))
    async with on_terminal(Program(run.place.home), *flags) as terminal:
        await terminal.until_shown("? for keys")
        terminal.type(f"Go.{ENTER}")
        ended = "■ Done · "
        while True:
            await terminal.until(
                lambda shown: ended in shown or any(one in shown for one in _ASKS), "a question or the end"
            )
            if ended in terminal.shown:
                break
            assert "worker" in terminal.shown
            if run.answer == "yes":
                await terminal.confirm()
            else:
                terminal.type(ESCAPE)
            await terminal.until(lambda shown: not any(one in shown for one in _ASKS), "the question to be closed")
        terminal.type(f"/quit{ENTER}")
        await terminal.ended()


async def _page(run: Run) -> None:
    keys, name, address = Keys(), run.flags[1], run.flags[3]
    flags = {"model": name, "base_url": address, "try_first": False}
    async with SessionBook(run.place.folder, flags, trust=True) as book:
        application, _ = web_application(book, keys, [HOST], cookie="page", clock=map(float, count()).__next__)
        here = Here(book, application, keys, run.server, run.place.folder)
        visit = here.visit()
        page = await here.start(visit, "Go.")
        while True:
            await until_on_page(page, lambda: bool(page.questions) or page.content.view.stop is not None)
            if not page.questions:
                break
            (question,) = page.questions
            assert "worker" in await visit.get(f"/s/{page.session.id}")
            option = "allow_once" if run.answer == "yes" else "reject_once"
            await visit.done(f"/s/{page.session.id}/answer", question_id=question.id, option=option)


async def _host(run: Run) -> None:
    cli = run.place.root / "treadle"
    cli.write_text(f'#!/bin/sh\nexec {shlex.join(treadle())} "$@"\n')
    cli.chmod(0o755)
    host = Host(cli, run.place.folder, run.place.home)
    async with driving(host, {"TREADLE_HOME": str(run.place.home)}, *BOTH, *ASKS, *run.flags) as driver:
        driver.control("initialize", hooks=None)
        driver.ask("Go.")
        while (frame := await driver.until_any("control_request", "result"))["type"] != "result":
            if run.answer == "nobody":
                driver.close()
                continue
            allows = {"behavior": "allow", "updatedInput": frame["request"]["input"]}
            answer = allows if run.answer == "yes" else {"behavior": "deny", "message": "It is rejected."}
            response = {"subtype": "success", "request_id": frame["request_id"], "response": answer}
            driver.say({"type": "control_response", "response": response})
        if run.answer != "nobody":
            driver.close()
        await driver.end()


async def _editor(run: Run) -> None:
    async with editor(run.place.home, *run.flags) as seen:
        if run.answer != "nobody":
            seen.answers["session/request_permission"] = choosing(
                "allow_once" if run.answer == "yes" else "reject_once"
            )
        await seen.initialize()
        await seen.prompt(await seen.new(run.place.folder), "Go.")


async def _forms(run: Run) -> None:
    person = Person([accept(decision="allow_once" if run.answer == "yes" else "reject_once", comment="")] * 2)
    await _serve(run, person)
    assert all("worker" in shown for shown in person.shown)


async def _tools(run: Run) -> None:
    await _serve(run, None)


async def _serve(run: Run, person: Person | None) -> None:
    run.place.arguments = lambda *_: ["mcp", "serve", "-C", str(run.place.folder), *run.flags]  # type: ignore[method-assign]
    async with client(run.place.stdio(), ERAS[1], person) as connected:
        task = await use(connected, "start_task", task="Go.")
        while (found := await until(connected, task, "done", "needs_answer"))["state"] != "done":
            decision = "allow_once" if run.answer == "yes" else "reject_once"
            for question in found["questions"]:
                given = {"task_id": task["task_id"], "question_id": question["id"], "decision": decision}
                await use(connected, "answer_question", **given)


SURFACES: dict[str, tuple[Callable[[Run], Awaitable[None]], tuple[str, ...]]] = {
    "-p": (_print, ("nobody",)),
    "library": (_library, ("yes", "no", "nobody")),
    "terminal": (_terminal, ("yes", "no")),
    "page": (_page, ("yes", "no")),
    "host of stream-json": (_host, ("yes", "no", "nobody")),
    "editor": (_editor, ("yes", "no", "nobody")),
    "MCP client with forms": (_forms, ("yes", "no")),
    "MCP client without forms": (_tools, ("yes", "no")),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("surface", "answer"), [(surface, answer) for surface, (_, answers) in SURFACES.items() for answer in answers]
)
async def test_what_a_subagent_asks_is_answered_or_denied_and_nothing_waits(
    place: Place, surface: str, answer: str
) -> None:
    async with ScriptedServer(SCRIPT) as server, asyncio.timeout(PATIENCE * 2):
        await SURFACES[surface][0](Run(place, server, answer))
    assert not server.violations
    assert (place.folder / "a.txt").exists() is (answer == "yes")
    bodies = [str(request.body) for request in server.requests]
    assert len(bodies) == 4
    assert "That is all." in bodies[-1]
    words = {"no": "rejected", "nobody": "nobody"}.get(answer, "")
    assert words in bodies[2].casefold()


@pytest.mark.parametrize("asked", [1, 2])
async def test_a_parent_that_is_killed_while_its_subagent_asks_finds_it_again_in_the_editor(
    place: Place, asked: int
) -> None:
    """Killed at the question about a write in the copy, and at the one about what comes back from the copy."""
    goes_on = Turn(when=Expectation(last_user=Texts(contains=("Go on.",))), items=(SayText(text="I go on."),))
    async with ScriptedServer(Script(turns=(goes_on, *SCRIPT.turns))) as server, asyncio.timeout(PATIENCE * 2):
        async with editor(place.home, *model(server)) as killed:
            waits: list[asyncio.Future[Any]] = []

            def answer(params: dict[str, Any]) -> Any:
                if len(waits) == asked - 1:
                    waits.append(asyncio.get_running_loop().create_future())
                    return waits[-1]
                waits.append(asyncio.get_running_loop().create_future())
                return choosing("allow_once")(params)

            killed.answers["session/request_permission"] = answer
            await killed.initialize()
            session = await killed.new(place.folder)
            turn = killed.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Go."}])
            await killed.until(lambda: len(waits) == asked)
            killed.process.kill()
            with pytest.raises(ConnectionError):
                await turn
        async with editor(place.home, *model(server)) as again:
            again.answers["session/request_permission"] = choosing("allow_once")
            await again.initialize()
            await again.call("session/load", sessionId=session, cwd=str(place.folder), mcpServers=[])
            await again.prompt(session, "Go on.")
        sent = str(server.requests[-1].body)
    assert not server.violations
    (ended,) = events_of(ChildEnded)
    assert ended.outcome is (ChildOutcome.INTERRUPTED, ChildOutcome.DONE)[asked - 1]
    assert f'id="{ended.session_id}" outcome="{ended.outcome}"' in sent.replace('\\"', '"')
    assert "Not run" not in sent
    kept = writers_folder() / ended.session_id / "files/folder/a.txt"
    assert kept.exists() is (str(kept.parent) in sent) is (asked == 2), "its changes are named where there are any"


async def test_a_parent_that_is_killed_while_its_subagent_asks_asks_again_in_the_terminal(place: Place) -> None:
    async with ScriptedServer(SCRIPT) as server:
        program, flags = Program(place.home), (*model(server), "-C", str(place.folder))
        async with on_terminal(program, *flags, command=TREADLE) as killed:
            await killed.until_shown("? for keys")
            killed.type(f"Go.{ENTER}")
            await killed.until_shown("worker", "❯ Yes")
            killed.process.kill()
            await killed.process.wait()
        async with on_terminal(program, "--continue", *flags) as again:
            for _ in range(2):
                await again.until(lambda shown: any(one in shown for one in _ASKS), "the question")
                await again.confirm()
                await again.until(lambda shown: not any(one in shown for one in _ASKS), "the question to be closed")
            await again.until_shown("It has ended.", "■ Done · ")
    assert (place.folder / "a.txt").read_text() == "one\n"
    assert [one.outcome for one in events_of(ChildEnded)] == [ChildOutcome.DONE]
