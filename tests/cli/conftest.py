"""Commands run in a home of their own, with no keys and no servers of this machine."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from treadle.cli.main import run


@dataclass(frozen=True)
class Said:
    """What a command wrote, and its exit code."""

    code: int
    out: str
    err: str


Command = Callable[..., Said]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings, whose local servers are at a port where nothing is."""
    for name in os.environ:
        if name.startswith("TREADLE_") or name.endswith(("_KEY", "_TOKEN", "_PAT")):
            monkeypatch.delenv(name)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(folder))
    names = ("ollama", "lmstudio", '"llama.cpp"', "vllm")
    (folder / "config.toml").write_text(
        "# my servers\n" + "".join(f'[providers.{name}]\nbase_url = "http://127.0.0.1:1/v1"\n' for name in names)
    )
    return folder


@pytest.fixture
def treadle(home: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process."""

    def command(*argv: str) -> Said:
        code = run(argv)
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return command
