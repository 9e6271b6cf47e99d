"""Pages that are written by the program are as it would write them now (`make docs` writes them)."""

import json
import re
from pathlib import Path

import pytest

import treadle
from tests.engine.states_page import states_page
from treadle.protocol.codec import schemas

DOCS = Path(__file__).parents[2] / "docs"
SOURCE = Path(treadle.__file__).parent


@pytest.mark.parametrize("name", schemas())
def test_the_published_schemas_are_those_of_the_protocol(name: str) -> None:
    written = (DOCS / "schema" / f"{name}.json").read_text()
    assert written == json.dumps(schemas()[name], indent=2, sort_keys=True) + "\n"


def test_the_table_of_states_is_that_of_the_machine() -> None:
    assert (DOCS / "states.md").read_text() == states_page()


def test_the_page_on_changing_treadle_names_what_there_is() -> None:
    named = re.findall(r"`(?:pytest )?([^`]+)`", (DOCS / "contributing.md").read_text())
    words = {word.rstrip(",") for one in named for word in one.split() if re.fullmatch(r"[\w./-]+/[\w./-]*", word)}
    new = {word for word in words if "my_" in word}
    roots = (DOCS.parent, SOURCE)
    assert [word for word in sorted(words - new) if not any((root / word).exists() for root in roots)] == []
    assert len(words) > 20
    assert all((DOCS.parent / word).parent.is_dir() for word in new)
