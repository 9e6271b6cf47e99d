"""Which further folders a session gets, at its start and when it goes on."""

from pathlib import Path

import pytest

from treadle.app.config.sections import Settings
from treadle.app.security.trusting import session_trust, trust_store
from treadle.app.session.files.roots import Roots, further_roots, past_roots
from treadle.app.session.known_values import session_redactor
from treadle.protocol.errors import ConfigError
from treadle.protocol.events import Event, SessionStarted, Source
from treadle.protocol.limits import Limits
from treadle.protocol.models import ModelChoice, ToolProtocol
from treadle.protocol.permissions import Mode


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    for name in ("ws/inner", "a/inner", "b"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path / "ws"


def began(*roots: str) -> list[Event]:
    started = SessionStarted(
        choice=ModelChoice(model="m/m", tool_protocol=ToolProtocol.NATIVE),
        session_id="s",
        workspace="/ws",
        roots=roots,
        mode=Mode.ASK,
        limits=Limits(),
    )
    return [Event(seq=1, at=0, source=Source(kind="user"), data=started)]


def test_folders_are_resolved_and_taken_once(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a")
    found = further_roots(workspace, [str(tmp_path / "link"), str(tmp_path / "a"), str(workspace), str(tmp_path / "b")])
    both = (str(tmp_path / "a"), str(tmp_path / "b"))
    assert found == Roots(folders=both, untrusted=both)


def test_a_folder_in_another_or_around_the_workspace_is_left_out_and_said(workspace: Path, tmp_path: Path) -> None:
    inner = tmp_path / "a" / "inner"
    for wanted in ([inner, tmp_path / "a"], [tmp_path / "a", inner]):
        found = further_roots(workspace, list(map(str, wanted)))
        assert found.folders == (str(tmp_path / "a"),)
        assert found.notices == (f"{inner} is in {tmp_path / 'a'}, which already includes it.",)
    assert further_roots(workspace, [str(workspace / "inner")]).folders == ()
    around = further_roots(workspace / "inner", [str(workspace)])
    assert around.folders == ()
    assert around.notices[0].startswith(f"left out: {workspace} contains the workspace.")


def test_a_folder_is_trusted_only_by_a_word_of_its_own(workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "a"
    trust_store().grant(session_trust(other).trust)
    assert further_roots(workspace, [str(other)]) == Roots(folders=(str(other),))
    (other / "AGENTS.md").write_text("new")
    assert further_roots(workspace, [str(other)]).untrusted == (str(other),)


def test_a_session_that_goes_on_leaves_out_a_folder_that_leads_elsewhere_now(workspace: Path, tmp_path: Path) -> None:
    history = began(str(tmp_path / "a"), str(tmp_path / "b"))
    assert past_roots(workspace, history, None).folders == (str(tmp_path / "a"), str(tmp_path / "b"))
    (tmp_path / "b").rmdir()
    (tmp_path / "b").symlink_to(tmp_path / "a")
    found = past_roots(workspace, history, [str(tmp_path / "a")])
    assert found.folders == (str(tmp_path / "a"),)
    assert found.notices == (f"left out: {tmp_path / 'b'} now points to {tmp_path / 'a'}.",)


def test_a_session_that_goes_on_gets_no_new_folder(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        past_roots(workspace, began(), [str(tmp_path / "a")])
    assert caught.value.code == "add-dir-late"


def test_the_secrets_of_every_folder_are_hidden(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "a" / ".env").write_text("TOKEN=plain-words-of-no-known-form\n")
    text = "it is plain-words-of-no-known-form"
    assert session_redactor(str(workspace), Settings(), {}).redact(text) == text
    hidden = session_redactor(str(workspace), Settings(), {}, roots=[str(tmp_path / "a")]).redact(text)
    assert "plain-words" not in hidden
