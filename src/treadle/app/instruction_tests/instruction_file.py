"""The file of instruction tests: TOML, read strictly."""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from treadle.app.config.places import read_regular
from treadle.protocol.errors import ConfigError
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Outcome

_LARGEST = 1_000_000
COMPLETED = "completed"
"""The outcome of a run whose turn came to its end."""


class CalledTool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call: the tool, texts that its arguments are like (`*` is any text), and what came of it where that matters."""

    tool: str
    arguments: dict[str, str] = {}
    outcome: Outcome | None = None

    @property
    def words(self) -> str:
        """The call as it is written in a sentence."""
        inside = ", ".join(f"{name}={text}" for name, text in self.arguments.items())
        call = f"{self.tool}({inside})" if inside else self.tool
        return call if self.outcome is None else f"{call} with outcome {self.outcome}"


class Expected(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must hold of a run. `called` and `never_called` name tools, or calls of them.

    `changed` and `untouched` are globs of paths, `said` and `never_said` texts, `said_like` regular expressions of what
    the model said. `cost_under` is in US dollars. `outcome` is `completed`, or how the turn ends otherwise. `check` is
    a line for a shell that must exit with 0 in the folder.
    """

    called: tuple[str | CalledTool, ...] = ()
    never_called: tuple[str | CalledTool, ...] = ()
    changed: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    never_said: tuple[str, ...] = ()
    said_like: tuple[str, ...] = ()
    cost_under: Annotated[float, Meta(gt=0, le=10**9)] | None = None
    steps_under: Annotated[int, Meta(gt=0)] | None = None
    outcome: str = COMPLETED
    check: str = ""


class InstructionTest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One test. `fixture` is a folder beside the file; what is not given is what the file gives for all.

    `hooks_from` names programs whose hooks run, too, as the setting of that name does.
    """

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    prompt: Annotated[str, Meta(min_length=1)]
    fixture: str = ""
    model: str = ""
    mode: Mode | None = None
    max_steps: Annotated[int, Meta(gt=0)] = 50
    max_cost: Annotated[float, Meta(gt=0, le=10**9)] | None = None
    hooks_from: tuple[Literal["claude"], ...] = ()
    expect: Expected = Expected()


class InstructionFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All tests of a file, and what they have in common."""

    test: tuple[InstructionTest, ...]
    fixture: str = ""
    model: str = ""
    mode: Mode = Mode.EDITS
    hooks_from: tuple[Literal["claude"], ...] = ()


def read_instruction_tests(file: Path) -> tuple[InstructionTest, ...]:
    """Read the tests of a file, each with all that it needs. Raises `ConfigError` with the place of a mistake."""
    try:
        data = read_regular(file, _LARGEST)
        if data is None or len(data) > _LARGEST:
            raise _wrong(file, "It is not a regular file, or is too large.")
        read = msgspec.convert(tomllib.loads(data.decode()), InstructionFile)
    except OSError as error:
        raise _wrong(file, f"{error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise _wrong(file, f"{error}.") from error
    names = [one.name for one in read.test]
    if not names:
        raise _wrong(file, "It has no [[test]].")
    if len({tape_name(name) for name in names}) < len(names):
        raise _wrong(file, "Two tests have the same name.")
    for one in read.test:
        for pattern in one.expect.said_like:
            try:
                re.compile(pattern)
            except re.error as error:
                raise _wrong(file, f"{one.name!r}: {pattern!r} is not a regular expression: {error}.") from error
    return tuple(
        msgspec.structs.replace(
            one,
            fixture=one.fixture or read.fixture,
            model=one.model or read.model,
            mode=read.mode if one.mode is None else one.mode,
            hooks_from=one.hooks_from or read.hooks_from,
        )
        for one in read.test
    )


def tape_name(test: str) -> str:
    """Give the name of a test as that of a file."""
    return re.sub(r"[^\w.-]+", "-", test.lower()).strip("-.") or "test"


def fixture_folder(file: Path, test: InstructionTest) -> Path | None:
    """Find the folder that a test works in a copy of; None for an empty one. Raises `ConfigError`."""
    if not test.fixture:
        return None
    folder = (file.parent / test.fixture).resolve()
    if not folder.is_dir():
        raise _wrong(file, f"{test.name!r}: there is no folder {folder}.")
    return folder


def _wrong(file: Path, why: str) -> ConfigError:
    return ConfigError(
        "test-file", f"{file} cannot be read as tests.", why=why, fix="docs/instruction_tests.md shows the form."
    )
