"""Random sequences of what a person does with changes in real VS Code: no edit is lost, made twice or left waiting."""

import asyncio
import json
import os
import random
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from tests.editors.scripted_tasks import EditsAsked
from tests.editors.vscode_driving import LONG, MILLISECONDS, Studio, open_chat, studio
from tests.needed import needs

pytestmark = [needs("code-server", "browser"), pytest.mark.soak, pytest.mark.timeout(3600)]

LINES = 30
STEPS = 5
FIRST, COUNT = int(os.environ.get("TREADLE_FIRST_SEED", "1")), int(os.environ.get("TREADLE_SEQUENCES", "4"))
TOGETHER = 5
"""Sequences in one window."""

_PROPOSED = "proposed by Treadle"
_DIRTY = ".tab.dirty[data-resource-name='a.txt']"


@dataclass
class Sequence:
    """One sequence; `wanted` is what the file has to be after the answers so far."""

    seen: Studio
    seed: int
    number: int
    chance: random.Random = field(init=False)
    wanted: str = "".join(f"line {number}\n" for number in range(1, LINES + 1))
    acts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    @property
    def file(self) -> Path:
        return self.seen.folder / "a.txt"

    async def run(self) -> None:
        """Do all of it in a session of its own, with no editor that has the file of before."""
        await self.seen.command("View: Close All Editors")
        await expect(self.seen.page.locator(".tab")).to_have_count(0, timeout=MILLISECONDS)
        self.file.write_text(self.wanted)
        await self.seen.command("Treadle: New Session")
        await self.seen.chat.locator("#log .user").first.wait_for(state="detached")
        for _ in range(STEPS):
            self.acts.append(self.chance.choice([*_ACTS]))
            await self.step(self.acts[-1])

    async def step(self, act: str) -> None:
        """Have the model change two lines, and do one act about it."""
        self.number += 1
        at = self.chance.randrange(LINES - 12) + 1
        if act in ("typed", "outside") or self.chance.random() < 0.4:
            await self.seen.open("a.txt")
        if act == "outside":
            self.wanted += f"outside {self.number}\n"
            self.file.write_text(self.wanted)
        lines = self.wanted.splitlines()
        edits = [(lines[line], f"{lines[line]} ({self.number})") for line in (at, at + 10)]
        if act == "typed":
            await self.type("Control+Home", f"typed {self.number}\n")
        await self.seen.say(json.dumps({"number": self.number, "edits": edits}), enter=False)
        asked = await self.asked()
        self.wanted = await _ACTS[act](self, asked, edits)
        await self.settle()

    async def asked(self) -> Locator:
        """Wait for the question about the edit, and its diff; a question about the folder is answered."""
        question = self.seen.chat.locator(".question", has_text="Apply this edit")
        trust = self.seen.chat.locator(".question").get_by_role("button", name="Yes, for this session only")
        try:
            async with asyncio.timeout(LONG):
                while not await question.count():
                    if await trust.count():
                        await trust.first.click()
                    await asyncio.sleep(0.1)
        except TimeoutError:
            chat = self.seen.chat
            unsent, said = await chat.locator("#text").input_value(), await chat.locator("main").inner_text()
            raise AssertionError(f"seed {self.seed}: {self.acts}\nnot sent: {unsent}\n{said}") from None
        await self.tab(_PROPOSED).first.wait_for()
        await expect(question.locator("input[type=checkbox]")).to_have_count(2, timeout=MILLISECONDS)
        return question

    async def answer(self, button: str) -> None:
        """Answer, and wait until the turn is over."""
        await self.seen.answer("Apply this edit", button)
        await self.seen.idle()

    def tab(self, name: str) -> Locator:
        return self.seen.page.locator(".tab", has_text=name)

    async def type(self, where: str, text: str) -> None:
        """Type in the file, which is in the editor that is shown, and do not save."""
        await self.seen.page.locator(
            ".editor-instance:not(:has(.monaco-diff-editor)) .view-lines:visible"
        ).first.click()
        await self.keys(where)
        await self.seen.page.keyboard.type(text)
        await self.seen.page.locator(_DIRTY).first.wait_for()

    async def by_hand(self, text: str) -> None:
        """Type at the end of the proposed text in the diff editor."""
        await self.seen.page.locator(".editor.modified .view-lines:visible").first.click()
        await self.keys("Control+End")
        await self.seen.page.keyboard.type(text)
        await self.seen.chat.locator(".question", has_text="You edited this change.").wait_for()

    async def keys(self, *names: str) -> None:
        for name in names:
            await self.seen.page.keyboard.press(name)

    async def settle(self) -> None:
        """Nothing waits, no diff editor stays, and the disk has what was wanted, once the person has saved."""
        about = f"seed {self.seed}: {self.acts}"
        chat, page = self.seen.chat, self.seen.page
        await expect(chat.locator(".question"), about).to_have_count(0, timeout=MILLISECONDS)
        await expect(self.tab(_PROPOSED), about).to_have_count(0, timeout=MILLISECONDS)
        await expect(page.locator(".statusbar-item", has_text="Treadle asks"), about).to_have_count(0)
        if await page.locator(_DIRTY).count():
            await self.seen.open("a.txt")
            await self.keys("Control+S")
            await expect(page.locator(_DIRTY), about).to_have_count(0, timeout=MILLISECONDS)
        await self.is_on_disk(lambda text: text == self.wanted)
        if self.chance.random() < 0.3:
            await self.seen.command("View: Close All Editors")
            await expect(page.locator(".tab"), about).to_have_count(0, timeout=MILLISECONDS)

    async def is_on_disk(self, is_so: Callable[[str], bool]) -> str:
        """Wait until the file is so; gives its text."""
        try:
            async with asyncio.timeout(LONG):
                while not is_so(text := self.file.read_text()):
                    await asyncio.sleep(0.1)
                return text
        except TimeoutError:
            said = await self.seen.chat.locator("#log").inner_text()
            raise AssertionError(
                f"seed {self.seed}: {self.acts}\nwanted:\n{self.wanted}\nfound:\n{self.file.read_text()}\n{said}"
            ) from None


Edits = list[tuple[str, str]]


def changed(text: str, edits: Edits) -> str:
    """Make the edits in a text."""
    for old, new in edits:
        text = text.replace(f"{old}\n", f"{new}\n")
    return text


async def approve(run: Sequence, _: Locator, edits: Edits) -> str:
    await run.answer("Yes")
    return changed(run.wanted, edits)


async def outside(run: Sequence, question: Locator, edits: Edits) -> str:
    """Another program had changed the file just before, which the editor may not have read again yet: both stay."""
    return await approve(run, question, edits)


async def deny(run: Sequence, _: Locator, __: Edits) -> str:
    await run.answer("No")
    return run.wanted


async def comment(run: Sequence, question: Locator, _: Edits) -> str:
    await question.locator("input[type=text]").fill("Not so.")
    await run.answer("No")
    return run.wanted


async def part(run: Sequence, question: Locator, edits: Edits) -> str:
    """The first of two changes is left out."""
    await question.locator("input[type=checkbox]").first.click()
    await run.answer("Yes, with your change")
    return changed(run.wanted, edits[1:])


async def none(run: Sequence, question: Locator, _: Edits) -> str:
    """Both are left out, and yes is said to that."""
    for number in (0, 1):
        await question.locator("input[type=checkbox]").nth(number).click()
        await expect(question.locator("input[type=checkbox]").nth(number)).not_to_be_checked(timeout=MILLISECONDS)
    await run.answer("Yes, with your change")
    return run.wanted


async def by_hand(run: Sequence, _: Locator, edits: Edits) -> str:
    await run.by_hand(f"by hand {run.number}\n")
    await run.answer("Yes, with your change")
    return f"{changed(run.wanted, edits)}by hand {run.number}\n"


async def saved_by_hand(run: Sequence, _: Locator, edits: Edits) -> str:
    """The proposed text is edited and saved in the diff editor, which is closed before the answer."""
    await run.by_hand(f"saved {run.number}\n")
    await run.keys("Control+S")
    await expect(run.seen.page.locator(".tab.dirty", has_text=_PROPOSED)).to_have_count(0, timeout=MILLISECONDS)
    await run.seen.command("View: Close Editor")
    await run.tab(_PROPOSED).first.wait_for(state="detached")
    await run.answer("Yes, with your change")
    return f"{changed(run.wanted, edits)}saved {run.number}\n"


async def thrown_away(run: Sequence, _: Locator, edits: Edits) -> str:
    """The proposed text is edited, and the diff editor closed without saving: it is as it was proposed again."""
    await run.by_hand(f"thrown away {run.number}\n")
    await run.seen.command("View: Close Editor")
    await run.seen.page.locator(".monaco-dialog-box").get_by_role("button", name="Don't Save").click()
    await run.tab(_PROPOSED).first.wait_for(state="detached")
    await run.answer("Yes")
    return changed(run.wanted, edits)


async def typed(run: Sequence, _: Locator, edits: Edits) -> str:
    """The person had typed before, and did not save: both stay."""
    await run.answer("Yes")
    return f"typed {run.number}\n{changed(run.wanted, edits)}"


async def beside(run: Sequence, _: Locator, edits: Edits) -> str:
    """The person types after the question was put: it stays, and the edit is made beside it, or refused whole."""
    return await _beside(run, edits, save=False)


async def saved_beside(run: Sequence, _: Locator, edits: Edits) -> str:
    """The person types after the question was put, and saves."""
    return await _beside(run, edits, save=True)


async def _beside(run: Sequence, edits: Edits, *, save: bool) -> str:
    await run.seen.open("a.txt")
    await run.type("Control+End", f"beside {run.number}\n")
    if save:
        await run.keys("Control+S")
        await expect(run.seen.page.locator(_DIRTY)).to_have_count(0, timeout=MILLISECONDS)
    await run.answer("Yes")
    stays = f"{run.wanted}beside {run.number}\n"
    if await run.seen.page.locator(_DIRTY).count():
        await run.keys("Control+S")
    return await run.is_on_disk(lambda text: text in (stays, changed(stays, edits)))


async def undo(run: Sequence, _: Locator, __: Edits) -> str:
    """The edit is approved, and undone by Treadle: one Enter sends a command that is typed whole, suggested or not."""
    await run.answer("Yes")
    await run.seen.say("/undo")
    return run.wanted


async def undo_in_editor(run: Sequence, _: Locator, edits: Edits) -> str:
    """The edit is approved and undone by the editor, and saved."""
    await run.seen.open("a.txt")
    await run.answer("Yes")
    await run.is_on_disk(lambda text: text == changed(run.wanted, edits))
    await run.seen.page.locator(".editor-instance:not(:has(.monaco-diff-editor)) .view-lines:visible").first.click()
    await run.keys("Control+Z")
    await run.seen.page.locator(_DIRTY).first.wait_for()  # else the next step may write the file while it is saved
    await run.keys("Control+S")
    await expect(run.seen.page.locator(_DIRTY)).to_have_count(0, timeout=MILLISECONDS)
    return run.wanted


async def switch(run: Sequence, _: Locator, edits: Edits) -> str:
    """Another session is begun and left, while the first one asks."""
    picker = run.seen.chat.locator("#sessions")
    shown = await picker.input_value()
    await run.seen.command("Treadle: New Session")
    await run.seen.chat.locator("#log .user").first.wait_for(state="detached")
    assert await run.seen.chat.locator(".question").count() == 0
    await picker.select_option(value=shown)
    await run.answer("Yes")
    return changed(run.wanted, edits)


async def cancel(run: Sequence, _: Locator, __: Edits) -> str:
    await run.seen.chat.click("#stop")
    await run.seen.idle()
    return run.wanted


async def kill(run: Sequence, _: Locator, __: Edits) -> str:
    """The agent is killed while it asks, and started again."""
    os.kill(run.seen.agents()[0], signal.SIGKILL)
    await _started_again(run)
    return run.wanted


async def kill_after_yes(run: Sequence, _: Locator, edits: Edits) -> str:
    """The agent is killed at the moment of the yes: the edit was made once, or it was not made."""
    await run.seen.answer("Apply this edit", "Yes")
    os.kill(run.seen.agents()[0], signal.SIGKILL)
    await _started_again(run)
    return await run.is_on_disk(lambda text: text in (run.wanted, changed(run.wanted, edits)))


async def _started_again(run: Sequence) -> None:
    await run.seen.chat.get_by_role("button", name="Start it again").last.click(timeout=MILLISECONDS)
    await run.seen.chat.locator("#log .problem").first.wait_for(state="detached")
    await run.seen.chat.locator("#log .user", has_text=f'"number": {run.number},').wait_for()
    await run.seen.idle()


async def reopened(run: Sequence, _: Locator, edits: Edits) -> str:
    """The diff editor is opened again after the answer: nobody asks about it, so it is closed again."""
    await run.answer("Yes")
    await run.tab(_PROPOSED).first.wait_for(state="detached")
    await run.seen.command("View: Reopen Closed Editor")
    return changed(run.wanted, edits)


async def reload_by_hand(run: Sequence, question: Locator, edits: Edits) -> str:
    """As `reload`, after the proposed text was edited."""
    await run.by_hand(f"not asked about {run.number}\n")
    return await reload(run, question, edits)


async def reload(run: Sequence, _: Locator, __: Edits) -> str:
    """The window is loaded again while it is asked; the edit is not made, and a new session goes on."""
    await run.seen.command("Developer: Reload Window")
    await run.seen.page.locator(".monaco-workbench").first.wait_for(state="detached")
    await run.seen.page.wait_for_selector(".monaco-workbench")
    run.seen.chat = await open_chat(run.seen.page)
    return run.wanted


_ACTS: dict[str, Callable[[Sequence, Locator, Edits], Awaitable[str]]] = {
    act.__name__: act
    for act in (
        *(
            approve,
            outside,
            deny,
            comment,
            part,
            none,
            by_hand,
            saved_by_hand,
            thrown_away,
            typed,
            beside,
            saved_beside,
        ),
        *(undo, undo_in_editor, switch, cancel, kill, kill_after_yes, reopened, reload, reload_by_hand),
    )
}


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, TOGETHER))
async def test_no_edit_is_lost_or_made_twice_whatever_is_done(tmp_path: Path, first: int) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").touch()
    async with studio(tmp_path, EditsAsked()) as seen:
        number = 0
        for seed in range(first, min(first + TOGETHER, FIRST + COUNT)):
            run = Sequence(seen, seed, number)
            await run.run()
            number = run.number
            print(json.dumps({"seed": seed, "acts": run.acts}), flush=True)
