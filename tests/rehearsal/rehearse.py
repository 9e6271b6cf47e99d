"""Running sessions and judging how they ended."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.rehearsal import project
from tests.rehearsal.loops import MOST_STEPS, LoopPlan
from tests.rehearsal.model import ReactingModel
from tests.rehearsal.plans import Plan
from tests.rehearsal.sessions import Ending, Run, check_log, perform
from tests.rehearsal.work import Job
from treadle.app.errors.exits import Exit, exit_code
from treadle.protocol.models import ToolProtocol

AT_ONCE = 12
"""Sessions that run side by side: most of their time is waiting."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one session; without `trouble` all was well. `ends` are the reasons why its turns stopped."""

    name: str
    steps: int
    overflows: int = 0
    ends: tuple[str, ...] = ()
    trouble: str = ""


async def rehearse(plan: Plan, folder: Path) -> Verdict:
    """Run one session of healthy work in a new repository."""
    job = plan.job()
    model = ReactingModel(plan.moves(job), window=plan.window)
    run = Run(
        folder=_lay_out(folder, job),
        model=model,
        protocol=plan.protocol,
        wire=plan.wire,
        window=plan.window,
        wishes=job.wishes,
    )

    def judge(ending: Ending) -> Iterator[str]:
        for outcome in ending.outcomes:
            if exit_code(outcome) is not Exit.DONE or not outcome.completed:
                why = outcome.error or outcome.why
                yield f"ended with {outcome.stop}, completed {outcome.completed}: {why}"
        if not job.finishing:
            yield "ended before the model was done"
        yield from differences(project.tree_of(folder), job.tree)

    return await _run(str(plan), run, judge)


async def rehearse_loop(plan: LoopPlan, folder: Path) -> Verdict:
    """Run one session that never gets on."""
    job = Job(jitter=Random(plan.number), native=plan.protocol is ToolProtocol.NATIVE)
    model = ReactingModel(plan.loop.moves(job), most=MOST_STEPS)
    run = Run(folder=_lay_out(folder, job), model=model, protocol=plan.protocol)

    def judge(ending: Ending) -> Iterator[str]:
        code = exit_code(ending.outcomes[-1])
        if code not in plan.loop.exits:
            yield f"ended with exit code {code}, not {plan.loop.exits}"

    return await _run(str(plan), run, judge)


def _lay_out(folder: Path, job: Job) -> Path:
    folder.mkdir(parents=True)
    project.lay_out(folder, job.tree)
    return folder


async def _run(name: str, run: Run, judge: Callable[[Ending], Iterable[str]]) -> Verdict:
    """Run a session and judge it; whatever goes wrong is told with what the model said."""
    model = run.model
    ends: tuple[str, ...] = ()
    try:
        ending = await perform(run)
        ends = tuple(outcome.stop for outcome in ending.outcomes)
        found = [*model.problems, *ending.violations, *judge(ending)]
        if not found:
            check_log(ending.events)
    except Exception as error:  # noqa: BLE001 - one session's failure is reported beside the others'
        found = [*model.problems, f"{type(error).__name__}: {error}"]
    trouble = ""
    if found:
        trouble = "\n  ".join([name, *dict.fromkeys(found), "The model:", *(f"  {said}" for said in model.said)])
    return Verdict(name=name, steps=model.requests, overflows=model.overflows, ends=ends, trouble=trouble)


def differences(tree: project.Tree, wanted: project.Tree) -> Iterator[str]:
    """Name the files that are not as they should be."""
    for path in sorted({*tree, *wanted}):
        if tree.get(path) != wanted.get(path):
            yield f"{path!r} is not as it should be"


async def rehearse_all(plans: Iterable[Plan | LoopPlan], folder: Path) -> list[Verdict]:
    """Run sessions, some side by side."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(plan: Plan | LoopPlan) -> Verdict:
        async with places:
            place = folder / f"{type(plan).__name__}-{plan.number}"
            return await (rehearse(plan, place) if isinstance(plan, Plan) else rehearse_loop(plan, place))

    return [*await asyncio.gather(*(one(plan) for plan in plans))]
