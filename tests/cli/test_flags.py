"""The flags are those of the settings, though they are listed without loading these."""

import pytest

from treadle.app.errors.exits import Exit
from treadle.cli.main import run
from treadle.cli.work import MODES, PROTOCOLS
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Mode


def test_the_flags_offer_every_mode_and_every_tool_protocol() -> None:
    assert tuple(Mode) == MODES
    assert tuple(ToolProtocol) == PROTOCOLS


def test_a_copy_does_not_go_with_a_session_that_has_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("--resume", "x", "-p", "t"), ("--attach", "x", "-p", "t"), ("--attach",)):
        assert run(("-w", "name", *words)) == Exit.USAGE
        assert "[copy-name]" in capsys.readouterr().err
    assert run(("-w", "name", "--bg", "x", "-p", "t", "--variants", "2")) == Exit.USAGE
    assert "[variants-use]" in capsys.readouterr().err
