"""What wakes a session becomes prompts of its own: none is a person's word, and each waits for the one before."""

import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from treadle.engine.runtime.feeds import Feed
from treadle.protocol.errors import TreadleError
from treadle.protocol.events import GOAL, HOOK, Delivery, Noted, Op, Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.notifications import Notification, PromptDelivered, QueueChanged
from treadle.protocol.sealed import Passage, PassageKind
from treadle.workspace.commands.watch_records import ENDED_FILE, WATCHERS_FILE, Armed, read_armed
from treadle.workspace.commands.watchers import MOST_WOKEN, Watchers, Woken

_SPENT = f"""You were woken {MOST_WOKEN} times without a word from the user, so all timers and watched commands were \
ended. Set them again only if the user wants that."""


class WakeableSession(Protocol):
    """A session that can be woken."""

    async def post(self, data: Op, source: Source) -> None:
        """Post what no person wrote: nothing in it is a mention or a command. Raises `RefusedError`."""
        ...

    def follow(self) -> Feed:
        """Listen."""
        ...

    def tell(self, text: str) -> None:
        """Say a line to the person."""
        ...


def open_watchers(live: WakeableSession, private: Path, stays: Callable[[], bool] = lambda: True) -> Watchers:
    """Make what wakes a session; `private` is its folder in Treadle's data. Needs a running event loop.

    `stays` says whether the session stays open when a turn has ended.
    """
    waking = _Waking(live, private / WATCHERS_FILE, stays)
    waking.watchers.own(waking.follow())
    return waking.watchers


class _Waking:
    def __init__(self, live: WakeableSession, file: Path, stays: Callable[[], bool]) -> None:
        self._live = live
        self._feed = live.follow()
        self._sent: set[str] = set()
        self._unread: set[str] = set()
        self.watchers = Watchers(self._wake, self._spent, file, stays=stays)

    def _wake(self, woken: Woken) -> None:
        prompt = Prompt(id=uuid.uuid4().hex, content=(Text(text=woken.text),), delivery=Delivery.STEER)
        self._sent.add(prompt.id)
        self.watchers.hold(held=True)
        self.watchers.own(self._post(prompt, Source(kind=woken.kind, id=woken.id)))

    async def _post(self, prompt: Prompt, source: Source) -> None:
        self._unread.add(prompt.id)
        try:
            await self._live.post(prompt, source)
        except TreadleError:
            self._sent.discard(prompt.id)
            self._read(prompt.id)

    def _spent(self) -> None:
        self._live.tell(
            f"The agent was woken {MOST_WOKEN} times without a word from you: its timers and watches were ended."
        )
        self.watchers.own(self._note())

    async def _note(self) -> None:
        noted = Noted(notes=(Passage(kind=PassageKind.NOTE, text=_SPENT),))
        with suppress(TreadleError):
            await self._live.post(noted, Source(kind="monitor"))

    async def follow(self) -> None:
        """Learn what was read, and when a person speaks."""
        async with self._feed:
            async for notification in self._feed:
                self._take(notification)

    def _take(self, notification: Notification) -> None:
        match notification:
            case PromptDelivered(prompt_id=prompt_id) if prompt_id in self._sent:
                self._sent.discard(prompt_id)
                self._read(prompt_id)
            case PromptDelivered(by=by) if by.partition(":")[0] not in (HOOK.kind, GOAL.kind):
                self.watchers.person_spoke()
            case QueueChanged(prompts=prompts) if self._unread:
                waiting = {one.id for one in prompts}
                for dropped in [one for one in self._unread if one not in waiting]:
                    self._read(dropped)
            case _:
                pass

    def _read(self, prompt_id: str) -> None:
        self._unread.discard(prompt_id)
        if not self._unread:
            self.watchers.hold(held=False)


def take_ended(private: Path) -> Noted | None:
    """Say to the model what would have woken it and ended with the last process; None where there was nothing."""
    files = (private / WATCHERS_FILE, private / ENDED_FILE)
    ended = [one for file in files for one in read_armed(file)]
    for file in files:
        with suppress(OSError):
            file.unlink()
    if not ended:
        return None
    text = f"These ended when the session was closed, and will not wake you: {'; '.join(map(describe_armed, ended))}."
    return Noted(notes=(Passage(kind=PassageKind.NOTE, text=text),))


def describe_armed(armed: Armed) -> str:
    """Name one thing that wakes a session."""
    if armed.number:
        return f"command {armed.number}, watched for `{armed.text}`"
    return f"a timer ({armed.text})" if armed.text else "a timer"
