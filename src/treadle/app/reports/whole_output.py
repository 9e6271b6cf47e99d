"""All that a command printed, from the file that keeps it: read in pieces, the last one first."""

from os import SEEK_END
from pathlib import Path

from msgspec import Struct

from treadle.app.config.places import outputs
from treadle.app.session.commands.shown_output import ShownOutput
from treadle.protocol.errors import SessionError


class OutputPiece(Struct, frozen=True):
    """A piece of an output: its text, fit to be shown, and in bytes where it begins in all that was printed."""

    text: str
    begin: int


def output_piece(place: str, most: int, before: int | None = None) -> OutputPiece:
    """Read the last lines `before` a place of a file, or its end, about `most` bytes.

    Raises `SessionError` for a file that is not there any more, or is none that Treadle keeps outputs in.
    """
    try:
        path = Path(place).resolve(strict=True)
        if not path.is_relative_to(outputs().resolve()):
            raise FileNotFoundError(place)
        with path.open("rb") as file:
            end = file.seek(0, SEEK_END) if before is None else before
            begin = max(0, end - most)
            file.seek(begin)
            data = file.read(end - begin)
    except OSError as e:
        raise SessionError(
            "output-gone",
            "This output is not kept any more.",
            why="The files of long outputs are removed after a while.",
            fix="Run the command again.",
        ) from e
    if begin and b"\n" in data:
        begin += data.index(b"\n") + 1
        data = data[data.index(b"\n") + 1 :]
    shown = ShownOutput()
    return OutputPiece(shown.feed(data) + shown.finish(), begin)
