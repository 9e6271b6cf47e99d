"""Small tasks as data: a project, what the model says, and the tree that must be there afterwards."""

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treadle.app import demo
from treadle.providers.scripted.script import Expectation, Script, load_script

FOLDER = Path(__file__).with_name("tasks")
DEMO = Path(demo.__file__).parent
NAMES = ("demo", "rename", "module", "search")

Tree = dict[str, bytes]


class Said(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `task.toml`: what the user asks for, and the files that are gone afterwards."""

    prompt: str
    removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """One task; `changed` and `removed` say how the tree differs afterwards, by path."""

    name: str
    prompt: str
    script: Script
    project: Tree
    changed: Tree
    removed: tuple[str, ...]

    @property
    def repaired(self) -> Tree:
        """The tree of a task that was done."""
        return {path: data for path, data in self.edited.items() if path not in self.removed}

    @property
    def edited(self) -> Tree:
        """The tree of a task done without its commands; these are what removes files."""
        return {**self.project, **self.changed}

    @property
    def blind(self) -> Script:
        """The same moves by a model that does not look at results: for a session that denies some of them."""
        turns = tuple(msgspec.structs.replace(turn, expect=Expectation()) for turn in self.script.turns)
        return msgspec.structs.replace(self.script, turns=turns)

    def lay_out(self, folder: Path) -> Path:
        """Write the project."""
        for path, data in self.project.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        return folder


def sample(name: str) -> Sample:
    """Read a task."""
    folder = FOLDER / name
    source = DEMO if name == "demo" else folder
    said = Said(prompt=demo.TASK) if name == "demo" else _read(folder / "task.toml")
    return Sample(
        name=name,
        prompt=said.prompt,
        script=load_script(source / "script.toml"),
        project=tree(source / "project"),
        changed=tree(folder / "changed"),
        removed=said.removed,
    )


def tree(folder: Path) -> Tree:
    """Every file of a folder with its content, but for what the interpreter caches."""
    found: Tree = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found.update(
            {str((Path(place) / name).relative_to(folder)): (Path(place) / name).read_bytes() for name in files}
        )
    return found


def _read(file: Path) -> Said:
    return msgspec.toml.decode(file.read_bytes(), type=Said)
