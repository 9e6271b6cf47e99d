"""A session is named after its first prompt; one that had none is empty."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.store.sessions import add, change, event, make_old
from treadle.protocol.events import ENGINE, Event, EventData, Interrupt, Prompt, SetMode, SetModel
from treadle.protocol.messages import Text
from treadle.protocol.models import ModelChoice, ToolProtocol
from treadle.protocol.permissions import Mode
from treadle.store.sqlite import SessionRow, Store
from treadle.store.summaries import keep_summaries, kept_summaries
from treadle.store.titles import title_of


def row(name: str) -> SessionRow:
    return SessionRow(id=name, workspace="/w", model="p/m", title="", created_at=1, updated_at=1, events=0)


def prompt(seq: int, text: str) -> Event:
    return Event(seq=seq, at=seq, source=ENGINE, data=Prompt(id=f"p{seq}", content=(Text(text=text),)))


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=500))
def test_a_title_is_one_short_line_that_can_be_kept_and_is_never_empty(text: str) -> None:
    title = title_of((Text(text=text),))
    assert 0 < len(title) <= 80
    assert (len(title.splitlines()), title.encode().decode()) == (1, title)


def test_a_long_title_is_cut_between_two_words_and_says_so() -> None:
    words = f"{'word ' * 15}wordword and more"
    assert title_of((Text(text=words),)) == f"{'word ' * 14}word…"
    assert title_of((Text(text="x" * 90),)) == f"{'x' * 79}…"


async def test_the_first_prompt_gives_the_title_and_later_ones_do_not_change_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    await store.create(row("s"))
    await store.append("s", [event("s", 1)], durable=False)
    assert store.find("s").title == ""
    await store.append("s", [prompt(2, "  Fix\nit \x1b now ")], durable=True)
    await store.append("s", [prompt(3, "And this.")], durable=True)
    assert (store.find("s").title, store.verify("s")) == ("Fix it \x1b now", None)
    store.close()


async def test_only_an_empty_session_is_discarded(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    for name in ("empty", "full"):
        await store.create(row(name))
        await store.append(name, [event(name, 1)], durable=False)
        await store.acquire(name)
    await store.append("full", [prompt(2, "Hi.")], durable=False)
    for name in ("empty", "full", "gone"):
        await store.discard_empty(name)
    assert [one.id for one in store.sessions()] == ["full"]
    assert (list(store.read("empty")), store.leased()) == ([], frozenset({"full"}))
    store.close()


def test_the_sessions_of_an_older_file_are_named_and_the_empty_ones_stay_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "db"
    make_old(path, 4, title="")
    change(path, "INSERT INTO sessions VALUES ('empty', '/w', 'p/m', '', 0, 0, 0)")
    store = Store(path)
    titles = {one.id: one.title.split()[:3] for one in store.sessions()}
    assert titles == {"s0": ["s0", "2", "word"], "s1": ["s1", "2", "word"], "empty": []}
    assert [store.verify(name) for name in titles] == [None, None, None]
    store.close()


async def test_summaries_are_kept_for_sessions_that_exist(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    await add(store, "s", 2)
    keep_summaries(store, {"s": (2, b"a"), "gone": (1, b"b")})
    keep_summaries(store, {"s": (3, b"c")})
    assert kept_summaries(store) == {"s": (3, b"c")}
    store.close()


async def test_a_row_has_the_model_that_was_chosen_last(tmp_path: Path) -> None:
    def chosen(model: str) -> ModelChoice:
        return ModelChoice(model=model, tool_protocol=ToolProtocol.NATIVE)

    store = Store(tmp_path / "db")
    await add(store, "s", 2)
    changes: list[EventData] = [SetModel(choice=chosen("q/n")), SetMode(mode=Mode.PLAN), Interrupt()]
    for seq, data in enumerate(changes, 3):
        await store.append("s", [Event(seq=seq, at=seq, source=ENGINE, data=data)], durable=False)
    assert store.find("s").model == "q/n"
    last = SetMode(mode=Mode.ASK, choice=chosen("r/o"))
    await store.append("s", [Event(seq=6, at=6, source=ENGINE, data=last)], durable=False)
    assert store.find("s").model == "r/o"
    store.close()
