"""The extras of the package: which are installed, and which one a missing module belongs to."""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution, requires
from types import MappingProxyType

from treadle.protocol.patterns import regex

_REQUIREMENT = regex(r"([A-Za-z0-9._-]+)[^;]*;.*extra == ['\"]([a-z-]+)['\"]")
_OTHER_NAMES = MappingProxyType({"docx": "python-docx", "google": "google-auth", "markdown_it": "markdown-it-py"})
"""Modules whose package has another name."""
_NOT_FOR_USERS = ("all", "dev", "peers")


def extras() -> Mapping[str, tuple[str, ...]]:
    """Give the packages of each extra; nothing where Treadle itself is not installed."""
    found: dict[str, tuple[str, ...]] = {}
    try:
        lines = requires("treadle") or []
    except PackageNotFoundError:
        return found
    for line in lines:
        match = _REQUIREMENT.match(line)
        if match is not None and match[2] not in _NOT_FOR_USERS:
            found[match[2]] = (*found.get(match[2], ()), match[1])
    return found


def missing_packages(extra: str) -> tuple[str, ...]:
    """Name the packages of an extra that are not installed."""
    return tuple(name for name in extras().get(extra, ()) if not _is_installed(name))


def extra_of(module: str) -> str:
    """Name the extra that brings a module; empty where none does."""
    top = module.partition(".")[0]
    package = _OTHER_NAMES.get(top, top.replace("_", "-"))
    return next((extra for extra, packages in extras().items() if package in packages), "")


def install_command(extra: str) -> str:
    """Write the command that installs an extra."""
    return f"pip install 'treadle[{extra}]'"


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True
