"""The head of a GGUF file: how much a model can hold, without loading it."""

import struct
from pathlib import Path
from typing import BinaryIO

_MAGIC = b"GGUF"
_STRING, _ARRAY = 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_INTEGERS = {4: "<I", 5: "<i", 10: "<Q", 11: "<q"}
_MAX_STRING = 1 << 24


def context_length(file: Path) -> int | None:
    """Read how many tokens a model was made for; None where the file does not say. Raises `ValueError`, `OSError`."""
    with file.open("rb") as source:
        if source.read(4) != _MAGIC:
            raise ValueError(f"{file} is not a GGUF file")
        try:
            _, _, entries = struct.unpack("<IQQ", source.read(20))
            for _ in range(entries):
                key = _text(source)
                (kind,) = struct.unpack("<I", source.read(4))
                if key.endswith(b".context_length") and kind in _INTEGERS:
                    return int(struct.unpack(_INTEGERS[kind], source.read(_SIZES[kind]))[0])
                _skip(source, kind)
        except (struct.error, KeyError) as error:
            raise ValueError(f"the head of {file} is damaged") from error
    return None


def _text(source: BinaryIO) -> bytes:
    (size,) = struct.unpack("<Q", source.read(8))
    if size > _MAX_STRING:
        raise ValueError("a text in the head of the file is too long")
    return source.read(size)


def _skip(source: BinaryIO, kind: int) -> None:
    if kind == _STRING:
        _text(source)
    elif kind == _ARRAY:
        inner, count = struct.unpack("<IQ", source.read(12))
        if inner in _SIZES:
            source.seek(_SIZES[inner] * count, 1)
            return
        for _ in range(count):
            _skip(source, inner)
    else:
        source.seek(_SIZES[kind], 1)
