"""A paste comes as one key, however the terminal cuts it."""

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from treadle.tui.draft.pasting import KeyParser

TYPED = st.sampled_from(["a", "b\n", "\x1b", "\x1b[201~", "\x1b[A", "\r", "ä"])
PASTED = st.lists(st.sampled_from(["a", "b\n", "\x1b", "[201", "~", "\x1b[200~", "\r"]), max_size=8).filter(
    lambda pasted: "\x1b[201~" not in "".join(pasted)
)
PIECES = st.lists(TYPED | PASTED.map(lambda pasted: f"\x1b[200~{''.join(pasted)}\x1b[201~"), max_size=8)


@given(PIECES, PASTED, st.booleans(), st.integers(1, 7))
def test_keys_do_not_depend_on_the_parser_nor_on_the_pieces(
    pieces: list[str], unended: list[str], pastes: bool, size: int
) -> None:
    text = "".join([*pieces, *(["\x1b[200~", *unended] if pastes else [])])
    usual: list[KeyPress] = []
    whole = Vt100Parser(usual.append)
    whole.feed_and_flush(text)
    mine: list[KeyPress] = []
    cut = KeyParser(Vt100Parser(mine.append))
    for start in range(0, len(text), size):
        cut.feed(text[start : start + size])
    cut.flush()
    assert [(press.key, press.data) for press in mine] == [
        (press.key, press.data) for press in usual if press.key is not Keys.Ignore
    ]
