"""The globs of a rule, each read as the program reads that the rule was written for: pure."""

from collections.abc import Sequence
from enum import StrEnum

from treadle.context.frontmatter import braces
from treadle.workspace.ignore.ignore_patterns import Patterns


class GlobReading(StrEnum):
    """How a list of globs is put together.

    `TAKES_OUT`: in their order, `!` takes out what was named before; where it stands first, it takes out of all.
    `ALONE` (Cursor and Cline, minimatch and picomatch): a path fits where any glob fits alone, so that `!a/**` is
    everything but `a`, whatever stands beside it. `NO_NEGATION` (VS Code): from any folder on, in any case; a `!` is
    read as a letter, so it takes nothing out. Read in Cline's source and in reports of what Cursor 3.20 and VS Code
    1.140 run (2026-10).
    """

    TAKES_OUT = "takes out"
    ALONE = "alone"
    NO_NEGATION = "no negation"


_EVERYTHING = frozenset({"*", "**", "**/*", "/**"})


def reading_of(origin: str) -> GlobReading:
    """Say how the globs of a rule are read, by its path."""
    path = f"/{origin.casefold()}"
    if "/.cursor/" in path or "/.clinerules/" in path:
        return GlobReading.ALONE
    return GlobReading.NO_NEGATION if "/.github/" in path else GlobReading.TAKES_OUT


def globs_fit(globs: Sequence[str], parts: Sequence[str], reading: GlobReading) -> bool:
    """Whether a path, in parts from the rule's folder on, is one that the globs are about. No glob fits every path."""
    wanted = [glob for glob in globs if not glob.startswith("!")]
    if not globs:
        return True
    if reading is GlobReading.ALONE:
        return any(_fits_one(glob, parts) for glob in globs)
    if reading is GlobReading.NO_NEGATION and wanted:
        return any(_fits_one(_from_any_folder(glob), parts, any_case=True) for glob in wanted)
    begin = next((at for at, glob in enumerate(globs) if not glob.startswith("!")), len(globs))
    found = not wanted
    for glob in (*globs[begin:], *globs[:begin]):
        found = (found and _fits_one(glob, parts)) if glob.startswith("!") else (found or _fits_one(glob, parts))
    return found


def is_everything(globs: Sequence[str], reading: GlobReading) -> bool:
    """Whether the program has a rule with these globs in every request, whatever is worked on."""
    if reading is GlobReading.ALONE or not globs:
        return False
    return any(glob in _EVERYTHING for glob in globs) if reading is GlobReading.NO_NEGATION else set(globs) == {"**"}


def negation_note(globs: Sequence[str], reading: GlobReading) -> str:
    """Say what `!` does not do in these globs; empty where it does what it looks like."""
    taken = next((glob for glob in globs if glob.startswith("!")), "")
    if not taken or len(globs) == 1 or reading is GlobReading.TAKES_OUT:
        return ""
    if reading is GlobReading.ALONE:
        return f"{taken} takes nothing out of the others: each glob is read alone, so the rule applies to much more."
    return f"{taken} takes nothing out: no glob of an instructions file does in VS Code."


def _from_any_folder(glob: str) -> str:
    return glob if glob.startswith(("/", "**/")) else f"**/{glob}"


def _fits_one(glob: str, parts: Sequence[str], *, any_case: bool = False) -> bool:
    """Whether one glob is about a path, or about a folder that it is in."""
    if glob.startswith("!"):
        return not _fits_one(glob[1:], parts, any_case=any_case)
    patterns = Patterns(braces(glob.removeprefix("./")), any_case=any_case)
    return any(
        patterns.hides(parts[:count], is_directory=count < len(parts)) is True for count in range(1, len(parts) + 1)
    )
