"""Fixtures for pytest, where Treadle is installed; nothing of Treadle is loaded before a test asks for one."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from treadle.providers.scripted.provider import ScriptedProvider
    from treadle.testing import ScriptedReply

_OWN = ("TREADLE_", "ANTHROPIC_", "OPENAI_", "GEMINI_")
"""How the variables begin that choose a model; a test never calls one of the user's."""


@pytest.fixture
def treadle_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in. Treadle's data and settings are in a folder of this test, too."""
    for name in list(os.environ):
        if name.startswith(_OWN) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "treadle-home"))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return workspace


@pytest.fixture
def treadle_model() -> "Iterator[Callable[..., ScriptedProvider]]":
    """Make models that play a script, as `treadle.testing.scripted_model` does.

    The test fails where one was sent a request that its script has no reply for.
    """
    made: list[ScriptedProvider] = []

    def model(*replies: "ScriptedReply") -> "ScriptedProvider":
        from treadle.testing import scripted_model

        made.append(scripted_model(*replies))
        return made[-1]

    yield model
    problems = [problem for one in made for problem in one.violations]
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)
