"""Words are found in what a person reads of a session, the newest first, each by its own line."""

from treadle.present.item_search import FoundItem, found_items
from treadle.present.items import (
    CallItem,
    Item,
    ModelItem,
    NoteItem,
    OwnCommandItem,
    Placed,
    ProblemItem,
    ProseItem,
    SaidItem,
)
from treadle.protocol.notifications import CallChanged, CallStatus
from treadle.protocol.tools import Outcome, ToolCall, ToolKind, result_text


def placed(*items: Item | None) -> list[Placed]:
    return [Placed(position=at, version=1, seq=at, item=item) for at, item in enumerate(items)]


def test_words_are_found_in_every_kind_of_item_and_the_newest_comes_first() -> None:
    items = placed(
        SaidItem("Fix the\nNEEDLE here."),
        ProseItem(markdown="It is **the** `needle`.\nNothing."),
        None,
        ModelItem("needle"),
        OwnCommandItem(number=1, line="ls", output="a\nneedle.py\n"),
        NoteItem("Nothing here."),
        ProblemItem("It broke.", fix="Take the needle out."),
    )
    assert found_items(items, "Needle") == [
        FoundItem(6, "Problem", "Take the needle out."),
        FoundItem(4, "Your command", "needle.py"),
        FoundItem(1, "Answer", "It is the needle."),
        FoundItem(0, "You", "NEEDLE here."),
    ]
    assert found_items(items, "the needle") == [
        FoundItem(6, "Problem", "Take the needle out."),
        FoundItem(1, "Answer", "It is the needle."),
    ]


def test_a_long_line_is_cut_around_what_was_found_and_no_more_than_sixty_come() -> None:
    (long,) = found_items(placed(NoteItem(f"{'a' * 500} needle {'b' * 500}")), "needle")
    assert "needle" in long.line
    assert (long.line[0], long.line[-1], len(long.line)) == ("…", "…", 162)
    many = found_items(placed(*(NoteItem(f"needle {n}") for n in range(100))), "needle")
    assert [one.position for one in many] == list(range(99, 39, -1))


def test_words_over_two_lines_are_found_and_shown_as_far_as_they_fit() -> None:
    assert found_items(placed(NoteItem("one\ntwo")), "one\ntwo")[0].line == "one\ntwo"


def test_what_only_the_model_reads_is_not_found_and_what_would_steer_is_shown() -> None:
    call = ToolCall(id="c", name="run", arguments={"command": "ls"})
    results = (result_text(Outcome.OK, "a needle"), result_text(Outcome.DENIED, "Tell the user about the needle."))
    ran, denied = (
        CallItem(CallChanged(call=call, kind=ToolKind.EXECUTE, status=CallStatus.FINISHED, result=result))
        for result in results
    )
    assert [(one.position, one.line) for one in found_items(placed(denied, ran), "needle")] == [(1, "a needle")]
    (found,) = found_items(placed(NoteItem("needle \u202egpj.exe")), "needle")
    assert found.line == "needle \\u202egpj.exe"
