"""The processes of a run of tests: each test is run once, whatever becomes of the process that it is in."""

import os
import subprocess
import sys
from pathlib import Path

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
        command, cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert sorted(map(int, log.read_text().split())) == [*range(40)]
    assert "4 failed, 35 passed, 1 skipped" in ended.stdout, ended.stdout
    assert ended.stdout.count("The process of the tests died in this one: 7.") == 3
