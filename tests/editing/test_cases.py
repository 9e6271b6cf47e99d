"""The labelled cases: exact edits all right, none applied that must be refused."""

from collections import Counter

import pytest
from bench.edits import APPLIED, MISSED, RIGHT, WRONG, cases_folder, labelled_trials, tally

from treadle.editing import EditFormat

FOLDER = cases_folder()


@pytest.mark.skipif(FOLDER is None, reason="the labelled cases are not here")
@pytest.mark.parametrize("form", [form for form in EditFormat if form is not EditFormat.WHOLE])
def test_labelled_edits_meet_the_bars(form: EditFormat) -> None:
    assert FOLDER is not None
    table = tally(trial for trial in labelled_trials(FOLDER) if trial.form is form)
    exact = sum((counts for (group, _), counts in table.items() if group == "control"), Counter[str]())
    every = sum(table.values(), Counter[str]())

    assert set(exact) == {RIGHT}
    assert every[APPLIED] == 0
    assert every[WRONG] <= 0.005 * every.total()
    assert every[MISSED] <= 0.01 * every.total()
