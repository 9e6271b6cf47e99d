"""What the hooks of a folder run: which files are protected, and which of them is another than the one trusted."""

import json
from pathlib import Path

import pytest

from treadle.app.security.hook_files import HookFiles, files_of_hooks
from treadle.store.active_items import find_items


def made(folder: Path, command: str, **more: object) -> Path:
    """Make a folder with a hook, and files that its command may name."""
    hooks = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command, **more}]}]}}
    texts = {".claude/settings.json": json.dumps(hooks), "scripts/a.sh": "a", "scripts/b.sh": "b", "a.log": "log"}
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def protected(folder: Path) -> set[str]:
    """Name what is protected besides the settings themselves."""
    found = files_of_hooks(folder, find_items(folder))
    return {str(Path(one).relative_to(folder)) for one in found} - {".claude/settings.json"}


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("sh scripts/a.sh >> a.log 2>&1", {"scripts/a.sh"}),
        ("sh scripts/a.sh | tee -a a.log; touch scripts/b.sh", {"scripts/a.sh"}),
        ("sh scripts/a.sh > a.log; sort a.log", {"scripts/a.sh", "a.log"}),
        ("sh < scripts/a.sh && X=scripts/b.sh true", {"scripts/a.sh", "scripts/b.sh"}),
        ("if true; then sh scripts/a.sh > a.log; fi", {"scripts/a.sh", "a.log"}),  # what is not plain is taken whole
        ("sh scripts/a.sh > 'a.log", {"scripts/a.sh", "a.log"}),
        ("awk '$1 > 3' scripts/a.sh", {"scripts/a.sh"}),
        ('sh -c "$(cat scripts/a.sh > a.log)"', {"scripts/a.sh", "a.log"}),
        ("true", set()),
    ],
)
def test_what_a_command_only_writes_to_is_not_protected(tmp_path: Path, command: str, named: set[str]) -> None:
    assert protected(made(tmp_path, command)) == named


def test_where_a_link_of_a_hook_leads_is_protected_and_what_no_hook_names_is_not(tmp_path: Path) -> None:
    folder = made(tmp_path, "sh .claude/hooks/a", args=["--with", "scripts/b.sh"])
    for name in (".claude/hooks/a", ".git/hooks/pre-commit"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).symlink_to(folder / "scripts" / ("a.sh" if "claude" in name else "commit.sh"))
    (folder / "scripts" / "commit.sh").write_text("c")
    links = {".claude/hooks/a", ".git/hooks/pre-commit"}
    assert protected(folder) == {*links, "scripts/a.sh", "scripts/b.sh", "scripts/commit.sh"}


def test_a_file_that_is_another_or_gone_or_new_is_named_and_one_that_the_hook_made_is_not(tmp_path: Path) -> None:
    folder, texts = made(tmp_path, "sh scripts/a.sh scripts/new.sh"), ("sh scripts/a.sh scripts/new.sh",)
    files = HookFiles(folder, find_items(folder))
    script, new = folder / "scripts" / "a.sh", folder / "scripts" / "new.sh"
    assert files.begin(texts) == ""
    files.end(texts)
    (folder / "scripts" / "b.sh").write_text("not named")
    new.write_text("somebody else's")
    assert files.begin(texts) == "scripts/new.sh"
    new.unlink()
    assert files.begin(texts) == ""
    new.write_text("the hook's own")
    files.end(texts)
    assert files.begin(texts) == ""
    script.write_text("other")
    assert files.begin(texts) == "scripts/a.sh"
    script.unlink()
    assert files.begin(texts) == "scripts/a.sh"
    script.write_text("a")
    assert files.begin(texts) == ""


def test_what_lies_beside_a_script_in_a_folder_of_hooks_counts_and_other_settings_there_do_not(tmp_path: Path) -> None:
    folder, texts = made(tmp_path, "sh .claude/hooks/a.sh"), ("sh .claude/hooks/a.sh",)
    (folder / ".claude" / "hooks").mkdir()
    for name in ("a.sh", "lib.sh"):
        (folder / ".claude" / "hooks" / name).write_text("x")
    files = HookFiles(folder, find_items(folder))
    settings = folder / ".claude" / "settings.json"
    settings.write_text(settings.read_text().replace("a.sh", "b.sh"))
    assert files.begin(texts) == ""
    (folder / ".claude" / "hooks" / "lib.sh").write_text("y")
    assert files.begin(texts) == ".claude/hooks/lib.sh"
