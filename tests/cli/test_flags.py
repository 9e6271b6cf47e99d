"""The flags are those of the settings, though they are listed without loading these."""

from treadle.cli.work import MODES, PROTOCOLS
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Mode


def test_the_flags_offer_every_mode_and_every_tool_protocol() -> None:
    assert tuple(Mode) == MODES
    assert tuple(ToolProtocol) == PROTOCOLS
