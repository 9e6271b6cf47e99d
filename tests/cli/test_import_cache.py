"""The cache of imports: what it gives is what Python would have found, whatever happened to sources and cache."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from zipfile import ZipFile

import pytest

PROGRAM = """
import json, sys
from treadle.cli.import_cache import install_import_cache
cache = install_import_cache(sys.argv[1])
found = {}
for name in sys.argv[2:]:
    try:
        __import__(name)
        module = sys.modules[name]
        places = [getattr(module, place, None) for place in ("__file__", "__cached__", "__package__")]
        places += getattr(module, "__path__", [])
        found[name] = [getattr(module, "VALUE", ""), places, type(module.__loader__).__name__]
    except ImportError as error:
        found[name] = [type(error).__name__, [], ""]
cache.save()
print(json.dumps(found))
"""
NAMES = [*(f"module_{number}" for number in range(20)), "pack", "pack.one", "pack.inner", "pack.inner.two", "missing"]


class Project:
    """Modules in a folder, and a program that imports them all."""

    def __init__(self, folder: Path) -> None:
        self.modules, self.compiled, self._folder = folder / "modules", folder / "compiled", folder
        for name in NAMES[:-1]:
            self.write(name, name)
        (folder / "main.py").write_text(PROGRAM)

    def source(self, name: str, modules: Path | None = None) -> Path:
        """Give where a module is."""
        path = (modules or self.modules) / name.replace(".", "/")
        return path / "__init__.py" if name in ("pack", "pack.inner") else path.with_suffix(".py")

    def write(self, name: str, value: str, modules: Path | None = None) -> None:
        """Write a module whose `VALUE` is this; the time of its source always differs, as does its size."""
        source = self.source(name, modules)
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(f"VALUE = {value!r}\n")

    def start(self, first: Path | None = None, also: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
        """Start the program, which imports `also` too; the folder or archive `first` comes before the others."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPATH"] = os.pathsep.join(map(str, filter(None, (first, self.modules))))
        environment["PYTHONPYCACHEPREFIX"] = str(self.compiled)
        command = [sys.executable, "main.py", str(self._folder / "main.py"), *NAMES, *also]
        return subprocess.Popen(command, cwd=self._folder, env=environment, stdout=subprocess.PIPE, text=True)

    def run(self, first: Path | None = None) -> dict[str, list[object]]:
        """Run it; gives what it found."""
        return found_by(self.start(first))

    @property
    def file(self) -> Path:
        """The file of the modules."""
        (file,) = self.compiled.rglob("*.start")
        return file


def found_by(process: "subprocess.Popen[str]") -> dict[str, list[object]]:
    """Wait for the program, which must succeed; gives what it found."""
    said, _ = process.communicate()
    assert process.returncode == 0
    found: dict[str, list[object]] = json.loads(said)
    return found


def values(found: Mapping[str, list[object]]) -> dict[str, object]:
    """Give what the modules have, without where they came from."""
    return {name: rest[0] for name, rest in found.items()}


def loaders(found: Mapping[str, list[object]]) -> set[object]:
    """Give what loaded the modules that there are."""
    return {loader for *_, loader in found.values() if loader}


EXPECTED = {name: name for name in NAMES[:-1]} | {"missing": "ModuleNotFoundError"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_the_second_start_takes_them_from_the_file(project: Project) -> None:
    first, second = project.run(), project.run()
    assert values(first) == values(second) == EXPECTED
    assert (loaders(first), loaders(second)) == ({"SourceFileLoader"}, {"_Loader"})
    assert [places for _, places, _ in first.values()] == [places for _, places, _ in second.values()]


def test_an_extension_is_loaded_from_where_it_is(project: Project) -> None:
    first, second = (found_by(project.start(also=("_sqlite3", "sqlite3"))) for _ in range(2))
    assert first["_sqlite3"] == second["_sqlite3"]
    assert (first["sqlite3"][2], second["sqlite3"][2]) == ("SourceFileLoader", "_Loader")


LATE = """
import treadle.cli.import_cache
compiled = treadle.cli.import_cache._compiled
def and_another(name):
    cache._missed.add(f"late {name}")  # as a thread that imports meanwhile
    return compiled(name)
treadle.cli.import_cache._compiled = and_another
cache.save()
"""


def test_what_is_imported_while_it_is_written_keeps_nothing_from_being_written(project: Project) -> None:
    (project.modules.parent / "main.py").write_text(PROGRAM.replace("cache.save()\n", LATE))
    assert (values(project.run()), loaders(project.run())) == (EXPECTED, {"_Loader"})


def test_it_is_written_once(project: Project) -> None:
    project.run()
    written = project.file.stat().st_ino
    project.run()
    assert project.file.stat().st_ino == written


def test_changes_are_seen_at_random_moments(project: Project) -> None:
    chance, expected = random.Random(7), dict(EXPECTED)
    for round_ in range(12):
        for name in chance.sample(NAMES, chance.choice((1, 3, 20))):
            if chance.random() < 0.3 and name not in ("pack", "pack.inner"):
                project.source(name).unlink(missing_ok=True)
                expected[name] = "ModuleNotFoundError"
            else:
                expected[name] = "x" * (round_ + 30)
                project.write(name, expected[name])
        assert values(project.run()) == expected


@pytest.mark.sample(2)
@pytest.mark.parametrize("was_searched", [False, True], ids=["a new folder", "a folder that was searched before"])
@pytest.mark.parametrize("name", ["module_3", "pack"])
def test_a_module_of_an_earlier_folder_comes_first(
    project: Project, tmp_path: Path, name: str, was_searched: bool
) -> None:
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    project.run(earlier if was_searched else None)
    project.write(name, "earlier", earlier)
    found = project.run(earlier)
    assert found[name][0] == "earlier"
    assert found["module_4"][0] == "module_4"
    assert values(project.run()) == EXPECTED


def test_a_module_beside_the_program_comes_first(project: Project, tmp_path: Path) -> None:
    project.run()
    project.write("module_3", "beside", tmp_path)
    assert values(project.run()) == EXPECTED | {"module_3": "beside"}


def test_an_archive_may_have_any_module(project: Project, tmp_path: Path) -> None:
    project.run()
    with ZipFile(tmp_path / "modules.zip", "w") as archive:
        archive.writestr("module_3.py", "VALUE = 'packed'")
    assert values(project.run(tmp_path / "modules.zip")) == EXPECTED | {"module_3": "packed"}


def test_what_a_killed_run_left_is_removed(project: Project) -> None:
    project.run()
    left = Path(f"{project.file}.new")
    project.file.unlink()
    left.write_bytes(b"half")
    project.run()
    assert left.read_bytes() == b"half", "another run may be writing it"
    os.utime(left, (0, 0))
    project.run()
    assert not left.exists()
    assert loaders(project.run()) | loaders(project.run()) == {"SourceFileLoader", "_Loader"}


def test_a_file_cut_off_or_exchanged_changes_nothing(project: Project) -> None:
    project.run()
    whole, chance = project.file.read_bytes(), random.Random(11)
    broken = [whole[: chance.randrange(len(whole))] for _ in range(10)]
    for data in (*broken, b"", b"\0" * 16, b"\0" * len(whole), whole + b"\0", os.urandom(len(whole))):
        project.file.write_bytes(data)
        assert values(project.run()) == EXPECTED
        assert loaders(project.run()) == {"_Loader"}


def test_code_that_cannot_be_read_is_taken_from_the_source(project: Project) -> None:
    project.run()
    data = bytearray(project.file.read_bytes())
    start = int.from_bytes(data[:8], "little")
    data[16:start] = bytes(start - 16)
    project.file.write_bytes(data)
    assert values(project.run()) == EXPECTED
    assert project.file.read_bytes() != data


def test_many_starts_at_once_do_not_disturb_each_other(project: Project) -> None:
    for number in range(3):
        for name in NAMES[:-1]:
            project.write(name, EXPECTED[name] * (number + 1))
        for process in [project.start() for _ in range(6)]:
            assert values(found_by(process)) == {
                name: value if name == "missing" else value * (number + 1) for name, value in EXPECTED.items()
            }
        assert loaders(project.run()) == {"_Loader"}
        assert [file.suffix for file in project.file.parent.iterdir() if "start" in file.name] == [".start"]


def test_a_start_killed_at_any_moment_leaves_a_file_that_serves(project: Project) -> None:
    chance = random.Random(13)
    for number in range(12):
        for name in NAMES[:-1]:
            project.write(name, f"{name} {'x' * number}")
        process = project.start()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=chance.uniform(0.01, 0.12))
        process.kill()
        process.communicate()
        assert values(project.run()) == {
            name: value if name == "missing" else f"{name} {'x' * number}" for name, value in EXPECTED.items()
        }


def test_where_it_cannot_be_written_nothing_is_said(project: Project) -> None:
    project.run()
    file = project.file
    file.unlink()
    file.mkdir()
    assert values(project.run()) == EXPECTED
    assert list(file.parent.glob("*.start*")) == [file]
