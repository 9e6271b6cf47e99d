"""How one command is run: what is around it, and settings for the programs that it runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, assert_never

from msgspec import Struct, field

from treadle.protocol.tools import Confinement, CopyChanges, Right, Rights, SandboxDenial
from treadle.workspace.commands.wrapping import UNWRAPPED, Wrapping


def _no_denial(output: str) -> SandboxDenial | None:  # noqa: ARG001 - nothing is denied where nothing confines
    return None


def _never_refused(denial: SandboxDenial) -> str:  # noqa: ARG001 - nothing is denied where nothing confines
    return ""


class Remark(Struct, frozen=True):
    """A sentence about what a command did; `undone`: a part of that was taken back, whatever its exit status says."""

    text: str
    undone: bool = False


def _settled(output: str, *, ended: bool) -> tuple[Remark, ...]:  # noqa: ARG001 - nothing is looked for
    return ()


class Settle(Protocol):
    """Looks at what a command did, now and then while it runs and once it has `ended`; gives remarks about it.

    May look at the disk for some milliseconds. `output` is what the command printed since the last time.
    """

    def __call__(self, output: str, *, ended: bool) -> tuple[Remark, ...]:
        """Look."""
        ...


class ReadChanges(Protocol):
    """Says what a command that has ended changed in its copy; looks at the disk."""

    def __call__(self, output: str, *, failed: bool) -> CopyChanges:
        """`output` is searched for what a copy cannot do, where the command `failed`."""
        ...


def _unnoted(guard: int) -> None:
    """Take no note of which process is above a command."""


class Setup(Struct, frozen=True):
    """How to run one command; `find_denial` tells from its output, should it fail, what the sandbox stopped.

    `why_never` says why no yes opens that, with the way on; it gives nothing where somebody can be asked.
    `started` is told which process is above all of the command's. `changes` reads what it changed in its throw-away
    copy; None where it has none. With `refused` it is not run: that right is known to be missing before. `unsaid` takes
    the remarks that came too late for the command's result, and `meanwhile` those that are made while it runs, which
    its result has, too.
    """

    wrapping: Wrapping = UNWRAPPED
    variables: Mapping[str, str] = field(default_factory=dict)
    find_denial: Callable[[str], SandboxDenial | None] = _no_denial
    why_never: Callable[[SandboxDenial], str] = _never_refused
    settle: Settle = _settled
    changes: ReadChanges | None = None
    refused: SandboxDenial | None = None
    started: Callable[[int], None] = _unnoted
    unsaid: Callable[[Sequence[Remark]], object] = list
    meanwhile: Callable[[Sequence[Remark]], object] = list


OPEN = Rights(confinement=Confinement.OPEN)


class Confine(Protocol):
    """Sets up the run of a line under its rights; may look at the disk for some milliseconds. Raises `ToolError`."""

    def __call__(
        self, line: str, rights: Rights, *, background: bool = False, cwd: str = "", of_git: bool = False
    ) -> Setup:
        """Set up exactly what the rights say, in a folder of the workspace.

        A line in the background sees the workspace as it changes. What is `of_git` is a call that came to Treadle from
        another command: git in it is git itself, and no call of it comes to Treadle again.
        """
        ...


def describe_denial(denial: SandboxDenial) -> str:
    """Say in a sentence what the sandbox stopped."""
    match denial.right:
        case Right.READ:
            return f"The sandbox does not allow reading {denial.target}."
        case Right.WRITE:
            return f"The sandbox does not allow changing {denial.target}."
        case Right.NETWORK:
            return f"The sandbox does not allow this connection{f': {denial.target}' if denial.target else ''}."
        case Right.UNSANDBOXED if denial.target:
            made = f"Landlock, the sandbox here, lets a command make no {denial.target}: protected files are beside it."
            in_git = "/.git/" in denial.target
            return f"{made} {'Git needs' if in_git else 'Make it with write_to_file, or it needs'} a run without it."
        case Right.UNSANDBOXED:
            return "The sandbox never allows this: tracing, mounting, nested sandboxes, programs outside of it."
        case _:
            assert_never(denial.right)
