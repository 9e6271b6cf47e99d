"""The tasks of a batch as a person writes them: JSON lines, rows of SWE-bench, or Harbor's task folders.

Everything that is wrong is named with its place before anything starts.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from treadle.door.reports import LONGEST_TASK_NAME, TASK_NAME
from treadle.headless.batch.harbor_tasks import harbor_folders, harbor_row
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError

MOST_PROBLEMS = 20
"""So many mistakes are named; of more the number is."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SLUG = re.compile(r"[A-Za-z0-9-][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]+")
_ADDRESS = re.compile(r"(?:https|ssh|git|file)://|[\w.-]+@[\w.-]+:")

Positive = Annotated[float, msgspec.Meta(gt=0)]


class BatchTask(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task. `repo` is a folder, an address of git, or `owner/name`; `commit` is what it is worked on at.

    `image` is the container that it needs; `env` are variables for its commands. `max_cost` is US dollars, `timeout`
    seconds of its turn. `check` is a shell line that says by its exit status whether the task is solved.
    """

    id: str
    prompt: Annotated[str, msgspec.Meta(min_length=1)]
    repo: str = ""
    commit: str = ""
    image: str = ""
    model: str = ""
    env: Mapping[str, str] = {}
    max_cost: Positive | None = None
    timeout: Positive | None = None
    check: str = ""


class TaskChoice(Record, frozen=True, kw_only=True):
    """Which tasks of a file, in which order: those whose id has the pattern, mixed by the seed, then cut."""

    pattern: str = ""
    seed: int | None = None
    cut: str = ""


def read_tasks(place: Path, repositories: Path | None = None) -> list[BatchTask]:
    """Read all tasks; `repo` is made absolute, or an address. Raises `ConfigError` that names every mistake.

    `owner/name` is looked for in the folder `repositories` first; else it is a repository of GitHub.
    """
    try:
        rows = list(_harbor(place) if place.is_dir() else _lines(place))
    except OSError as error:
        raise ConfigError(
            "batch-tasks", f"{place} cannot be read.", why=str(error), fix="Name a file of JSON lines, or a folder."
        ) from error
    tasks, problems = [], []
    for where, row in rows:
        task, problem = (None, row) if isinstance(row, str) else _task(row)
        if task is None:
            problems.append(f"{where}: {problem}")
        else:
            tasks.append((where, _located(task, place.parent, repositories)))
    problems += _doubles(tasks)
    if problems or not tasks:
        raise _mistakes(place, problems)
    return [task for _, task in tasks]


def read_line(line: bytes, beside: Path, repositories: Path | None = None) -> BatchTask | str:
    """Read one line of JSON; `repo` is relative to the folder `beside`. Gives the task, or what is wrong."""
    row = _row(line)
    task, problem = (None, row) if isinstance(row, str) else _task(row)
    return problem if task is None else _located(task, beside, repositories)


def chosen_tasks(tasks: Sequence[BatchTask], choice: TaskChoice) -> list[BatchTask]:
    """Give the tasks that are wanted, in their order. Raises `ConfigError` for what cannot be read."""
    try:
        found = [task for task in tasks if re.search(choice.pattern, task.id)]
    except re.error as error:
        raise _option(f"--filter {choice.pattern!r} is not a regular expression.", str(error)) from error
    if choice.seed is not None:
        random.Random(choice.seed).shuffle(found)  # noqa: S311 - the same order each time
    if not choice.cut:
        return found
    parts = choice.cut.split(":")
    try:
        numbers = [int(part) if part.strip() else None for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or numbers[2:] == [0]:
        raise _option(f"--slice {choice.cut!r} is not a part of a list.", "It is START:END, such as 0:50 or 100:.")
    return found[slice(*numbers)]


def _option(what: str, why: str) -> ConfigError:
    return ConfigError("batch-option", what, why=why, fix="`treadle batch --help` shows the options.")


def _mistakes(place: Path, problems: Sequence[str]) -> ConfigError:
    if not problems:
        return ConfigError(
            "batch-tasks", f"{place} has no tasks.", fix='Write one a line: {"id": "a", "prompt": "what to do"}'
        )
    shown = list(problems[:MOST_PROBLEMS])
    if len(problems) > MOST_PROBLEMS:
        shown.append(f"and {len(problems) - MOST_PROBLEMS} more.")
    number = "One mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
    return ConfigError(
        "batch-tasks",
        f"{number} in {place}. No task was started.",
        why="\n".join(shown),
        fix="Correct them; docs/batch.md lists the fields.",
    )


_Row = tuple[str, Mapping[str, Any] | str]
"""Where it is, and its values, or what is wrong with it."""


def _lines(place: Path) -> Iterator[_Row]:
    data = place.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if data.lstrip()[:1] == b"[":
        yield "line 1", "The file is one JSON array. Write one object a line instead."
        return
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            yield f"line {number}", _row(line)


def _row(line: bytes) -> Mapping[str, Any] | str:
    try:
        row = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"It is not JSON: {error}."
    if not isinstance(row, dict):
        return "It is not a JSON object."
    if "problem_statement" in row and "id" not in row:
        return _of_swe_bench(row)
    return row


def _of_swe_bench(row: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """Take what the agent may know; the solution and the tests of the row are not among it."""
    names = {"instance_id": "id", "repo": "repo", "base_commit": "commit", "problem_statement": "prompt"}
    missing = [name for name in names if not row.get(name)]
    return f"It has no {', '.join(missing)}." if missing else {ours: row[name] for name, ours in names.items()}


def _harbor(place: Path) -> Iterator[_Row]:
    for folder in harbor_folders(place):
        yield folder.name, harbor_row(folder)


def _task(row: Mapping[str, Any]) -> tuple[BatchTask | None, str]:
    """Check the values; gives the task, or what is wrong."""
    if "id" not in row:
        return None, "It has no `id`."
    try:
        task = msgspec.convert(row, BatchTask)
    except msgspec.ValidationError as error:
        return None, f"{error}."
    if not TASK_NAME.fullmatch(task.id):
        what = f"1 to {LONGEST_TASK_NAME} letters, digits, `.`, `_` or `-`, the first a letter or digit"
        return None, f"The id {task.id[:40]!r} is not {what}."
    wrong = next((name for name in task.env if not _VARIABLE.fullmatch(name) or name.startswith("TREADLE")), None)
    if wrong is not None:
        return None, f"`env` cannot set {wrong!r}."
    if task.commit and not task.repo:
        return None, "It has a `commit` and no `repo`."
    if task.commit.startswith("-"):
        return None, f"The commit {task.commit[:40]!r} is not a name of one."
    return task, ""


def _located(task: BatchTask, beside: Path, repositories: Path | None) -> BatchTask:
    repo = task.repo
    if not repo or _ADDRESS.match(repo):
        return task
    if _SLUG.fullmatch(repo) and not (beside / repo).is_dir():
        names = (repo, repo.replace("/", "__"), repo.partition("/")[2])
        here = (repositories / name for name in names if repositories is not None)
        found = next((str(path.absolute()) for path in here if path.is_dir()), f"https://github.com/{repo}")
        return msgspec.structs.replace(task, repo=found)
    return msgspec.structs.replace(task, repo=str((beside / Path(repo).expanduser()).absolute()))


def is_address(repo: str) -> bool:
    """Whether a repository is elsewhere."""
    return bool(_ADDRESS.match(repo))


def _doubles(tasks: Sequence[tuple[str, BatchTask]]) -> Iterator[str]:
    """Find ids that are there twice, also where only their case differs: they are names of files."""
    first: dict[str, tuple[str, str]] = {}
    for where, task in tasks:
        before = first.setdefault(task.id.lower(), (where, task.id))
        if before[0] != where:
            yield f"{where}: The id {task.id!r} is taken by {before[0]} ({before[1]!r})."
