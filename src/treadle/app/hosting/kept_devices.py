"""Devices that stay signed in when the page is served again: only digests of what they were given are written down."""

from pathlib import Path

import msgspec
from msgspec import Struct

from treadle.app.config.places import data_directory
from treadle.workspace.files.private_file import write_private


class KeptDevice(Struct, frozen=True, kw_only=True):
    """A device by its name, with the digests of its cookie and of its key; times are milliseconds since 1970."""

    name: str
    about: str
    since: int
    seen: int
    cookie: bytes
    key: bytes


class KeptDevices(Struct, frozen=True, kw_only=True):
    """The devices of one port, and the path below which the page is for them; an empty path where none is kept."""

    base: str = ""
    devices: tuple[KeptDevice, ...] = ()


def kept_devices(port: int) -> KeptDevices:
    """Read which devices are kept for a port; none where that cannot be read."""
    try:
        return msgspec.json.decode(_file(port).read_bytes(), type=KeptDevices)
    except (OSError, msgspec.MsgspecError):
        return KeptDevices()


def keep_devices(port: int, kept: KeptDevices) -> None:
    """Write down which devices are kept for a port; without any, nothing is left. Raises `OSError`."""
    if kept.devices:
        write_private(_file(port), msgspec.json.encode(kept), follow=False)
    else:
        _file(port).unlink(missing_ok=True)


def _file(port: int) -> Path:
    return data_directory() / "web" / f"devices-{port}.json"
