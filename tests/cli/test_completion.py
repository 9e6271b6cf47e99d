import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.needed import require
from treadle.cli.task_words import COMMANDS

ASK = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _treadle; printf "%s\\n" "${COMPREPLY[@]}"'


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        (["do"], ["doctor", "docs"]),
        (["doctor", "--"], ["--help", "--offline", "--json"]),
        (["completion", "f"], ["fish"]),
        (["--mode", "a"], ["ask", "auto"]),
        (["demo", "--tool-protocol", ""], ["native", "xml"]),
        (["edits", "apply", "--wr"], ["--write"]),
        (["config", "s"], ["set"]),
    ],
)
def test_bash_completes(treadle: Command, tmp_path: Path, words: list[str], answers: list[str]) -> None:
    script = tmp_path / "treadle.bash"
    script.write_text(treadle("completion", "bash").out)
    done = subprocess.run(
        ["bash", "-c", ASK, "bash", script, "treadle", *words], capture_output=True, text=True, check=True
    )
    assert (done.stdout.split(), done.stderr) == (answers, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_in_the_script_and_the_shell_can_read_it(treadle: Command, tmp_path: Path, shell: str) -> None:
    text = treadle("completion", shell).out
    assert not [name for name in COMMANDS if name not in text]
    require(shell)
    script = tmp_path / "script"
    script.write_text(text)
    subprocess.run([shell, "-n", script], check=True)
