"""Batches as a user runs them: real processes, a model over HTTP, kills, signals, limits in money and of calls."""

import asyncio
import hashlib
import json
import os
import random
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.batches import CALL_COST, CHECK, Place, Solver, children, kill_at_random, tasks
from tests.e2e.process import Program
from tests.e2e.running import PATIENCE
from tests.rehearsal.fleets import until
from tests.small_disk import fill, small_disk
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import Refuse
from treadle.providers.scripted.scripted_server import ScriptedServer

EXTRAS = ("PIL", "botocore", "docx", "google", "keyring", "mcp", "openpyxl", "playwright", "pypdf", "xllamacpp")
"""Modules that optional parts of the installation bring."""


def repeated(place: Place) -> dict[str, list[str]]:
    """Which tools took effect more than once, by session; one that a kill cut off may have taken none."""
    again = {name: [tool for tool, number in calls.items() if number > 1] for name, calls in place.calls().items()}
    return {name: tools for name, tools in again.items() if tools}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_a_batch_needs_no_optional_part_that_no_task_uses(place: Place) -> None:
    place.prepare(tasks(1))
    missing = place.folder / "missing"
    missing.mkdir()
    for name in EXTRAS:
        (missing / f"{name}.py").write_text(f"raise ModuleNotFoundError('No module named {name}', name={name!r})\n")
    program = Program(place.program.home, {"PYTHONPATH": str(missing)})
    async with ScriptedServer(Solver()) as server:
        ended = await program.run(*place.words(server.base_url))
    assert ended.code == 0, ended.err
    assert [row["state"] for row in place.rows()] == ["done"]


async def test_each_task_is_done_in_a_copy_and_everything_of_it_is_written(place: Place) -> None:
    no_image = {"id": "boxed", "prompt": "x", "image": "ubuntu:24.04"}
    lost = {"id": "lost", "prompt": "x", "repo": "project", "commit": "nowhere"}
    unsolved = {
        "id": "unsolved",
        "prompt": "Fix.",
        "repo": "project",
        "check": 'test "$WANTED" = 6',
        "env": {"WANTED": "7"},
    }
    place.prepare([*tasks(2, check=CHECK), no_image, lost, unsolved])
    async with ScriptedServer(Solver()) as server:
        ended = await place.program.run(*place.words(server.base_url, "--json"))
        again = await place.program.run(*place.words(server.base_url))
        asked = len(server.requests)
        redone = await place.program.run(*place.words(server.base_url, "--retry", "check", "--filter", "un"))
        assert len(server.requests) == asked + 4
        unknown = await place.program.run(*place.words(server.base_url, "--retry", "provder"))
    assert (ended.code, again.code, redone.code, unknown.code) == (0, 0, 0, Exit.USAGE)
    assert "No result here is of the kind provder." in unknown.err
    assert {row["id"]: (row["state"], row["kind"]) for row in place.rows()} == {
        "t00": ("done", ""),
        "t01": ("done", ""),
        "boxed": ("skipped", "image"),
        "lost": ("error", "environment"),
        "unsolved": ("failed", "check"),
    }
    done = place.result("t00")
    assert (done["steps"], done["tokens"], round(done["cost"], 6)) == (4, 4 * 3_700, 4 * CALL_COST)
    patches = {row["instance_id"]: row["model_patch"] for row in place.rows("predictions.jsonl")}
    assert patches.keys() == {"t00", "t01", "unsolved"}
    assert "-    return a - b\n+    return a + b\n" in patches["t00"]
    assert hashlib.sha256(patches["t00"].encode()).hexdigest() == done["patch_sha256"]
    assert done["session"] in (place.out / "sessions" / "t00.json").read_text().partition("\n")[0]
    assert sorted(one.name for one in (place.out / "copies").iterdir()) == ["unsolved"]
    assert "a - b" in (place.folder / "project" / "calc.py").read_text()
    assert place.result("unsolved")["session"].endswith(".unsolved-2")
    records = [json.loads(line) for line in ended.out.splitlines()]
    assert [records[0]["type"], records[-1]["type"], records[-1]["exit_code"]] == ["batch_started", "batch_ended", 0]
    assert records[-1]["states"] == {"done": 2, "skipped": 1, "error": 1, "failed": 1}
    assert "4 tasks" not in again.err
    assert "0 tasks, 5 ended before" in again.err


async def test_a_batch_that_is_killed_continues_where_each_task_was(place: Place) -> None:
    place.prepare(tasks(4))
    async with ScriptedServer(Solver(seconds=0.4)) as server:
        first = await place.program.start(*place.words(server.base_url, workers=3))
        while len(place.rows()) < 1 or len(server.requests) % 4 == 0:
            await asyncio.sleep(0.02)
        workers = children(first.pid)
        assert workers
        first.kill()
        await first.communicate()
        ended = await place.program.run(*place.words(server.base_url, workers=3))
    assert ended.code == 0, ended.err
    assert [(row["id"], row["state"]) for row in sorted(place.rows(), key=lambda row: str(row["id"]))] == [
        (f"t{one:02}", "done") for one in range(4)
    ]
    assert (len(place.calls()), repeated(place)) == (4, {})


async def test_a_signal_hands_every_task_back_and_the_next_run_continues(place: Place) -> None:
    place.prepare(tasks(3))
    async with ScriptedServer(Solver(seconds=0.4)) as server:
        first = await place.program.start(*place.words(server.base_url, "--json", workers=2))
        while len(server.requests) < 3:
            await asyncio.sleep(0.02)
        first.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            out, _ = await first.communicate()
        last = json.loads(out.decode().splitlines()[-1])
        assert (first.returncode, last["exit_code"], last["left"]) == (75, 75, 3 - len(place.rows()))
        ended = await place.program.run(*place.words(server.base_url, workers=2))
    assert ended.code == 0, ended.err
    assert (len(place.calls()), repeated(place)) == (3, {})


async def test_a_limit_that_not_even_one_call_fits_into_is_told_with_what_a_call_can_cost(place: Place) -> None:
    place.prepare(tasks(2))
    async with ScriptedServer(Solver()) as server:
        ended = await place.program.run(*place.words(server.base_url, "--max-cost", "0.000001"))
        lines = await place.program.run(*place.words(server.base_url, "--max-cost", "0.000001", "--json"))
    assert (ended.code, lines.code) == (Exit.BUDGET, Exit.BUDGET), ended.err
    assert "2 tasks left: --max-cost allows no more (the run's budget of" in ended.out
    assert "is spent, and the next call can cost" in ended.out
    assert "The same command with a larger one continues them." in ended.out
    assert "the next call can cost" in json.loads(lines.out.splitlines()[-1])["why"]


async def spend(place: Place, *, seed: int, number: int, kills: int, cap: float) -> None:
    """Run with a limit that does not do for all tasks, kill workers meanwhile, and then give more."""
    place.prepare(tasks(number))
    solver = Solver(seconds=0.1)
    async with ScriptedServer(solver) as server:
        process = await place.program.start(*place.words(server.base_url, "--max-cost", str(cap)))
        killing = asyncio.create_task(kill_at_random(process, seed, kills))
        while process.returncode is None:
            assert place.spent() <= cap + 1e-9
            assert solver.answered * CALL_COST <= cap + 1e-9
            await asyncio.sleep(0.1)
        _, err = await process.communicate()
        await killing
        assert process.returncode == Exit.BUDGET, err.decode()
        assert cap / 3 < place.spent() <= cap + 1e-9
        more = await place.program.run(*place.words(server.base_url, "--max-cost", "100"))
    assert more.code == 0, more.err
    assert {row["state"] for row in place.rows()} <= {"done", "error"}
    assert [row for row in place.rows() if row["kind"] not in ("", "killed")] == []
    assert len(place.rows()) == number
    assert repeated(place) == {}


@pytest.mark.parametrize("workers", [2, 3, 4])
async def test_what_others_have_reserved_ends_no_task_while_little_is_spent(place: Place, workers: int) -> None:
    place.prepare(tasks(4))
    async with ScriptedServer(Solver(seconds=0.3)) as server:
        ended = await place.program.run(*place.words(server.base_url, "--max-cost", "0.2", workers=workers))
        assert (ended.code, len(server.requests)) == (0, 4 * 4), ended.err
    assert [(row["state"], row["steps"]) for row in place.rows()] == [("done", 4)] * 4
    logs = "".join(file.read_text() for file in (place.out / "logs").iterdir())
    assert "the run's budget" not in logs
    assert place.spent() <= 0.2


async def test_who_waits_for_the_money_of_others_hands_its_task_back_on_a_signal(place: Place) -> None:
    place.prepare(tasks(3))
    async with ScriptedServer(Solver(seconds=4 * PATIENCE)) as server:
        first = await place.program.start(*place.words(server.base_url, "--max-cost", "0.05", workers=3))
        while not server.requests:
            await asyncio.sleep(0.02)
        await asyncio.sleep(1.0)
        first.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            await first.communicate()
        assert (first.returncode, len(server.requests), place.rows()) == (75, 1, [])


async def test_no_number_of_workers_passes_the_limit_in_money_whoever_is_killed(place: Place) -> None:
    await spend(place, seed=11, number=7, kills=2, cap=0.2)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(12))
async def test_kills_and_limits_in_many_mixtures(place: Place, seed: int) -> None:
    await spend(place, seed=seed, number=10 + seed, kills=6 + seed, cap=0.15 + 0.02 * seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(6))
async def test_a_batch_that_is_killed_again_and_again_loses_and_repeats_nothing(place: Place, seed: int) -> None:
    place.prepare(tasks(12, check=CHECK))
    chance = random.Random(seed)
    async with ScriptedServer(Solver(seconds=0.2)) as server:
        for _ in range(6):
            process = await place.program.start(*place.words(server.base_url, workers=4))
            while process.returncode is None and not children(process.pid):
                await asyncio.sleep(0.02)
            await asyncio.sleep(chance.uniform(0.0, 1.5))
            for pid in chance.sample(workers := children(process.pid), len(workers) // 2):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if process.returncode is None:
                process.kill()
            await process.communicate()
        ended = await place.program.run(*place.words(server.base_url))
    assert ended.code == 0, ended.err
    assert sorted(row["id"] for row in place.rows()) == [f"t{one:02}" for one in range(12)]
    assert len({row["instance_id"] for row in place.rows("predictions.jsonl")}) == len(place.rows("predictions.jsonl"))
    assert repeated(place) == {}


async def test_a_429_slows_all_workers_down_and_none_gives_up(place: Place) -> None:
    place.prepare(tasks(3))
    limited = [Refuse(status=429, headers={"retry-after": "1"})]
    async with ScriptedServer(Solver(refusals=limited)) as server:
        ended = await place.program.run(*place.words(server.base_url, workers=3))
    assert ended.code == 0, ended.err
    assert {row["state"] for row in place.rows()} == {"done"}
    assert len(server.requests) == 1 + 3 * 4


async def test_what_cannot_work_is_said_before_anything_starts(place: Place) -> None:
    place.prepare([{"id": "a", "prompt": "x"}, {"id": "a", "prompt": "y", "promt": "z"}, {"prompt": "x"}])
    wrong = await place.program.run(*place.words("http://127.0.0.1:1"))
    assert (wrong.code, wrong.out) == (Exit.CONFIG, "")
    assert wrong.err.startswith(
        "line 2: Object contains unknown field `promt`.\nline 3: It has no `id`.\ntreadle: 2 mistakes"
    )
    (place.folder / "tasks.jsonl").write_text('{"id": "a", "prompt": "x"}\n')
    (place.program.home / "config.toml").write_text("")
    unpriced = await place.program.run(*place.words("http://127.0.0.1:1", "--max-cost", "1", "--model", "litellm/any"))
    assert (unpriced.code, "The price of litellm/any is not known" in unpriced.err) == (Exit.CONFIG, True)
    assert not (place.out / "results.jsonl").exists()
    for flags in (("--slice", "x"), ("--filter", "nothing")):
        option = await place.program.run(*place.words("http://127.0.0.1:1", *flags))
        assert (option.code, flags[1] in option.err) == (Exit.USAGE, True)


async def test_what_fails_by_its_environment_is_tried_again_and_named(place: Place) -> None:
    place.prepare([{**tasks(1)[0], "commit": "gone"}, *tasks(2)[1:]])
    async with ScriptedServer(Solver()) as server:
        ended = await place.program.run(*place.words(server.base_url))
        why = f"prepare: {place.folder / 'project'} has no commit gone. "
        row = place.result("t00")
        assert (ended.code, row["state"], row["kind"], row["why"].startswith(why)) == (0, "error", "environment", True)
        assert (ended.err.count("# t00 is tried again: "), place.result("t01")["why"]) == (2, "")
        subprocess.run(["git", "branch", "gone"], cwd=place.folder / "project", check=True)
        again = await place.program.run(*place.words(server.base_url, "--retry", "environment"))
    assert (again.code, place.result("t00")["state"]) == (0, "done"), again.err


async def test_a_disk_that_is_full_ends_no_task_and_the_same_command_continues(place: Place) -> None:
    place.prepare(tasks(3, check=CHECK))
    with small_disk(place.out, 8):
        async with ScriptedServer(Solver(seconds=0.3)) as server:
            words = place.words(server.base_url, workers=2)
            batch = asyncio.create_task(place.program.run(*words))
            await until(lambda: len(server.requests) >= 3)
            full = fill(place.out)
            ended = await batch
            assert (ended.code, place.rows()) == (Exit.TRANSIENT, []), ended.err
            assert f"{place.out} cannot be written: No space left on device." in ended.err
            full.unlink()
            again = await place.program.run(*words)
        assert again.code == 0, again.err
        ends = {row["id"]: row["state"] for row in place.rows()}
        assert (set(ends.values()) <= {"done", "failed"}, ends["t02"]) == (True, "done")  # others may have lost an edit
        assert repeated(place) == {}
