"""Every effect, mode, answer and surface: all of it happens or nothing, and what is told is what happened."""

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.e2e.effects.driving import DISCARDED, KEPT, STATUS, Surface, Told, in_editor, in_library, in_terminal
from tests.e2e.effects.table import DATES, EFFECTS, Ends, ends_of, lay_out, state_of
from tests.workspace.copies.copied import skip_without_copies
from treadle.library import Mode, OptionKind

SURFACES: dict[str, Surface] = {"library": in_library, "editor": in_editor, "terminal": in_terminal}
ANSWERS = (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE, OptionKind.RUN_FOR_REAL)
_SAMPLE = 12
_STOPPED = frozenset({"script that commits", "repository inside", "worktree"})
"""Lines that the sandbox stops or undoes in part when they run for real: nobody can know before what they need."""


def _cases() -> Iterator[object]:
    """All cases; a fixed sample of them is always run."""
    cases = [case for case in product(SURFACES, EFFECTS, Mode, ANSWERS) if _is_usual(*case)]
    chosen = set(random.Random(30).sample([case for case in cases if case[0] != "terminal"], _SAMPLE))
    for case in cases:
        yield pytest.param(*case, marks=() if case in chosen else pytest.mark.soak)


def _is_usual(surface: str, effect: str, mode: Mode, answer: OptionKind) -> bool:
    """Leave out of the slower surfaces what the library has shown."""
    if mode is Mode.PLAN and answer is not OptionKind.ALLOW_ONCE:
        return False
    return surface == "library" or (mode is Mode.ASK and (surface == "editor" or hash_of(effect) % 3 == 0))


def hash_of(text: str) -> int:
    return sum(map(ord, text))


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
        assert told.is_error or "ran twice" in told.text, said
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
