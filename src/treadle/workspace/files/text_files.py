"""Reading text files whole, with their encoding and line ends as facts."""

import contextlib
import difflib
import errno
import hashlib
import os
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex
from treadle.workspace.files.encodings import Encoding, binary, detect
from treadle.workspace.files.judged import JudgedPath
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.text import escaped

_HALF = regex("[\udc80-\udcff]")

MAX_WHOLE = 16 * 1024 * 1024
"""Bytes up to which a file is read into memory; larger ones can only be paged."""


def sha256(data: bytes) -> str:
    """Hash bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


class TextFile(Struct, frozen=True, kw_only=True):
    """A text file as it was read. `text` has the file's own line ends."""

    name: str
    text: str
    digest: str
    read_as: Encoding = Encoding()

    @property
    def encoding(self) -> str:
        """The encoding as it is called; of a text with bytes that are none it says so."""
        return f"{self.read_as.name} with some bytes that are none" if self.read_as.broken else self.read_as.name

    @property
    def newline(self) -> str:
        """The line end that the file uses throughout; empty when it has none or mixes them."""
        crlf = self.text.count("\r\n")
        bare = self.text.count("\n") - crlf
        if crlf and bare:
            return ""
        return "\r\n" if crlf else "\n" if bare else ""

    def shown(self, text: str) -> str:
        """Give a text of this file as it may be shown: bytes that are no characters as `\\xe9`."""
        return _HALF.sub(lambda found: escaped(found[0]), text) if self.read_as.broken else text

    def encode(self, text: str) -> bytes:
        """Encode another text the way this file is encoded.

        Raises `ToolError` for characters that it cannot hold, and for new ones where it is not certain which bytes
        they are: what the file may be encoded in differs there.
        """
        read_as = self.read_as
        if not text.isascii() and (read_as.others or read_as.broken):
            self._check(Counter(text) - Counter(self.text))
        try:
            return read_as.mark + text.encode(read_as.name, read_as.errors)
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise ToolError(
                f"{self.name} is encoded as {self.encoding}, which has no {character!a}. Nothing was written. "
                "Use another character, or convert the file to UTF-8 first."
            ) from error

    def _check(self, added: Iterable[str]) -> None:
        """Refuse characters that come in anew as bytes which may be wrong."""
        for character in added:
            if character.isascii():
                continue
            if "\ud800" <= character <= "\udfff":
                raise ToolError(
                    f"{self.name} cannot get {character!a}: that is no character. Nothing was written. Leave it out."
                )
            if self.read_as.unsure(character):
                maybe = " or ".join((self.read_as.name, *self.read_as.others[:2]))
                raise ToolError(
                    f"It is not certain how {self.name} is encoded ({maybe}?), and {character!a} is written "
                    "differently in each. Nothing was written. Use ASCII characters and those that the file has. Or "
                    "ask the user for the encoding, and convert the file first: "
                    "`iconv -f ENCODING -t UTF-8`. A line that declares it, such as `coding: latin-1`, is read as well."
                )


def open_regular(path: str | JudgedPath, name: str) -> BinaryIO:
    """Open a regular file for reading, never waiting on a pipe or device. Raises `ToolError` that calls it `name`."""
    try:
        match path:
            case JudgedPath():
                descriptor = path.open(name)
            case _:
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ToolError(missing(path.asked if isinstance(path, JudgedPath) else path, name)) from error
    except OSError as error:
        raise _special(name) if error.errno == errno.ENXIO else _unreadable(error, name) from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise ToolError(f"{name} is a directory. Use list_files to see what is in it.")
    raise _special(name)


def _special(name: str) -> ToolError:
    return ToolError(
        f"{name} is not a regular file but a pipe, socket or device; reading it could take forever. "
        "Continue without it."
    )


def _unreadable(error: OSError, name: str) -> ToolError:
    return ToolError(f"{name} cannot be read: {error.strerror}. Continue without it, or tell the user.")


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn a read that fails half-way, as on a broken disk or in /proc, into a `ToolError`."""
    try:
        yield
    except OSError as error:
        raise _unreadable(error, name) from error


def missing(path: str, name: str) -> str:
    """Say that there is no such file, and which existing names come nearest."""
    wanted = Path(path)
    if wanted.is_symlink():
        leads = shown_name(str(wanted.readlink()))
        return f"{name} is a link to {leads}, which does not exist. Use another path, or fix the link with a command."
    try:
        names = [entry.name for entry in wanted.parent.iterdir()]
    except OSError:
        return f"{name} does not exist, nor does its directory. Use list_files to see what there is."
    if near := _nearest(wanted.name, names):
        return f"{name} does not exist. Did you mean {' or '.join(map(shown_name, near))}?"
    return f"{name} does not exist. Use list_files on its directory to see what there is."


def _nearest(wanted: str, names: Sequence[str]) -> list[str]:
    """Choose the names that differ only in how they are written, else those that come close."""
    alike = [name for name in names if _plain(name) == _plain(wanted)]
    return alike or difflib.get_close_matches(wanted, names, n=3)


def _plain(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def read_bytes(path: str | JudgedPath, name: str) -> bytes:
    """Read a file whole. Raises `ToolError` when it is missing, no regular file, or larger than `MAX_WHOLE`."""
    with open_regular(path, name) as file, reading(name):
        size = os.fstat(file.fileno()).st_size
        data = file.read(MAX_WHOLE + 1) if size <= MAX_WHOLE else b""
        if max(size, len(data)) > MAX_WHOLE:
            raise ToolError(
                f"{name} has {max(size, len(data)):,} bytes, which is too large (limit {MAX_WHOLE:,}). "
                "Page through it with read_file's start_line, and change it with a command."
            )
        return data


def read_text(path: str | JudgedPath, name: str) -> TextFile:
    """Read a text file whole; encoding it again gives the same bytes. Raises `ToolError`, also when it is binary."""
    return decode(read_bytes(path, name), name)


def decode(raw: bytes, name: str) -> TextFile:
    """Decode a text file's bytes. Raises `ToolError` when they are no text."""
    read_as = detect(raw, name)
    body = raw[len(read_as.mark) :]
    try:
        text = body.decode(read_as.name, read_as.errors)
        lossless = text.encode(read_as.name, read_as.errors) == body
    except UnicodeError:
        lossless = False
        text = ""
    if not lossless and read_as.name.startswith("utf-16") and not read_as.mark:
        raise binary(name)
    if not lossless:
        others = (read_as.name, *read_as.others)
        read_as, text = Encoding(name="latin-1", mark=read_as.mark, others=others), body.decode("latin-1")
    return TextFile(name=name, text=text, digest=sha256(raw), read_as=read_as)
