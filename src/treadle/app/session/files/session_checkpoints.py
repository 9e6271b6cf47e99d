"""The checkpoints of a live session, which are opened with the first one that is taken."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from treadle.app.config.sections import CheckpointSettings
from treadle.context.log_reader import TranscriptReader
from treadle.protocol.checkpoints import CheckpointTaken, Moment
from treadle.protocol.errors import ToolError, TreadleError
from treadle.store.sqlite import Store
from treadle.workspace.files.names import hash_of_file, logged_path, shown_name

if TYPE_CHECKING:
    from treadle.app.checkpoints.checkpoint_files import FileCheckpoints
    from treadle.app.session.files.editor_files import SavesTyped
    from treadle.engine.ports import KnownChanges
    from treadle.engine.runtime.running_session import Session
    from treadle.protocol.checkpoints import Restore, Restored, Rewound


_LOOK = 2.0
"""Seconds between two looks at what the session changed."""

_Stamp = tuple[int, int, int]
Seen = dict[str, _Stamp | None]
"""How files looked when last compared, by path: mtime in ns, bytes, inode; None where there was none."""

_NEVER: _Stamp = (-1, -1, -1)


def conversation_at(store: Store, session_id: str, seq: int) -> TranscriptReader:
    """Read the conversation as it was after an event."""
    from treadle.engine.core.past_history import conversation

    return conversation(store.read(session_id, before=seq + 1, whole=False))


class SessionCheckpoints:
    """The checkpoints of one session, in `roots`. Nothing is opened or loaded for them before the first is taken."""

    def __init__(self, store: Store, session_id: str, roots: Sequence[str], settings: CheckpointSettings) -> None:
        self._store = store
        self._id = session_id
        self._roots = roots
        self._settings = settings
        self._typed: tuple[str, bytes] | None = None

    @cached_property
    def _opened(self) -> "FileCheckpoints":
        from treadle.app.checkpoints.opening_checkpoints import session_checkpoints

        return session_checkpoints(self._store, self._id, self._roots, ignored=self._settings.ignored)

    async def take(self, n: int, last: Sequence[str], /) -> CheckpointTaken:
        """Keep the files."""
        return await asyncio.to_thread(lambda: self._opened.take_now(n, last, self._typed))

    @contextmanager
    def typed(self, path: str, text: bytes) -> Iterator[None]:
        """Keep a file meanwhile as a person has it in an editor."""
        self._typed = (path, text)
        try:
            yield
        finally:
            self._typed = None

    def would_revert(self, path: str, text: bytes) -> bool:
        """Whether a text takes back what a command of the session did to a file; to be called in a thread."""
        return self._opened.would_revert(path, text)

    async def own(self, taken: CheckpointTaken, known: "KnownChanges", /) -> CheckpointTaken:
        """Say what of the files is the session's own work now."""
        return await self._opened.own(taken, known)

    async def restore(self, checkpoint: int, how_far: Callable[[int, int], None], /) -> "Restored":
        """Bring files back."""
        return await self._opened.restore(checkpoint, how_far)

    async def rewind(self, wanted: "Restore", /) -> "Rewound":
        """Find the place in the log."""
        return await self._opened.rewind(wanted)

    async def close(self) -> None:
        """Let go of the oldest checkpoints of the workspace where they take more than they may."""
        if "_opened" in self.__dict__:
            with suppress(TreadleError):
                await asyncio.to_thread(self._opened.tidy, self._settings.most_megabytes * 1_000_000)

    def put_away(self) -> "Seen":
        """Name the files that others put away, as nobody has seen them since; nothing where the log cannot be read."""
        from treadle.app.checkpoints.points import put_away

        with suppress(TreadleError):
            return unseen_since(put_away(self._store, self._id))
        return {}


def unseen_since(paths: Iterable[str]) -> Seen:
    """Say of files that nobody has seen how they are since the log last told of them: the next look finds out."""
    return dict.fromkeys(paths, _NEVER)


@asynccontextmanager
async def looked_after(engine: "Session", checkpoints: SessionCheckpoints, _: object = None) -> AsyncIterator[None]:
    """Have a checkpoint taken where others change what the session changed: between turns its figures hold, too."""
    looking = asyncio.create_task(_look_after(engine, checkpoints), name="what others change")
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def _look_after(engine: "Session", checkpoints: SessionCheckpoints) -> None:
    seen: Seen | None = None
    while True:
        await asyncio.sleep(_LOOK)
        state, checkpointer = engine.state, engine.checkpointer
        if state.turn is not None or not state.files.taken or checkpointer is None:
            continue
        if seen is None:
            seen = await asyncio.to_thread(checkpoints.put_away)
        if await asyncio.to_thread(own_work_differs, {one.path: one.after for one in state.changed}, seen):
            await checkpointer.look()


def own_work_differs(own: Mapping[str, str], seen: Seen) -> bool:
    """Whether files differ from the `own` hashes, by their paths, or from what was `seen` of them; notes what is now.

    What is not the session's any more may become so again, as after `git stash` and `git stash pop`.
    """
    found = False
    for path in {**seen, **own}:
        was, known, now = seen.get(path), path in seen, _stamp(path)
        if not known or was != now:
            seen[path] = now
            found = (hash_of_file(path) != own[path] if path in own else known) or found
    return found


def _stamp(path: str) -> _Stamp | None:
    try:
        found = os.lstat(logged_path(path))
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def saves_typed(checkpoints: SessionCheckpoints | None, engine: "Session") -> "SavesTyped":
    """Give what goes around saving over a text that was typed; to be called in the loop of the session."""
    if checkpoints is None:
        return lambda _path, _text: nullcontext()
    return TypedTexts(checkpoints, engine, asyncio.get_running_loop()).saving


class TypedTexts(Struct, frozen=True):
    """Has the checkpoints of a session tell apart what was typed and what the session edits; for threads."""

    checkpoints: SessionCheckpoints
    engine: "Session"
    loop: asyncio.AbstractEventLoop

    @contextmanager
    def saving(self, path: str, text: bytes) -> Iterator[None]:
        """Go around saving a file, see `SavesTyped`; where it fails, the disk counts as it is."""
        self._wait(self._keep(path, text))
        try:
            yield
        except BaseException:
            self._wait(self._take(Moment.BEFORE))
            raise

    async def _keep(self, path: str, text: bytes) -> None:
        await self._take(Moment.AFTER)
        if await asyncio.to_thread(self.checkpoints.would_revert, path, text):
            raise ToolError(
                f"{shown_name(path)} has changes in the editor that are not saved, and it was changed on the disk by a "
                "command of this session: saving the editor's text would undo that. Nothing was written. Ask the "
                "user to save or reload the file in the editor, with the changes of both; then read it again."
            )
        with self.checkpoints.typed(path, text):
            await self._take(Moment.BEFORE)

    async def _take(self, moment: Moment) -> None:
        checkpointer = self.engine.checkpointer
        if checkpointer is not None:
            await checkpointer.take(self.engine.state.step, moment, within=True)

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            asyncio.run_coroutine_threadsafe(work, self.loop).result()
        except CancelledError as error:
            raise ToolError(
                "Nothing was saved: the session is being closed. Read the file before you go on."
            ) from error
