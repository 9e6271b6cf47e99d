"""Names that are protected wherever they stand: control files from writing, secrets from reading."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from treadle.protocol.name_lists import (
    CONTROL_DIRECTORIES,
    CONTROL_FILES,
    CONTROL_PATHS,
    HOOK_DIRECTORIES,
    HOOKS,
    INSTALLED_PATHS,
    SECRET_DIRECTORIES,
    SECRET_FILES,
    SECRET_PATHS,
)


def _test_for(listed: list[str]) -> Callable[[str], object]:
    """Give a test for the names of a table; `*` in one stands for any text."""
    exact, wild = frozenset(listed), [re.escape(name).replace(r"\*", ".*") for name in listed if "*" in name]
    shape = re.compile("|".join(wild), re.DOTALL)
    return lambda name: name in exact or shape.fullmatch(name)


def _one_of(listed: list[str]) -> str:
    """Write a pattern for the paths of a table, wherever they begin; `*` in one stands for text within a name."""
    paths = "|".join(re.escape(path).replace(r"\*", "[^/]*") for path in listed)
    return f"(?:^|/)(?:{paths})(?=/|$)"


_is_control_directory = _test_for(CONTROL_DIRECTORIES)
_is_control_file = _test_for(CONTROL_FILES)
_is_secret_directory = _test_for(SECRET_DIRECTORIES)
_is_listed_secret = _test_for(SECRET_FILES)
_CONTROL_PATH = re.compile(_one_of(CONTROL_PATHS))
_INSTALLED_PATH = re.compile(_one_of(INSTALLED_PATHS))
_SECRET_PATH = re.compile(
    _one_of(SECRET_PATHS) + r"|(?:^|/)\.config(?=/[^/]+/|/[^/.]+$)"
    r"|^proc/(?:.*/)?(?:environ|mem|maps|cmdline|auxv|stack|fd|root|cwd|map_files|task|kcore|kmem)(?=/|$)"
    r"|^dev/(?:(?:[shv]|xv)d[a-z]\d*|nvme\d[^/]*|mmcblk[^/]*|r?disk\d[^/]*|dm-\d+|loop\d+|md\d+|k?mem|port|mapper|fb\d+"
    r"|input|vcsa?\d*|hidraw\d+)(?=/|$)"
)
"""Where a file or folder is a secret by its place: the settings of programs, of other processes, and raw devices."""
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
_HEAD, _SHARING, _WHOLE = "head", "commondir", frozenset({"objects", "refs"})
GIT_DATA_NAMES = ("HEAD", *sorted(_WHOLE), _SHARING)
"""The names by which git knows the data of a repository."""

_TELLING = re.compile(
    r"(?<=/)(?:(?:head|commondir|config(?:\.worktree)?)$|(?:hooks|objects|refs)(?=/.|$))", re.IGNORECASE
)
"""What of an absolute path may make the folder before it a repository, or change what it runs."""
_HISTORY = re.compile(
    r"(?:^|/)\.git(?:/(?:objects|refs|logs)(?:/|$)|$)"
    r"|(?:^|/)\.git/(?:index|packed-refs|shallow|HEAD|(?:[A-Z]+_)+(?:HEAD|EDITMSG|MSG)|MERGE_(?:MODE|RR|AUTOSTASH)"
    r"|AUTO_MERGE|BISECT_[A-Z_]+)(?:\.lock)?$"
)
_MOST_COPIES = 32
"""Names of files that one may be a copy of; one with more is not looked into, and counts as a secret."""
_SHORT_NAME = re.compile(r"(?P<beginning>[a-z0-9_-]{1,6})~\d{1,4}(?:\.[a-z0-9]{1,3})?")
_OWN = re.compile(r"^(?:\.?#|\.)")
_COPY = re.compile(
    r"(?:[~#]|[ _-]*\(\w{1,9}\)|[ ._-](?:bak|backup|copy|old|orig|save|sav|saved|new|prev|tmp|temp|rej)"
    r"|\.(?:\d+|txt|b64|base64|gz|bz2|xz|zst|zip|tgz|sw[a-z]|swap|part|disabled|dpkg-\w+|ucf-\w+|rpm\w+|pac\w+))\Z"
)
"""How the name begins of what an editor keeps beside a file, and how that of a copy ends."""
_SEPARATORS = re.compile(r"[/\\\uff0f\uff3c]")
_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


@lru_cache(maxsize=4096)
def normalise(name: str) -> str:
    """Reduce one name to what some file system takes it for: case, composition, invisible characters, NTFS endings."""
    if name.isascii() and ":" not in name and "~" not in name and name[-1:] not in (" ", "."):
        return name.casefold()
    seen = (char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf")
    text = _IGNORABLE.sub("", "".join(seen)).casefold()
    text = text.split("::$", 1)[0].split(":$", 1)[0].rstrip(" .") or text
    short = _SHORT_NAME.fullmatch(text)
    return _short_names().get(short["beginning"], text) if short else text


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
    if directory := next(filter(_is_control_directory, parts), None):
        return directory
    if parts and _is_control_file(parts[-1]):
        return parts[-1]
    if len(parts) > 1 and parts[-1] in HOOKS and parts[-2] in HOOK_DIRECTORIES:
        return parts[-1]
    found = _CONTROL_PATH.search("/".join(parts))
    return found[0].strip("/") if found else None


@lru_cache(maxsize=8192)
def installed_name(path: str) -> str | None:
    """Give the name of what was installed that a path is or lies in, which only installers change, or None."""
    found = _INSTALLED_PATH.search("/".join(components(path)))
    return found[0].strip("/") if found else None


def later_name(path: str) -> str | None:
    """Give the name of what a program runs or reads later by itself, or None: a control file, or what was installed."""
    return control_name(path) or installed_name(path)


@lru_cache(maxsize=8192)
def secret_name(path: str) -> str | None:
    """Give the name that makes a path read-protected, or None."""
    parts = components(path)
    if directory := next(filter(_is_secret_directory, parts), None):
        return directory
    if parts and (_is_secret_file(parts[-1]) or _is_kept_among_secrets(parts)):
        return parts[-1]
    found = _SECRET_PATH.search("/".join(parts))
    return found[0].strip("/") if found else None


def _is_kept_among_secrets(parts: tuple[str, ...]) -> bool:
    """Whether a file that is no program text lies in a folder `secrets`."""
    return parts[-2:-1] == ("secrets",) and not _CODE.fullmatch(parts[-1]) and not _PUBLIC.fullmatch(parts[-1])


def _is_secret_file(name: str) -> bool:
    """Whether a file is a secret by its name, or by that of the file of which it is a copy."""
    names = [name]
    for each in names:
        if _is_listed_secret(each) and (each in SECRET_FILES or not _CODE.fullmatch(each)):
            return not _PUBLIC.fullmatch(each)
        names += [shorter for shorter in (_COPY.sub("", each), _OWN.sub("", each)) if shorter not in names]
        if len(names) > _MOST_COPIES:
            return True
    return False


def is_git_data(names: Iterable[str]) -> bool:
    """Whether a folder that holds these names is a repository's own data for git, whatever it is called.

    git asks for a `HEAD`, `objects` and `refs`, or a `HEAD` and a `commondir`; a file system may know no case.
    """
    folded = {name.casefold() for name in names}
    return _HEAD in folded and (_SHARING in folded or folded >= _WHOLE)


def is_git_history(path: str) -> bool:
    """Whether a path is, or is in, what git keeps of commits, branches and the index; nothing there names a program.

    So is `.git` as a whole: what names programs in it is named by itself, where a command can change that at all.
    """
    return _HISTORY.search(path) is not None


def git_data_of(path: str) -> Iterator[tuple[str, str]]:
    """Give each folder that a file at an absolute path may make a repository, and the name in the folder by which.

    So it is with a file by which a repository would run something else, too.
    """
    return ((path[: found.start()], found[0]) for found in _TELLING.finditer(path))
