"""Which files a command lists for the next one: what `find`, `git ls-files`, `grep -l` and their like print now."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from treadle.policy.context import FileKind
from treadle.policy.marks import UNKNOWN, as_glob, fits, is_static, split_words
from treadle.policy.names import picks_secret
from treadle.policy.shell.options import Arguments, read_arguments
from treadle.policy.shell.readers import CONTENT_FREE, readers
from treadle.policy.shell.scene import Scene
from treadle.policy.shell.tree import TreeTooLargeError, are_plain, files_below, may_be_read, tracked_below

_FIND_TESTS = frozenset(
    split_words("""
    -name -iname -path -ipath -type -size -mtime -mmin -atime -ctime -maxdepth -mindepth -newer -user -perm
""")
)
_FIND_PLAIN = frozenset({"(", ")", "-a", "-and", "-empty", "-executable", "-print", "-print0", "-mount", "-xdev"})
_NOT = frozenset({"!", "-not"})
_PASSES_LINES = {
    **dict.fromkeys(("head", "tail"), re.compile(r"(-n ?\d+|-\d+)?")),
    "sort": re.compile(r"(-[rufbnV]+ ?)*"),
    "uniq": re.compile(r"(-[ud])?"),
    **dict.fromkeys(("grep", "egrep"), re.compile(r"(-[viEFw]+ ?)*")),
}
"""With these arguments a program prints lines of its input as they are, and no others."""
_ENDING = re.compile(r"\\\.(?:(?P<one>\w+)|\((?P<several>\w+(?:\|\w+)*)\)|(?P<stem>\w+)(?P<letter>\w)\?)\$")


@dataclass(frozen=True, slots=True)
class Listing:
    """Files that a command prints the names of, as they are now.

    `picks`: patterns that every name fits, none of which a protected file does; without them the listing only serves
    programs that show nothing of what files hold. `is_nul`: each name ends in NUL.
    """

    names: tuple[str, ...]
    picks: tuple[str, ...] = ()
    is_nul: bool = False

    @property
    def sample(self) -> str:
        """A name as those that are listed are, also where there are none."""
        if self.names:
            return self.names[0]
        return "./" + name_like(self.picks[0]) if self.picks else "./x"


SEARCHES = frozenset({"grep", "egrep", "fgrep", "rg"})
SHOWS_LITTLE = CONTENT_FREE | SEARCHES | {"[", "test", "[[", "printf", "true", ":"}
"""Programs that show at most lines that are searched for, as they do of a whole tree."""


class Use(StrEnum):
    """What is done with the files that are listed."""

    NAME = "name"
    SEARCH = "search"
    READ = "read"


def listed_by(scene: Scene, use: Use) -> Listing | None:
    """Tell which files the input of a command lists; None where that is not known, or a name is odd.

    What is searched or read must be no protected file now; what is shown as a whole must be picked by its name as well.
    """
    upstream = scene.feed.upstream
    is_known = bool(upstream) and all(is_static(word) for argv in upstream for word in argv)
    if not is_known or scene.is_guess or UNKNOWN in (scene.cwd, scene.feed.lists_in):
        return None
    # The names are those of files from where they are listed; elsewhere they are those of others.
    listing = _listed(upstream, scene) if scene.feed.lists_in == scene.cwd else None
    if listing is None or not are_plain(listing.names, ends_in_nul=listing.is_nul):
        return None
    if use is Use.READ and not listing.picks:
        return None
    return listing if use is Use.NAME or may_be_read(listing.names, scene) else None


def _listed(upstream: tuple[tuple[str, ...], ...], scene: Scene) -> Listing | None:
    source, *passing = upstream
    try:
        listing = _source(source, scene)
    except TreeTooLargeError:
        return None
    for argv in passing:
        listing = _passed(listing, argv)
    return listing


def _source(argv: tuple[str, ...], scene: Scene) -> Listing | None:
    name, words = argv[0], argv[1:]
    if name == "find":
        return _by_find(words, scene)
    if name == "git":
        if words[:1] == ("grep",):
            return _by_git_grep(words[1:], scene)
        return _by_git(words, scene) if words[:1] == ("ls-files",) else None
    if name in ("grep", "egrep", "fgrep", "rg", "fd", "fdfind"):
        return _by_search(name, words, scene)
    return None


def _by_find(words: Sequence[str], scene: Scene) -> Listing | None:
    pending = list(words)
    starts: list[str] = []
    while pending and not pending[0].startswith("-") and pending[0] not in ("(", "!"):
        starts.append(pending.pop(0))
    pruned = _take_pruned(pending)
    tests = _read_tests(pending)
    if tests is None:
        return None
    left_out = [as_glob(pattern) for pattern in tests.excluded if pattern.endswith("*")]
    names = _below(starts or ["."], [as_glob(pattern) for pattern in pruned], left_out, scene)
    # Without -print what is pruned is printed too.
    only_named = bool(tests.names) and (not pruned or tests.prints)
    return _picked(names, tests.names if only_named else (), is_nul="-print0" in pending)


def _take_pruned(pending: list[str]) -> list[str]:
    """Take `-name X -prune -o` or `( -path X -o … ) -prune -o` off the front; gives the patterns of paths."""
    words = list(pending)
    opened = words[:1] == ["("]
    patterns: list[str] = []
    if opened:
        words.pop(0)
    while True:
        if words[:2] == ["-type", "d"]:
            del words[:2]
        if len(words) < 2 or words[0] not in ("-name", "-path"):
            return []
        test, value = words.pop(0), words.pop(0)
        patterns.append(value if test == "-path" else f"*/{value}")
        if not opened or words[:1] not in (["-o"], ["-or"]):
            break
        words.pop(0)
    if opened and (not words or words.pop(0) != ")"):
        return []
    if words[:1] != ["-prune"] or words[1:2] not in (["-o"], ["-or"]):
        return []
    pending[:] = words[2:]
    return patterns


@dataclass(frozen=True, slots=True)
class _Tests:
    """What find looks for: `names`, one of which every file has, or nothing; and paths that none has."""

    names: tuple[str, ...]
    excluded: tuple[str, ...]
    prints: bool


def _read_tests(words: Sequence[str]) -> _Tests | None:
    """Read the tests of find; None for one that is not known, or that does more than look."""
    pending = list(words)
    names: list[list[str]] = [[]]
    excluded: list[str] = []
    depth = 0
    negated = splits = False
    while pending:
        word = pending.pop(0)
        if word in ("-o", "-or"):
            names.append([])
            splits |= not depth
        elif word in _FIND_TESTS and pending:
            value = pending.pop(0)
            if word in ("-name", "-iname") and not negated:
                if picks_secret(as_glob(value)):
                    return None
                names[-1].append(value)
            elif word in ("-path", "-ipath") and not negated and picks_secret(as_glob(_last(value))):
                return None
            if word == "-path" and negated and not depth:
                excluded.append(value)
        elif (word not in _FIND_PLAIN and word not in _NOT) or (negated and word == "("):
            return None
        depth += {"(": 1, ")": -1}.get(word, 0)
        negated = word in _NOT
    every = tuple(name for several in names for name in several)
    prints = "-print" in words or "-print0" in words
    return _Tests(every if all(names) else (), () if splits else tuple(excluded), prints)


def _picked(names: Sequence[str], patterns: Sequence[str], *, is_nul: bool) -> Listing | None:
    """Give the names that fit one of the patterns, where those say enough; None where one asks for protected files."""
    if any(picks_secret(as_glob(_last(pattern))) for pattern in patterns):
        return None
    if not patterns or not all(map(names_no_secret, patterns)):
        return Listing(tuple(names), is_nul=is_nul)
    folded = [as_glob(pattern.casefold()) for pattern in patterns]
    kept = (name for name in names if any(fits(pattern, _last(name).casefold()) for pattern in folded))
    return Listing(tuple(kept), tuple(patterns), is_nul=is_nul)


def _by_git(words: Sequence[str], scene: Scene) -> Listing | None:
    flags = {word for word in words[1:] if word.startswith("-") and word != "--"}
    paths = [word for word in words[1:] if not word.startswith("-")]
    if not flags <= {"-z", "-c", "--cached", "-m", "--modified"} or any(
        re.search(r"^[:/.]|[\[\\]", one) for one in paths
    ):
        return None
    tracked = tracked_below(scene)
    if tracked is None:
        return None
    names = [name for name in tracked if not paths or any(_matches_path(path, name) for path in paths)]
    if any(picks_secret(as_glob(_last(path))) for path in paths):
        return None
    picks = list(map(_last, paths)) if all("*" in path for path in paths) else []
    return _picked(names, picks, is_nul="-z" in flags)


def _by_git_grep(words: Sequence[str], scene: Scene) -> Listing | None:
    """Read `git grep -l PATTERN [-- PATH…]`: without a revision it prints names of files that are tracked."""
    before = list(words[: words.index("--")] if "--" in words else words)
    flags = [word for word in before if word.startswith("-")]
    if not {"-l", "--name-only", "--files-with-matches"} & set(flags) or len(before) - len(flags) != 1:
        return None
    if not all(re.fullmatch(r"-[liwEFn]|--name-only|--files-with-matches", word) for word in flags):
        return None
    return _by_git(("ls-files", *words[len(before) :]), scene)


def _matches_path(path: str, name: str) -> bool:
    return fits(as_glob(path), name) or name.startswith(path.rstrip("/") + "/")


def _by_search(name: str, words: Sequence[str], scene: Scene) -> Listing | None:
    """Read a search that prints only the names of files."""
    arguments = read_arguments(readers()[name], words)
    if arguments.strange or not _prints_names(name, arguments):
        return None
    is_fd = name in ("fd", "fdfind")
    has_pattern = arguments.has("-e", "--regexp", "--files", "-f", "--file") and not is_fd
    places = arguments.operands if has_pattern else arguments.operands[1:]
    if not places and not (is_fd or name == "rg" or arguments.has("-r", "--recursive")):
        return None
    globs = arguments.values("-g", "--glob", "--include") if not is_fd else []
    picks = [_last(pick) for pick in globs if not pick.startswith("!")]
    if is_fd:
        picks = [f"*.{ending}" for ending in arguments.values("-e", "--extension")]
    if any(picks_secret(as_glob(pick)) for pick in picks):
        return None
    if any("{" in pick for pick in picks) or not all(_is_folder(place, scene) for place in places):
        # A file that is named is searched whatever the patterns say.
        picks = []
    names = _below(places or ["."], [], [], scene)
    names = names if places else [one.removeprefix("./") for one in names]
    return _picked(names, picks, is_nul=arguments.has("-Z", "-0", "--null", "--print0"))


def _is_folder(place: str, scene: Scene) -> bool:
    facts = scene.context.files.facts(posixpath.join(scene.cwd, place))
    return facts is None or facts.kind is FileKind.DIRECTORY


def _prints_names(name: str, arguments: Arguments) -> bool:
    if arguments.has("--color", "--colour", "-x", "-X", "--exec", "--exec-batch"):
        return False
    if name in ("fd", "fdfind"):
        unlike = ("-l", "--list-details", "-a", "--absolute-path", "--base-directory", "--search-path", "-c")
        return not arguments.has(*unlike)
    if arguments.has("-c", "--count", "--count-matches", "--json", "--stats", "-q", "-p", "--pretty", "--replace"):
        return False
    if name == "rg":
        return arguments.has("-l", "--files-with-matches", "--files", "--files-without-match")
    return arguments.has("-l", "-L", "--files-with-matches", "--files-without-match")


def _below(starts: Sequence[str], pruned: Sequence[str], left_out: Sequence[str], scene: Scene) -> list[str]:
    """List what is below `starts`, but for folders that `pruned` fits or in which `left_out` fits every path."""

    def leaves_out(shown: str) -> bool:
        return any(fits(one, shown) for one in pruned) or any(fits(one, f"{shown}/") for one in left_out)

    return [name for start in starts for name in files_below(start, scene, leaves_out)]


def _passed(listing: Listing | None, argv: tuple[str, ...]) -> Listing | None:
    """Give what is left of a listing behind a command that only leaves lines out or sorts them."""
    if listing is None or listing.is_nul or argv[0] not in _PASSES_LINES:
        return None
    words = list(argv[1:])
    pattern = next((word for word in words if not word.startswith("-")), "") if "grep" in argv[0] else ""
    if pattern:
        words.remove(pattern)
    if not _PASSES_LINES[argv[0]].fullmatch(" ".join(words)):
        return None
    ending = _ENDING.fullmatch(pattern)
    flags = set("".join(words))
    if ending is None or flags & {"v", "i", "F"}:
        return listing
    if ending["one"] is None and "E" not in flags and argv[0] != "egrep":
        return listing
    shorter = ending["stem"]
    endings = [shorter, f"{shorter}{ending['letter']}"] if shorter else (ending["one"] or ending["several"]).split("|")
    kept = tuple(one for one in listing.names if one.endswith(tuple(f".{end}" for end in endings)))
    picks = tuple(f"*.{one}" for one in endings)
    return Listing(kept, picks if all(map(names_no_secret, picks)) else ())


def _last(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def name_like(pattern: str) -> str:
    """Give a name that a pattern fits."""
    return pattern.translate({ord("*"): "x", ord("?"): "x"})


def names_no_secret(pattern: str) -> bool:
    """Whether a pattern says enough of a name to tell that no protected file fits it."""
    says_something = pattern.strip("*?.") != "" and "[" not in pattern and "\\" not in pattern
    return says_something and picks_secret(as_glob(pattern)) is None
