"""Naming files on 100,000 of them: the worst key of some texts beside one plain look through the paths, and listing."""

import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from treadle.app.config.sections import Settings
from treadle.app.models.model_choice import Models
from treadle.app.models.model_rows import offered_models
from treadle.app.session.mentions.mentionable import mentionable_paths
from treadle.app.session.mentions.path_search import Index, PathSearch

_FILES = 100_000
_FOLDERS = 1_000
_REPEATS = 5
_TYPED = ("module4567", "p4m7", "part3/package123/mod", "zzz", "9py5", "e9.py")


def _paths(root: Path) -> None:
    for folder in range(_FOLDERS):
        place = root / f"part{folder % 10}" / f"package{folder}"
        place.mkdir(parents=True)
        for number in range(folder, _FILES, _FOLDERS):
            (place / f"module{number}.py").touch()


def _key(typed: str, index: Index) -> tuple[float, float]:
    """Give the seconds until all is found, and of the longest piece of that."""
    finding, longest, start = PathSearch(typed, index), 0.0, time.perf_counter()
    while not finding.done:
        begin = time.perf_counter()
        finding.go_on(lambda: True)
        longest = max(longest, time.perf_counter() - begin)
    return time.perf_counter() - start, longest


def _best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _keys(paths: Sequence[str]) -> None:
    index = Index(paths)
    for typed in _TYPED:
        texts = [typed[:length] for length in range(1, len(typed) + 1)]
        worst = max(min(_key(text, index)[0] for _ in range(_REPEATS)) for text in texts)
        piece = max(min(_key(text, index)[1] for _ in range(_REPEATS)) for text in texts)
        plain = _best(lambda typed=typed: [path for path in paths if typed in path.lower()])  # type: ignore[misc]
        what = f"@{typed}, its slowest key (longest piece {piece * 1000:.0f} ms) | a look at each"
        print(f"{what:<72} {worst * 1000:7.1f} ms {plain * 1000:7.1f} ms {worst / plain:5.1f} x")


def main() -> None:
    """Print each figure: ours, the plain way, the ratio."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "root")
        root.mkdir()
        _paths(root)
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        paths = mentionable_paths(str(root), trusted=True)
        _keys(paths)
        listing = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
        plain = _best(lambda: subprocess.run(listing, cwd=root, check=True, stdout=subprocess.DEVNULL))
        for trusted, how in ((True, "with git"), (False, "without git")):
            ours = _best(lambda trusted=trusted: Index(mentionable_paths(str(root), trusted=trusted)))  # type: ignore[misc]
            what = f"the list of the files {how}, in the background | git ls-files"
            print(f"{what:<72} {ours * 1000:7.1f} ms {plain * 1000:7.1f} ms {ours / plain:5.1f} x")
    models = Models(Settings())
    rows = _best(lambda: offered_models(models))
    print(f"{'the rows of the list of models, in the background':<72} {rows * 1000:7.1f} ms")
