"""The rehearsal with the real program: as one task of a script, and in a real terminal."""

import asyncio
import secrets
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import LINE, left_of, log_of
from tests.person import CTRL_C, ENTER, ESCAPE
from tests.rehearsal import project
from tests.rehearsal.interrupts import Interrupted
from tests.rehearsal.model import Moves, ReactingModel, call, reply, run
from tests.rehearsal.plans import WIRES, Plan, plans
from tests.rehearsal.rehearse import Verdict, differences
from tests.rehearsal.replays import replay_program
from tests.rehearsal.sessions import KEY, PATHS, TASK, WIRE_APIS, check_log
from tests.rehearsal.work import Job, asks_nobody, raise_limit, restarted
from treadle.app.errors.exits import Exit
from treadle.protocol.models import ToolProtocol
from treadle.providers.scripted.script import Pace, Refuse, SayText, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer

PATIENCE = 90.0
"""Seconds until a program hangs."""

_SIDE_BY_SIDE = 3
_TICK = 0.005
_MODEL = "rehearsal/scripted"
_Come = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """One session of the real program, in a terminal or without one."""

    plan: Plan
    terminal: bool

    def __str__(self) -> str:
        return f"{self.plan} ({'in a terminal' if self.terminal else 'headless'})"


def program_plans(seed: int, count: int) -> list[ProgramPlan]:
    """Give sessions without a person who types; every fifth is in a terminal, where somebody could be asked."""
    found = []
    for plan in plans(seed + 2, count, wires=WIRES, person=False):
        terminal = plan.number % 5 == 4
        pieces = tuple(piece for piece in plan.pieces if not terminal or piece not in (asks_nobody, restarted))
        found.append(ProgramPlan(replace(plan, pieces=pieces), terminal))
    return found


async def work_programs(wanted: Iterable[ProgramPlan], folder: Path) -> list[Verdict]:
    """Run sessions, some side by side."""
    places = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def one(plan: ProgramPlan) -> Verdict:
        async with places:
            return await _work(plan, folder / f"program-{plan.plan.number}")

    return [*await asyncio.gather(*(one(plan) for plan in wanted))]


async def _work(wanted: ProgramPlan, folder: Path) -> Verdict:
    plan, job = wanted.plan, wanted.plan.job()
    model = ReactingModel(plan.moves(job), window=plan.window)
    found: list[str] = []
    try:
        async with _program(folder, job, model, plan) as (program, flags, server):
            run_it = _in_terminal if wanted.terminal else _headless
            code = await run_it(program, flags, job)
            found += [*model.problems, *server.violations]
        if code != Exit.DONE:
            found.append(f"ended with exit code {code}")
        if not job.finishing:
            found.append("ended before the model was done")
        found += differences(project.tree_of(folder / "project"), job.tree)
        if not found:
            check_log(log_of(folder / "home"))
            found += filter(None, [await replay_program(Program(folder / "home", {KEY: "key"}))])
    except (TimeoutError, AssertionError) as error:
        found.append(f"{type(error).__name__}: {error}")
    trouble = ""
    if found:
        trouble = "\n  ".join([str(wanted), *dict.fromkeys(found), "The model:", *(f"  {said}" for said in model.said)])
    return Verdict(name=str(wanted), steps=model.requests, overflows=model.overflows, trouble=trouble)


@asynccontextmanager
async def _program(
    folder: Path, job: Job, model: ReactingModel, plan: Plan
) -> AsyncIterator[tuple[Program, tuple[str, ...], ScriptedServer]]:
    """Give the program with settings of its own, the flags for a session in a new repository, and its provider."""
    (folder / "project").mkdir(parents=True)
    project.lay_out(folder / "project", job.tree)
    async with ScriptedServer(model) as server:
        program = Program(folder / "home", {KEY: "key"})
        window = "" if plan.window is None else f"[models.'{_MODEL}']\ncontext_window = {plan.window}\n"
        (folder / "home").mkdir()
        (folder / "home" / "config.toml").write_text(
            f"[providers.rehearsal]\nbase_url = '{server.base_url}{PATHS[plan.wire]}'\n"
            f"wire_api = '{WIRE_APIS[plan.wire]}'\napi_key_env = '{KEY}'\n{window}"
        )
        flags = ("--model", _MODEL, "--mode", "full", "--tool-protocol", plan.protocol)
        yield program, (*flags, "--directory", str(folder / "project"), "--trust"), server


async def _headless(program: Program, flags: tuple[str, ...], job: Job) -> int:
    """Work the task off; where the plan says so the program is killed, and the session is continued."""
    arguments: tuple[str, ...] = ("-p", TASK)
    while True:
        process = await program.start(*arguments, *flags, "--output-format", "stream-json", limit=LINE)
        ending = asyncio.create_task(process.communicate())
        async with asyncio.timeout(PATIENCE):
            while not ending.done() and not job.wishes:
                await asyncio.sleep(_TICK)
        if not job.wishes:
            await ending
            assert process.returncode is not None
            return process.returncode
        await asyncio.sleep(job.jitter.random() * 0.1)
        job.wishes.clear()
        process.kill()
        await ending
        arguments = ("-p", "", "--continue")


async def _in_terminal(program: Program, flags: tuple[str, ...], job: Job) -> int:
    async with on_terminal(program, *flags) as terminal:
        await terminal.until_shown("Describe a task")
        terminal.type(f"{TASK}{ENTER}")
        await _until(lambda: job.finishing and _at_rest(program.home), "the end of the task")
        terminal.type(f"/quit{ENTER}")
        return await terminal.ended()


def _at_rest(home: Path) -> bool:
    """Whether the log says that the session has nothing to do."""
    events = log_of(home)
    try:
        check_log(events)
    except AssertionError:
        return False
    return True


async def _until(condition: Callable[[], bool], wanted: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(_TICK)
    except TimeoutError:
        raise TimeoutError(f"never came: {wanted}") from None


async def interrupt_programs(seed: int, count: int, folder: Path) -> list[Interrupted]:
    """Interrupt running programs, one at a time, for each is timed; every fifth in a terminal, by a key."""
    return [
        await _interrupt(f"{seed}-{number}", folder / f"interrupted-{number}", terminal=number % 5 == 4)
        for number in range(count)
    ]


async def _interrupt(seed: str, folder: Path, *, terminal: bool) -> Interrupted:
    jitter = Random(seed)
    marker = str(secrets.randbelow(10**12) + 10**12)
    job = Job(jitter=jitter, native=jitter.random() < 0.5)
    model = ReactingModel(_busy(job, marker))
    protocol = ToolProtocol.NATIVE if job.native else ToolProtocol.XML
    plan = Plan(seed=0, number=0, pieces=(), protocol=protocol, wire=jitter.choice(WIRES))
    moment, delay = jitter.randint(1, 6), jitter.random() * jitter.choice([0.01, 0.1, 0.4])
    seconds, trouble = None, ""
    try:
        async with _program(folder, job, model, plan) as (program, flags, server):

            async def come() -> None:
                """Wait for the moment: the model was asked so often, or does not end what it does."""
                deadline = time.monotonic() + 1.5
                await _until(lambda: model.requests >= 1, "a request")
                await _until(lambda: model.requests >= moment or time.monotonic() > deadline, "the moment")
                await asyncio.sleep(delay)

            run_it = _interrupt_terminal if terminal else _interrupt_headless
            seconds = await run_it(program, flags, come, jitter)
            trouble = "; ".join([*model.problems, *server.violations])
        check_log(log_of(folder / "home"))
        trouble = trouble or await replay_program(Program(folder / "home", {KEY: "key"}))
        if left := left_of(marker):
            trouble = f"processes are left: {left}"
    except (TimeoutError, AssertionError) as error:
        trouble = f"{type(error).__name__}: {error}"
    if trouble:
        said = "\n    ".join(model.said)
        trouble = f"seed {seed!r} ({plan.wire}, {protocol}, terminal {terminal}): {trouble}\n    {said}"
    return Interrupted(seed=seed, seconds=seconds, trouble=trouble)


async def _interrupt_headless(program: Program, flags: tuple[str, ...], come: _Come, jitter: Random) -> float:
    """Send SIGINT; gives the seconds until the result is written."""
    process = await program.start("-p", TASK, *flags, "--output-format", "stream-json", limit=LINE)
    ending = asyncio.create_task(process.communicate())
    try:
        await come()
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(PATIENCE):
            out, err = await ending
        seconds = time.monotonic() - sent
    finally:
        if process.returncode is None:
            process.kill()
            await ending
    assert process.returncode == Exit.INTERRUPTED, f"exit code {process.returncode}: {err.decode()[-2000:]}"
    assert b"Traceback" not in err, err.decode()[-3000:]
    last = out.splitlines()[-1]
    assert b'"stop":"cancelled"' in last, last.decode()[-500:]
    return seconds


async def _interrupt_terminal(program: Program, flags: tuple[str, ...], come: _Come, jitter: Random) -> float:
    """Press a key; gives the seconds until the log says that the turn has ended."""
    async with on_terminal(program, *flags) as terminal:
        await terminal.until_shown("Describe a task")
        terminal.type(f"{TASK}{ENTER}")
        await come()
        sent = time.monotonic()
        terminal.type(jitter.choice([ESCAPE, CTRL_C]))
        try:
            await _until(lambda: _at_rest(program.home), "the end of the turn")
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the screen:\n{terminal.shown[-1500:]}") from None
        seconds = time.monotonic() - sent
        terminal.type(f"/quit{ENTER}")
        code = await terminal.ended()
        assert code == Exit.DONE, f"exit code {code}: {terminal.shown[-2000:]}"
        assert "Traceback" not in terminal.shown
    return seconds


def _busy(job: Job, marker: str) -> Moves:
    """Work that never ends: whatever the model does, it can be interrupted there."""
    for_ever = (
        f"while true; do echo {marker}; done",
        f"sleep 1000.{marker} & wait",
        f"trap '' TERM INT; while true; do sleep 0.05; : {marker}; done",
        f"setsid sh -c 'sleep 1000.{marker}' & wait",
    )
    while True:
        turns = (
            Turn(items=(SayText(text="All work and no play. " * 200),), pace=Pace(chunk=16, delay=0.005)),
            reply("I wait here", Wait(seconds=600)),
            reply(Refuse(status=429, headers={"retry-after": "30"})),
            reply(run(job.jitter.choice(for_ever))),
            reply(run(f"sleep 1000.{marker}", background=True), call("read_command_output", command_number=1, wait=60)),
            reply(
                call("read_file", path="src/limits.py"), call("list_files", path="."), run(f"echo {marker}; sleep 0.05")
            ),
            reply(call("read_file", path="src/shelf.py"), raise_limit(job)),
            reply(run("seq 1 100000")),
        )
        yield job.jitter.choice((*turns[:5], *turns[5:] * 3))
