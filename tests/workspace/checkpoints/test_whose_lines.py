"""Whose lines of a file are whose, after any order of changes by the session and others, deletions and ways back."""

import random
from dataclasses import dataclass, field
from hashlib import sha256

import pytest

from treadle.workspace.checkpoints.own_work import OwnWork
from treadle.workspace.checkpoints.planning import ClashError, Interval
from treadle.workspace.checkpoints.trees import TreeEntry, TreeKind

PATH = b"a.txt"
SAMPLE, ALL = 200, 4_000


@dataclass
class OneFile:
    """A folder with one file, or none: its versions, and who wrote each line, which no two lines share."""

    chance: random.Random
    lines: list[str] | None = None
    written: int = 0
    blobs: dict[str, bytes] = field(default_factory=dict)
    versions: list[tuple[list[str] | None, str]] = field(default_factory=list)
    """Those before, each with who changed it."""
    undone: list[tuple[list[tuple[list[str] | None, str]], list[str] | None]] = field(default_factory=list)
    """What was gone back behind, from the version that was gone back to on, and what it led to."""
    own: dict[str, bool] = field(default_factory=dict)
    """Of each text whether the session had a part in it when it first was."""

    def tree(self) -> str:
        if self.lines is None:
            return ""
        data = "".join(self.lines).encode()
        self.blobs[sha256(data).hexdigest()] = data
        return f"{sha256(data).hexdigest()} {len(data)}"

    def listing(self, tree: str) -> dict[bytes, TreeEntry]:
        if not tree:
            return {}
        what, size = tree.split()
        return {PATH: TreeEntry(TreeKind.FILE, 0o644, int(size), what)}

    def change(self, who: str) -> None:
        """Write, take lines out, delete, go back to an earlier version, or bring back what was gone back behind."""
        again = [(way, end) for way, end in self.undone if way[0][0] == self.lines and self.may_bring_back(end, who)]
        kind = self.chance.random()
        if again and kind < 0.4 and (self.lines is not None or not self.versions):
            way, self.lines = self.chance.choice(again)
            self.versions += way
            return
        self.versions.append((self.lines, who))
        if self.lines is not None and kind < 0.5:
            self.lines = None
        elif kind < 0.6:
            self.lines = self.chance.choice(self.versions)[0]
        else:
            self.lines = [*(line for line in self.lines or () if self.chance.random() > 0.15)]
            for _ in range(self.chance.randint(0, 3)):
                self.written += 1
                self.lines.insert(self.chance.randint(0, len(self.lines)), f"{who} {self.written}\n")
        self.own.setdefault("".join(self.lines or ()), any(by == "session" for _, by in self.versions))
        places = [version for version, _ in self.versions]
        if self.lines in places:
            way = self.versions[places.index(self.lines) :]
            self.undone += [(way[:n], way[n][0]) for n in range(1, len(way)) if way[n][0] is not None]
            del self.versions[-len(way) :]

    def may_bring_back(self, end: list[str] | None, who: str) -> bool:
        """Whether it is whose it was: the session that brings back what others alone wrote makes it its own."""
        return who == "others" or self.own.get("".join(end or ()), False)

    def whose(self, who: str) -> list[str]:
        return [line for line in self.lines or () if line.startswith(who)]


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.soak if seed >= SAMPLE else ()) for seed in range(ALL)]
)
def test_lines_of_others_are_never_the_sessions(seed: int) -> None:
    chance = random.Random(seed)
    file = OneFile(chance)
    if chance.random() < 0.5:
        file.lines = [f"before {n}\n" for n in range(chance.randint(1, 6))]
    work = OwnWork(file.listing, file.blobs.__getitem__)
    start = file.tree()
    for _ in range(chance.randint(1, 12)):
        before, by_session = file.tree(), chance.random() < 0.5
        file.change("session" if by_session else "others")
        work.add(Interval(before=before, after=file.tree(), by_session=by_session))
        found = work.change(PATH)
        own = len(file.whose("session"))
        assert (found.added if found else 0) == own, file.lines
        if file.tree() == start:
            assert found is None
        try:
            wanted = work.without(PATH) if found else None
        except ClashError:
            continue
        if wanted is not None:
            left = b"" if wanted.entry is None else wanted.content or file.blobs[wanted.entry.what]
            texts = left.decode().splitlines(keepends=True)
            assert set(file.whose("others")) <= set(texts)
            assert not any(line.startswith("session") for line in texts)


def tree_of(lines: str | None, blobs: dict[str, bytes]) -> str:
    file = OneFile(random.Random(0), None if lines is None else [lines], blobs=blobs)
    return file.tree()


@pytest.mark.parametrize(
    ("began", "left"), [("old\n", "new\n"), (None, "new\n"), ("old\n", None)], ids=["changed", "made", "deleted"]
)
@pytest.mark.parametrize("by_session", [False, True], ids=["a person", "the session"])
def test_what_is_stashed_and_brought_back_is_whose_it_was(
    began: str | None, left: str | None, *, by_session: bool
) -> None:
    blobs: dict[str, bytes] = {}
    one, other = tree_of(began, blobs), tree_of(left, blobs)
    work = OwnWork(OneFile(random.Random(0), blobs=blobs).listing, blobs.__getitem__)
    work.add(Interval(before=one, after=other, by_session=True))
    own = work.change(PATH)
    for _ in range(3):
        assert own is not None
        work.add(Interval(before=other, after=one, by_session=by_session))
        assert work.change(PATH) is None
        work.add(Interval(before=one, after=other, by_session=by_session))
        assert work.change(PATH) == own


def test_what_others_alone_had_made_is_the_sessions_where_the_session_makes_it_again() -> None:
    blobs: dict[str, bytes] = {}
    one, other = tree_of(None, blobs), tree_of("new\n", blobs)
    work = OwnWork(OneFile(random.Random(0), blobs=blobs).listing, blobs.__getitem__)
    work.add(Interval(before=one, after=other, by_session=False))
    work.add(Interval(before=other, after=one, by_session=False))
    assert work.change(PATH) is None
    work.add(Interval(before=one, after=other, by_session=True))
    found = work.change(PATH)
    assert found is not None
    assert found.added == 1


@pytest.mark.parametrize("seed", range(60))
def test_a_version_that_no_checkpoint_covers_is_counted_without_being_read(seed: int) -> None:
    chance = random.Random(seed)
    file = OneFile(chance, lines=["before\n"])
    reason = TreeEntry(TreeKind.NOT_COVERED, what="over 50 MB")
    trees: dict[str, dict[bytes, TreeEntry]] = {}

    def tree() -> str:
        name = f"t{len(trees)}"
        trees[name] = {PATH: reason} if chance.random() < 0.4 else file.listing(file.tree())
        return name

    work = OwnWork(trees.__getitem__, file.blobs.__getitem__)
    before = tree()
    for _ in range(6):
        by_session = chance.random() < 0.5
        file.change("session" if by_session else "others")
        after = tree()
        work.add(Interval(before=before, after=after, by_session=by_session))
        before = after
        found = work.change(PATH)
        assert found is None or found.after is None or found.after.kind is TreeKind.FILE
