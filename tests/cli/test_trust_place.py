"""The folder that is asked about is written as people write it, and harmless."""

from pathlib import Path

import pytest

from treadle.cli.trust_question import said_line, trust_question
from treadle.store.trusted_folders import Trust, TrustState
from treadle.tui.paint.lines import line_text
from treadle.tui.paint.theme import Signs


@pytest.mark.parametrize(("name", "shown"), [("ws", "~/ws"), ("a\x1bb", "~/a\\x1bb"), ("~", "~/\\x7e")])
def test_a_folder_of_the_home_is_shown_with_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, shown: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    trust = Trust(workspace=tmp_path / name, state=TrustState.UNTRUSTED, items=())
    assert trust_question(trust).about == shown
    assert line_text(said_line(trust, Signs())).endswith(f"Not trusted yet: {shown}")
