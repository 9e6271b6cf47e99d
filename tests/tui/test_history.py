"""Earlier messages: those of the folder come first, and behind them those of all others."""

import asyncio
from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory, InMemoryHistory

from tests.person import CTRL_R, DOWN, ENTER, UP
from tests.tui.session import says, session, text
from tests.tui.terminal import terminal
from treadle.tui.draft.prompt_history import FolderHistory, open_history


def stored(file: Path, folder: str, *messages: str) -> None:
    for message in messages:
        open_history(file, Path(folder)).store_string(message)


def read(file: Path, folder: str) -> list[str]:
    return list(open_history(file, Path(folder)).load_history_strings())


def test_the_messages_of_the_folder_come_first_and_none_twice(tmp_path: Path) -> None:
    file = tmp_path / "history"
    stored(file, "/shop", "one", "two\nlines")
    stored(file, "/odd na\nme/\udcff", "odd", "two\nlines", "newest of all")
    stored(file, "/shop", "three")
    assert read(file, "/shop") == ["three", "two\nlines", "one", "newest of all", "odd"]
    assert read(file, "/odd na\nme/\udcff") == ["newest of all", "two\nlines", "odd", "three", "one"]
    assert read(file, "/new") == ["three", "newest of all", "two\nlines", "odd", "one"]


def test_a_file_of_before_is_read_and_one_of_now_is_read_by_what_was_before(tmp_path: Path) -> None:
    file = tmp_path / "history"
    FileHistory(str(file)).store_string("old\nmessage")
    stored(file, "/shop", "new")
    assert read(file, "/shop") == ["new", "old\nmessage"]
    assert list(FileHistory(str(file)).load_history_strings()) == ["new", "old\nmessage"]
    history = open_history(file, Path("/other"))
    assert isinstance(history, FolderHistory)
    assert [(one, history.elsewhere(one)) for one in history.load_history_strings()] == [
        ("new", "/shop"),
        ("old\nmessage", ""),
    ]


def test_the_file_is_for_its_owner_and_one_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    stored(tmp_path / "a" / "history", "/shop", "one")
    assert (tmp_path / "a" / "history").stat().st_mode & 0o777 == 0o600
    (tmp_path / "file").write_text("")
    assert isinstance(open_history(tmp_path / "file" / "history", Path("/")), InMemoryHistory)


async def test_up_and_the_search_begin_with_this_folder_and_say_where_others_are_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    file = tmp_path / "home" / "history"
    stored(file, str(tmp_path), "fix the cart here")
    stored(file, "/srv/blog", "fix the cart there")
    async with session(tmp_path, says(text("one"))) as rig, terminal(rig.live) as (term, _):
        await term.until("? for keys")
        term.type(UP)
        await term.until("› fix the cart here", "? for keys")
        term.type(UP)
        await term.until("› fix the cart there", "from /srv/blog")
        term.type(DOWN)
        await term.until("› fix the cart here", "? for keys")
        term.type(DOWN).type(CTRL_R).type("cart")
        await term.until("› fix the cart here")
        term.type(CTRL_R)
        await term.until("› fix the cart there")
        term.type(ENTER)
        await term.until("from /srv/blog")
        await asyncio.sleep(0.1)
        term.type(ENTER)
        await term.until("■ Done")
    assert read(file, str(tmp_path))[:2] == ["fix the cart there", "fix the cart here"]
