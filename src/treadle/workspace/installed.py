"""How this copy of Treadle was installed, and the commands that fit: to add an extra, and to bring it up to date.

Nothing here runs a command or opens a connection. Read are the notes of the installer: `direct_url.json` (PEP 610),
the receipt of `uv tool`, the notes of pipx.
"""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

import treadle
from treadle.protocol.patterns import regex

_REQUIREMENT = regex(r"([A-Za-z0-9._-]+)([^;]*);.*extra == ['\"]([a-z-]+)['\"]")
_NOT_FOR_USERS = ("all", "dev", "peers")
_NEW_WHEEL = "/PATH/TO/THE/NEW.whl"


class InstalledBy(StrEnum):
    """What takes care of the environment that Treadle runs in."""

    PIP = "pip"
    UV_PIP = "uv pip"
    PIPX = "pipx"
    UV_TOOL = "uv tool"
    UVX = "uvx"


class InstalledFrom(StrEnum):
    """Where the installer took Treadle from."""

    CHECKOUT = "a checkout in use"
    FOLDER = "a folder"
    GIT = "a git repository"
    ARCHIVE = "a wheel or an archive"
    NAME = "an index or a folder of packages, by its name"


class Requirement(Struct, frozen=True):
    """A package of an extra: its name, and the versions that fit as pip reads them."""

    name: str
    versions: str

    def __str__(self) -> str:
        return f"{self.name}{self.versions}"


class NotedRepository(Struct, frozen=True):
    """What an installer notes of a repository that it took a package from."""

    requested_revision: str = ""


class NotedFolder(Struct, frozen=True):
    """What an installer notes of a folder that it took a package from."""

    editable: bool = False


class DirectUrl(Struct, frozen=True):
    """The notes of an installer in `direct_url.json`, as PEP 610 has them."""

    url: str = ""
    vcs_info: NotedRepository | None = None
    dir_info: NotedFolder | None = None


class Installation(Struct, frozen=True, kw_only=True):
    """How a copy was installed. `source` is a path or an address; `also` are packages that `uv tool` was given.

    `is_gone`: what it was installed from is not there any more, as in an image or after a download was removed.
    """

    installer: InstalledBy
    origin: InstalledFrom
    python: str = "python3"
    source: str = ""
    revision: str = ""
    extras: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    is_gone: bool = False

    def requirement(self, extras: Sequence[str]) -> str:
        """Write what an installer is told to install."""
        named = f"[{','.join(sorted(set(extras)))}]" if extras else ""
        match self.origin:
            case InstalledFrom.CHECKOUT | InstalledFrom.FOLDER:
                return f"{self.source}{named}"
            case InstalledFrom.GIT:
                at = f"@{self.revision}" if self.revision else ""
                if self.installer is InstalledBy.PIP and self.source.startswith("file:"):  # pip refuses the other form
                    return f"git+{self.source}{at}#egg=treadle{named}"
                return f"treadle{named} @ git+{self.source}{at}"
            case InstalledFrom.ARCHIVE:
                return f"treadle{named} @ {self.source}"
            case InstalledFrom.NAME:
                return f"treadle{named}"

    def adding(self, extra: str, packages: Sequence[Requirement]) -> str:
        """Write the command that adds an extra with these packages."""
        by_package = [str(one) for one in packages] if self.is_gone or self.origin is InstalledFrom.NAME else []
        editable = ["-e"] if self.origin is InstalledFrom.CHECKOUT else []
        match self.installer:
            case InstalledBy.PIP | InstalledBy.UV_PIP:
                return _line(*self._pip(), *(by_package or [*editable, self.requirement([extra])]))
            case InstalledBy.PIPX:
                return _line("pipx", "inject", "treadle", *map(str, packages))
            case InstalledBy.UV_TOOL if self.is_gone:
                return _line("uv", "pip", "install", "--python", self.python, *by_package)
            case InstalledBy.UV_TOOL:
                wanted = self.requirement(self.extras if by_package else [*self.extras, extra])
                return _line("uv", "tool", "install", *editable, wanted, *_each("--with", [*self.also, *by_package]))
            case InstalledBy.UVX:
                wanted = self.requirement([] if by_package else [extra])
                return _line("uvx", *_each("--with", by_package), "--from", wanted, "treadle")

    def adding_alone(self, package: str) -> str:
        """Write the command that adds one package without those that it would bring."""
        by_uv = self.installer in (InstalledBy.UV_PIP, InstalledBy.UV_TOOL, InstalledBy.UVX)
        pip = ("uv", "pip", "install", "--python", self.python) if by_uv else (self.python, "-m", "pip", "install")
        return _line(*pip, "--no-deps", package)

    def updating(self) -> tuple[str, ...]:
        """Write the commands that bring it up to date, in their order."""
        in_folder = self.origin in (InstalledFrom.CHECKOUT, InstalledFrom.FOLDER)
        pull = (_line("git", "-C", self.source, "pull", "--ff-only"),) if in_folder and self._is_repository() else ()
        return (*pull, self._installing_anew())

    def notes(self) -> tuple[str, ...]:
        """Say what a person must know before running the commands of `updating`."""
        match self.origin:
            case InstalledFrom.FOLDER if self.is_gone:
                gone = f"Put the new version into {self.source} first: the folder is gone."
                return (f"{gone} In a container, build the image again.",)
            case InstalledFrom.CHECKOUT | InstalledFrom.FOLDER if not self._is_repository():
                return (f"Put the new version into {self.source} first: it is not a git repository.",)
            case InstalledFrom.GIT if self.revision:
                return (f"It was installed from the revision {self.revision}; write a newer one in its place.",)
            case InstalledFrom.ARCHIVE:
                return (f"Get the new wheel first, and write its path in place of {_NEW_WHEEL}.",)
            case InstalledFrom.NAME:
                return ("Treadle is on no public index yet: use the index or the folder that it came from.",)
            case _:
                return ()

    def _installing_anew(self) -> str:
        newer = f"file://{_NEW_WHEEL}" if self.origin is InstalledFrom.ARCHIVE else self.source
        wanted = Installation(
            installer=self.installer, origin=self.origin, source=newer, revision=self.revision
        ).requirement(self.extras)
        editable = ["-e"] if self.origin is InstalledFrom.CHECKOUT else []
        same_number = self.origin is InstalledFrom.GIT  # pip takes the number of the version for the version
        match self.installer:
            case InstalledBy.PIP:
                how = ["--upgrade", *(["--force-reinstall"] if same_number else [])]
                return _line(*self._pip(), *how, *editable, wanted)
            case InstalledBy.UV_PIP:
                how = ["--upgrade", "--reinstall-package", "treadle"]
                return _line(*self._pip(), *how, *editable, wanted)
            case InstalledBy.PIPX if self.origin is InstalledFrom.ARCHIVE:
                return _line("pipx", "install", "--force", wanted)
            case InstalledBy.PIPX:
                return _line("pipx", "upgrade" if self.origin is InstalledFrom.NAME else "reinstall", "treadle")
            case InstalledBy.UV_TOOL if self.origin is InstalledFrom.ARCHIVE:
                return _line("uv", "tool", "install", wanted, *_each("--with", self.also))
            case InstalledBy.UV_TOOL:
                return _line("uv", "tool", "upgrade", "--reinstall", "treadle")
            case InstalledBy.UVX:
                return _line("uvx", "--refresh", "--from", wanted, "treadle")

    def _pip(self) -> tuple[str, ...]:
        if self.installer is InstalledBy.UV_PIP:
            return ("uv", "pip", "install", "--python", self.python)
        return (self.python, "-m", "pip", "install")

    def _is_repository(self) -> bool:
        return (Path(self.source) / ".git").exists()


def extras() -> Mapping[str, tuple[Requirement, ...]]:
    """Give the packages of each extra; nothing where Treadle itself is not installed."""
    from importlib.metadata import PackageNotFoundError, requires

    found: dict[str, tuple[Requirement, ...]] = {}
    try:
        lines = requires("treadle") or []
    except PackageNotFoundError:
        return found
    for line in lines:
        match = _REQUIREMENT.match(line)
        if match is not None and match[3] not in _NOT_FOR_USERS:
            found[match[3]] = (*found.get(match[3], ()), Requirement(match[1], match[2].strip()))
    return found


def missing_packages(extra: str) -> tuple[str, ...]:
    """Name the packages of an extra that are not installed."""
    return tuple(one.name for one in extras().get(extra, ()) if not _is_installed(one.name))


def install_command(extra: str) -> str:
    """Write the command that adds an extra to this copy."""
    return installation().adding(extra, extras().get(extra, ()))


def installation() -> Installation:
    """Read how this copy was installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        own = distribution("treadle")
    except PackageNotFoundError:  # it runs from its source
        return Installation(
            installer=InstalledBy.PIP,
            origin=InstalledFrom.CHECKOUT,
            python=sys.executable,
            source=str(_source_folder()),
        )
    there = tuple(extra for extra in sorted(extras()) if not missing_packages(extra))
    found = read_installation(
        own.read_text("direct_url.json") or "",
        Path(sys.prefix),
        installer=(own.read_text("INSTALLER") or "").strip(),
        python=sys.executable,
        present=there,
    )
    return replace(found, is_gone=_is_gone(found))


def read_installation(
    direct_url: str, prefix: Path, *, installer: str, python: str, present: Sequence[str] = ()
) -> Installation:
    """Read the notes of an installer: `direct_url.json` (empty where there is none), and those in the environment."""
    origin, source, revision = _origin(_noted(direct_url))
    receipt = _receipt(prefix / "uv-receipt.toml")
    return Installation(
        installer=_installer(prefix, installer),
        origin=origin,
        python=python,
        source=source,
        revision=revision,
        extras=tuple(present),
        also=tuple(
            f"{one['name']}{one.get('specifier', '')}" for one in receipt if one.get("name") not in (None, "treadle")
        ),
    )


def _installer(prefix: Path, noted: str) -> InstalledBy:
    if (prefix / "uv-receipt.toml").exists():
        return InstalledBy.UV_TOOL
    if (prefix / "pipx_metadata.json").exists():
        return InstalledBy.PIPX
    if noted != "uv":
        return InstalledBy.PIP
    in_cache = any(part.startswith(("archive-v", "environments-v")) for part in prefix.parts)
    return InstalledBy.UVX if in_cache else InstalledBy.UV_PIP


def _origin(noted: DirectUrl) -> tuple[InstalledFrom, str, str]:
    """Give the origin, the path or address, and the revision that was asked for."""
    if noted.vcs_info is not None:
        return InstalledFrom.GIT, noted.url, noted.vcs_info.requested_revision
    if noted.dir_info is not None:
        folder = unquote(urlsplit(noted.url).path)
        return (InstalledFrom.CHECKOUT if noted.dir_info.editable else InstalledFrom.FOLDER), folder, ""
    return (InstalledFrom.ARCHIVE, noted.url, "") if noted.url else (InstalledFrom.NAME, "", "")


def _is_gone(found: Installation) -> bool:
    path = unquote(urlsplit(found.source).path) if found.source.startswith("file:") else found.source
    local = found.origin is InstalledFrom.FOLDER or (found.origin is InstalledFrom.ARCHIVE and path != found.source)
    return local and not Path(path).exists()


def _receipt(file: Path) -> Sequence[Mapping[str, Any]]:
    """Read what `uv tool` was told to install, from its receipt."""
    import tomllib

    try:
        return list(tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("requirements", ()))
    except (OSError, ValueError):
        return ()


def _noted(text: str) -> DirectUrl:
    try:
        return json.decode(text, type=DirectUrl) if text else DirectUrl()
    except DecodeError:
        return DirectUrl()


def _source_folder() -> Path:
    return Path(treadle.__file__).parents[2]


def _each(flag: str, values: Sequence[str]) -> Iterator[str]:
    for value in values:
        yield from (flag, value)


def _line(*words: str) -> str:
    return shlex.join(words)


def _is_installed(package: str) -> bool:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True
