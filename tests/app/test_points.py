"""Undo in random sessions: it takes back the last turn whose work is there, whatever was undone and restored before."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec.structs import replace

from treadle.app.checkpoints.points import Points
from treadle.app.reports.step_list import past_steps
from treadle.protocol.checkpoints import CheckpointTaken, Moment, Restore, Restored
from treadle.protocol.codec import encode
from treadle.protocol.errors import SessionError
from treadle.protocol.events import SCHEMA_VERSION, ContextReady, EventData, Prompt
from treadle.protocol.messages import Text
from treadle.protocol.notifications import TurnOutcome, TurnStop
from treadle.protocol.sealed import PromptsDelivered, TurnSettled
from treadle.protocol.tools import FileChange
from treadle.store.appending import tag_of
from treadle.store.sqlite import SessionRow, Store

Files = tuple[frozenset[int], int]
"""The turns whose work is in the files, and how often the user edited them."""


class Session:
    """A session as its log tells it. Each turn has files of its own, and so has the user."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.events: list[EventData] = []
        self.found: dict[int, Files] = {}
        self.kept: dict[int, Files] = {}
        self.left: dict[int, Files] = {}
        self.files: Files = (frozenset(), 0)
        self.last = ""
        self._turn = self._step = 0

    def points(self) -> Points:
        return Points(self.store(), "s")

    def store(self) -> Store:
        rows = [
            (seq, 0, encode(data), SCHEMA_VERSION, tag_of(type(data))) for seq, data in enumerate(self.events, start=1)
        ]
        fake = SimpleNamespace(
            left_behind=lambda _: (), of_types=lambda _, tags: [row[:-1] for row in rows if row[-1] in tags]
        )
        return cast("Store", fake)

    def _begin(self) -> None:
        """Begin a turn; hooks may change some files before."""
        self._turn += 1
        turn = self._turn
        found = self.files
        if self.chance.randrange(4) == 0:
            self._take(Moment.BEFORE, ahead=1)
            self.files = self.files[0] | {turn}, self.files[1]
            self._take(Moment.AFTER, (FileChange(path=f"/{turn}", before="", after="a"),), ahead=1)
        self.events += [
            Prompt(id=f"p{turn}", content=(Text(text="go"),)),
            PromptsDelivered(turn=turn, prompt_ids=(f"p{turn}",)),
        ]
        self.found[turn] = found

    def turn(self) -> None:
        """Work for some steps, each of which may change files, and may take an earlier change of the turn back."""
        self._begin()
        turn = self._turn
        for _ in range(self.chance.randrange(3)):
            self._step += 1
            self.events.append(ContextReady(step=self._step))
            self._take(Moment.BEFORE)
            there, edits = self.files
            self.files = self.chance.choice((there, there ^ {turn})), edits
            changed = (FileChange(path=f"/{turn}", before="", after="a" if turn in self.files[0] else ""),)
            self._take(Moment.AFTER, changed if self.files[0] != there else ())
            self.left[self._step] = self.files
        self._settle(TurnStop.END_TURN)

    def stopped_turn(self) -> None:
        """Be stopped in a command: the turn settles before the files are kept that it changed."""
        self._begin()
        turn = self._turn
        self._step += 1
        self.events.append(ContextReady(step=self._step))
        self._take(Moment.BEFORE)
        self._settle(TurnStop.CANCELLED)
        changed = self.chance.random() < 0.8
        if changed:
            self.files = self.files[0] | {turn}, self.files[1]
        own = (FileChange(path=f"/{turn}", before="", after="a"),) if changed else ()
        nothing = tuple(FileChange(path=one.path, before="", after="") for one in own)
        self._take(Moment.AFTER, nothing, own)
        self.left[self._step] = self.files

    def _settle(self, stop: TurnStop) -> None:
        self.events.append(TurnSettled(turn=self._turn, outcome=TurnOutcome(stop=stop), state={}))

    def edit(self) -> None:
        self.files = self.files[0], self.files[1] + 1

    def restore(self, n: int, *, files: bool = True, error: str = "") -> None:
        """Bring files back, which leaves what the user did."""
        self.events.append(Restore(checkpoint=n, files=files, conversation=not files))
        if files:
            self._take(Moment.RESTORING)
            if not error:
                self.files = self.kept[n][0], self.files[1]
            self._take(Moment.RESTORED)
        self.events.append(Restored(checkpoint=n, error=error))

    def _take(
        self,
        moment: Moment,
        changed: Sequence[FileChange] = (),
        own: Sequence[FileChange] | None = None,
        *,
        ahead: int = 0,
    ) -> None:
        tree = f"{sorted(self.files[0])} {self.files[1]}"
        if tree != self.last or moment in (Moment.AFTER, Moment.RESTORED):
            n = len(self.kept) + 1
            self.kept[n], self.last = self.files, tree
            step = self._step + ahead
            taken = CheckpointTaken(n=n, step=step, moment=moment, trees=(tree,), turn=tuple(changed))
            self.events.append(taken if own is None else replace(taken, own=tuple(own)))


def _undone(session: Session) -> Iterator[tuple[int, frozenset[int]]]:
    """Undo until there is nothing to undo; gives the turn that should be undone, and those whose work is there then."""
    while session.files[0]:
        turn = max(session.files[0])
        session.restore(session.points().undo())
        yield turn, session.files[0]


def _work(session: Session) -> None:
    """Do twelve things by chance; what is undone is as it was before its turn."""
    for _ in range(12):
        match session.chance.choice(
            ("turn", "turn", "turn", "stop", "edit", "undo", "undo", "restore", "talk", "failed")
        ):
            case "turn":
                session.turn()
            case "stop":
                session.stopped_turn()
            case "edit":
                session.edit()
            case "undo" if n := session.points().undo():
                turn = max(session.files[0])
                session.restore(n)
                assert session.files[0] == session.found[turn][0]
            case "restore" | "talk" | "failed" as how if session.kept:
                n = session.chance.choice(list(session.kept))
                session.restore(n, files=how != "talk", error="" if how != "failed" else "The disk is full.")
            case _:
                pass


@pytest.mark.parametrize("seed", range(200))
def test_undo_takes_back_the_last_turn_that_is_there_until_none_is(seed: int) -> None:
    session = Session(seed)
    _work(session)
    for turn, left in _undone(session):
        assert left == session.found[turn][0]
        assert turn not in left
    assert session.points().undo() == 0


@pytest.mark.parametrize("seed", range(100))
def test_a_step_leads_back_to_what_it_left_whatever_was_restored_since(seed: int) -> None:
    session = Session(seed)
    _work(session)
    row = SessionRow(id="s", workspace="/", model="a/b", title="t", created_at=1, updated_at=1, events=0)
    steps = {one.number: one for one in past_steps(session.store(), row) if one.number}
    found = {number: session.kept[one.checkpoint] for number, one in steps.items()}
    assert found == session.left
    points = session.points()
    assert all(points.conversation_at(one.checkpoint) >= one.seq for one in steps.values())


@pytest.mark.parametrize(
    ("enabled", "changed", "why"),
    [
        (True, False, ""),
        (True, True, "No checkpoint was taken of what it changed: they were off, or its folder cannot have any."),
        (False, False, "Checkpoints are off: checkpoints.enabled is false in your settings."),
        (False, True, "Checkpoints are off: checkpoints.enabled is false in your settings."),
    ],
)
def test_what_no_checkpoint_has_is_not_said_to_be_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, enabled: bool, changed: bool, why: str
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text(f"[checkpoints]\nenabled = {str(enabled).lower()}\n")
    session = Session(0)
    changes = (FileChange(path="/a", before="", after="a"),) if changed else ()
    outcome = TurnOutcome(stop=TurnStop.END_TURN, changes=changes)
    session.events = [
        Prompt(id="p1", content=(Text(text="go"),)),
        PromptsDelivered(turn=1, prompt_ids=("p1",)),
        TurnSettled(turn=1, outcome=outcome, state={}),
    ]
    assert session.points().unkept() == why
    with pytest.raises(SessionError) as caught:
        session.points().last()
    assert caught.value.why == (why or "Nothing in it has changed files yet.")
    with pytest.raises(SessionError) as caught:
        session.points().undo_of(1)
    assert caught.value.why == (why or "It changed no files.")


def test_a_checkpoint_of_what_was_changed_is_enough_though_none_is_taken_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text("[checkpoints]\nenabled = false\n")
    session = Session(1)
    while not session.files[0]:
        session.turn()
    assert (session.points().unkept(), session.points().undo() > 0) == ("", True)
