"""What is shown below the scrollback, where keys go, and what the person wants with them."""

from collections.abc import Sequence
from enum import Enum
from typing import Literal, TypeAlias

from msgspec import Struct
from prompt_toolkit.formatted_text import StyleAndTextTuples

from treadle.tui.lists.filter_list import Pick
from treadle.tui.paint.lines import Line
from treadle.tui.question.dialog import Press


class Focus(Enum):
    """Where keys go: the draft, the list of a question, the question's line of words, or a list to choose from."""

    PROMPT = "prompt"
    KEYS = "keys"
    WORDS = "words"
    PICKER = "picker"


class Face(Struct, frozen=True, kw_only=True):
    """What is shown below the scrollback, and the lines that are printed into it first: `above`.

    `above` and `living` have ANSI colours, and so may a row of the `toolbar`.
    `question` is what is asked; where it asks for a line of words, `field` begins that line and `under` is below it.
    While it is `alone` nothing else is shown but a line of words with at most `words` rows.
    """

    above: str = ""
    living: Sequence[str] = ()
    question: StyleAndTextTuples = []
    field: StyleAndTextTuples = []
    under: StyleAndTextTuples = []
    alone: bool = False
    words: int | None = None
    panel: Sequence[Line] = ()
    rule: Line = ()
    placeholder: str = ""
    menu: StyleAndTextTuples = []
    toolbar: Sequence[Line | str] = ()


class Entered(Struct, frozen=True):
    """A draft was entered; `steer` when it should go at the next step."""

    text: str
    steer: bool = False


class Pasted(Struct, frozen=True):
    """Something was pasted; it is for the draft, at the cursor."""

    text: str


class Pressed(Struct, frozen=True):
    """A key that a question takes. In its line of words the text of the press is what the line holds."""

    press: Press


class Tabbed(Struct, frozen=True):
    """Tab that completes nothing; `alone` when no other key came with it."""

    alone: bool = True


class Picked(Struct, frozen=True):
    """A key of the list that is chosen from, with what it prints."""

    key: Pick
    text: str = ""


class Wish(Enum):
    """What a key asks for besides typing."""

    ESCAPE = "escape"
    STOP = "stop"
    END = "end"
    NEXT_MODE = "next mode"
    TODO = "to-do list"
    SHOW_KEYS = "keys"
    MENU_UP = "menu up"
    MENU_DOWN = "menu down"
    MENU_TAKE = "menu take"
    MENU_ENTER = "menu enter"
    PICK_MODEL = "pick model"
    SUBAGENTS = "subagents"
    TAKE_BACK = "edit queued"
    SEND_HELD = "send held"
    DROP_HELD = "drop held"
    EDIT = "edit"
    PAGER = "pager"
    OPEN_PIECE = "open piece"
    CLIPBOARD = "clipboard"
    SHELL = "shell"


ListWish: TypeAlias = Literal[
    Wish.SHOW_KEYS, Wish.MENU_UP, Wish.MENU_DOWN, Wish.MENU_TAKE, Wish.MENU_ENTER, Wish.PICK_MODEL, Wish.SUBAGENTS
]
"""What is for the lists below the input."""

Intent: TypeAlias = Entered | Pasted | Pressed | Tabbed | Picked | Wish
