"""How one command is run: what is around it, and settings for the programs that it runs."""

from collections.abc import Callable, Mapping
from typing import Protocol, assert_never

from msgspec import Struct, field

from treadle.protocol.tools import Confinement, Right, Rights, SandboxDenial
from treadle.workspace.wrapping import PLAIN, Wrapping


def _no_denial(output: str) -> SandboxDenial | None:  # noqa: ARG001 - nothing is denied where nothing confines
    return None


class Setup(Struct, frozen=True):
    """How to run one command; `find_denial` tells from its output, should it fail, what the sandbox stopped."""

    wrapping: Wrapping = PLAIN
    variables: Mapping[str, str] = field(default_factory=dict)
    find_denial: Callable[[str], SandboxDenial | None] = _no_denial


OPEN = Rights(confinement=Confinement.OPEN)


class Confine(Protocol):
    """Sets up the run of a line under its rights; may look at the disk for some milliseconds. Raises `ToolError`."""

    def __call__(self, line: str, rights: Rights, *, background: bool = False) -> Setup:
        """Set up exactly what the rights say; a line in the background sees the workspace as it changes."""
        ...


def unconfined(line: str, rights: Rights, *, background: bool = False) -> Setup:  # noqa: ARG001 - as it comes
    """Run every line as it is."""
    return Setup()


def describe(denial: SandboxDenial) -> str:
    """Say in a sentence what the sandbox stopped."""
    match denial.right:
        case Right.READ:
            return f"The sandbox does not allow reading {denial.target}."
        case Right.WRITE:
            return f"The sandbox does not allow changing {denial.target}."
        case Right.NETWORK:
            return "The sandbox has no network, and cannot reach servers on this machine either."
        case Right.UNSANDBOXED:
            return "The sandbox never allows this: tracing, mounting, nested sandboxes, programs outside of it."
        case _:
            assert_never(denial.right)
