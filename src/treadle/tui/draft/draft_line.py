"""The input line: the draft and its pieces, how it is drawn, and the search in earlier messages."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate

from prompt_toolkit.application import get_app
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.layout import Window
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.processors import (
    AfterInput,
    ConditionalProcessor,
    Processor,
    Transformation,
    TransformationInput,
)
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.search import SearchState, accept_search, stop_search
from prompt_toolkit.utils import get_cwidth
from prompt_toolkit.widgets import SearchToolbar

from treadle.present.escape import exact_line
from treadle.tui.draft.draft_pieces import SHELL, Pieces
from treadle.tui.draft.draft_text import Draft
from treadle.tui.draft.mentions import MentionLexer
from treadle.tui.draft.prompt_history import FolderHistory
from treadle.tui.session.entered_lines import recorded_line
from treadle.tui.session.greeting import short_path
from treadle.tui.windows import field

VIM_NORMAL, VIM_INSERT = "vim: normal", "vim: insert"

_SHELL_PLACEHOLDER = "Command to run here"
_LONGEST_STORED = 200_000
"""Characters; the file is read at every start."""

_SEARCH = " search earlier messages (enter takes it, esc goes back): "
_ODD_BACKSLASHES = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")


class DraftHistory(History):
    """Earlier messages: those of this session as they were written, pieces and all; the file has their whole text."""

    def __init__(self, kept: History, pieces: Pieces) -> None:
        super().__init__()
        self._kept = kept
        self._pieces = pieces

    def load_history_strings(self) -> Iterable[str]:
        """Give the messages of earlier sessions, the last one first."""
        return map(self._pieces.recalled, self._kept.load_history_strings())

    def elsewhere(self, draft: str) -> str:
        """Name the other folder in which an earlier message was entered; empty where there is none."""
        return self._kept.elsewhere(self._pieces.text(draft)) if isinstance(self._kept, FolderHistory) else ""

    def store_string(self, string: str) -> None:
        """Keep a message; one that is very long only as long as this session."""
        text = self._pieces.text(string)
        if len(text) <= _LONGEST_STORED:
            self._kept.store_string(text)


class DraftLine:
    """What the person writes; `mark` stands before it."""

    def __init__(
        self, history: History, typed: Callable[[bool], None], *, mark: str, placeholder: Callable[[], str]
    ) -> None:
        self.pieces = Pieces()
        self._mark = mark
        self._placeholder = placeholder
        self._history = DraftHistory(history, self.pieces)
        self.buffer = Draft(self._history, typed)
        self.buffer.on_cursor_position_changed += lambda _: self._keep_behind_mark()
        self.search = SearchToolbar(
            backward_search_prompt=[("class:dim", _SEARCH)],
            forward_search_prompt=[("class:dim", _SEARCH)],
            ignore_case=True,
        )
        empty = Condition(lambda: self.buffer.text in ("", SHELL))
        self.window: Window = field(
            BufferControl(
                self.buffer,
                lexer=MentionLexer(),
                search_buffer_control=self.search.control,
                preview_search=True,
                input_processors=[
                    DrawnPieces(self.pieces),
                    ConditionalProcessor(AfterInput(self._placeheld, style="class:dim"), empty & ~is_searching),
                ],
            ),
            self._begin,
        )

    @property
    def shell(self) -> bool:
        """Whether it is a command of the person's own."""
        return self.buffer.text.startswith(SHELL)

    def _begin(self) -> StyleAndTextTuples:
        return [("class:warn", "! ")] if self._drawn_text().startswith(SHELL) else [("class:accent", f"{self._mark} ")]

    def _drawn_text(self) -> str:
        """Give what is drawn: while earlier messages are searched, the one that was found."""
        found = self.search.search_buffer.text
        if not self.searching or not found:
            return self.buffer.text
        state = self.search.control.searcher_search_state
        return self.buffer.document_for_search(SearchState(found, state.direction, ignore_case=True)).text

    def _placeheld(self) -> str:
        return _SHELL_PLACEHOLDER if self.shell else self._placeholder()

    def _keep_behind_mark(self) -> None:
        if self.shell and not self.buffer.cursor_position:
            self.buffer.cursor_position = 1

    def rows(self, columns: int) -> int:
        """Count the rows that it takes."""
        lines = self.pieces.shown(self.buffer.text).split("\n")
        return sum(1 + (get_cwidth(one) + 2) // columns for one in lines)

    def add(self, draft: str) -> None:
        """Put something in at the cursor; undo takes it out again."""
        self.buffer.save_to_undo_stack()
        self._write_on()
        empty = not self.buffer.text
        self.buffer.insert_text(SHELL if empty and draft == "!" else draft)

    def end_shell(self) -> None:
        """Make a message of the command that is being written."""
        at = self.buffer.cursor_position
        self.buffer.save_to_undo_stack()
        self.buffer.text = self.buffer.text.removeprefix(SHELL)
        self.buffer.cursor_position = max(0, at - 1)

    def entered(self, *, alone: bool) -> str:
        """Take it with Enter; gives nothing where Enter is a new line: behind a backslash, or amid a pasted command."""
        before = self.buffer.document.text_before_cursor
        if _ODD_BACKSLASHES.search(before):
            if not self.shell:
                self.buffer.delete_before_cursor()
            self.buffer.newline(copy_margin=False)
            return ""
        draft = self.buffer.text
        if not draft.strip() or draft == SHELL:
            return ""
        if self.shell and not alone:
            self.buffer.newline(copy_margin=False)
            return ""
        if recorded_line(draft) == draft:
            self.buffer.append_to_history()
        self.buffer.reset()
        self._write_on()
        return draft

    @property
    def hint(self) -> str:
        """What can be done with it now; empty where that goes without saying."""
        if self.shell and self.buffer.text.endswith("\n"):
            return "enter again runs it"
        if self.opens:
            return "tab opens it"
        folder = "" if self.buffer.by_hand or not self.buffer.text else self._history.elsewhere(self.buffer.text)
        return f"from {exact_line(short_path(folder))}" if folder else ""

    @property
    def opens(self) -> bool:
        """Whether the cursor is behind a piece that can be opened."""
        return self.pieces.get(self.buffer.document.char_before_cursor or " ") is not None

    def open(self) -> None:
        """Put the text of the piece before the cursor in its place."""
        piece = self.pieces.get(self.buffer.document.char_before_cursor or " ")
        if piece is not None:
            self.buffer.save_to_undo_stack()
            self.buffer.delete_before_cursor()
            self.buffer.insert_text(piece.text if piece.label != piece.text else self.pieces.embed(piece.text))

    @property
    def searching(self) -> bool:
        """Whether earlier messages are being searched."""
        return self.search.control in get_app().layout.search_links

    def take_found(self) -> None:
        """End the search with what it has found as the draft."""
        accept_search()
        self.search.control.searcher_search_state.text = ""
        self.buffer.cursor_position = len(self.buffer.text)
        self._write_on()

    def end_search(self) -> None:
        """End the search; the draft is as it was."""
        if self.searching:
            stop_search()
            self._write_on()

    @property
    def vim_mode(self) -> str:
        """What vim's keys do now; empty with other keys."""
        app = get_app()
        if app.editing_mode is not EditingMode.VI:
            return ""
        return VIM_NORMAL if app.vi_state.input_mode is InputMode.NAVIGATION else VIM_INSERT

    @property
    def vim_goes_back(self) -> bool:
        """Whether Esc only ends what vim's keys do now: writing, selecting, or half a command."""
        state = get_app().vi_state
        begun = self.buffer.selection_state is not None or state.operator_func is not None
        return self.vim_mode == VIM_INSERT or (self.vim_mode == VIM_NORMAL and begun)

    def _write_on(self) -> None:
        """Let keys write, whatever vim's keys did."""
        get_app().vi_state.input_mode = InputMode.INSERT


class DrawnPieces(Processor):
    """Draws the label of a piece where its character is, and nothing for the mark of a shell line."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Draw one line."""
        fragments = explode_text_fragments(transformation_input.fragments)
        drawn: StyleAndTextTuples = []
        for number, fragment in enumerate(fragments):
            style, char = fragment[0], fragment[1]
            piece = self._pieces.get(char) if len(char) == 1 else None
            if char == SHELL:
                drawn.append((style, "" if number == 0 and transformation_input.lineno == 0 else "!"))
            else:
                drawn.append((style, char) if piece is None else (f"class:accent {style}", piece.label))
        # Where each character begins in what is drawn; the last is where one would be behind the line.
        begins = [0, *accumulate(len(fragment[1]) for fragment in drawn)]

        def shown_at(place: int) -> int:
            return begins[place] if place < len(begins) else begins[-1] + place - len(begins) + 1

        def written_at(place: int) -> int:
            return min(bisect_right(begins, place) - 1, len(drawn)) if place < begins[-1] else len(drawn)

        return Transformation(drawn, source_to_display=shown_at, display_to_source=written_at)
