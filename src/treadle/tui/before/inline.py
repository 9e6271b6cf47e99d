"""A few rows at the bottom of the terminal that take every key until there is a result, before there is a session.

What was typed before they appear is thrown away, as it answers nothing. What is typed after the result goes to what
follows.
"""

import asyncio
import errno
import sys
import termios
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from prompt_toolkit.application import Application, get_app_session
from prompt_toolkit.filters import Condition, Filter, Never
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import HSplit, Layout, Window
from prompt_toolkit.styles import Style

from treadle.door.program import Exit
from treadle.tui.bindings import add_pager_keys, add_question_keys
from treadle.tui.ending import Left, ends_on_signals
from treadle.tui.paint.drawn import Anchored, colour_depth, erase, set_up
from treadle.tui.paint.lines import Line, ansi, fragments, line, line_text, wrap
from treadle.tui.paint.look import Look
from treadle.tui.paint.pager import Pager
from treadle.tui.question.dialog import Key, Press
from treadle.tui.session.lent_terminal import Lent
from treadle.tui.windows import ROWS_IN_SIGHT, text_window

_T = TypeVar("_T")

_MOST_TYPED = 8
"""Keys in one read that a hand may have typed; keys of providers have twenty characters and more."""


class Inline(Generic[_T]):
    """Shows what `draw` gives for columns and rows, with the keys of `add_keys`; `end` ends it with a result."""

    def __init__(
        self,
        look: Look,
        draw: Callable[[int, int], Sequence[Line]],
        add_keys: Callable[["Inline[_T]", KeyBindings, Filter], None],
    ) -> None:
        self._look = look
        self._draw = draw
        self._add_keys = add_keys
        self._rows = text_window(self._shown, focusable=True)
        self._lent = Lent(lambda: self._app, self._returned)
        self._app = self._make_application()

    async def run(self, beside: Awaitable[None] | None = None, *, keep_typed: bool = False) -> _T | Left:
        """Show it until there is a result; `beside` is done meanwhile, and given up then. Its failure is raised."""
        if not keep_typed:
            _forget_typed(self._app)
        task = asyncio.ensure_future(beside) if beside is not None else None
        if task is not None:
            task.add_done_callback(self._failed)
        try:
            with ends_on_signals(lambda code: self.end(Left(code))):
                return await self._app.run_async()
        except EOFError:
            return Left(Exit.HANGUP)
        except OSError as error:
            if error.errno not in (errno.EIO, errno.EPIPE):
                raise
            return Left(Exit.HANGUP)
        finally:
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    def end(self, result: _T | Left) -> None:
        """End `run` with a result."""
        if self._runs():
            self._app.exit(result=result)

    def _failed(self, task: "asyncio.Future[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and self._runs():
            self._app.exit(exception=error)

    def _runs(self) -> bool:
        return self._app.future is not None and not self._app.future.done()

    def refresh(self) -> None:
        """Draw it again."""
        self._app.invalidate()

    @property
    def size(self) -> tuple[int, int]:
        """Columns, and rows that there are for it."""
        size = self._app.output.get_size()
        return size.columns, size.rows - ROWS_IN_SIGHT

    def page(self, lay_out: Callable[[int], Sequence[Line]]) -> None:
        """Show a long text on the alternate screen until it is closed."""
        self._lent.page(Pager(lay_out, self._look.theme.signs))
        self.refresh()

    def _returned(self) -> None:
        self._app.layout.focus(self._rows)
        self.refresh()

    def _shown(self) -> StyleAndTextTuples:
        return fragments(self._draw(*self.size))

    def _make_application(self) -> "Application[_T | Left]":
        rows = HSplit([self._rows, Window()])
        application: Application[_T | Left] = Application(
            layout=Layout(Anchored(lambda: self._lent.pages if self._lent.paging else rows), self._rows),
            key_bindings=self._make_keys(),
            style=Style.from_dict(self._look.theme.for_prompt_toolkit()),
            erase_when_done=True,
            color_depth=colour_depth(self._look.theme),
        )
        self._parser = set_up(application, self._look.theme, self._resized)
        return application

    def _make_keys(self) -> KeyBindings:
        keys = KeyBindings()
        listing = Condition(lambda: not self._lent.paging)
        self._add_keys(self, keys, listing)
        add_pager_keys(keys, ~listing, take=self._lent.turn)
        keys.add("<sigint>")(lambda _: self.end(Left(Exit.INTERRUPTED)))
        keys.add("c-d", filter=listing)(lambda _: self.end(Left(Exit.DONE)))
        keys.add("c-z", filter=listing)(lambda event: event.app.suspend_to_background())
        return keys

    def alone(self) -> bool:
        """Whether the key that is being taken came by itself: what is pasted chooses nothing."""
        return self._parser is None or self._parser.keys <= 1

    def pasted(self) -> bool:
        """Whether the key that is being taken came with more keys than a hand types while a connection lags."""
        return self._parser is not None and self._parser.keys > _MOST_TYPED

    def _resized(self) -> None:
        if self._lent.paging:
            self._lent.clear_page()
        else:
            erase(self._app)
        self._app.invalidate()


def question_keys(take: Callable[[Inline[_T], Press], None]) -> Callable[[Inline[_T], KeyBindings, Filter], None]:
    """Give each key of a question to `take`; Ctrl-C quits."""

    def add_keys(inline: Inline[_T], keys: KeyBindings, listing: Filter) -> None:
        def pressed(key: Key, event: KeyPressEvent) -> None:
            if key is Key.STOP:
                inline.end(Left(Exit.INTERRUPTED))
            else:
                take(inline, Press(key, event.data, alone=inline.alone(), pasted=inline.pasted()))
                inline.refresh()

        add_question_keys(keys, listing, Never(), take=pressed, alone=inline.alone)

    return add_keys


def _forget_typed(application: "Application[_T]") -> None:
    with suppress(termios.error, OSError):
        termios.tcflush(application.input.fileno(), termios.TCIFLUSH)
    clear_typeahead(get_app_session().input)


def leave_line(look: Look, row: Line) -> None:
    """Print a line into the scrollback, wrapped at the width of the terminal."""
    if look.plain:
        from treadle.tui.reader.before import write_lines

        write_lines(line_text(row).strip())
        return
    columns = get_app_session().output.get_size().columns
    with suppress(OSError):
        sys.stdout.write("".join(f"{part}\n" for part in ansi(wrap(row, columns - 1, line("  ")), look.theme)))
        sys.stdout.flush()
