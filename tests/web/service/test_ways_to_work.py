"""Whatever way a user of a service begins work, it has a place in the queue, or is refused with the way on."""

import asyncio
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.running import PATIENCE
from tests.web.service.serving import Service, service_here
from treadle.providers.scripted.script import Expectation, MakeCall, SayText, Texts, Turn, Wait

HOLDS = (Wait(seconds=PATIENCE * 2), SayText(text="Late."))
WAYS = (
    "--bg=Hi",
    "-p Hi",
    "-w copy -p Hi",
    "--variants 2 -w copy -p Hi",
    "--goal done -p Hi",
    "review",
    "batch tasks.jsonl --out out --max-cost 1 --trust",
    "batch tasks.jsonl --out fleet --max-cost 1 --trust --database sqlite:////tmp/fleet.db",
    "worker --once --database sqlite:////tmp/fleet.db",
)


def said(text: str) -> Expectation:
    return Expectation(conversation=Texts(contains=(text,)))


def project(service: Service) -> Path:
    """Make the project of alice one of git, with a change."""
    folder = service.data / "users" / "alice" / "projects"
    who = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    (folder / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (folder / "tasks.jsonl").write_text('{"id": "one", "prompt": "Hi"}\n')
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "first")):
        subprocess.run([*who, *words], cwd=folder, check=True)
    (folder / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    return folder


async def test_what_a_user_starts_beside_the_page_is_refused_with_the_way_on(tmp_path: Path) -> None:
    talk = (Turn(items=(SayText(text="Hello."),)),) * 20
    async with service_here(tmp_path, talk, "--trust", users={"alice": ()}, begins=False) as service:
        token = await service.secret("metrics")
        await service.begin()
        alice = await service.sign_in("alice")
        project(service)
        session = await alice.start("Hello?")
        await alice.shows(session, "Hello.")
        flags = shlex.join(service.flags)
        for number, way in enumerate(WAYS):
            words = way if way.startswith("worker") else f"{way} {flags}"
            command = f"{sys.executable} -m treadle {words} > said{number} 2>&1; echo ended {number}0"
            await alice.post(f"/s/{session}/say", text=f"!{command}")
        await alice.shows(session, *(f"ended {number}0\n" for number in range(len(WAYS))))
        for number, way in enumerate(WAYS):
            text = " ".join((alice.folder / "projects" / f"said{number}").read_text().split())
            assert "Only your page starts sessions" in text, (way, text)
        found = await service.metrics(token)
        assert found['treadle_turns_total{user="alice"}'] == 1


async def test_a_review_waits_for_a_place_of_its_own(tmp_path: Path) -> None:
    turns = (
        Turn(items=HOLDS, when=said("Hold.")),
        Turn(items=(SayText(text="Hello."),), when=said("Hello?")),
        *(Turn(items=(SayText(text='{"findings": []}'),), when=said("findings")) for _ in range(5)),
    )
    async with service_here(tmp_path, turns, "--trust", users={"alice": ("--turns", "1")}, begins=False) as service:
        token = await service.secret("metrics")
        await service.begin()
        alice = await service.sign_in("alice")
        await asyncio.to_thread(project, service)
        session = await alice.start("Hello?")
        await alice.shows(session, "Hello.")
        holding = await alice.start("Hold.")
        await until_working(service, token, 1)
        review = asyncio.create_task(alice.done(f"/s/{session}/say", text="/review"))
        await service.until(token, turns_waiting=1)
        await alice.done(f"/s/{holding}/interrupt")
        assert "Nothing was found." in str(await review)
        await service.until(token, turns_waiting=0)
        found = await service.metrics(token)
        assert found['treadle_turns_total{user="alice"}'] == 3
        await until_working(service, token, 0)


@pytest.mark.parametrize("wait", [True, False])
async def test_a_subagent_works_in_the_place_of_its_session_until_it_ends(tmp_path: Path, *, wait: bool) -> None:
    tasks = [{"prompt": "Read it slowly.", "agent": "explore"}]
    turns = (
        Turn(items=(MakeCall(name="use_subagents", arguments={"tasks": tasks, "wait": wait}),), when=said("Delegate.")),
        Turn(items=HOLDS, when=said("Read it slowly.")),
        Turn(items=(SayText(text="Begun."),), when=Expectation(messages=3)),
        Turn(items=(SayText(text="Mine."),), when=said("Other.")),
    )
    order = (turns[2], turns[0], turns[1], turns[3])
    async with service_here(tmp_path, order, users={"alice": ("--turns", "1")}, begins=False) as service:
        token = await service.secret("metrics")
        await service.begin()
        alice = await service.sign_in("alice")
        session = await alice.start("Delegate.")
        await alice.shows(session, "Read it slowly." if wait else "Begun.")
        other = await alice.start("Other.")
        await service.until(token, turns_waiting=1)
        await until_working(service, token, 1)
        await alice.done(f"/s/{session}/close")
        await alice.shows(other, "Mine.")
        await until_working(service, token, 0)


async def until_working(service: Service, token: str, number: int) -> None:
    """Wait until so many of alice's sessions are at work."""
    async with asyncio.timeout(PATIENCE):
        while (await service.metrics(token)).get('treadle_turns_working{user="alice"}', 0) != number:
            await asyncio.sleep(0.1)
