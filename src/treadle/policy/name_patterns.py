"""Patterns that could stand for a protected name."""

from functools import lru_cache

from treadle.policy.marks import MARKS, STAR, UNKNOWN, fits, is_static
from treadle.protocol.name_lists import CONTROL_DIRECTORIES, CONTROL_FILES, SECRET_DIRECTORIES, SECRET_FILES
from treadle.protocol.protected_names import secret_name

_ORDINARY_ENDINGS = (
    *(".txt", ".csv", ".conf", ".cfg", ".ini", ".xml", ".properties", ".plist", ".ods", ".xlsx", ".js", ".cjs", ".mjs"),
    *(".php", ".gradle", ".kts", ".el", ".lua", ".json", ".yml", ".yaml", ".toml", ".md", ".py", ".cnf"),
)
"""Endings by which few files are secrets: a pattern with one is judged by the files that it stands for now."""


@lru_cache(maxsize=8192)
def pattern_hits(path: str, *, writing: bool) -> str | None:
    """Give a protected name that a path with unknown parts could stand for, or None.

    A part that is nothing but wildcards is too vague to count, and so is one like `*.json`, which names ordinary files
    first.
    """
    for part in path.split("/"):
        if is_static(part) or MARKS.issuperset(part):
            continue
        filled = () if writing else ("".join(filler if char in MARKS else char for char in part) for filler in "x.")
        if named := next(filter(None, map(secret_name, filled)), None):
            return named
        for sample in _samples(writing=writing):
            if not (part[0] == STAR and sample[0] == ".") and fits(part.casefold(), sample):
                return sample
    return None


def picks_secret(pattern: str) -> str | None:
    """Give a secret's name that a search picks by this pattern, in which `*` also stands for a leading dot, or None."""
    parts = pattern.split("/")
    named = next(filter(None, map(secret_name, parts)), None)
    return named or pattern_hits(parts[-1].replace(STAR, UNKNOWN), writing=False)


@lru_cache(maxsize=4)
def _samples(*, writing: bool) -> tuple[str, ...]:
    """Give names that are protected, with something for each `*`, but for those with an ordinary ending."""
    plain = [name for name in SECRET_DIRECTORIES if "*" not in name]
    listed = [*CONTROL_FILES, *CONTROL_DIRECTORIES, ".github"] if writing else [*SECRET_FILES, *plain, "environ"]
    fillers = ["yml"] if writing else ["local", "x", "production"]
    every = (name.replace("*", filler) for name in listed for filler in fillers)
    return tuple(dict.fromkeys(name for name in every if not name.endswith(_ORDINARY_ENDINGS)))
