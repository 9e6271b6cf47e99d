"""The sum of the turns of a run."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from treadle.headless.progress import turns_together
from treadle.protocol.notifications import TurnOutcome, TurnStop
from treadle.protocol.tools import FileChange
from treadle.protocol.usage import Usage


@dataclass(frozen=True)
class Edit:
    """What a turn makes of a file."""

    path: str
    text: str


edits = st.lists(
    st.builds(Edit, st.sampled_from(["/a", "/b", "/c"]), st.sampled_from(["", "1", "2"])),
    max_size=3,
    unique_by=lambda one: one.path,
)
runs = st.lists(st.tuples(edits, st.integers(0, 2), st.sampled_from(["", "answer"])), min_size=1, max_size=4)


@given(runs)
def test_turns_together_are_what_one_turn_would_have_been(made: list[tuple[list[Edit], int, str]]) -> None:
    files, outcomes = dict.fromkeys(("/a", "/b", "/c"), ""), []
    for changed, denied, text in made:
        changes = tuple(
            FileChange(path=one.path, before=files[one.path], after=one.text, added=1)
            for one in changed
            if files[one.path] != one.text
        )
        files |= {one.path: one.after for one in changes}
        outcomes.append(
            TurnOutcome(
                stop=TurnStop.END_TURN,
                text=text,
                steps=2,
                usage=Usage(input_tokens=3),
                cost=0.5,
                changes=changes,
                denied=denied,
                refused=denied + 1,
                unseen=tuple(sorted({one.path for one in changes})),
            )
        )
    whole = turns_together(outcomes)
    assert {(one.path, one.before, one.after) for one in whole.changes} == {
        (path, "", text) for path, text in files.items() if text
    }
    assert (whole.steps, whole.usage.input_tokens, whole.cost) == (2 * len(made), 3 * len(made), 0.5 * len(made))
    assert whole.denied == sum(denied for _, denied, _ in made)
    assert whole.refused == whole.denied + len(made)
    assert whole.text == next((text for _, _, text in reversed(made) if text), "")
    assert set(whole.unseen) == {path for outcome in outcomes for path in outcome.unseen}
