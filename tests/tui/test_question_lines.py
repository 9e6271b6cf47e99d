"""Questions as they are drawn, of every kind, at three widths and in every look."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from prompt_toolkit.utils import get_cwidth

from tests.tui.asked import (
    BLOCKS,
    EDIT,
    EVERY_KIND,
    FOLLOWUP,
    READ_OUTSIDE,
    RUN,
    command,
    decided,
    part,
    path,
)
from treadle.protocol.permissions import Question, QuestionKind
from treadle.protocol.tools import FetchUrl, ReadPath, Right, Risk, RunCommand, SandboxDenial, WritePath
from treadle.tui.paint.lines import Line, line, line_text
from treadle.tui.paint.theme import Signs
from treadle.tui.question.asked import Asking, Stage, ask, change, comment, confirm, move
from treadle.tui.question.asked_about import diff_of
from treadle.tui.question.dialog import ONCE_MORE, Dialog
from treadle.tui.question.question_lines import question_lines, whole_question

WIDTHS = (40, 80, 120)


def rows_of(
    asking: Asking,
    width: int,
    *,
    rows: int = 24,
    signs: Signs | None = None,
    hint: str = "",
    roots: tuple[str, ...] = ("/project",),
) -> list[Line]:
    dialog = Dialog(asking=asking, focused=True, hint=hint)
    laid = question_lines(dialog, roots, width=width, rows=rows, signs=signs or Signs())
    return [*laid.above, *([laid.field] if laid.field else []), *laid.under]


def shown(asking: Asking, width: int, **more: object) -> str:
    return "".join(f"{line_text(row)}\n" for row in rows_of(asking, width, **more))  # type: ignore[arg-type]


def test_a_hint_stands_where_the_keys_are_named() -> None:
    assert shown(ask(RUN), 80, hint=ONCE_MORE).splitlines()[-2:] == [f"▎ {ONCE_MORE}", ""]


@pytest.mark.parametrize("name", EVERY_KIND)
def test_a_question_stands_apart_where_that_costs_none_of_its_lines(name: str) -> None:
    asking = ask(EVERY_KIND[name])
    apart = rows_of(asking, 80, rows=40)
    assert apart[:2] == [(), line(("dim", "─" * 80))]
    assert apart[-1] == ()
    question = apart[2:-1]
    assert all(line_text(row).startswith("▎") for row in question)
    above = 3 if diff_of(asking) else 0  # rows in which the diff above it is seen
    for room in range(4):
        laid = rows_of(asking, 80, rows=len(question) + above + room)
        assert (laid[:-1] == question[:-1]) == (room < 3)  # the keys that are named depend on the room
        assert (laid[:-2] == apart[:-2]) == (room == 3)


def test_a_line_of_words_stands_apart_with_its_question() -> None:
    asking = comment(ask(RUN))
    laid = question_lines(Dialog(asking=asking, focused=True), ("/project",), width=80, rows=24, signs=Signs())
    assert laid.above[:2] == [(), line(("dim", "─" * 80))]
    assert (laid.above[-1] != (), laid.under[-1]) == (True, ())


def test_the_block_that_is_asked_about_looks_like_a_diff() -> None:
    asking = confirm(move(ask(EDIT), 2))
    assert isinstance(asking, Asking)
    texts = [line_text(row) for row in rows_of(asking, 80)]
    assert [text for text in texts if text.startswith(("▎   -", "▎   +"))] == ["▎   - first", "▎   + first!"]
    assert not any("SEARCH" in text or "REPLACE" in text for text in texts)


@pytest.mark.parametrize("name", ["diff", "patch"])
@pytest.mark.parametrize("width", [20, 80])
def test_an_edit_that_the_person_changed_looks_like_a_diff_and_counts_nothing_of_the_old_one(
    name: str, width: int
) -> None:
    text = BLOCKS.replace("second!", "third!") if name == "diff" else "*** Begin Patch\n@@\n-first\n+third!\n"
    for asking in (change(ask(EDIT), name, text), comment(change(ask(EDIT), name, text))):
        for rows in (rows_of(asking, width), whole_question(asking, ("/project",), width, Signs())):
            texts = [line_text(row) for row in rows]
            assert any(row.endswith("- first") for row in texts)
            assert any(row.endswith("+ third!") for row in texts)
            assert not any("SEARCH" in row or "REPLACE" in row or "+1 -1" in row for row in texts)
            assert "This is your change." in " ".join(" ".join(texts).replace("▎", "").split())


def test_a_long_command_shows_its_beginning_and_its_end() -> None:
    line = "\n".join([*[f": line {number}" for number in range(399)], "touch made-at-the-end"])
    text = shown(ask(command(line, decided(Risk.EXECUTE))), 80)
    assert text.count("▎") <= 17
    assert ": line 0\n" in text
    assert "touch made-at-the-end" in text
    assert "more lines, ctrl-o shows all" in text
    assert "❯ Yes" in text


def test_whatever_is_long_the_answers_and_the_rights_are_in_sight_and_the_pager_has_it_all() -> None:
    words = [f"word{number}" for number in range(400)]
    rights = (SandboxDenial(right=Right.NETWORK), SandboxDenial(right=Right.WRITE, target=f"/srv/{'y' * 900}"))
    decision = replace(decided(Risk.EXECUTE, parts=tuple(part(word, Risk.EXECUTE) for word in words)), grants=rights)
    for question in (
        command("; ".join(words), decision),
        replace(command("x", decision), arguments={"command": "x"}),
        replace(EDIT, accesses=(WritePath(path=f"/project/{' '.join(words)}"),)),
        replace(FOLLOWUP, text="\n".join(words)),
        replace(FOLLOWUP, options=(" ".join(words), "no")),
    ):
        laid = question_lines(
            Dialog(asking=ask(question), focused=True), ("/project",), width=80, rows=16, signs=Signs()
        )
        shown_now = "".join(f"{line_text(row)}\n" for row in laid.above)
        assert len(laid.above) <= 20, shown_now
        assert "❯ " in shown_now
        assert laid.pager
        assert "ctrl-o all" in shown_now
        assert ("Runs with network access" in shown_now) is (
            question.kind is QuestionKind.PERMISSION and question.preview is not EDIT.preview
        )
        whole = " ".join(line_text(row) for row in whole_question(ask(question), ("/project",), 80, Signs()))
        assert all(word in whole for word in words)


def test_what_was_changed_and_a_block_are_whole_in_the_pager_and_harmless() -> None:
    lines = "\n".join(f"line {number}\u202e" for number in range(60))
    changed = whole_question(change(ask(EDIT), "content", lines), ("/project",), 60, Signs())
    assert [line_text(row) for row in changed if "line 5" in line_text(row)][:1] == [r"  line 5\u202e"]
    assert "new" not in "".join(map(line_text, changed)), "the diff is of what will not be made any more"
    assert "+ new" in "".join(line_text(row) for row in whole_question(ask(EDIT), ("/project",), 60, Signs()))


def test_every_path_outside_is_named_with_where_links_lead(tmp_path: Path) -> None:
    outside = tmp_path.resolve()
    root = outside / "ws"
    root.mkdir()
    (root / "link").symlink_to(outside / "far")
    accesses = (
        WritePath(path=f"{root}/in.py"),
        WritePath(path="/etc/x\nrisk: none\u202e"),
        WritePath(path=f"{root}/../gone", delete=True),
        ReadPath(path=f"{root}/link"),
        ReadPath(path="/srv", listing=True),
        FetchUrl(url="http://a/"),
    )
    question = replace(path(WritePath(path="/x"), Risk.WRITE), accesses=accesses)
    text = [line.removeprefix("▎ ") for line in shown(ask(question), 400, roots=(str(root), "/srv")).splitlines()[2:]]
    assert text[:5] == [
        text[0],
        r"  /etc/x\x0arisk: none\u202e",
        f"  Deletes outside this project: {root}/../gone, which leads to {outside}/gone",
        f"  Reads outside this project: {root}/link, which leads to {outside}/far",
        "  Sends http://a/.",
    ]
    assert text[0].startswith("Write a file outside this project?")


def test_a_link_out_of_the_project_is_followed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/etc/hostname")
    question = replace(READ_OUTSIDE, accesses=(ReadPath(path=str(link)),))
    assert f"{link} leads to /etc/hostname" in shown(ask(question), 300, roots=(str(tmp_path),))


TRICKY = st.text(st.sampled_from("ab 日\n\t`*#|-[]()\x1b\x07\u202e\u200b🎉👩\u200d🚀"), max_size=120)


@settings(max_examples=60)
@given(TRICKY, st.integers(20, 130), st.sampled_from(list(Stage)))
def test_nothing_is_wider_than_the_screen_or_steers_it(text: str, width: int, stage: Stage) -> None:
    questions: list[Question] = [
        replace(question, text=text, options=(text, text) if name == "follow-up" else question.options)
        for name, question in EVERY_KIND.items()
    ]
    questions.append(command(text, decided(Risk.EXECUTE)))
    questions.append(replace(RUN, accesses=(RunCommand(command=text, cwd=text),)))
    for question in questions:
        rows = rows_of(ask(question), width)
        assert all(get_cwidth(line_text(row)) <= width for row in rows), [line_text(row) for row in rows]
        assert not any(char in "".join(map(line_text, rows)) for char in "\x1b\x07\u202e\n")
