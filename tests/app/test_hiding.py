"""What a session hides, also when it learns of a secret after its first text."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from treadle.app.config.sections import Settings
from treadle.app.session.first_use import Hiding

SECRET = "correct-horse-battery-staple"


def test_a_secret_that_is_learned_later_is_hidden_from_then_on(tmp_path: Path) -> None:
    folders: tuple[str, ...] = ()
    parts: Any = SimpleNamespace(
        trust=SimpleNamespace(workspace=tmp_path), settings=Settings(), roots=SimpleNamespace(folders=folders)
    )
    hiding = Hiding(parts)
    assert hiding.redact(SECRET) == SECRET
    hiding.hide([(SECRET, "A_TOKEN")])
    assert SECRET not in hiding.redact(f"It is {SECRET}.")
    assert SECRET not in hiding.redactor().redact(SECRET)
