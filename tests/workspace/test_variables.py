"""What child processes inherit."""

import os
from pathlib import Path

from treadle.workspace.commands.variables import child_variables, path_outside


def test_keys_are_never_handed_on_and_harmless_variables_are() -> None:
    parent = {"PATH": "/bin", "LC_ALL": "C", "ANTHROPIC_API_KEY": "k", "AWS_SECRET_ACCESS_KEY": "s", "LD_PRELOAD": "x"}
    child = child_variables(parent)
    assert {name: child.get(name) for name in parent} == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "ANTHROPIC_API_KEY": None,
        "AWS_SECRET_ACCESS_KEY": None,
        "LD_PRELOAD": None,
    }
    assert (child["TERM"], child["PAGER"], child["GIT_TERMINAL_PROMPT"]) == ("dumb", "cat", "0")


def test_the_user_may_name_further_variables() -> None:
    assert child_variables({"MY_FLAG": "1", "PAGER": "less"}, ("MY_FLAG", "PAGER"))["MY_FLAG"] == "1"
    assert child_variables({"PAGER": "less"}, ("PAGER",))["PAGER"] == "less"


def test_programs_of_the_opened_folder_are_not_looked_up(tmp_path: Path) -> None:
    root, link = tmp_path / "root", tmp_path / "link"
    (root / "bin").mkdir(parents=True)
    link.symlink_to(root / "bin")
    path = os.pathsep.join((str(root / "bin"), "", ".", "bin", str(link), "/usr/bin", str(tmp_path / "rooted")))
    assert path_outside(path, str(root)) == os.pathsep.join(("/usr/bin", str(tmp_path / "rooted")))
