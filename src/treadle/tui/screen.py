"""The terminal: windows, keys and printing. It knows nothing of sessions; what the user does comes out as intents."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import has_focus
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.layout import HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth

from treadle.door.settings import Colours, Editing
from treadle.protocol.errors import ConfigError
from treadle.tui.bindings import add_draft_keys, add_own_keys, add_pager_keys, add_question_keys, add_search_keys
from treadle.tui.draft.draft_line import DraftLine, DrawnPieces
from treadle.tui.intents import Entered, Face, Focus, Intent, Pasted, Pressed, Wish
from treadle.tui.lists.filter_list_keys import add_picker_keys
from treadle.tui.paint.drawn import Anchored, colour_depth, erase, set_up, write_above
from treadle.tui.paint.lines import Line
from treadle.tui.paint.look import Look, asked_first, recoloured, unseen_colours
from treadle.tui.paint.pager import Pager
from treadle.tui.paint.shown_rows import Rows
from treadle.tui.paint.theme import Palette, Signs, Theme
from treadle.tui.paint.window_signals import WindowSignals
from treadle.tui.question.dialog import Key, Press
from treadle.tui.session.lent_terminal import Lent
from treadle.tui.windows import MOST_INPUT_LINES, field, text_window, when

_FIXED_LINES = 4
"""The rule, the status, the line of a search, and one of the scrollback that stays in sight."""

_REDRAW_PAUSE = 0.125
_SETTLED = 0.5
"""Seconds without another size, after which all is drawn again: what is wrapped meanwhile could be out of reach."""

_TYPING = 2.0
"""Seconds after a key in which the terminal's cursor is where it writes."""

_SEARCH_STYLE = {"search": "noinherit underline", "search-toolbar": "noinherit", "search-toolbar.text": "noinherit"}


class Screen:
    """An inline application: what a face has above it is printed into the scrollback, and stays there.

    `can` says whether a key means a wish now, `touched` hears of every key, `typed` of every change of the draft, and
    whether it was made by hand.
    """

    def __init__(
        self,
        *,
        face: Callable[[int, int], Face],
        act: Callable[[Intent], None],
        can: Callable[[Wish], bool],
        touched: Callable[[], None],
        typed: Callable[[bool], None],
        history: History,
        look: Look,
    ) -> None:
        self._face = face
        self._act = act
        self._can = can
        self._hear_touch = touched
        self._focus = Focus.PROMPT
        self._theme = look.theme
        self.own_keys = look.keys
        self._shown = Face()
        self._current: list[KeyPress] = []
        self._refreshing: asyncio.TimerHandle | None = None
        self._settling: asyncio.TimerHandle | None = None
        self._typing: asyncio.TimerHandle | None = None
        self._lent = Lent(lambda: self._app, self._refocus)
        mark = look.theme.signs.prompt
        self.draft = DraftLine(history, typed, mark=mark, placeholder=lambda: self._shown.placeholder)
        self._prompt = self.draft.buffer
        self._picking = False
        self._words = Buffer(multiline=True)
        self._windows = self._make_windows()
        self.painted = asyncio.Event()
        self._app = self._make_application(look.editing)
        self.signals = WindowSignals(self._app.output, self._parser, nothing=look.theme.palette is Palette.DUMB)
        self._app.before_render += lambda _: self._look()
        self._app.after_render += lambda _: self.painted.set()
        self._app.key_processor.after_key_press += lambda _: self._touched()
        self._prompt.on_text_changed += lambda _: touched()

    async def run(self) -> int:
        """Show it until `leave`; the terminal is as before afterwards, whatever happens."""
        try:
            self.signals.begin()
            return await self._app.run_async(set_exception_handler=False)
        finally:
            self.signals.end()
            self._lent.end()

    def leave(self, code: int) -> None:
        """End `run` with this exit code."""
        if self._runs():
            self._app.exit(result=code)

    def fail(self, error: BaseException) -> None:
        """End `run` with this error."""
        if self._runs():
            self._app.exit(exception=error)

    def _runs(self) -> bool:
        return self._app.future is not None and not self._app.future.done()

    @property
    def columns(self) -> int:
        """Width of the terminal in cells."""
        return self.size[0]

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal."""
        size = self._app.output.get_size()
        return size.columns, size.rows

    @property
    def text(self) -> str:
        """The draft; its pieces are one character each."""
        return self._prompt.text

    @property
    def busy(self) -> bool:
        """Whether somebody writes here: there is a draft, or earlier messages are being searched."""
        return bool(self._prompt.text) or self.draft.searching

    def put(self, draft: str) -> None:
        """Replace the draft."""
        self._prompt.put(draft)
        self.refresh_now()

    def give_back(self, draft: str) -> None:
        """Put what was not sent, or taken back, before what is being written."""
        self.put(f"{draft}\n{self.text}" if self.text else draft)

    @property
    def cursor(self) -> int:
        """Where the cursor is in the input line."""
        return self._prompt.cursor_position

    def complete(self, text: str, cursor: int) -> None:
        """Replace what is in the input line by what it was completed to."""
        self._prompt.complete(text, cursor)
        self.refresh_now()

    def written(self, draft: str) -> str:
        """Give a draft as it is shown."""
        return self.draft.pieces.shown(draft)

    def clear(self) -> None:
        """Empty the draft; undo (Ctrl-_) brings it back."""
        self._prompt.save_to_undo_stack()
        self.put("")

    @property
    def theme(self) -> Theme:
        """The colours and signs in which it is drawn now."""
        return self._theme

    def recolour(self, colours: Colours, said: Callable[[str], None]) -> None:
        """Draw in other colours from now on; `said` takes why they cannot be seen here, if so."""

        async def repaint() -> None:
            dark = await self.signals.is_dark() if asked_first(colours) else None
            self._theme = recoloured(self._theme, colours, dark=dark)
            self._app.style = _style(self._theme)
            self.refresh_now()
            if why := unseen_colours(self._theme, colours):
                said(why)

        self.later(repaint())

    def insert(self, text: str) -> None:
        """Put what was typed or pasted elsewhere into the draft, at its cursor."""
        self._act(Pasted(text))

    @property
    def words(self) -> str:
        """What is in the question's line of words."""
        return self.draft.pieces.text(self._words.text)

    @words.setter
    def words(self, text: str) -> None:
        self._words.text = self.draft.pieces.embed(text)
        self._words.cursor_position = len(self._words.text)

    def focus(self, focus: Focus) -> None:
        """Send keys elsewhere from now on."""
        if focus is not self._focus:
            self._focus = focus
            self._refocus()
            self.refresh_now()

    def pick(self, *, begin: bool) -> None:
        """Give every key to a list that is chosen from, or give them back."""
        self._picking = begin
        self._refocus()
        self.refresh_now()

    def _refocus(self) -> None:
        if not self._lent.paging:
            self._app.layout.focus(self._windows[Focus.PICKER if self._picking else self._focus])

    def pass_on(self) -> None:
        """Give the key that was pressed to the draft, and those that follow it."""
        keys, self._current = self._current, []
        self.focus(Focus.PROMPT)
        self._app.key_processor.feed_multiple(keys, first=True)

    def _resized(self) -> None:
        """Draw anew at another width, where the terminal has wrapped what was drawn before."""
        if self._lent.paging:
            self._lent.clear_page()
        else:
            erase(self._app)
        if self._settling is not None:
            self._settling.cancel()
        self._settling = asyncio.get_running_loop().call_later(_SETTLED, self._settled)
        self._app.invalidate()

    def _settled(self) -> None:
        self._settling = None
        self._app.invalidate()

    def _touched(self) -> None:
        if self._typing is not None:
            self._typing.cancel()
        self._typing = asyncio.get_running_loop().call_later(_TYPING, self._typed_out)
        self._hear_touch()

    def _writes(self) -> bool:
        return self._typing is not None or self._theme.palette is Palette.DUMB

    def _typed_out(self) -> None:
        self._typing = None
        self._app.invalidate()

    @property
    def paging(self) -> bool:
        """Whether the pager is open."""
        return self._lent.paging

    def page(self, pager: Pager) -> None:
        """Show a pager on the alternate screen, and give it every key until it is closed."""
        if self._runs() and not self._lent.lent:
            self._lent.page(pager)
            self.refresh_now()

    def page_rows(self, lay_out: Callable[[int, Signs], Sequence[Line]]) -> None:
        """Show rows, laid out for a width, in the pager."""
        signs = self._theme.signs
        self.page(Pager(lambda width: lay_out(width, signs), signs))

    def later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something while keys are taken."""
        return self._app.create_background_task(work)

    def edit(
        self, text: str, suffix: str, *, done: Callable[[str], None], failed: Callable[[ConfigError], None]
    ) -> None:
        """Lend the terminal to the person's editor; `done` takes what became of the text."""

        async def lend() -> None:
            call_soon = asyncio.get_running_loop().call_soon
            try:
                call_soon(done, await self._lent.edit(text, suffix))
            except ConfigError as error:
                call_soon(failed, error)
            self.refresh_now()

        self.later(lend())

    def copy(self, text: str) -> bool:
        """Let the terminal copy a text; gives whether it was sent."""
        return self.signals.copy(text)

    def refresh_now(self) -> None:
        """Draw again as soon as possible."""
        self._app.invalidate()

    def refresh(self) -> None:
        """Draw again soon; what changes many times in a second is drawn eight times."""
        if self._refreshing is None:
            self._refreshing = asyncio.get_running_loop().call_later(_REDRAW_PAUSE, self._refresh_due)

    def _refresh_due(self) -> None:
        self._refreshing = None
        self._app.invalidate()

    def _look(self) -> None:
        if self._lent.paging:
            return
        if self._settling is not None:
            self._shown = Face()
            return
        size = self._app.output.get_size()
        taken = self.draft.rows(size.columns)
        if self._focus is Focus.WORDS:
            taken += sum(2 + get_cwidth(line) // size.columns for line in self._words.document.lines)
        self._shown = self._face(size.columns, size.rows - min(taken, MOST_INPUT_LINES) - _FIXED_LINES)
        if self._shown.above:
            write_above(self._app, self._shown.above)

    def _make_application(self, editing: Editing) -> Application[int]:
        application: Application[int] = Application(
            layout=Layout(self._make_layout(), focused_element=self._windows[Focus.PROMPT]),
            key_bindings=self._make_keys(),
            style=_style(self._theme),
            erase_when_done=True,
            color_depth=colour_depth(self._theme),
            editing_mode=EditingMode.VI if editing is Editing.VIM else EditingMode.EMACS,
        )
        self._parser = set_up(application, self._theme, self._resized)
        return application

    def _make_windows(self) -> dict[Focus, Window]:
        words = BufferControl(self._words, input_processors=[DrawnPieces(self.draft.pieces)])
        return {
            Focus.PROMPT: self.draft.window,
            Focus.WORDS: field(words, lambda: self._shown.field, lambda: self._shown.words),
            Focus.KEYS: text_window(lambda: self._shown.question, focusable=True),
            Focus.PICKER: text_window(lambda: self._shown.menu, focusable=True, cursor=True),
        }

    def _make_layout(self) -> Anchored:
        below = self._make_rows()
        return Anchored(lambda: self._lent.pages if self._lent.paging else below, self._writes)

    def _make_rows(self) -> HSplit:
        return HSplit(
            [
                Rows(lambda: self._shown.living),
                when(lambda: bool(self._shown.question), self._windows[Focus.KEYS]),
                when(lambda: self._focus is Focus.WORDS, self._windows[Focus.WORDS]),
                when(lambda: self._focus is Focus.WORDS, text_window(lambda: self._shown.under)),
                when(lambda: not self._shown.alone, self._make_lower_rows()),
                Window(),
            ]
        )

    def _make_lower_rows(self) -> HSplit:
        return HSplit(
            [
                Rows(lambda: [*self._shown.panel, self._shown.rule]),
                self._windows[Focus.PROMPT],
                self.draft.search,
                when(lambda: bool(self._shown.menu), self._windows[Focus.PICKER]),
                Rows(lambda: self._shown.toolbar),
            ]
        )

    def _make_keys(self) -> KeyBindings:
        keys = KeyBindings()
        listing, words = has_focus(self._windows[Focus.KEYS]), has_focus(self._words)
        prompt, chord = has_focus(self._prompt), lambda: self._parser is not None and self._parser.chord
        add_draft_keys(keys, prompt, act=self._act, can=self._may, alone=self._alone, chord=chord, enter=self._enter)
        add_own_keys(keys, prompt, self.own_keys, act=self._act, can=self._may, chord=chord, enter=self._enter)
        add_search_keys(keys, self.draft)
        add_picker_keys(keys, has_focus(self._windows[Focus.PICKER]), act=self._act, alone=self._alone)
        add_question_keys(keys, listing, words, take=self._take, alone=self._alone)
        add_pager_keys(keys, has_focus(self._lent.pages), take=self._lent.turn)
        keys.add("c-z", filter=~has_focus(self._lent.pages))(lambda event: event.app.suspend_to_background())
        return keys

    def _may(self, wish: Wish) -> bool:
        return not self._prompt.text if wish is Wish.END else self._can(wish)

    def _take(self, key: Key, event: KeyPressEvent) -> None:
        self._current = event.key_sequence
        text = self.words if self._focus is Focus.WORDS else event.data
        # While the window changes its size nothing of the question is drawn.
        self._act(Pressed(Press(key, text, alone=self._alone() and self._settling is None)))

    def _alone(self) -> bool:
        """Whether the key that is taken was the only one of its read."""
        return self._parser is None or self._parser.keys <= 1

    def _enter(self, steer: bool) -> None:  # noqa: FBT001 - a key says it
        if draft := self.draft.entered(alone=self._alone()):
            self._act(Entered(draft, steer))


def _style(theme: Theme) -> Style:
    search = dict.fromkeys(_SEARCH_STYLE, "noinherit") if theme.palette is Palette.DUMB else _SEARCH_STYLE
    return Style.from_dict({**theme.for_prompt_toolkit(), **search})
