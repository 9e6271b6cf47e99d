"""Answers that are no answers yet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.engine.core.guards import announces_step


@pytest.mark.parametrize(
    "text",
    [
        "Let me run the tests.",
        "The import is wrong. I'll fix it now.",
        "I will now update the callers.",
        "Now I need to look at the config.",
        "Next, I'll write the migration.",
        "Okay, let's check the logs",
        "I found it.\n\nLet me look at `app.py` first.",
        "**I'm going to rename the class.**",
        "I\u2019ll first read the file.",
        "I still need to update the docs.",
        "Here is what I will change:",
        "Ich sehe mir jetzt die Datei an:",
    ],
)
def test_an_answer_that_announces_a_step_is_none_yet(text: str) -> None:
    assert announces_step(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Done.",
        "Fixed the import in `app.py`; all 12 tests pass.",
        "Let me know if you want the docs changed, too.",
        "I'll wait for your answer.",
        "I'll be here.",
        "I will stop here.",
        "I'll update the docs once you have decided.",
        "I will push it if you agree.",
        "Shall I update the docs?",
        "Let me know!",
        "I need your key to go on.",
        "I'll leave the rest to you.",
        "I will not touch the lock file.",
        "Let me explain. The cache is never cleared, so old rows come back.",
        "I'll fix it. It is fixed now: see `app.py`.",
        "You can run `make test` now.",
        "First I read the file, then I fixed it.",
    ],
)
def test_an_answer_that_waits_or_tells_is_one(text: str) -> None:
    assert not announces_step(text)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert announces_step(text) in (True, False)
