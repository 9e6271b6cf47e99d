"""Every effect, mode, answer and surface: all of it happens or nothing, and what is told is what happened."""

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.e2e.effects.driving import (
    DISCARDED,
    KEPT,
    STATUS,
    Surface,
    Told,
    in_editor,
    in_library,
    in_terminal,
    interrupted,
)
from tests.e2e.effects.table import DATES, EFFECTS, Ends, ends_of, lay_out, state_of
from tests.workspace.copies.copied import skip_without_copies
from treadle.library import Mode, OptionKind

SURFACES: dict[str, Surface] = {"library": in_library, "editor": in_editor, "terminal": in_terminal}
ANSWERS = (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE, OptionKind.RUN_FOR_REAL)
_SAMPLE = 12
_STOPPED = frozenset({"script that commits", "repository inside", "submodule"})
"""Lines that the sandbox stops or undoes in part when they run for real: nobody can know before what they need."""


def _cases() -> Iterator[object]:
    """All cases; a fixed sample of them is always run, of the quicker surfaces."""
    cases = [case for case in product(SURFACES, EFFECTS, Mode, ANSWERS) if _asks(*case[2:])]
    quick = [case for case in cases if case[0] == "library" or (case[0] == "editor" and case[2] is Mode.ASK)]
    chosen = set(random.Random(30).sample(quick, _SAMPLE))
    for case in cases:
        yield pytest.param(*case, marks=() if case in chosen else pytest.mark.soak)


def _asks(mode: Mode, answer: OptionKind) -> bool:
    """Whether an answer can make a difference: nothing is asked in mode plan."""
    return mode is not Mode.PLAN or answer is OptionKind.ALLOW_ONCE


@pytest.mark.parametrize(("surface", "effect", "mode", "answer"), list(_cases()))
async def test_all_of_an_effect_happens_or_nothing_and_the_model_reads_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, surface: str, effect: str, mode: Mode, answer: OptionKind
) -> None:
    skip_without_copies(tmp_path)
    for name, value in DATES.items():
        monkeypatch.setenv(name, value)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(home))
    (home / "config.toml").write_text(f"pass_variables = {list(DATES)!r}\n".replace("'", '"'))
    folder = tmp_path / "ws"
    ends = ends_of(effect, folder)
    lay_out(folder)
    told = await SURFACES[surface](EFFECTS[effect], folder, home, mode, answer)
    check(ends, state_of(folder), told, effect)


def check(ends: Ends, state: dict[str, str], told: Told, effect: str) -> None:
    """Compare what is with what may be, and with what was said."""
    said = f"{told.text}\n---\n{differences(ends, state)}"
    status = STATUS.search(told.text)
    if KEPT.search(told.text):
        assert state == ends.after, said
    elif DISCARDED.search(told.text):
        assert state == ends.before, said
    elif state not in (ends.before, ends.after):
        assert effect in _STOPPED, said
        # A command that goes on after what was stopped ends well: what was moved away is said.
        assert told.is_error or "ran twice" in told.text or "so it was moved to" in told.text, said
    elif status is not None and int(status[1]) == ends.status:
        assert state == ends.after, said
    undone = "so it was moved to" in told.text
    assert status is None or told.is_error is (status[1] != "0" or undone), said


def differences(ends: Ends, state: dict[str, str]) -> str:
    rows = [
        f"{name}: before {ends.before.get(name)!r}, after {ends.after.get(name)!r}, is {state.get(name)!r}"
        for name in sorted({*ends.before, *ends.after, *state})
        if len({ends.before.get(name), ends.after.get(name), state.get(name)}) > 1
    ]
    return "\n".join(rows[:20])


_BEGINS = "echo x >> a.txt"
_INTERRUPTED = f"{_BEGINS}; echo begun; sleep 600; echo y >> a.txt"


@pytest.mark.parametrize(
    "mode", [Mode.ASK, *(pytest.param(mode, marks=pytest.mark.soak) for mode in Mode if mode is not Mode.ASK)]
)
async def test_a_trial_that_is_interrupted_leaves_nothing_and_a_real_run_what_it_did_and_the_model_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    skip_without_copies(tmp_path)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "ws"
    lay_out(folder)
    before, first = state_of(folder), (folder / "a.txt").read_text()
    text = await interrupted(_INTERRUPTED, folder, mode)
    if mode in (Mode.AUTO, Mode.FULL):
        assert (folder / "a.txt").read_text() == f"{first}x\n"
    else:
        assert state_of(folder) == before, text
    assert text.startswith("Interrupted before it finished"), text
    assert ("It changed nothing in the workspace." in text) is (mode not in (Mode.AUTO, Mode.FULL)), text
