"""The tasks of a batch in their three forms, and every mistake with its line before anything starts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from treadle.headless.batch.batch_tasks import MOST_PROBLEMS, BatchTask, TaskChoice, chosen_tasks, read_tasks
from treadle.protocol.errors import ConfigError

A = {"id": "a", "prompt": "do"}


def written(folder: Path, *rows: Mapping[str, Any] | str) -> Path:
    file = folder / "tasks.jsonl"
    file.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return file


def mistakes(file: Path) -> list[str]:
    with pytest.raises(ConfigError) as failed:
        read_tasks(file)
    assert failed.value.code == "batch-tasks"
    return failed.value.why.splitlines()


def test_all_fields_are_read_and_a_folder_is_relative_to_the_file(tmp_path: Path) -> None:
    row = {
        **A,
        "repo": "project",
        "commit": "abc",
        "image": "i",
        "model": "p/m",
        "env": {"X": "1"},
        "max_cost": 1,
        "timeout": 2.5,
        "check": "make test",
    }
    (task,) = read_tasks(written(tmp_path, "", row, "  "))
    assert task == BatchTask(
        id="a",
        prompt="do",
        repo=str(tmp_path / "project"),
        commit="abc",
        image="i",
        model="p/m",
        env={"X": "1"},
        max_cost=1.0,
        timeout=2.5,
        check="make test",
    )


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"id": "b", "prompt": }', "It is not JSON: "),
        ("[1]", "The file is one JSON array"),
        ("7", "It is not a JSON object."),
        ({"prompt": "x"}, "It has no `id`."),
        ({"id": "b"}, "missing required field `prompt`"),
        ({"id": "b", "prompt": ""}, "length >= 1 - at `$.prompt`"),
        ({"id": "b", "prompt": "x", "repos": "y"}, "unknown field `repos`"),
        ({"id": "b", "prompt": "x", "max_cost": "1"}, "Expected `float | null`, got `str` - at `$.max_cost`"),
        ({"id": "b", "prompt": "x", "max_cost": 0}, "at `$.max_cost`"),
        ({"id": "b", "prompt": "x", "timeout": -1}, "at `$.timeout`"),
        ({"id": "../b", "prompt": "x"}, "The id '../b' is not"),
        ({"id": "b" * 129, "prompt": "x"}, "is not 1 to 128"),
        ({"id": "b", "prompt": "x", "env": {"A B": "1"}}, "`env` cannot set 'A B'."),
        ({"id": "b", "prompt": "x", "env": {"TREADLE_HOME": "/"}}, "`env` cannot set 'TREADLE_HOME'."),
        ({"id": "b", "prompt": "x", "commit": "c"}, "It has a `commit` and no `repo`."),
        ({"id": "b", "prompt": "x", "repo": "r", "commit": "--exec=x"}, "The commit '--exec=x' is not"),
        ({"id": "A", "prompt": "x"}, "The id 'A' is taken by line 1 ('a')."),
        ({"instance_id": "x__y-1", "problem_statement": "fix", "repo": "x/y"}, "It has no base_commit."),
        ({"id": "b", "problem_statement": "fix", "prompt": "x"}, "unknown field `problem_statement`"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, row: Mapping[str, Any] | str, said: str) -> None:
    rows = [row] if row == "[1]" else [A, row]
    (only,) = mistakes(written(tmp_path, *rows))
    assert only.startswith(f"line {len(rows)}: ")
    assert said in only


def test_all_mistakes_are_named_as_far_as_a_person_reads_them(tmp_path: Path) -> None:
    found = mistakes(written(tmp_path, A, *["no"] * (MOST_PROBLEMS + 2)))
    assert found[0].startswith("line 2: ")
    assert found[MOST_PROBLEMS:] == ["and 2 more."]


def test_a_file_without_tasks_and_one_that_is_not_there_are_refused(tmp_path: Path) -> None:
    assert mistakes(written(tmp_path)) == []
    with pytest.raises(ConfigError, match="cannot be read"):
        read_tasks(tmp_path / "nothing.jsonl")


def test_a_row_of_swe_bench_gives_what_the_agent_may_know(tmp_path: Path) -> None:
    row = {
        "instance_id": "x__y-1",
        "repo": "x/y",
        "base_commit": "abc",
        "problem_statement": "fix it",
        "patch": "the solution",
        "test_patch": "the tests",
        "hints_text": "hint",
    }
    file = written(tmp_path, row)
    remote = BatchTask(id="x__y-1", prompt="fix it", repo="https://github.com/x/y", commit="abc")
    assert read_tasks(file) == [remote]
    (tmp_path / "here" / "x__y").mkdir(parents=True)
    assert read_tasks(file, tmp_path / "here")[0].repo == str(tmp_path / "here" / "x__y")


def harbor(folder: Path, name: str, config: str = "", instruction: str = "Do it.") -> Path:
    place = folder / name
    (place / "environment").mkdir(parents=True)
    (place / "task.toml").write_text(config)
    (place / "instruction.md").write_text(f"{instruction}\n")
    return place


def test_a_folder_of_harbor_tasks_is_read_and_images_are_named(tmp_path: Path) -> None:
    plain = harbor(tmp_path, "plain", "[agent]\ntimeout_sec = 90.0\n[verifier]\ntimeout_sec = 5.0")
    built = harbor(tmp_path, "built")
    (built / "environment" / "Dockerfile").write_text("FROM scratch")
    pulled = harbor(tmp_path, "pulled", '[environment]\ndocker_image = "x:1"')
    (tmp_path / "other").mkdir()
    tasks = {task.id: task for task in read_tasks(tmp_path)}
    assert tasks == {
        "plain": BatchTask(id="plain", prompt="Do it.", timeout=90.0, repo=str(plain / "environment")),
        "built": BatchTask(id="built", prompt="Do it.", image="Dockerfile", repo=str(built / "environment")),
        "pulled": BatchTask(id="pulled", prompt="Do it.", image="x:1", repo=str(pulled / "environment")),
    }
    assert read_tasks(plain) == [tasks["plain"]]


@pytest.mark.parametrize(
    ("config", "instruction", "said"),
    [
        ("steps = [1]", "x", "several steps"),
        ("x = ", "x", "It cannot be read: "),
        ("", "", "Its instruction.md is empty."),
        ('[agent]\ntimeout_sec = "long"', "x", "at `$.timeout`"),
    ],
)
def test_what_harbor_alone_runs_and_what_is_broken_is_refused(
    tmp_path: Path, config: str, instruction: str, said: str
) -> None:
    harbor(tmp_path, "t1", config, instruction)
    (only,) = mistakes(tmp_path)
    assert only.startswith("t1: ")
    assert said in only


TASKS = [BatchTask(id=f"t{number}", prompt="x") for number in range(12)]


def ids(**choice: Any) -> list[str]:
    return [task.id for task in chosen_tasks(TASKS, TaskChoice(**choice))]


def test_tasks_are_chosen_by_pattern_then_mixed_then_cut() -> None:
    assert ids(pattern="^t1") == ["t1", "t10", "t11"]
    assert ids(pattern="^t1", cut="1:") == ["t10", "t11"]
    assert ids(cut="-2:") == ["t10", "t11"]
    assert ids(cut="::5") == ["t0", "t5", "t10"]
    mixed = ids(seed=7)
    assert (mixed, sorted(mixed)) == (ids(seed=7), sorted(task.id for task in TASKS))
    assert mixed not in (ids(), ids(seed=8))
    assert ids(seed=7, cut=":3") == mixed[:3]


@pytest.mark.parametrize(
    "choice", [{"pattern": "("}, {"cut": "5"}, {"cut": "a:b"}, {"cut": "1:2:0"}, {"cut": "1:2:3:4"}]
)
def test_a_choice_that_cannot_be_read_is_a_wrong_option(choice: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as failed:
        ids(**choice)
    assert failed.value.code == "batch-option"
