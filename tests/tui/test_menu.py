"""The menu under the input: what it offers for what is typed, and how it is drawn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from tests.tui.snapshots import same_as_before
from treadle.protocol.messages import Text
from treadle.protocol.notifications import QueuedPrompt
from treadle.tui.draft.completing import _is_meant
from treadle.tui.draft.menu import (
    MENU_ROWS,
    Menu,
    MenuEntry,
    fitting_arguments,
    meant_entry,
    menu_lines,
    unclear_menu,
)
from treadle.tui.draft.menus import key_lines, menu_for, mode_entries, queue_entries
from treadle.tui.paint.lines import line_text
from treadle.tui.paint.theme import Signs

ARGUMENTS = {"/mode": mode_entries}


def names(text: str) -> list[str]:
    return [entry.name for entry in menu_for(text, ARGUMENTS).entries]


def test_commands_that_begin_so_come_first() -> None:
    assert names("/mo") == ["/model", "/mode", "/permissions", "/memory"]
    assert names("/qu") == ["/queue", "/quit"]
    assert names("/td")[0] == "/todo"
    assert names("/MODE") == ["/mode", "/model"]


def test_what_is_no_command_has_no_menu() -> None:
    assert [names(text) for text in ("", "mode", "//", "/etc/hosts", "/mode\n", "/drop ", "look /mo")] == [[]] * 7


def test_the_modes_follow_their_command() -> None:
    assert names("/mode ") == ["plan", "ask", "edits", "auto", "full"]
    assert [entry.becomes for entry in menu_for("/mode e", ARGUMENTS).entries][:1] == ["/mode edits"]


def test_an_argument_is_found_by_its_letters_in_the_order_of_its_list() -> None:
    models = [MenuEntry(name, "", f"/model {name}") for name in ("b/sonnet-4-5", "a/sonnet", "sonar/x", "s/o/n")]
    found = menu_for("/model son", {"/model": lambda: models})
    assert [entry.name for entry in found.entries] == ["b/sonnet-4-5", "a/sonnet", "sonar/x", "s/o/n"]
    assert [entry.name for entry in menu_for("/model s/o/n", {"/model": lambda: models}).entries] == ["s/o/n"]
    assert menu_for("/model x", {"/model": lambda: None}).note == "Reading…"


def test_messages_that_wait_are_offered_by_number_harmless_and_short() -> None:
    waiting = QueuedPrompt(id="p", content=(Text(text="do\nthis \x1b[2J" + "x" * 500),))
    first, second = queue_entries("/drop", [waiting, waiting])
    assert (first.name, second.becomes) == ("1", "/drop 2")
    assert first.about.startswith("do this \\x1b[2J")
    assert len(first.about) < 250


def test_the_choice_goes_round() -> None:
    menu = menu_for("/mod", ARGUMENTS)
    assert [menu.move(rows).chosen for rows in (0, 1, 2, -1)] == [0, 1, 0, 1]
    assert Menu().move(1).entry is None


def test_a_long_menu_shows_the_rows_around_the_choice_and_how_many_there_are() -> None:
    menu = menu_for("/", ARGUMENTS)
    count = len(menu.entries)
    for chosen in range(count):
        rows = [line_text(row) for row in menu_lines(menu.move(chosen), 80, Signs())]
        assert len(rows) == min(count, MENU_ROWS)
        (marked,) = [row for row in rows if row.startswith("❯")]
        assert menu.entries[chosen].name in marked
        assert marked.endswith(f"{chosen + 1}/{count}")


def test_the_menu_and_the_keys_have_their_pictures() -> None:
    rows = []
    for width in (40, 80, 120, 150):
        drawn = [*menu_lines(menu_for("/mo", ARGUMENTS), width, Signs()), *key_lines(width, {})]
        assert all(get_cwidth(line_text(row)) < width for row in drawn)
        rows += [f"== {width}", *map(line_text, drawn)]
    same_as_before("menus", "\n".join([*rows, ""]))


def test_what_follows_a_prompt_of_a_server_is_offered_and_never_taken_unasked() -> None:
    asked: list[str] = []

    def following(text: str) -> list[MenuEntry]:
        asked.append(text)
        return [MenuEntry("Oslo", "", "/fake:weather Oslo")]

    menu = menu_for("/fake:weather O", ARGUMENTS, (), following)
    assert ([entry.becomes for entry in menu.entries], menu.free) == (["/fake:weather Oslo"], True)
    assert not _is_meant("/fake:weather O", menu, menu.entries[0])
    assert _is_meant("/fake:weather O", menu.move(0), menu.entries[0])
    assert (menu_for("/mode e", ARGUMENTS, (), following).free, asked) == (False, ["/fake:weather O"])


def test_a_quiet_entry_is_offered_where_no_other_fits_or_where_it_is_what_is_typed() -> None:
    entries = (
        MenuEntry("router/maker/x-5", "", "1"),
        MenuEntry("maker/x-5", "", "2", quiet=True),
        MenuEntry("maker/y", "", "3", quiet=True),
    )

    def offered(typed: str) -> list[str]:
        return [entry.name for entry in fitting_arguments(typed, entries)]

    assert offered("") == ["router/maker/x-5"]
    assert offered("x-5") == ["router/maker/x-5"]
    assert offered("maker/x-5") == ["maker/x-5", "router/maker/x-5"]
    assert offered("maker/y") == ["maker/y"]


def test_a_whole_name_is_first_whatever_begins_with_it() -> None:
    for name in ("new", "edit", "mode", "context", "copy"):
        menu = menu_for(f"/{name}", ARGUMENTS)
        assert menu.entries[0].name == f"/{name}"


MODELS = [
    MenuEntry(name, "", f"/model {name}", quiet=name.startswith("quiet/"))
    for name in (
        "anthropic/claude-sonnet-5-5",
        "anthropic/claude-opus-5-5",
        "anthropic/claude-haiku-5-5",
        "openrouter/mistralai/mistral-medium-3-5",
        "openrouter/openai/gpt-5",
        "openrouter/openai/gpt-5-search-api",
        "quiet/claude-opus-5-5",
    )
]


@pytest.mark.parametrize(
    ("typed", "taken"),
    [
        ("anthropic/claude-opus-5-5", "anthropic/claude-opus-5-5"),
        ("claude-opus-5-5", "anthropic/claude-opus-5-5"),
        ("opus", "anthropic/claude-opus-5-5"),
        ("OPUS", "anthropic/claude-opus-5-5"),
        ("mistral", "openrouter/mistralai/mistral-medium-3-5"),
        ("gpt-5", "openrouter/openai/gpt-5"),
        ("search", "openrouter/openai/gpt-5-search-api"),
        ("quiet/claude-opus-5-5", "quiet/claude-opus-5-5"),
        ("opsu", ""),
        ("claude", ""),
        ("anthropic", ""),
        ("cheap", ""),
        ("5-5", ""),
    ],
)
def test_enter_takes_a_model_only_where_what_is_typed_means_one(typed: str, taken: str) -> None:
    menu = menu_for(f"/model {typed}", {"/model": lambda: MODELS})
    meant = menu.entry is not None and _is_meant(f"/model {typed}", menu, menu.entry)
    assert (menu.entry.name if meant and menu.entry is not None else "") == taken


@given(st.sampled_from(MODELS), st.data())
def test_what_is_no_part_of_a_name_is_never_taken_for_it(entry: MenuEntry, data: st.DataObject) -> None:
    places = data.draw(st.sets(st.integers(0, len(entry.name) - 1), min_size=1))
    typed = "".join(entry.name[place] for place in sorted(places))
    found = meant_entry(typed, fitting_arguments(typed, MODELS))
    assert found is None or found.name == typed or typed in found.name.rpartition("/")[2]


def test_what_is_unclear_leaves_the_nearest_names_and_no_choice() -> None:
    for typed, first, note in (
        ("opsu", "anthropic/claude-opus-5-5", "No name has opsu in it."),
        ("claude", "anthropic/claude-sonnet-5-5", "Several have claude in their name."),
    ):
        menu = unclear_menu(typed, menu_for(f"/model {typed}", {"/model": lambda: MODELS}), MODELS)
        rows = [line_text(row) for row in menu_lines(menu, 80, Signs())]
        assert rows[0].startswith(f"  {note}")
        assert rows[1].strip().startswith(first)
        assert not any(row.startswith("❯") for row in rows)
        assert menu.entry is None
        assert menu.move(1).entry == menu.entries[0]
        assert menu.move(-1).entry == menu.entries[-1]
