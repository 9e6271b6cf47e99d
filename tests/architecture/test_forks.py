"""The processes of a run of tests: each test is run once, whatever becomes of the process that it is in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import os
from pathlib import Path

import pytest

@pytest.mark.parametrize("number", range(40))
def test_one(number):
    with Path({log!r}).open("a") as log:
        log.write(f"{{number}} ")
    if number in (3, 4, 39):
        os._exit(7)
    if number == 20:
        pytest.skip("not here")
    assert number != 30
"""


ONCE = """
import pytest
from pathlib import Path

@pytest.mark.parametrize("number", range(12))
def test_one(number):
    with Path({log!r}).open("a") as log:
        log.write(f"{{number}} ")
    before = Path({log!r}).read_text().split().count(str(number)) - 1
    assert number not in (1, 5, 9) or (number == 5 and before), f"{{number}} for the first time"
"""


@pytest.mark.parametrize(
    ("again", "runs", "summary"), [("0", 12, "3 failed"), ("2", 14, "failed"), ("3", 15, "2 failed")]
)
def test_what_failed_beside_others_is_run_again_alone_as_often_as_was_said_and_shown(
    tmp_path: Path, again: str, runs: int, summary: str
) -> None:
    log, file = tmp_path / "log", tmp_path / "test_once.py"
    file.write_text(ONCE.format(log=str(log)))
    command = [sys.executable, "-m", "pytest", "-p", "tests.forks", "--forks", "3", "-p", "no:cacheprovider", str(file)]
    surroundings = {**os.environ, "TMPDIR": str(tmp_path), "AGAIN": again}
    ended = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False)
    assert len(log.read_text().split()) == runs, ended.stdout
    assert summary in ended.stdout
    assert ended.returncode == 1
    assert (again == "3") <= ("failed beside others, passed alone" in ended.stdout)
    assert (again == "3") <= ("5 for the first time" in ended.stdout)


def test_the_death_of_a_process_fails_its_test_and_loses_no_other(tmp_path: Path) -> None:
    log, file = tmp_path / "log", tmp_path / "test_many.py"
    file.write_text(TESTS.format(log=str(log)))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.forks",
        "--forks",
        "3",
        "-p",
        "no:cacheprovider",
        "-rN",
        str(file),
    ]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path), "AGAIN": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert sorted(map(int, log.read_text().split())) == [*range(40)]
    assert "4 failed, 35 passed, 1 skipped" in ended.stdout, ended.stdout
    assert ended.stdout.count("The process of the tests died in this one: 7.") == 3
