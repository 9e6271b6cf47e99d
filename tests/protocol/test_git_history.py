"""What git keeps of its work names no program, and so decides over nothing that runs later."""

import subprocess
from pathlib import Path

from treadle.protocol.protected_names import is_git_history

_SETTINGS = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "rerere.enabled=true", "-c", "rebase.autosquash=false")
_DECIDES = ("config", "description", "hooks", "info", "branches")
"""What `git init` leaves besides, and what a person or a program may set there."""

_WORK = """
checkout -q -b other
commit -q -am two
checkout -q main
commit -q -am three
!cherry-pick other
cherry-pick --abort
!merge other
merge --abort
!merge --squash other
reset -q --hard
!revert HEAD~1
revert --abort
tag -a v1 -m x
notes add -m x
bisect start HEAD HEAD~1
bisect reset
!rebase --apply other
rebase --abort
!fetch . main
stash
gc -q
"""


def _git(folder: Path, *words: str, fails: bool = False) -> None:
    subprocess.run(("git", *_SETTINGS, *words), cwd=folder, check=not fails, capture_output=True)


def test_what_git_itself_leaves_at_its_work_is_history(tmp_path: Path) -> None:
    """Looked at with git 2.39 (November 2026); other versions leave about the same."""
    _git(tmp_path, "init", "-q", "-b", "main")
    file, git = tmp_path / "a", tmp_path / ".git"
    file.write_text("one\n")
    _git(tmp_path, "add", "a")
    _git(tmp_path, "commit", "-q", "-m", "one")
    seen: set[str] = set()
    for number, words in enumerate(_WORK.split("\n")[1:-1]):
        if "-am" in words or words == "stash":
            file.write_text(f"{number}\n")
        _git(tmp_path, *words.lstrip("!").split(), fails=words.startswith("!"))
        seen |= {path.name for path in git.iterdir()}
    named = {"CHERRY_PICK_HEAD", "MERGE_HEAD", "SQUASH_MSG", "REVERT_HEAD", "BISECT_LOG", "AUTO_MERGE", "packed-refs"}
    assert named <= seen
    steps = {"rebase-apply", "rebase-merge", "sequencer", "rr-cache"}  # git goes on with them, and some run programs
    assert {name for name in seen if not is_git_history(f"/w/.git/{name}")} <= {*_DECIDES, *steps}
    assert not any(is_git_history(f"/w/.git/{name}") for name in (*_DECIDES, *steps, "config.lock", "hooks/HEAD"))
