"""Treadle: a coding agent that says what it did, what it may do, what it costs and how to undo it."""

__version__ = "0.2.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from treadle.library import Treadle as Treadle


def __getattr__(name: str) -> object:
    """Load the library where a program asks for it: the command line starts without."""
    if name == "Treadle":
        from treadle.library import Treadle

        return Treadle
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
