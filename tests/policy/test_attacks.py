"""Lines that destroy, leak or take control, a file of `lines/attacks/` for each technique; `⏎` is a line break."""

from pathlib import Path

import pytest

from tests.policy.views import ROOT, Record, context
from treadle.policy.classify import classify_command
from treadle.policy.findings import CommandClass
from treadle.policy.marks import shown

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


def test_a_reason_names_words_of_the_line_and_no_pattern() -> None:
    lines = _lines(_LINES / "attacks" / "publishing_and_data.txt")
    texts = {
        (shown(" ".join(part.argv)), found.text.removesuffix(" publishes, destroys, leaks or takes control"))
        for line in lines
        for part in classify_command(line, ROOT, context()).parts
        for found in part.findings
        if found.rule == "dangerous-form" and part.argv and found.text.startswith(f"{part.argv[0]} ")
    }
    assert len(texts) > 100
    assert [(line, text) for line, text in texts if not all(word in line for word in text.split())] == []
