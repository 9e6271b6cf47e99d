"""Changed lines as HTML: colours, marked words, and what is left plain."""

import re
from collections.abc import AsyncIterator
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.app.reviewing import ID, Worked, worked
from tests.web.test_past_pages import visiting
from treadle.present.escape import printable
from treadle.web.book import SessionBook
from treadle.web.changed_lines import LineColours, line_html
from treadle.web.markup import code, page_text

BEFORE = 'def total(items, tax):\n    """Sum up.\n\n    For now.\n    """\n    return sum(items) * tax\n'
AFTER = BEFORE.replace("For now", "For ever").replace("* tax", "* (1 + tax)")


@pytest.fixture
async def session() -> AsyncIterator[Worked]:
    async with worked() as found:
        yield found


@pytest.fixture
def client(session: Worked) -> TestClient:
    return visiting(SessionBook(session.work, {}))


class _Text(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(str(html))
        self.close()

    def handle_data(self, data: str) -> None:
        self.text += data


async def test_the_review_colours_code_as_the_whole_file_is_and_marks_the_words_that_differ(
    session: Worked, client: TestClient
) -> None:
    file = session.work / "sum.py"
    file.write_text(BEFORE)
    await session.step(lambda: file.write_text(AFTER))
    page = client.get(f"/s/{ID}/review").text
    assert '<span class="c-s">    For </span><ins><span class="c-s">ever</span></ins>' in page  # inside of a docstring
    assert '<span class="c-nf">sum</span>(items) * <ins>(<span class="c-m">1</span> + </ins>tax<ins>)</ins>' in page
    assert '<del><span class="c-s">now</span></del>' in page


async def test_a_conflict_shows_the_three_versions_and_changes_nothing(session: Worked, client: TestClient) -> None:
    file = session.work / "<i>.py"
    file.write_text(BEFORE)
    await session.step(lambda: file.write_text(AFTER))
    page = client.get(f"/s/{ID}/review").text
    trees = page.partition('data-trees="')[2].partition('"')[0].split(",")
    later = AFTER.replace("For ever", "For a <b>day").replace("def total", "def whole")
    file.write_text(later)
    said = {"trees": trees, "path": file.name, "hunks": [{"index": 0}]}
    answer = client.post(f"/s/{ID}/review/take-back", json=said).json()
    assert (answer["files"], len(answer["conflicts"]), file.read_text()) == ([], 1, later)
    shown = " ".join(_Text(answer["conflict"]).text.split())
    assert "Conflict in <i>.py: nothing was changed" in shown
    assert shown.index("Before the session") < shown.index("As the session left it") < shown.index("In the folder now")
    for line in ("For now.", "For ever.", "For a <b>day."):
        assert line in shown
    assert "def whole" not in shown, "what only one side changed is no conflict"


async def test_a_conflict_with_a_file_that_is_gone_says_so(session: Worked, client: TestClient) -> None:
    file = session.work / "a.txt"
    file.write_text("one\n")
    await session.step(lambda: file.write_text("two\n"))
    page = client.get(f"/s/{ID}/review").text
    trees = page.partition('data-trees="')[2].partition('"')[0].split(",")
    file.unlink()
    answer = client.post(f"/s/{ID}/review/take-back", json={"trees": trees, "path": "a.txt"}).json()
    assert len(answer["conflicts"]) == 1
    assert "In the folder now: It is not there." in _Text(answer["conflict"]).text


def test_what_is_too_large_or_of_no_known_kind_is_plain() -> None:
    colours = LineColours()
    assert colours.of("a.py", ["import os"])[0] == ((0, 6, "k"), (7, 9, "nc"))
    assert colours.of("a.unknown", ["import os"]) == ()
    assert colours.of("a.py", ["x = 1", "y" * 2_001]) == ()
    large = ["import os"] * 9_000
    assert [len(colours.of("a.py", large)) for _ in range(6)] == [9_000] * 4 + [0] * 2
    assert colours.of("a.py", ["import os"] * 10_001) == ()


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=60),
    st.lists(st.integers(0, 60), max_size=8),
    st.lists(st.integers(0, 60), max_size=8),
)
def test_every_character_of_a_line_is_there_once_whatever_is_coloured_and_marked(
    text: str, colours: list[int], marks: list[int]
) -> None:
    def spans(cuts: list[int]) -> list[tuple[int, int]]:
        places = sorted({min(cut, len(text)) for cut in cuts})
        return list(zip(places[::2], places[1::2], strict=False))

    html = line_html(text, tuple((*span, "k") for span in spans(colours)), tuple(spans(marks)), "ins")
    assert _Text(html).text == printable(text)
    assert html.count("<ins>") == html.count("</ins>") <= len(marks)


@given(st.text(alphabet="def x'\"<&#\n \t", max_size=200))
def test_code_in_colours_has_its_characters_and_no_markup_of_its_own(text: str) -> None:
    shown = code(text, language="python")
    assert unescape(re.sub(r'<span class="c-[a-z]+">|</span>', "", shown)) == page_text(text)
