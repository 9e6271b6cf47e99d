"""Tasks that are added to a batch by hand: while it works, before it goes on, and lines that are wrong."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.e2e.batches import CHECK, Place, Solver, tasks
from tests.e2e.running import PATIENCE
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.scripted_server import ScriptedServer


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def add(place: Place, *lines: object) -> None:
    with (place.out / "added.jsonl").open("a") as stream:
        stream.writelines(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)


def task(name: str) -> dict[str, str]:
    return {"id": name, "prompt": f"Fix {name}.", "repo": "project", "check": CHECK}


async def test_tasks_that_are_added_while_a_batch_works_are_done_once_and_wrong_lines_stop_nothing(
    place: Place,
) -> None:
    place.prepare(tasks(2, check=CHECK))
    async with ScriptedServer(Solver(seconds=0.2)) as server:
        words = ("--json", "--filter", "t00", "--max-cost", "1")
        batch = await place.program.start(*place.words(server.base_url, *words, workers=1))
        async with asyncio.timeout(PATIENCE):
            while not (place.out / "tasks").is_dir():
                await asyncio.sleep(0.01)
        boxed = {"id": "boxed", "prompt": "x", "image": "ubuntu:24.04"}
        free = {**task("free"), "model": "nobody/nothing"}
        add(place, task("new"), "{broken", task("T01"), task("t00"), "", boxed, {"id": "no"}, free, task("free"))
        with (place.out / "added.jsonl").open("a") as stream:  # not whole: nobody reads it yet
            stream.write(json.dumps(task("late")))
        out, _ = await asyncio.wait_for(batch.communicate(), PATIENCE)
        said = [json.loads(line) for line in out.splitlines()]
        assert batch.returncode == 0
        assert [line["ids"] for line in said if line["type"] == "tasks_added"] == [["new", "boxed", "free"]]
        wrong = [line["text"] for line in said if line["type"] == "batch_notice" and "added.jsonl" in line["text"]]
        whys = [text.partition(" is left out. ")[2] for text in wrong]
        assert "nobody" in whys.pop(), "a model that cannot be called stops nothing either"
        assert whys == [
            "It is not JSON: JSON is malformed: object keys must be strings (byte 1).",
            "The id 'T01' is taken.",  # by a task that this run leaves out
            "The id 't00' is taken.",
            "Object missing required field `prompt`.",
        ]
        states = {row["id"]: row["state"] for row in place.rows()}
        assert states == {"t00": "done", "new": "done", "boxed": "skipped", "free": "done"}
        add(place, "")  # now it is whole
        again = await place.program.run(*place.words(server.base_url, *words[1:], workers=1))
    assert again.code == 0, again.err
    assert "added.jsonl is left out. It is not JSON" in again.err
    assert place.result("late")["state"] == "done"
    assert len(place.rows()) == 5
    assert all(number == 1 for calls in place.calls().values() for number in calls.values()), "nothing twice"


async def test_a_task_is_added_although_no_other_is_left_and_no_money(place: Place) -> None:
    place.prepare(tasks(1, check=CHECK))
    async with ScriptedServer(Solver()) as server:
        assert (await place.program.run(*place.words(server.base_url, "--max-cost", "0.2"))).code == 0
        add(place, task("more"))
        poor = await place.program.run(*place.words(server.base_url, "--max-cost", "0.03"))
        assert (poor.code, len(place.rows())) == (Exit.BUDGET, 1)
        rich = await place.program.run(*place.words(server.base_url, "--max-cost", "1"))
    assert rich.code == 0, rich.err
    assert {row["id"] for row in place.rows()} == {"t00", "more"}


async def test_a_task_that_was_added_is_done_once_although_the_batch_is_killed(place: Place) -> None:
    place.prepare(tasks(1, check=CHECK))
    async with ScriptedServer(Solver(seconds=0.2)) as server:
        words = place.words(server.base_url, workers=1)
        for number in range(3):  # before it is read, while it is worked on, and at some later moment
            batch = await place.program.start(*words)
            async with asyncio.timeout(PATIENCE):
                while not (place.out / "tasks").is_dir():
                    await asyncio.sleep(0.01)
                if number == 0:
                    add(place, task("more"))
                elif number == 1:
                    while not (place.out / "tasks" / "more.json").exists() and batch.returncode is None:
                        await asyncio.sleep(0.01)
                else:
                    await asyncio.sleep(0.5)
            if batch.returncode is None:
                batch.kill()
            await batch.communicate()
        last = await place.program.run(*words)
    assert last.code == 0, last.err
    assert sorted(row["id"] for row in place.rows()) == ["more", "t00"]
    assert {row["state"] for row in place.rows()} == {"done"}


async def test_what_was_added_and_cannot_be_read_is_not_taken_for_nothing(place: Place) -> None:
    place.prepare(tasks(1, check=CHECK))
    (place.out / "added.jsonl").mkdir(parents=True)
    async with ScriptedServer(Solver()) as server:
        refused = await place.program.run(*place.words(server.base_url))
        assert (refused.code, len(server.requests)) == (Exit.CONFIG, 0)
        assert "added.jsonl cannot be read." in refused.err
        (place.out / "added.jsonl").rmdir()
        batch = await place.program.start(*place.words(server.base_url))
        async with asyncio.timeout(PATIENCE):
            while not (place.out / "tasks").is_dir():
                await asyncio.sleep(0.01)
        (place.out / "added.jsonl").mkdir()
        _, err = await asyncio.wait_for(batch.communicate(), PATIENCE)
    assert (batch.returncode, place.result("t00")["state"]) == (0, "done")
    assert err.decode().count("added.jsonl cannot be read: Is a directory.") == 1
