"""What a session changed is one figure: each screen shows the same lines and files, those that differ on the disk."""

import asyncio
import json
import random
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.web.in_process import Here, Visit, idle, page_here, until
from treadle.protocol.notifications import TurnStop
from treadle.providers.scripted.player import Performance, perform
from treadle.providers.scripted.script import MakeCall, Pace, SayText, Turn
from treadle.providers.scripted.seen_requests import SeenRequest
from treadle.web.page_session import PageSession

NAMES = ("a.txt", "b.py", "sub/c.txt", "d.md")
OTHERS = ("theirs.txt", "sub/their own.txt")
STEPS, LOOKS = 12, 40
LOOKED_AGAIN = 2.5
"""Seconds in which an open session has looked at its files once."""
_FIGURES = r'<span class="added">\+(\d+)</span><span class="removed">−(\d+)</span>'


@dataclass
class CallsAsked:
    """A model that makes the call of the last message, once, and then says that it has."""

    model: str = "scripted"
    made: set[int] = field(default_factory=set)

    def play(self, seen: SeenRequest) -> Performance:
        wanted = json.loads(re.findall(r'\{"number": .*\}', seen.conversation)[-1])
        if wanted["number"] in self.made:
            return perform(Turn(items=(SayText(text="That is done."),)), seen, Pace())
        self.made.add(wanted["number"])
        call = MakeCall(name=wanted["name"], arguments=wanted["arguments"])
        return perform(Turn(items=(call,)), seen, Pace())


@dataclass
class Work:
    """A session that changes files in its ways, while others change theirs; `start` is a copy of the folder before."""

    here: Here
    visit: Visit
    start: Path
    chance: random.Random
    page: PageSession
    done: list[str] = field(default_factory=list)

    async def say(self, name: str, **arguments: str) -> None:
        """Let the model make a call."""
        await self.ask(json.dumps({"number": len(self.done), "name": name, "arguments": arguments}))

    async def ask(self, text: str) -> None:
        """Say something to the session, which another process may have to open again, and wait for its end."""
        session = self.page.session.id
        await self.visit.done(f"/s/{session}/say", text=text, id=f"m{len(self.done)}")
        self.page = self.here.book.opened[session]
        if text.startswith("{"):
            await until(self.page, lambda: json.dumps(text)[1:-1] in self.said() and self.is_over())

    def said(self) -> str:
        """All that the model was sent in its last request."""
        return json.dumps(self.here.server.requests[-1].body, ensure_ascii=False)

    def is_over(self) -> bool:
        return not self.page.session.status.turn_active and self.page.content.view.stop == TurnStop.END_TURN

    def lines(self) -> str:
        return "".join(f"{self.chance.choice('abcdef')} {number}\n" for number in range(self.chance.randrange(1, 9)))

    def difference(self) -> dict[str, tuple[int, int]]:
        """The files that differ from those before, but for what others wrote: lines that came and went."""
        command = (
            "git",
            "diff",
            "--no-index",
            "--no-renames",
            "--numstat",
            "-z",
            str(self.start),
            str(self.here.folder),
        )
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        found: dict[str, tuple[int, int]] = {}
        for added, removed, one, other in re.findall(r"(\d+)\t(\d+)\t\0([^\0]*)\0([^\0]*)\0", told):
            place = (
                other.removeprefix(f"{self.here.folder}/")
                if other != "/dev/null"
                else one.removeprefix(f"{self.start}/")
            )
            if place not in OTHERS and not place.startswith(".git/"):
                found[place] = (int(added), int(removed))
        return found


async def write(work: Work) -> None:
    await work.say("write_to_file", path=work.chance.choice(NAMES), content=work.lines())


async def append(work: Work) -> None:
    await work.say("execute_command", command=f"printf 'more {len(work.done)}\\n' >> {work.chance.choice(NAMES)}")


async def remove(work: Work) -> None:
    await work.say("execute_command", command=f"rm -f {work.chance.choice(NAMES)}")


async def move(work: Work) -> None:
    one, other = work.chance.sample(NAMES, 2)
    await work.say("execute_command", command=f"test -e {one} && mv {one} {other}; true")


async def others(work: Work) -> None:
    """Somebody else writes a file that is not the session's."""
    place = work.here.folder / work.chance.choice(OTHERS)
    place.parent.mkdir(exist_ok=True)
    with place.open("a") as file:
        file.write(work.lines())


async def revert(work: Work) -> None:
    """Somebody else takes a file back to what it was before, as `git checkout` does."""
    name = work.chance.choice(NAMES)
    (work.here.folder / name).unlink(missing_ok=True)
    if (work.start / name).exists():
        (work.here.folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(work.start / name, work.here.folder / name)


async def bring_back(work: Work) -> None:
    """Somebody puts all files of the session away and takes them back, as `git stash` and `git stash pop` do."""
    folder = work.here.folder
    kept = {name: (folder / name).read_bytes() for name in NAMES if (folder / name).exists()}
    for name in NAMES:
        (folder / name).unlink(missing_ok=True)
        if (work.start / name).exists():
            shutil.copy(work.start / name, folder / name)
    await shown(work)
    await asyncio.sleep(work.chance.choice((0, LOOKED_AGAIN)))
    for name in NAMES:
        (folder / name).unlink(missing_ok=True)
        if name in kept:
            (folder / name).write_bytes(kept[name])


async def undo(work: Work) -> None:
    await work.ask("/undo")


async def close(work: Work) -> None:
    """The session is closed; the next message opens it again."""
    if work.page.session.id in work.here.book.opened:
        await work.visit.done(f"/s/{work.page.session.id}/close")


WAYS: Mapping[str, Callable[[Work], Awaitable[None]]] = MappingProxyType(
    {one.__name__: one for one in (write, append, remove, move, others, revert, bring_back, undo, close)}
)


async def shown(work: Work) -> dict[str, object]:
    """What each screen says: lines that came and went, and how many files."""
    session = work.page.session.id
    live = await work.visit.get(f"/s/{session}")
    review = await work.visit.get(f"/s/{session}/review")
    panel = await work.visit.get(f"/s/{session}/review/panel?path=")

    def figures(html: str, before: str) -> tuple[int, int]:
        found = re.search(f"{before}.*?{_FIGURES}", html, re.DOTALL)
        return (0, 0) if found is None else (int(found[1]), int(found[2]))

    def count(html: str) -> int:
        found = re.search(r"<(?:b|strong)>(\d+) files?</", html)
        return 0 if found is None else int(found[1])

    tree = review.partition('<nav class="tree"')[2].partition("</nav>")[0]
    tree = tree.partition("<ul>")[2].partition("</ul>")[0]
    listed = re.findall(r'class="added">\+(\d+)</span><span class="removed">−(\d+)<', tree)
    row = re.search(f'id="r-{session}".*?</a>', live, re.DOTALL)
    assert row is not None
    return {
        "row": figures(row[0], ""),
        "panel's tab": figures(live, 'id="changes"'),
        "review": figures(review, 'class="sum"'),
        "panel": figures(panel, 'class="psum"'),
        "list of the review": (sum(int(one) for one, _ in listed), sum(int(other) for _, other in listed)),
        "files of the review": count(review),
        "files of the panel": count(panel),
        "files in the bar": int((re.search(r'data-count="changes">(\d+)<', review) or ["", "0"])[1]),
    }


@pytest.mark.parametrize(
    "seed", [pytest.param(number, marks=pytest.mark.soak if number > 2 else ()) for number in range(1, 41)]
)
async def test_each_screen_says_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    folder = tmp_path / "ws"
    (folder / "sub").mkdir(parents=True)
    for name in NAMES[:3]:
        (folder / name).write_text("".join(f"{name} {number}\n" for number in range(6)))
    (folder / "theirs.txt").write_text("theirs\n")
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@localhost")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "First")):
        subprocess.run([*git, *words], cwd=folder, check=True)
    shutil.copytree(folder, start := tmp_path / "start", ignore=shutil.ignore_patterns(".git"))
    async with page_here(tmp_path, monkeypatch, CallsAsked(), mode="full") as here:
        visit = here.visit()
        first = json.dumps({"number": 0, "name": "list_files", "arguments": {"path": "."}})
        page = await here.start(visit, first)
        await idle(page)
        work = Work(here, visit, start, random.Random(seed), page, ["list"])
        for _ in range(STEPS):
            way = work.chance.choice([*WAYS])
            work.done.append(way)
            await WAYS[way](work)
            wanted = work.difference()
            lines = sum(one for one, _ in wanted.values()), sum(other for _, other in wanted.values())
            same = {
                "row": lines,
                "panel's tab": lines,
                "review": lines,
                "panel": lines,
                "list of the review": lines,
                "files of the review": len(wanted),
                "files of the panel": len(wanted),
                "files in the bar": len(wanted),
            }
            found = await shown(work)
            for _ in range(LOOKS if way in ("revert", "bring_back") else 0):  # an open session looks every two seconds
                if found != same:
                    await asyncio.sleep(0.5)
                    found = await shown(work)
            assert found == same, (seed, work.done, wanted)
