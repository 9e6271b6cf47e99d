"""A session that works on real files with real checkpoints, while a person edits, answers, interrupts and goes back.

The model of who wrote which bytes is the test's own: in each shared file the session writes even places, the person odd
ones, and some files are of one of them alone.
"""

import asyncio
import contextlib
import os
import random
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.engine.test_runtime import DONE
from tests.fakes.engine import calls, ports
from treadle.app.checkpoints.checkpoint_files import FileCheckpoints
from treadle.app.checkpoints.opening_checkpoints import session_checkpoints
from treadle.app.checkpoints.points import Points
from treadle.app.compose import open_store
from treadle.app.reports.known_sessions import listed_in
from treadle.app.reports.session_review import open_review
from treadle.context.log_reader import TranscriptReader
from treadle.engine.core.past_history import conversation, read_past
from treadle.engine.ports import Output, Ports, Prepared
from treadle.engine.runtime.running_session import Session
from treadle.engine.runtime.track import Track
from treadle.protocol.checkpoints import CheckpointTaken, Restore, Restored
from treadle.protocol.events import Answer, Event, Interrupt, Prompt, Resumed, SessionStarted, SetPresence
from treadle.protocol.messages import Text
from treadle.protocol.models import ModelChoice, ModelRequest, StreamEvent, ToolProtocol
from treadle.protocol.notifications import Notification, QuestionAsked, TurnEnded, TurnOutcome, TurnStop
from treadle.protocol.permissions import Decision, Mode, OptionKind, Verdict
from treadle.protocol.tools import (
    CallResult,
    ChangeKind,
    Confinement,
    CopyChange,
    CopyChanges,
    FileChange,
    Outcome,
    Preview,
    Risk,
    ToolEffect,
    ToolKind,
    ToolSpec,
    ToolTraits,
    result_text,
)
from treadle.store.appending import SessionLog
from treadle.store.sqlite import SessionRow, Store
from treadle.workspace.checkpoints.trees import flat_tree

ID = "20261123-120000-abcdef"
PATIENCE = 20.0
PLACES = 8
SHARED = ("one/a.txt", "one/sub/b.txt", "two/c.txt")
OLD = {"one/old.txt": "old\nfile\n", "two/sub/old.txt": "another\n"}

Op = Callable[[], str]
"""Changes one file as the session would; gives its path."""


@dataclass
class Written:
    """Who wrote what: the places of each shared file, and the files that are of one side alone."""

    own: dict[str, dict[int, str]] = field(default_factory=lambda: {path: {} for path in SHARED})
    alone: dict[str, str] = field(default_factory=lambda: dict(OLD))
    others: dict[str, dict[int, str]] = field(default_factory=lambda: {path: {} for path in SHARED})
    theirs: dict[str, str] = field(default_factory=dict)

    def files(self) -> dict[str, str]:
        """What has to be in the folders."""
        shared = {path: _text({**self.own[path], **self.others[path]}) for path in SHARED}
        return {**shared, **self.alone, **self.theirs}

    def own_changes(self, since: "Written") -> set[tuple[str, int, int]]:
        """The session's changes since then: paths, with the lines added and removed."""
        found: set[tuple[str, int, int]] = set()
        for path in SHARED:
            places = {place for place in range(PLACES) if self.own[path].get(place) != since.own[path].get(place)}
            if places:
                found.add((path, len(places), len(places)))
        for path in self.alone.keys() | since.alone.keys():
            before, after = since.alone.get(path), self.alone.get(path)
            if before != after:
                found.add((path, len((after or "").splitlines()), len((before or "").splitlines())))
        return found


def _text(places: Mapping[int, str]) -> str:
    return "".join(f"top {n}\n{places.get(n, f'free {n}')}\nbelow {n}\n\n" for n in range(PLACES))


def _places(text: str, *, own: bool) -> dict[int, str]:
    lines = text.splitlines()[1::4]
    return {n: line for n, line in enumerate(lines) if n % 2 != own and line != f"free {n}"}


@dataclass(frozen=True)
class _ChangingTool:
    """Makes changes. An edit reports what it wrote, a command does not, and a try makes them only in a copy."""

    name: str
    traits: ToolTraits
    scene: "OwnWorkScene"

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description="",
            parameters={"type": "object", "properties": {}},
            traits=self.traits,
            risk=Risk.EXECUTE,
        )

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        async def run(_: Output) -> CallResult:
            return await self.scene.run(self.name)

        return Prepared(accesses=(), preview=Preview(title=self.name), run=run)


class OwnWorkScene:
    """One session from its begin to its end. Everything is drawn from `random`; what it says fails the test."""

    def __init__(self, store: Store, top: Path, chance: random.Random) -> None:
        self.store, self.top, self.chance = store, top, chance
        self.written = Written()
        self.began = deepcopy(self.written)
        self.unclear: set[str] = set()
        """Paths of a call that was killed: a way back may leave them, and says so."""
        self.hanging = asyncio.Event()
        self.touched: set[str] = set()
        """Paths that the session wrote in this turn."""
        self._numbers = iter(range(1, 10_000))
        self._kept_ops: dict[str, list[Op]] = {}
        self.turn_began = deepcopy(self.written)

    # What the session does

    def _draw_ops(self, most: int) -> list[Op]:
        return [self._draw_op() for _ in range(self.chance.randint(1, most))]

    def _draw_op(self) -> Op:
        number, chance = next(self._numbers), self.chance
        kind = chance.choice(("place", "place", "place", "free", "make", "delete", "change"))
        path, place = chance.choice(SHARED), 2 * chance.randrange(PLACES // 2)
        fresh = chance.choice(("one/made-{}.txt", "one/sub/deep/made-{}.txt", "two/made-{}.txt")).format(number)
        text = "".join(f"made {number}.{line}\n" for line in range(chance.randint(1, 4)))

        def op() -> str:
            known = sorted(self.written.alone)
            if kind in ("place", "free") or (kind in ("delete", "change") and not known):
                self._set(self.written.own[path], path, place, f"own {number}" if kind != "free" else "")
                return path
            mine = fresh if kind == "make" else known[number % len(known)]
            if kind == "delete":
                del self.written.alone[mine]
                (self.top / mine).unlink()
            else:
                self.written.alone[mine] = text
                self._write(mine, text)
            return mine

        return op

    def _set(self, side: dict[int, str], path: str, place: int, line: str) -> None:
        """Put a line into a file as it is now."""
        lines = (self.top / path).read_text().splitlines(keepends=True)
        lines[4 * place + 1] = f"{line or f'free {place}'}\n"
        if line:
            side[place] = line
        else:
            side.pop(place, None)
        self._write(path, "".join(lines))

    def _write(self, path: str, text: str) -> None:
        (self.top / path).parent.mkdir(parents=True, exist_ok=True)
        (self.top / path).write_text(text)

    async def run(self, name: str) -> CallResult:
        """Do the work of a call; now and then it hangs in the middle, until it is interrupted or killed."""
        if name == "try":
            digest = f"copy {next(self._numbers)}"
            self._kept_ops[digest] = self._draw_ops(3)
            await asyncio.sleep(0)
            shown = CopyChanges(digest=digest, changes=(CopyChange(path="/x", kind=ChangeKind.CHANGED),))
            return replace(result_text(Outcome.OK, "tried"), copy=shown)
        return await self._do(self._draw_ops(1 if name == "edit" else 3), reports=name == "edit")

    async def keep(self, digest: str, /) -> CallResult:
        """Make the changes of a copy in the folders."""
        return await self._do(self._kept_ops[digest], reports=True, hangs=False)

    async def _do(self, ops: Sequence[Op], *, reports: bool, hangs: bool = True) -> CallResult:
        changes: list[FileChange] = []
        hang = hangs and self.chance.random() < 0.12
        for op in ops:
            before = {path: (self.top / path).read_bytes() for path in self.written.files()}
            path = op()
            self.touched.add(path)
            file = self.top / path
            changes.append(
                FileChange(
                    path=str(file),
                    before=sha256(before[path]).hexdigest() if path in before else "",
                    after=sha256(file.read_bytes()).hexdigest() if file.exists() else "",
                    added=7,
                    removed=7,
                )
            )
            if hang:
                self.hanging.set()
                await asyncio.Event().wait()
        (self.top / "one" / "build").mkdir(exist_ok=True)
        (self.top / "one" / "build" / "junk.log").write_text(f"ignored {next(self._numbers)}")
        return replace(result_text(Outcome.OK, "done"), changes=tuple(changes) if reports else ())

    def judge(self, spec: ToolSpec, *_: object) -> Decision:
        """Let it run, ask, or deny it."""
        asks, allow, deny = Verdict.REQUIRE_USER_CONFIRMATION, Verdict.ALLOW, Verdict.DENY
        verdict = self.chance.choices((asks, allow, deny), (5, 5, 1))[0]
        confinement = Confinement.LOOK if spec.name == "try" else None
        return Decision(verdict=verdict, risk=Risk.WRITE, digest="d", confinement=confinement)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Be the model: some calls, or the answer."""
        names = self.chance.choices(("edit", "run", "try"), (5, 3, 2), k=self.chance.randint(1, 3))
        for event in DONE if self.chance.random() < 0.35 else calls(*names):
            yield event

    async def close(self) -> None:
        """Nothing is held."""

    # What the person does

    def edit(self) -> None:
        """Change something by hand."""
        for _ in range(self.chance.choice((0, 1, 1, 2))):
            number = next(self._numbers)
            if self.chance.random() < 0.3:
                path = f"{self.chance.choice(('one', 'one/sub', 'two'))}/theirs-{number}.txt"
                self.written.theirs[path] = text = f"by the user {number}\n"
                self._write(path, text)
            elif self.written.theirs and self.chance.random() < 0.2:
                path = self.chance.choice(sorted(self.written.theirs))
                del self.written.theirs[path]
                (self.top / path).unlink()
            else:
                path, place = self.chance.choice(SHARED), 2 * self.chance.randrange(PLACES // 2) + 1
                self._set(self.written.others[path], path, place, f"user {number}")

    # The session

    @property
    def row(self) -> SessionRow:
        return self.store.find(ID)

    async def work(self, turns: int) -> None:
        """Work for some turns; in between the person edits and goes back. Then everything is taken back."""
        for number in range(turns):
            again = True
            while again:
                async with self._opened(first=number == 0) as opened:
                    again = await opened.turn(number)
            self.edit()
            if self.chance.random() < 0.3:
                async with self._opened() as opened:
                    await opened.go_back(self.chance.choice(("undo", "some")))
        async with self._opened() as opened:
            await opened.go_back("all")
            await opened.go_back("undo")

    @contextlib.asynccontextmanager
    async def _opened(self, *, first: bool = False) -> AsyncIterator["OpenScene"]:
        events = list(self.store.read(ID))
        track = Track(read_past(iter(events)), self._conversation_at) if events else Track()
        kept = session_checkpoints(self.store, ID, [str(self.top / "one"), str(self.top / "two")], ignored=False)
        effect = ToolEffect.ONCE
        tools = [
            _ChangingTool("edit", ToolTraits(kind=ToolKind.EDIT, effect=effect), self),
            _ChangingTool("run", ToolTraits(kind=ToolKind.EXECUTE, effect=effect), self),
            _ChangingTool("try", ToolTraits(kind=ToolKind.EXECUTE, effect=effect), self),
        ]
        log = SessionLog(self.store, ID)
        made = replace(ports(self, *tools, judge=self.judge, keep=self.keep, checkpoints=kept), log=log)
        session = Session(track, made.clock)
        opened = OpenScene(self, session, made, kept)
        try:
            if events:
                await session.post(Resumed(user_present=True))
            else:
                choice = ModelChoice(model="a/b", tool_protocol=ToolProtocol.NATIVE)
                one, two = str(self.top / "one"), str(self.top / "two")
                started = SessionStarted(session_id=ID, workspace=one, roots=(two,), choice=choice, mode=Mode.ASK)
                await session.post(started)
                await session.post(SetPresence(user_present=True))
            yield opened
        finally:
            await opened.close()

    def _conversation_at(self, seq: int) -> TranscriptReader:
        return conversation(self.store.read(ID, before=seq + 1, whole=False))

    # What has to be true

    def check(self) -> None:
        """Compare the folders, the review and the list with what is known of who wrote what."""
        found = {str(file.relative_to(self.top)): file.read_text() for file in _files_below(self.top)}
        expected_files = self.written.files()
        assert found == expected_files, (found.items() ^ expected_files.items(), self.history())
        review = open_review(self.store, self.row)
        expected = self.written.own_changes(self.began)
        if review is None:
            assert expected == set()
            return
        with contextlib.closing(review):
            own = {(self.below(one.path), one.added, one.removed) for one in review.files if one.own}
        assert own == expected, (own ^ expected, self.history())
        (listed,) = listed_in(self.store, [self.row])
        sums = tuple(sum(lines) for lines in zip(*((added, removed) for _, added, removed in own), strict=True))
        assert (listed.added, listed.removed) == (sums or (0, 0))

    def history(self) -> list[str]:
        """Say what happened, for whoever reads why a seed fails."""
        found: list[str] = []
        for event in self.store.read(ID):
            match event.data:
                case CheckpointTaken(n=n, step=step, moment=moment, own=own):
                    found.append(f"{event.seq} checkpoint {n} step {step} {moment} {own}")
                case other:
                    found.append(f"{event.seq} {type(other).__name__}")
        return found

    def below(self, path: str) -> str:
        """Name a file as the model of this test does."""
        return str((self.top / "one" / path).relative_to(self.top))


def _files_below(top: Path) -> Iterator[Path]:
    return (file for file in top.rglob("*") if file.is_file() and file.name not in (".gitignore", "junk.log"))


class OpenScene:
    """The session while a program has it open."""

    def __init__(self, scene: OwnWorkScene, session: Session, made: Ports, kept: FileCheckpoints) -> None:
        self.scene, self.session, self._kept = scene, session, kept
        self._feed = aiter(session.follow())
        self._next: asyncio.Future[Notification] | None = None
        self._task = asyncio.ensure_future(session.run(made))

    async def close(self) -> None:
        """Close what was not killed."""
        if self._next is not None:
            self._next.cancel()
        if not self._task.done():
            await self.session.close()
        await asyncio.wait((self._task,))
        self._kept.close()

    async def turn(self, number: int) -> bool:
        """Have a turn worked at, or worked on with; gives whether its program was killed in the middle of it."""
        scene, chance = self.scene, self.scene.chance
        if self.session.state.turn is None:
            scene.turn_began = deepcopy(scene.written)
            scene.touched.clear()
            await self.session.post(Prompt(id=f"p{number}", content=(Text(text="go"),)))
        while True:
            told = await self._told()
            match told:
                case None:
                    if chance.random() < 0.4:
                        return await self._killed()
                    await self.session.post(Interrupt())
                case QuestionAsked(question=question):
                    await self._settled()
                    scene.edit()
                    if chance.random() < 0.08:
                        return await self._killed()
                    option = chance.choice((OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE))
                    arguments = {"amended": "yes"} if question.arguments == {} and chance.random() < 0.2 else None
                    if option is not OptionKind.ALLOW_ONCE or question.copy is not None or not question.options:
                        arguments = None
                    await self.session.post(Answer(question_id=question.id, option=option, arguments=arguments))
                case TurnEnded(outcome=outcome):
                    self._check_outcome(outcome)
                    await self._settled()
                    scene.check()
                    return False
                case _:
                    pass

    def _check_outcome(self, outcome: TurnOutcome) -> None:
        scene = self.scene
        own = {(str(Path(one.path).relative_to(scene.top)), one.added, one.removed) for one in outcome.changes}
        if outcome.exact or outcome.stop is TurnStop.END_TURN:
            expected = scene.written.own_changes(scene.turn_began)
            assert own == expected, (own ^ expected, scene.history())

    async def _told(self) -> Notification | None:
        """Give what the session says next; None where a call hangs."""
        self._next = self._next or asyncio.ensure_future(anext(self._feed))
        hangs = asyncio.ensure_future(self.scene.hanging.wait())
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait((self._next, hangs), return_when=asyncio.FIRST_COMPLETED)
        hangs.cancel()
        if self.scene.hanging.is_set():
            self.scene.hanging.clear()
            return None
        said, self._next = self._next.result(), None
        return said

    async def _settled(self) -> None:
        """Wait for the checkpoint of what was done so far, which takes no person's time."""
        async with asyncio.timeout(PATIENCE):
            while self.session.state.files.changing or self.scene.row.events < self.session.state.seq:
                await asyncio.sleep(0.001)

    async def _killed(self) -> bool:
        """End the program as a kill does: nothing more is logged. What its last step changed nobody can tell."""
        self.scene.unclear |= self.scene.touched
        changing = self.session.state.files.changing
        self._task.cancel()
        await asyncio.wait((self._task,))
        if not changing:
            self.scene.edit()
        return True

    async def go_back(self, how: str) -> None:
        """Bring files back: the last turn's, those since any checkpoint, or all."""
        scene, points = self.scene, Points(self.scene.store, ID)
        last = len(points.checkpoints)
        n = points.undo() if how == "undo" else min(1, last) if how == "all" else scene.chance.randint(0, last)
        if not n:
            return
        before = scene.store.find(ID).events
        files, conversation = how == "all" or scene.chance.random() < 0.8, scene.chance.random() < 0.3
        await self.session.post(Restore(checkpoint=n, files=files, conversation=conversation or not files))
        async with asyncio.timeout(PATIENCE):
            while not (found := [event.data for event in scene.store.read(ID) if event.seq > before and _ends(event)]):
                await asyncio.sleep(0.005)
        (restored,) = found
        assert isinstance(restored, Restored)
        stays = {str(Path(one.path).relative_to(scene.top)) for one in restored.conflicts}
        assert (restored.error, stays - scene.unclear) == ("", set()), (n, restored, scene.unclear, scene.history())
        if files:
            self._took_back(points.checkpoint(n).trees, stays)
        scene.check()

    def _took_back(self, trees: Sequence[str], stays: set[str]) -> None:
        """Have the session's places be as in the trees of a checkpoint, but for what stays."""
        then: dict[str, str] = {}
        for name, root, tree in zip(("one", "two"), self._kept.roots, trees, strict=True):
            for path, entry in flat_tree(tree, root.kept.listing).items():
                then[f"{name}/{os.fsdecode(path)}"] = root.kept.read(entry.what).decode()
        written = self.scene.written
        for shared in written.own.keys() - stays:
            written.own[shared] = _places(then[shared], own=True)
        alone = written.alone.keys() | {file for file in then if Path(file).name.startswith(("made-", "old"))}
        for file in alone - stays:
            if file in then:
                written.alone[file] = then[file]
            else:
                written.alone.pop(file, None)


def _ends(event: Event) -> bool:
    return isinstance(event.data, Restored)


@contextlib.asynccontextmanager
async def own_work_scene(seed: int) -> AsyncIterator[OwnWorkScene]:
    """Begin with two folders and a session of which nothing is written yet."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREADLE_HOME", str(Path(folder, "home")))
        top = Path(folder, "work").resolve()
        for path, text in {**Written().files(), "one/.gitignore": "build/\nold.txt\n"}.items():
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_text(text)
        store = open_store()
        try:
            row = SessionRow(
                id=ID, workspace=str(top / "one"), model="a/b", title="t", created_at=1, updated_at=1, events=0
            )
            await store.create(row)
            yield OwnWorkScene(store, top, random.Random(seed))
        finally:
            store.close()
