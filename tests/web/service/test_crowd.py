"""Fifty sessions of five users at once, of which one loses its process in the middle: all end, and nothing is lost."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.e2e.faults.driving import make
from tests.e2e.running import PATIENCE
from tests.web.service.serving import SignedIn, kill_page, service_here
from treadle.providers.scripted.script import SayText, Turn, Wait

USERS, EACH = 5, 10
STEP = Turn(items=(Wait(seconds=1.0), make("read_file", path="plan.txt")))
TURNS = (STEP, STEP, STEP, Turn(items=(SayText(text="All read."),)))


def memory(data: Path) -> tuple[int, int]:
    """How many processes serve the pages of users, and how much memory is theirs (bytes; shared pages in parts)."""
    sizes = []
    for folder in Path("/proc").iterdir():
        try:
            if str(data).encode() not in (folder / "environ").read_bytes():
                continue
            rollup = (folder / "smaps_rollup").read_text()
        except OSError:
            continue
        sizes.append(sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) * 1024)
    return len(sizes), sum(sizes)


@pytest.mark.soak
async def test_fifty_sessions_at_once_end_whole_though_a_process_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    users = {f"user{number}": ("--turns", str(EACH)) for number in range(USERS)}
    async with service_here(tmp_path, TURNS, "--all-turns", "50", "--trust", users=users, begins=False) as service:
        token = await service.secret("metrics")
        await service.begin()
        people = await asyncio.gather(*(service.sign_in(name) for name in users))
        for one in people:
            (one.folder / "projects" / "plan.txt").write_text("The plan.\n")
        started = await asyncio.gather(*(begin(one) for one in people))
        await service.until(token, turns_waiting=0)
        most = memory(service.data)
        victim = people[0]
        kill_page(victim.folder)
        async with asyncio.timeout(PATIENCE):
            while "Opening your page" not in (await victim.get("/sessions")).text:
                await asyncio.sleep(0.1)
        said = (await victim.client.post("/login", json={"token": ""})).json()
        victim.base, victim.client.headers["x-treadle-key"] = said["base"], said["key"]
        for session in started[0]:
            await victim.done(f"/s/{session}/open", trust="later")
        await asyncio.gather(
            *(
                one.shows(session, "All read.")
                for one, sessions in zip(people, started, strict=True)
                for session in sessions
            )
        )
        found = await service.metrics(token)
        assert found['treadle_turns_total{user="user1"}'] == EACH
        service.send(signal.SIGTERM)
        assert await service.ended() == 0
    with capsys.disabled():
        print(f"\n{USERS * EACH} sessions in {most[0]} processes: {most[1] / 1e6:.0f} MB in all")


async def begin(user: SignedIn) -> list[str]:
    return [await user.start(f"Read it, {number}.") for number in range(EACH)]
