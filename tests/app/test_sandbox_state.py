"""What is said of the sandbox, and what does not start without one."""

from functools import cache
from pathlib import Path

import pytest

from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import SandboxUse, Settings
from treadle.app.reports.installation import installation_checks
from treadle.app.security.sandbox_state import SandboxSummary, describe_sandbox
from treadle.app.session.commands.lacking import Lacking, lacking
from treadle.protocol.errors import ConfigError
from treadle.protocol.events import SetMode, Source
from treadle.protocol.permissions import Mode
from treadle.workspace.sandbox import Backend, SandboxState, differences

NONE = SandboxState(backend=None, reason="bubblewrap is not installed; the kernel has no Landlock")
LANDLOCK = SandboxState(backend=Backend.LANDLOCK, reason="bubblewrap is not installed; Landlock 3 takes its place")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("treadle.app.security.sandbox_state.probe", lambda: NONE)
    monkeypatch.setattr("treadle.app.reports.installation.probe", lambda: NONE)


def test_the_model_is_told_once_what_commands_cannot_do_here(monkeypatch: pytest.MonkeyPatch) -> None:
    @cache
    def found() -> SandboxState:
        return LANDLOCK

    monkeypatch.setattr("treadle.workspace.sandbox.backend.probe", found)
    said = Lacking()
    assert said() == "", "nobody has looked yet"
    found()
    assert said() == lacking("landlock")
    assert said() == ""
    assert {str(one): bool(lacking(one)) for one in Backend} == {
        "bubblewrap": False,
        "landlock": True,
        "sandbox-exec": True,
    }


def opening(tmp_path: Path, mode: Mode, use: SandboxUse = SandboxUse.AUTO) -> Opening:
    settings = Settings(model="openai/one", base_url="http://localhost:1/v1", mode=mode, sandbox=use)
    return Opening(workspace=tmp_path, settings=settings, user_present=True)


def test_each_state_is_described() -> None:
    bubblewrap = SandboxState(backend=Backend.BUBBLEWRAP, program="/usr/bin/bwrap")
    assert describe_sandbox(bubblewrap) == SandboxSummary(text="bubblewrap (/usr/bin/bwrap)", whole=True)
    assert describe_sandbox(LANDLOCK) == SandboxSummary(text=f"Landlock: {LANDLOCK.reason}", whole=False)
    assert describe_sandbox(NONE) == SandboxSummary(text=f"none: {NONE.reason}", whole=False)


def test_the_doctor_says_what_is_lacking() -> None:
    (check,) = (check for check in installation_checks() if check.name == "sandbox")
    assert check.found == f"none: {NONE.reason}"
    assert "Until then mode auto does not start." in check.fix


def test_the_doctor_says_what_a_lesser_sandbox_cannot_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.app.reports.installation.probe", lambda: LANDLOCK)
    (check,) = (check for check in installation_checks() if check.name == "sandbox")
    assert check.found == f"Landlock: {LANDLOCK.reason}"
    assert check.fix.startswith("Install the system's package bubblewrap")
    assert "no sockets can be made" in check.fix
    assert all(sentence in check.fix for sentence in differences(Backend.LANDLOCK))


@pytest.mark.parametrize(
    ("mode", "use"), [(Mode.AUTO, SandboxUse.AUTO), (Mode.AUTO, SandboxUse.REQUIRED), (Mode.ASK, SandboxUse.REQUIRED)]
)
async def test_what_needs_a_sandbox_does_not_start_without(tmp_path: Path, mode: Mode, use: SandboxUse) -> None:
    with pytest.raises(ConfigError, match="needs a sandbox, and this system has none") as caught:
        await open_session(opening(tmp_path, mode, use))
    assert (caught.value.code, "Install the system's package bubblewrap" in caught.value.fix) == (
        "sandbox-missing",
        True,
    )


async def test_a_session_does_not_change_to_auto_without_a_sandbox(tmp_path: Path) -> None:
    async with await open_session(opening(tmp_path, Mode.EDITS)) as live:
        with pytest.raises(ConfigError, match="Mode auto needs a sandbox"):
            await live.post(SetMode(mode=Mode.AUTO), Source(kind="test"))
        assert live.status.mode is Mode.EDITS
