"""The schedules of one user of a service: each run is a session of their page, once the front lets it begin."""

import asyncio
import uuid
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from treadle.door.opening import Schedule, ScheduledRun, check_workspace, run_left_out
from treadle.door.program import write_log
from treadle.protocol.events import Prompt
from treadle.protocol.messages import Text
from treadle.web.book import SessionBook
from treadle.web.service.service_words import FromPage, NextDue, RunAnswered, RunWanted

LOOKS_AT_SCHEDULES = 1.0
"""Seconds after which a change of the schedules is seen, so that the front knows of it before the process may end."""


class UserSchedules:
    """Begins runs as sessions of a page, so that they have its rights, limits and queue. `says` reaches the front."""

    def __init__(self, book: SessionBook, says: Callable[[FromPage], None]) -> None:
        self._book = book
        self._says = says
        self._asked: dict[str, asyncio.Future[str]] = {}
        self._told: float | None = None

    def take(self, said: RunAnswered) -> None:
        """Take what the front says of a run."""
        asked = self._asked.pop(said.run, None)
        if asked is not None and not asked.done():
            asked.set_result(said.problem)

    def tell_next(self, due: float | None) -> None:
        """Tell the front when something is due, as it starts the process for that."""
        if due != self._told:
            self._told = due
            self._says(NextDue(due=due))

    def tell(self, text: str) -> None:
        """Write down what a person should read; the list of schedules has it, too."""
        write_log(text)

    async def begin(self, schedule: Schedule, run: ScheduledRun) -> ScheduledRun:
        """Begin a session for a run; gives what became of it. Raises `TreadleError`."""
        for earlier in schedule.runs:
            page = self._book.opened.get(earlier.session)
            if page is not None and (page.session.status.turn_active or page.questions):
                return run_left_out(run, earlier.session)
        problem = await self._may_begin(f"{schedule.id} {run.due}")
        if problem:
            return replace(run, problem=problem)
        folder = Path(schedule.folder)
        if not await asyncio.to_thread(folder.is_dir):
            return replace(run, problem=f"there is no folder {folder} any more")
        trust = await asyncio.to_thread(self._book.trust, await asyncio.to_thread(check_workspace, folder))
        budget = {**self._book.flags.get("budget", {}), "session_cost": schedule.max_cost}
        opening = self._book.opening(trust, mode=schedule.mode, model=schedule.model, budget=budget)
        page = await self._book.start(opening)
        prompt = Prompt(id=uuid.uuid4().hex, content=(Text(text=schedule.task),))
        await page.client.post(prompt, name=f"schedule {schedule.id}")
        return replace(run, session=page.session.id)

    async def _may_begin(self, run: str) -> str:
        """Ask the front; gives why not."""
        asked: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asked[run] = asked
        self._says(RunWanted(run=run))
        return await asked
