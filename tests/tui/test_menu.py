"""The menu under the input: what it offers for what is typed, and how it is drawn."""

from prompt_toolkit.utils import get_cwidth

from tests.tui.snapshots import same_as_before
from treadle.tui.lines import text_of
from treadle.tui.menu import MOST_ROWS, Menu, menu_lines
from treadle.tui.menus import key_lines, menu_for, mode_entries
from treadle.tui.theme import Signs

ARGUMENTS = {"/mode": mode_entries}


def names(text: str) -> list[str]:
    return [entry.name for entry in menu_for(text, ARGUMENTS).entries]


def test_commands_that_begin_so_come_first() -> None:
    assert names("/mo") == ["/mode", "/model"]
    assert names("/qu") == ["/queue", "/quit"]
    assert names("/td") == ["/todo"]
    assert names("/MODE") == ["/mode", "/model"]


def test_what_is_no_command_has_no_menu() -> None:
    assert [names(text) for text in ("", "mode", "//", "/etc/hosts", "/mode\n", "/drop ", "look /mo")] == [[]] * 7


def test_the_modes_follow_their_command() -> None:
    assert names("/mode ") == ["plan", "ask", "edits", "auto", "full"]
    assert [entry.becomes for entry in menu_for("/mode e", ARGUMENTS).entries][:1] == ["/mode edits"]


def test_the_choice_goes_round() -> None:
    menu = menu_for("/mo", ARGUMENTS)
    assert [menu.move(rows).chosen for rows in (0, 1, 2, -1)] == [0, 1, 0, 1]
    assert Menu().move(1).entry is None


def test_a_long_menu_shows_the_rows_around_the_choice_and_how_many_there_are() -> None:
    menu = menu_for("/", ARGUMENTS)
    count = len(menu.entries)
    for chosen in range(count):
        rows = [text_of(row) for row in menu_lines(menu.move(chosen), 80, Signs())]
        assert len(rows) == min(count, MOST_ROWS)
        (marked,) = [row for row in rows if row.startswith("❯")]
        assert menu.entries[chosen].name in marked
        assert marked.endswith(f"{chosen + 1}/{count}")


def test_the_menu_and_the_keys_have_their_pictures() -> None:
    rows = []
    for width in (40, 80, 120, 150):
        drawn = [*menu_lines(menu_for("/mo", ARGUMENTS), width, Signs()), *key_lines(width)]
        assert all(get_cwidth(text_of(row)) < width for row in drawn)
        rows += [f"== {width}", *map(text_of, drawn)]
    same_as_before("menus", "\n".join([*rows, ""]))
