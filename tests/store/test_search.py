"""Search in past sessions: by words, in any script, whatever became of the index."""

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.sessions import change, event, make_old
from treadle.protocol.events import (
    ENGINE,
    CallFinished,
    CallProposed,
    EditQueued,
    Event,
    EventData,
    Prompt,
    ReplyFinished,
)
from treadle.protocol.messages import OWN_COMMAND, Message, Role, Text, Thinking
from treadle.protocol.models import ReplyStop
from treadle.protocol.tools import Outcome, ToolCall, ToolTraits, result_text
from treadle.protocol.usage import Usage
from treadle.store.keeping import archive
from treadle.store.log_search import SearchHit, search, search_archived
from treadle.store.sqlite import SessionRow, Store

NO_ROOM = """
import resource, signal, sys
from pathlib import Path
from treadle.store.log_search import search
from treadle.store.sqlite import Store

store = Store(Path(sys.argv[1]))
index = Path(sys.argv[1] + "-words")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
index.unlink()
resource.setrlimit(resource.RLIMIT_FSIZE, (2048, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
print(len(search(store, "walrus")), len(search(store, "migration")), index.stat().st_size < 4096)
"""


def prompt(text: str) -> EventData:
    return Prompt(id="p", content=(Text(text=text),))


def reply(text: str) -> EventData:
    message = Message(role=Role.ASSISTANT, content=(Thinking(text="secretly zebra"), Text(text=text)))
    return ReplyFinished(step=1, attempt=1, message=message, stop=ReplyStop.END_TURN, usage=Usage())


async def session(store: Store, name: str, *said: EventData, workspace: str = "/w") -> None:
    await store.create(
        SessionRow(id=name, workspace=workspace, model="p/m", title="", created_at=1, updated_at=1, events=0)
    )
    log = [event(name, 1), *(Event(seq=seq, at=seq, source=ENGINE, data=data) for seq, data in enumerate(said, 2))]
    await store.append(name, log, durable=False)


async def three(path: Path) -> Store:
    store = Store(path)
    await session(store, "a", prompt("Why does the Migration fail?"), reply("The migration\nlocks the table `users`."))
    await session(
        store, "b", prompt("Übersetze the café menu"), reply("データベースの移行 is done."), workspace="/other"
    )
    await session(store, "c", prompt('Say "quoted" AND (NOT x) OR sqlite.py*'), EditQueued(prompt_id="p"))
    return store


def places(found: list[SearchHit]) -> list[tuple[str, int]]:
    return [(one.session_id, one.seq) for one in found]


@pytest.fixture(params=["index", "no index"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A place for a database, once with room for an index and once without."""
    if request.param == "no index":
        (tmp_path / "db-words").mkdir()
    return tmp_path / "db"


async def test_words_are_found_whatever_their_case_and_the_newest_come_first(path: Path) -> None:
    store = await three(path)
    assert search(store, "MIGRATION\nlocks") == [
        SearchHit(session_id="a", seq=3, snippet="The migration locks the table `users`.")
    ]
    assert search(store, "migration table") == []
    assert places(search(store, "migration")) == [("a", 3), ("a", 2)]
    assert places(search(store, "migration", 1)) == [("a", 3)]
    assert places(search(store, "migr")) == [("a", 3), ("a", 2)]
    assert places(search(store, "übersetze")) == [("b", 2)]
    assert places(search(store, "the", workspace="/other")) == [("b", 2)]
    assert (search(store, "zebra"), search(store, ""), search(store, "  "), search(store, "the", 0)) == ([], [], [], [])
    store.close()


async def test_a_part_of_a_word_and_scripts_without_spaces_are_found(path: Path) -> None:
    store = await three(path)
    assert places(search(store, "gration")) == [("a", 3), ("a", 2)]
    assert places(search(store, "の移行")) == [("b", 3)]
    store.close()


@pytest.mark.parametrize("text", ['"quoted"', "AND (NOT", "sqlite.py*", "sqlite.py", '"', "OR sqlite"])
async def test_signs_of_a_query_language_are_only_signs(path: Path, text: str) -> None:
    store = await three(path)
    assert places(search(store, text)) == [("c", 2)]
    store.close()


@settings(max_examples=60)
@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=20))
def test_any_text_can_be_searched_for(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "searched" / "db"
    path.parent.mkdir(exist_ok=True)
    store = Store(path)
    assert search(store, text) == []
    store.close()


async def test_what_is_logged_after_a_search_is_found_by_the_next(path: Path) -> None:
    store = await three(path)
    assert search(store, "walrus") == []
    await store.append("a", [Event(seq=4, at=4, source=ENGINE, data=prompt("A walrus."))], durable=False)
    other = Store(path)
    assert places(search(other, "walrus")) == places(search(store, "walrus")) == [("a", 4)]
    other.close()
    store.close()


async def test_a_log_in_place_of_the_indexed_one_is_indexed_anew(tmp_path: Path) -> None:
    store = await three(tmp_path / "db")
    store.close()
    shutil.copy(tmp_path / "db", tmp_path / "copy")
    store = Store(tmp_path / "db")
    await store.append("a", [Event(seq=4, at=4, source=ENGINE, data=prompt("A walrus."))], durable=False)
    assert places(search(store, "walrus")) == [("a", 4)]
    store.close()
    shutil.copy(tmp_path / "copy", tmp_path / "db")
    store = Store(tmp_path / "db")
    await store.append("b", [Event(seq=4, at=4, source=ENGINE, data=prompt("A heron."))], durable=False)
    assert (places(search(store, "walrus")), places(search(store, "heron"))) == ([], [("b", 4)])
    assert places(search(store, "migration")) == [("a", 3), ("a", 2)]
    store.close()


@pytest.mark.parametrize("content", [b"this is no index" * 300, b"", b"SQLite format 3\0" + b"\xff" * 4000])
async def test_an_index_that_is_damaged_is_made_anew_and_the_log_is_not_suspected(
    tmp_path: Path, content: bytes
) -> None:
    store = await three(tmp_path / "db")
    assert len(search(store, "migration")) == 2
    (tmp_path / "db-words").write_bytes(content)
    assert len(search(store, "migration")) == 2
    with sqlite3.connect(tmp_path / "db-words") as index:
        assert index.execute("SELECT count(*) FROM grams WHERE grams MATCH 'mig'").fetchone() == (2,)
    index.close()
    assert not (tmp_path / "db-suspect").exists()
    assert (tmp_path / "db-words").stat().st_mode & 0o777 == 0o600
    store.close()


async def test_an_index_that_was_cut_short_or_cannot_grow_changes_nothing_of_what_is_found(tmp_path: Path) -> None:
    store = await three(tmp_path / "db")
    assert len(search(store, "migration")) == 2
    whole = (tmp_path / "db-words").read_bytes()
    for size in range(0, len(whole), 1_500):
        (tmp_path / "db-words").write_bytes(whole[:size])
        assert (size, len(search(store, "migration"))) == (size, 2)
    await store.append("a", [Event(seq=4, at=4, source=ENGINE, data=prompt("A walrus."))], durable=False)
    store.close()
    with subprocess.Popen([sys.executable, "-c", NO_ROOM, str(tmp_path / "db")], stdout=subprocess.PIPE) as process:
        assert process.communicate()[0].decode() == "1 2 True\n"
    store = Store(tmp_path / "db")
    assert (places(search(store, "walrus")), len(search(store, "migration"))) == ([("a", 4)], 2)
    store.close()


async def test_two_that_search_at_once_find_the_same(tmp_path: Path) -> None:
    store, other = await three(tmp_path / "db"), Store(tmp_path / "db")
    for number in range(4, 24):
        said = [Event(seq=number, at=number, source=ENGINE, data=prompt(f"A walrus, {number}."))]
        await store.append("a", said, durable=False)
        found = await asyncio.gather(*(asyncio.to_thread(search, one, "walrus", 99) for one in (store, other)))
        assert [len(one) for one in found] == [number - 3] * 2
    store.close()
    other.close()


async def test_damaged_events_are_left_out(path: Path) -> None:
    store = await three(path)
    change(path, "UPDATE events SET data = x'7b' WHERE session_id = 'a' AND seq = 3")
    assert places(search(store, "migration")) == [("a", 2)]
    store.close()


async def test_the_output_of_own_commands_is_not_searched_and_a_snippet_shows_the_place(path: Path) -> None:
    store = Store(path)
    own = Text(text=f"{OWN_COMMAND}walrus")
    long = "before " * 40 + "the needle is here " + "after " * 40
    await session(store, "a", Prompt(id="p", content=(own, Text(text=long))))
    assert search(store, "walrus") == []
    (found,) = search(store, "needle")
    assert found.snippet.startswith("…")
    assert found.snippet.endswith("…")
    assert "before the needle is here after" in found.snippet
    store.close()


def test_an_older_database_is_searched(path: Path) -> None:
    make_old(path, 6)
    store = Store(path)
    assert places(search(store, "s1 3 WORD")) == [("s1", 3)]
    store.close()


def call(**arguments: object) -> EventData:
    proposed = ToolCall(id="c", name="execute_command", arguments=arguments)
    return CallProposed(step=1, attempt=1, call=proposed, traits=ToolTraits())


async def test_arguments_and_results_are_found_as_they_are_written(path: Path) -> None:
    store = Store(path)
    result = CallFinished(call_id="c", result=result_text(Outcome.FAILED, "E   KeyError: 'straße'\n1 failed"))
    edits = [{"old": 'x = "a"\ny = 1', "count": 12}]
    await session(store, "a", prompt("go"), call(command="pytest -q", edits=edits), result)
    assert places(search(store, '"A"\nY')) == [("a", 3)]
    assert places(search(store, "test -Q")) == [("a", 3)]
    assert places(search(store, "STRASSE")) == [("a", 4)]
    assert places(search(store, "12")) == [("a", 3)]
    assert (search(store, "pytest failed"), search(store, "\\n")) == ([], [])
    store.close()


@settings(max_examples=40)
@given(st.text(min_size=1, max_size=60), st.data())
def test_every_part_of_a_text_is_found(
    tmp_path_factory: pytest.TempPathFactory, text: str, data: st.DataObject
) -> None:
    begin = data.draw(st.integers(0, len(text) - 1))
    part = text[begin : data.draw(st.integers(begin + 1, len(text)))]
    path = tmp_path_factory.mktemp("part") / "db"
    store = Store(path)
    asyncio.run(session(store, "a", prompt(f"<{text}>")))
    assert places(search(store, part)) == ([("a", 2)] if part.strip() else [])
    store.close()


@pytest.mark.parametrize("part", ["ab\0", "\0cd", "b\0c", "cde", "\0\0e"])
async def test_text_around_a_nul_is_found(path: Path, part: str) -> None:
    store = Store(path)
    await session(store, "a", prompt("ab\0cde\0\0e"))
    assert places(search(store, part)) == [("a", 2)]
    store.close()


async def test_what_is_archived_is_found_where_it_is_asked_for(path: Path) -> None:
    store = await three(path)
    archive(store, ["a"], 5)
    assert search(store, "migration") == []
    assert places(search_archived(store, "migration", 5, ["a"])) == [("a", 3), ("a", 2)]
    await store.acquire("a")
    assert places(search(store, "migration")) == [("a", 3), ("a", 2)]
    store.close()
