"""Lines that destroy, leak or take control, a file of `lines/attacks/` for each technique; `⏎` is a line break."""

from pathlib import Path

import pytest

from tests.policy.views import ROOT, Record, context
from treadle.policy.classify import classify_command
from treadle.policy.findings import CommandClass

_LINES = Path(__file__).parent / "lines"


def _lines(path: Path) -> list[str]:
    return [line.replace("⏎", "\n") for line in path.read_text().splitlines()]


@pytest.mark.parametrize("path", sorted((_LINES / "attacks").iterdir()), ids=lambda path: path.stem)
def test_attacks_are_dangerous(path: Path, record_property: Record) -> None:
    lines = _lines(path)
    milder = [
        line
        for line in lines
        for trusted in (True, False)
        if classify_command(line, ROOT, context(trusted=trusted)).command_class is not CommandClass.DANGEROUS
    ]
    record_property("figure", f"attacks, {path.stem}: {len(lines)} lines, {len(milder)} milder than dangerous")
    assert milder == []


def test_what_may_be_an_attack_is_asked() -> None:
    lines = _lines(_LINES / "attacks_that_ask.txt")
    assert [line for line in lines if classify_command(line, ROOT, context()).command_class.value == "read_only"] == []
