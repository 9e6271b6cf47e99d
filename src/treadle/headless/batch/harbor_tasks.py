"""Harbor's task folders (https://www.harborframework.com/docs/tasks): the instruction, the time, the environment.

Their containers, tests and solutions are not used: a folder whose environment has to be built or pulled names that as
the image that it needs.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_BUILT = ("Dockerfile", "docker-compose.yaml", "docker-compose.yml")
_CONFIG, _INSTRUCTION = "task.toml", "instruction.md"


def harbor_folders(place: Path) -> Iterator[Path]:
    """Find the task folders: the place itself, or those in it. Raises `OSError`."""
    if (place / _CONFIG).is_file():
        yield place.absolute()
        return
    yield from (one.absolute() for one in sorted(place.iterdir()) if (one / _CONFIG).is_file())


def harbor_row(folder: Path) -> Mapping[str, Any] | str:
    """Give the values of a task, or what is wrong with its folder."""
    try:
        config = tomllib.loads((folder / _CONFIG).read_text(encoding="utf-8"))
        if config.get("steps") or (folder / "steps").is_dir():
            return "It has several steps, which only Harbor itself runs."
        prompt = (folder / _INSTRUCTION).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return f"It cannot be read: {error}."
    environment, agent = (_table(config, name) for name in ("environment", "agent"))
    if not prompt:
        return f"Its {_INSTRUCTION} is empty."
    built = next((name for name in _BUILT if (folder / "environment" / name).is_file()), "")
    row: dict[str, Any] = {"id": folder.name, "prompt": prompt}
    if image := str(environment.get("docker_image") or built):
        row["image"] = image
    if seconds := agent.get("timeout_sec"):
        row["timeout"] = seconds
    if (folder / "environment").is_dir():
        row["repo"] = str(folder / "environment")
    return row


def _table(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = config.get(name)
    return found if isinstance(found, dict) else {}
