"""Finding paths by some of their characters: all that fit and nothing else, the last part first."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.app.session.mentions.path_search import MOST_FOUND, Index, PathSearch

CHARACTERS = "abcdA./]^-\\+*é日"
PATHS = st.lists(st.text(CHARACTERS, min_size=1, max_size=12), unique=True, max_size=30)


def found(typed: str, paths: list[str], first: list[str] | None = None, *, pauses: bool = False) -> PathSearch:
    finding = PathSearch(typed, Index(paths), Index(first) if first is not None else None)
    while not finding.done:
        finding.go_on(lambda: pauses)
    return finding


def in_order(typed: str, path: str) -> bool:
    rest = iter(path.lower())
    return all(char in rest for char in typed.lower())


@given(st.text(CHARACTERS, max_size=5), PATHS, st.booleans())
def test_just_the_paths_with_these_characters_in_order_are_found(typed: str, paths: list[str], pauses: bool) -> None:
    finding = found(typed, paths, pauses=pauses)
    fitting = {path for path in paths if in_order(typed, path)}
    assert (set(finding.paths), finding.more) == (fitting, False)
    assert len(finding.paths) == len(fitting)


def slowly(typed: str, paths: list[str]) -> list[str]:
    """The definition: what is found, in its order, one path looked at after the other."""
    if not typed:
        return paths
    name = {path: path.rstrip("/").rpartition("/")[2] for path in paths}
    in_path = "/" in typed
    groups: list[Callable[[str], bool]] = [
        lambda path: path == typed,
        lambda path: path.startswith(typed) if in_path else name[path] == typed,
        lambda path: not in_path and name[path].startswith(typed),
        lambda path: not in_path and typed in name[path],
        lambda path: typed in path,
        lambda path: in_order(typed, path) and in_order(typed, name[path]),
        lambda path: in_order(typed, path),
    ]
    return list(dict.fromkeys(path for fits in groups for path in paths if fits(path)))


FOLDERS = st.lists(st.sampled_from(("", "a/", "A/b/", "a/b/", "b/a/b/", "ab/")), min_size=1, max_size=4)
NAMES = st.lists(st.text("abAB./", max_size=5).filter(bool), max_size=12)


@given(st.text("abAB/.", max_size=5), FOLDERS, NAMES)
def test_the_order_is_that_of_the_slow_definition(typed: str, folders: list[str], names: list[str]) -> None:
    paths = list(dict.fromkeys(folder + name for folder in folders for name in names))[:MOST_FOUND]
    lower = {path.lower(): path for path in paths}
    paths = list(lower.values())
    assert [path.lower() for path in found(typed, paths).paths] == slowly(typed.lower(), list(lower))


@pytest.mark.sample(4)
@pytest.mark.parametrize("typed", ["", "p", "m9", "p3m9", "e9.py", "part1/", "zz", "package4/m4", "gp4", "age1/", "/4"])
def test_among_many_folders_what_is_found_is_that_of_the_slow_definition(typed: str) -> None:
    paths = [f"part{number % 7}/package{number % 9_001}/m{number}.py" for number in range(10_000)]
    paths = sorted(paths, key=lambda path: path.rpartition("/")[0])
    wanted = slowly(typed, paths)
    finding = found(typed, paths, pauses=True)
    assert (list(finding.paths), finding.more) == (wanted[:MOST_FOUND], len(wanted) > MOST_FOUND)


@pytest.mark.parametrize(
    ("typed", "best"),
    [
        ("ca", ["shop/cart.py", "a/scan.py", "car/lot.py", "c/a.py"]),
        ("cart.py", ["shop/cart.py", "car/lot.py"]),
        ("shop/", ["shop/cart.py"]),
        ("CAR", ["shop/cart.py", "car/lot.py"]),
        ("", ["c/a.py", "car/lot.py", "a/scan.py", "shop/cart.py"]),
    ],
)
def test_what_the_last_part_begins_with_comes_first(typed: str, best: list[str]) -> None:
    assert list(found(typed, ["c/a.py", "car/lot.py", "a/scan.py", "shop/cart.py"]).paths) == best


def test_what_was_named_lately_comes_before_the_rest() -> None:
    paths = [f"m{number}.py" for number in range(9)]
    assert found("m", paths, ["m7.py"]).paths == ("m7.py", *(path for path in paths if path != "m7.py"))


def test_of_very_many_the_best_are_found_and_that_there_are_more() -> None:
    paths = [f"part{number % 7}/module{number}.py" for number in range(20_000)]
    finding = found("module", paths)
    assert (len(finding.paths), finding.more) == (MOST_FOUND, True)
    assert found("p6m19999", paths).paths == ()
    assert found("p0m19999", paths).paths == ("part0/module19999.py",)
    assert found("module19998", paths, pauses=True).paths == ("part6/module19998.py",)


def test_a_text_that_no_path_can_have_is_not_looked_for() -> None:
    assert found("a" * 5_000, ["a" * 100]).paths == ()


def test_a_long_search_pauses_when_it_is_told_to() -> None:
    finding = PathSearch("zz", Index([f"{'z' if not number % 9 else 'a'}/{number}z.py" for number in range(30_000)]))
    finding.go_on(lambda: True)
    assert not finding.done
