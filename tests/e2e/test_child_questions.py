"""What a subagent asks, on each surface: answered with yes and no, or denied with nobody there."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acp.driving import choosing, editor
from tests.e2e.faults.driving import make
from tests.e2e.process import Program
from tests.e2e.running import PATIENCE, model
from tests.mcp_server.serving import ERAS, Person, Place, accept, client, until, use
from treadle import Treadle
from treadle.providers.scripted.script import Expectation, SayText, Script, Texts, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

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
    words = {"no": "rejected", "nobody": "" if surface == "editor" else "nobody"}.get(answer, "")
    assert words in bodies[2].casefold()
