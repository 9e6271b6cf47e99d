"""Names that are protected wherever they stand: control files from writing, secrets from reading."""

import posixpath
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from treadle.policy.marks import MARKS, UNKNOWN, fits, is_static
from treadle.policy.name_lists import (
    CONTROL_DIRECTORIES,
    CONTROL_FILES,
    CONTROL_PATHS,
    HOOK_DIRECTORIES,
    HOOKS,
    SECRET_DIRECTORIES,
    SECRET_FILES,
    SECRET_PATHS,
    SECRET_TEXTS,
)


@dataclass(frozen=True, slots=True)
class _Names:
    """Names to compare with: those spelled out, and those with wildcards."""

    exact: frozenset[str]
    shape: re.Pattern[str]

    def fits(self, name: str) -> bool:
        return name in self.exact or self.fits_pattern(name)

    def fits_pattern(self, name: str) -> bool:
        return self.shape.fullmatch(name) is not None


def _names(listed: Iterable[str]) -> _Names:
    wild = [name for name in listed if "*" in name]
    shape = "|".join(re.escape(name).replace(r"\*", ".*") for name in wild)
    return _Names(frozenset(listed) - frozenset(wild), re.compile(shape or "(?!)", re.DOTALL))


_CONTROL_DIRECTORY = _names(CONTROL_DIRECTORIES)
_CONTROL_FILE = _names(CONTROL_FILES)
_SECRET_DIRECTORY = _names(SECRET_DIRECTORIES)
_SECRET_FILE = _names(SECRET_FILES)
_CONTROL_PATH = re.compile(f"(?:^|/)({'|'.join(map(re.escape, CONTROL_PATHS))})(?=/|$)")
_SECRET_PATH = re.compile(f"(?:^|/)({'|'.join(map(re.escape, SECRET_PATHS))})(?=/|$)")
_PUBLIC = re.compile(
    r".*[._-](?:example|sample|template|dist|defaults|schema|tmpl|tpl)"
    r"|.*\.pub"
    r"|(?:.*[._-])?(?:example|sample|template)[._-](?:env|tfvars|json|ya?ml|toml|ini|cfg|conf|txt|xml|properties)"
    r"|passwd|\.secrets\.baseline"
)
"""Samples, public halves of keys, and what is public in spite of its name."""
_CODE = re.compile(
    r"[^.].*\.(?:[jt]sx?|[cm][jt]s|pyi?|go|rs|java|kts?|scala|c|h|cc|cpp|hpp|cs|rb|php|swift|mm?|exs?|erl|hs|ml|lua|pl"
    r"|r|jl|dart|vue|svelte|s?css|less|html?|md|mdx|rst|adoc|tex|proto|graphql|svg|png)"
)
"""Names of program texts and documents: only one that is spelled out among the secrets is one."""
_MOST_COPIES = 16
"""Endings of copies that are taken off a name; one with more is not looked into, and counts as a secret."""
_PROCESS_SECRETS = frozenset(
    {"environ", "mem", "maps", "cmdline", "auxv", "stack", "fd", "root", "cwd", "map_files", "task", "kcore", "kmem"}
)
_RAW_DEVICE = re.compile(
    r"(sd|hd|vd|xvd)[a-z]\d*|nvme\d.*|mmcblk.*|r?disk\d.*|dm-\d+|loop\d+|md\d+|mem|kmem|port|mapper|fb\d+|input|vcsa?\d*|hidraw\d+"
)
_SHORT_NAME = re.compile(r"(?P<beginning>[a-z0-9_-]{1,6})~\d{1,4}(?:\.[a-z0-9]{1,3})?")
_COPY = re.compile(
    r"\.(?P<swapped>.+)\.sw[a-z]"
    r"|#(?P<autosaved>.+)#"
    r"|\.#(?P<locked>.+)"
    r"|(?P<copied>.+?)(?:~|[ _-]*\(\w{1,9}\)|[ ._-](?:bak|backup|copy|old|orig|save|sav|saved|new|prev|tmp|temp|rej)"
    r"|\.(?:\d+|txt|b64|base64|gz|bz2|xz|zst|zip|tgz|swap|part|disabled|dpkg-\w+|ucf-\w+|rpm\w+|pac\w+))"
)
"""The name of a copy that a person, an editor or a tool keeps beside a file, with the name of the file."""
_LOOKS_COPIED = re.compile(
    r"[~#)0-9]$|^\.#|\.sw[a-z]$|[ ._-](?:bak|backup|copy|old|orig|save|sav|saved|new|prev|tmp|temp|rej)$"
    r"|\.(?:txt|b64|base64|gz|bz2|xz|zst|zip|tgz|swap|part|disabled|dpkg-\w+|ucf-\w+|rpm\w+|pac\w+)$"
)
_PLAIN_ENDINGS = (
    *(".txt", ".csv", ".conf", ".cfg", ".ini", ".xml", ".properties", ".plist", ".ods", ".xlsx"),
    *(".js", ".cjs", ".mjs", ".gradle", ".kts", ".el", ".lua"),
)
"""Endings by which few files are secrets: a pattern with one is judged by the files that it stands for now."""
_ORDINARY_ENDINGS = (".json", ".yml", ".yaml", ".toml", ".md", ".py", ".cnf", *_PLAIN_ENDINGS)
_SEPARATORS = re.compile(r"[/\\\uff0f\uff3c]")
_ODD = frozenset(":~")
_IGNORABLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
_VARIATIONS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))


@lru_cache(maxsize=4096)
def normalise(name: str) -> str:
    """Reduce one name to what some file system takes it for: case, composition, invisible characters, NTFS endings."""
    if name.isascii() and not _ODD.intersection(name) and name[-1:] not in (" ", "."):
        return name.casefold()
    text = "".join(char for char in unicodedata.normalize("NFKC", name) if not is_invisible(char)).casefold()
    text = text.split("::$", 1)[0].split(":$", 1)[0].rstrip(" .") or text
    short = _SHORT_NAME.fullmatch(text)
    return _short_names().get(short["beginning"], text) if short else text


def is_invisible(char: str) -> bool:
    """Whether a character shows nothing, and may be left out by who compares names."""
    if unicodedata.category(char) == "Cf" or char in _IGNORABLE:
        return True
    return any(ord(char) in each for each in _VARIATIONS)


@lru_cache(maxsize=1)
def _short_names() -> dict[str, str]:
    """Give the names with a leading dot by what their short forms on FAT and NTFS (`GIT~1`) begin with."""
    every = (*CONTROL_DIRECTORIES, *CONTROL_FILES, *SECRET_DIRECTORIES, *SECRET_FILES)
    hidden = sorted((name for name in every if name.startswith(".") and "*" not in name), key=len, reverse=True)
    return {re.sub(r"[^a-z0-9_-]", "", name[1:].split(".")[0])[:6]: name for name in hidden}


def components(path: str) -> tuple[str, ...]:
    """Split a path into normalised names; backslashes and wide slashes separate too, as they do on other systems."""
    return tuple(normalise(name) for name in _SEPARATORS.split(path) if name not in ("", "."))


@lru_cache(maxsize=8192)
def control_name(path: str) -> str | None:
    """Give the name that makes a path write-protected, or None."""
    parts = components(path)
    for part in parts:
        if _CONTROL_DIRECTORY.fits(part):
            return part
    if parts and _CONTROL_FILE.fits(parts[-1]):
        return parts[-1]
    if len(parts) > 1 and parts[-1] in HOOKS and parts[-2] in HOOK_DIRECTORIES:
        return parts[-1]
    found = _CONTROL_PATH.search("/".join(parts))
    return found[1] if found else None


@lru_cache(maxsize=8192)
def secret_name(path: str) -> str | None:
    """Give the name that makes a path read-protected, or None."""
    parts = components(path)
    for part in parts:
        if _SECRET_DIRECTORY.fits(part):
            return part
    if parts and (_is_secret_file(parts[-1]) or _is_kept_among_secrets(parts)):
        return parts[-1]
    if parts[:1] == ("proc",) and any(part in _PROCESS_SECRETS for part in (*parts[2:], *parts[1:2])):
        return "/proc"
    if parts[:1] == ("dev",) and len(parts) > 1 and _RAW_DEVICE.fullmatch(parts[1]):
        return "/dev/" + parts[1]
    if _is_of_a_program(parts):
        return ".config"
    found = _SECRET_PATH.search("/".join(parts))
    return found[1] if found else None


def _is_kept_among_secrets(parts: tuple[str, ...]) -> bool:
    """Whether a file that is no program text lies in a folder `secrets`."""
    *_, folder, name = ("", *parts)
    return folder == "secrets" and not _CODE.fullmatch(name) and not _PUBLIC.fullmatch(name)


def _is_of_a_program(parts: tuple[str, ...]) -> bool:
    """Whether a path leads to the settings of one of the user's programs, which keep their tokens among them."""
    below = parts[parts.index(".config") + 1 :] if ".config" in parts else ()
    return len(below) > 1 or (len(below) == 1 and "." not in below[0])


def _is_secret_file(name: str) -> bool:
    for _ in range(_MOST_COPIES):
        if name in SECRET_TEXTS or name in _SECRET_FILE.exact:
            return not _PUBLIC.fullmatch(name)
        if _SECRET_FILE.fits_pattern(name) and not _CODE.fullmatch(name):
            return not _PUBLIC.fullmatch(name)
        copy = _COPY.fullmatch(name) if _LOOKS_COPIED.search(name) else None
        if copy is None:
            return False
        name = copy[copy.lastgroup or 0]
        if copy.lastgroup == "swapped" and _is_secret_file(f".{name}"):
            return True
    return True


@lru_cache(maxsize=8192)
def pattern_hits(path: str, *, writing: bool) -> str | None:
    """Give a protected name that a path with unknown parts could stand for, or None.

    A part that is nothing but wildcards is too vague to count, and so is one like `*.json`, which names ordinary files
    first.
    """
    found = (_could_be(part, writing=writing, hidden=part.startswith((".", UNKNOWN))) for part in path.split("/"))
    return next(filter(None, found), None)


def picks_secret(pattern: str) -> str | None:
    """Give a secret's name that a search picks by this pattern, in which `*` also stands for a leading dot, or None."""
    parts = pattern.split("/")
    named = (secret_name(part) for part in parts if is_static(part))
    return next(filter(None, named), None) or _could_be(parts[-1], writing=False, hidden=True)


def _could_be(part: str, *, writing: bool, hidden: bool) -> str | None:
    if is_static(part) or MARKS.issuperset(part):
        return None
    filled = () if writing else ("".join(filler if char in MARKS else char for char in part) for filler in "x.")
    named = next(filter(None, map(secret_name, filled)), None)
    return named or _first_fit(part.casefold(), _samples(writing=writing, hidden=hidden))


def _first_fit(pattern: str, samples: Iterable[str]) -> str | None:
    """Give the first name that a pattern could stand for, or None."""
    return next((sample for sample in samples if fits(pattern, sample)), None)


@lru_cache(maxsize=8192)
def could_be_secret(path: str) -> bool:
    """Whether the last part of a path with wildcards could stand for a secret that does not start with a dot."""
    name = posixpath.basename(path).casefold()
    samples = (one for one in _secret_samples() if not one.startswith(".") and not one.endswith(_PLAIN_ENDINGS))
    return _first_fit(name, samples) is not None


@lru_cache(maxsize=4)
def _samples(*, writing: bool, hidden: bool) -> tuple[str, ...]:
    """Give names that are protected, but for those that a pattern for ordinary files would stand for as well."""
    every = _control_samples() if writing else _secret_samples()
    return tuple(one for one in every if not one.endswith(_ORDINARY_ENDINGS) and (hidden or not one.startswith(".")))


@lru_cache(maxsize=1)
def _secret_samples() -> tuple[str, ...]:
    patterns = (name.replace("*", filler) for name in SECRET_FILES for filler in ("local", "x", "production"))
    return tuple(dict.fromkeys((*patterns, *(name for name in SECRET_DIRECTORIES if "*" not in name), "environ")))


@lru_cache(maxsize=1)
def _control_samples() -> tuple[str, ...]:
    names = (name.replace("*", "yml") for name in (*CONTROL_FILES, *CONTROL_DIRECTORIES))
    return tuple(dict.fromkeys((*names, ".github")))
