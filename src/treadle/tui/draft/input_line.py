"""What is written, pasted and attached: text, images, and commands of the person's own."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from treadle.door.message_parts import attach, dragged_images, image_block
from treadle.door.open_session import SessionAccess
from treadle.present.escape import printable
from treadle.present.items import NoteItem
from treadle.protocol.errors import ConfigError
from treadle.tui.draft.clipboard import clipboard_image
from treadle.tui.draft.draft_line import VIM_NORMAL
from treadle.tui.draft.draft_pieces import SHELL, Piece
from treadle.tui.intents import Wish
from treadle.tui.screen import Screen
from treadle.tui.session.own_commands import OwnCommands

_T = TypeVar("_T")


class InputLine:
    """Does what the keys of the draft ask for; what cannot be attached is said, and stays as it was pasted."""

    def __init__(
        self,
        live: SessionAccess,
        *,
        screen: Screen,
        own: OwnCommands,
        show: Callable[..., None],
        failed: Callable[[ConfigError], None],
    ) -> None:
        self._live = live
        self._screen = screen
        self._draft = screen.draft
        self._own = own
        self._show = show
        self._failed = failed
        self._count = 0

    def can(self, wish: Wish) -> bool:
        """Whether a key means this now."""
        match wish:
            case Wish.SHELL:
                return not self._screen.text
            case Wish.OPEN_PIECE:
                return self._draft.opens
            case Wish.ESCAPE:
                return not self._draft.vim_goes_back
            case Wish.CLIPBOARD:
                return self._draft.vim_mode != VIM_NORMAL
            case _:
                return True

    def do(self, wish: Wish) -> None:
        """Do what a key of the draft asks for."""
        match wish:
            case Wish.SHELL:
                self._draft.add("!")
            case Wish.OPEN_PIECE:
                self._draft.open()
            case Wish.CLIPBOARD:
                self._screen.later(self._read_clipboard())
            case _:
                self._edit()

    def _edit(self) -> None:
        """Let the person change the draft, with all that its pieces hold, in their editor."""
        draft, pieces = self._screen.text, self._draft.pieces

        def done(edited: str) -> None:
            self._screen.put(pieces.refold(draft, edited))

        self._screen.edit(pieces.text(draft), ".md", done=done, failed=self._failed)

    def runs(self, draft: str) -> bool:
        """Run a draft if it is a command of the person's own; gives whether it is."""
        if draft.startswith(SHELL):
            self._own.start(self._draft.pieces.text(draft.removeprefix(SHELL)))
        return draft.startswith(SHELL)

    def stops(self, *, back: bool) -> bool:
        """Go back from a command that is being written, with `back`, or stop one; gives whether there was one."""
        if back and self._draft.shell:
            self._draft.end_shell()
            return True
        return self._own.stop()

    def pasted(self, text: str) -> None:
        """Put in what was pasted; paths of images become images, but not in a command."""
        images = () if self._draft.shell else dragged_images(text, self._live.workspace)
        if images:
            self._screen.later(self._add_images(text, images))
        else:
            self._draft.add(self._draft.pieces.fold(text))

    async def _add_images(self, text: str, files: Sequence[Path]) -> None:
        """Put images in; scaling one takes its time, so it is done beside the screen."""
        pieces = self._draft.pieces
        try:
            blocks = await self._scaled(lambda say: [attach([file], say)[0] for file in files])
        except ConfigError as error:
            self._failed(error)
            self._draft.add(pieces.fold(text))
        else:
            self._add(
                Piece(label=f"[image {printable(file.name)}]", text=str(file), block=block)
                for file, block in zip(files, blocks, strict=True)
            )
        self._screen.refresh_now()

    async def _read_clipboard(self) -> None:
        try:
            raw = await clipboard_image()
            block = await self._scaled(lambda say: image_block(raw, "The clipboard's image", say))
        except ConfigError as error:
            self._failed(error)
            return
        self._count += 1
        label = f"[clipboard image {self._count}]"
        self._add([Piece(label=label, text=label, block=block)])
        self._screen.refresh_now()

    async def _scaled(self, work: Callable[[Callable[[str], None]], _T]) -> _T:
        """Read images in a thread, and show then what was done to them. Raises `ConfigError`."""
        said: list[str] = []
        found = await asyncio.to_thread(work, said.append)
        for notice in said:
            self._show(NoteItem(notice))
        return found

    def _add(self, images: Iterable[Piece]) -> None:
        self._draft.add(" ".join(map(self._draft.pieces.add, images)))
        self._say_if_unseen()

    def _say_if_unseen(self) -> None:
        if not self._live.sees_images:
            model = self._live.status.model
            self._show(NoteItem(f"{model} cannot see images. /model changes the model.", warns=True))
