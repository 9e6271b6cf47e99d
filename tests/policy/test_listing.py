"""Names of files that one command lists for the next: judged by the files that are there, never by hope."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.policy.views import RealView
from treadle.policy.classify import classify_command
from treadle.policy.context import PolicyContext
from treadle.policy.findings import CommandClass
from treadle.policy.gitindex import tracked_names
from treadle.policy.shell.tree import MAX_ENTRIES
from treadle.protocol.permissions import Mode

_READS = (
    "find . -name '*.py' | xargs grep -n foo",
    "find src -type f -name '*.py' | sort | head -5 | xargs cat",
    "find . -name '*.py' -print0 | xargs -0 head -3",
    "find . -name '*.py' -not -path './vendor/*' | xargs grep foo",
    "find . -path ./vendor -prune -o -name '*.py' -print | xargs cat",
    "find . \\( -name '*.py' -o -name '*.md' \\) | xargs wc -l",
    "git ls-files '*.py' | xargs grep -n foo",
    "git ls-files | grep '\\.py$' | xargs cat",
    "git ls-files -z '*.py' | xargs -0 cat",
    "grep -rl foo src | xargs grep -n bar",
    "rg -l foo | xargs grep -n bar",
    "rg --files -g '*.py' | xargs cat",
    "fd -e py | xargs cat",
    "find . -name '*.py' | while read -r f; do head -5 \"$f\"; done",
    "while IFS= read -r f; do cat \"$f\"; done < <(git ls-files '*.py')",
    "for f in $(git ls-files '*.py'); do cat $f; done",
    "for f in $(find . -name '*.py'); do wc -l \"$f\"; done",
    "git ls-files | xargs wc -l",
    'git ls-files | while read -r f; do wc -c "$f"; done',
)


def _folder(root: Path, *names: str) -> Path:
    for name in ("src/a.py", "src/b.md", "vendor/v.py", *names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    return root


def _tracked(root: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is missing")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run(["git", "-C", str(root), "add", "-A"], check=True)
    return root


def _class(line: str, root: Path) -> CommandClass:
    surroundings = PolicyContext(mode=Mode.ASK, roots=(str(root),), files=RealView(), home="/home/user")
    return classify_command(line, str(root), surroundings).command_class


def _unasked(root: Path, lines: tuple[str, ...] = _READS) -> list[str]:
    return [line for line in lines if _class(line, root) is CommandClass.READ_ONLY]


def test_lines_that_read_what_another_command_lists_run_unasked(tmp_path: Path) -> None:
    assert _unasked(_tracked(_folder(tmp_path))) == list(_READS)


@pytest.mark.parametrize(
    "name",
    ["src/a b.py", "x /etc/passwd y.py", "src/it's.py", 'src/"q".py', "src/back\\slash.py", "src/new\nline.py",
     "src/ü.py", "src/a\tb.py", "src/x=1.py"],
)  # fmt: skip
def test_a_name_that_falls_apart_or_means_something_makes_every_listing_ask(name: str, tmp_path: Path) -> None:
    kept = _unasked(_tracked(_folder(tmp_path, name)))
    elsewhere = not name.startswith("src")
    expected = [
        line for line in _READS if (" src" in line and elsewhere) or ("-0" in line and not set("=\n\t") & set(name))
    ]
    assert kept == expected


def test_a_name_like_an_option_asks_where_nothing_stands_before_it(tmp_path: Path) -> None:
    kept = _unasked(_tracked(_folder(tmp_path, "-f.py")))
    assert kept == [line for line in _READS if "find" in line or " src" in line]


def test_a_link_out_of_the_workspace_asks(tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("x\n")
    root = _folder(tmp_path / "ws")
    (root / "src" / "link.py").symlink_to(tmp_path / "outside.py")
    kept = _unasked(_tracked(root))
    assert [line for line in kept if "wc" not in line and "-type f" not in line] == []


def test_a_file_with_another_name_asks(tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("x\n")
    root = _folder(tmp_path / "ws")
    (root / "src" / "hard.py").hardlink_to(tmp_path / "outside.py")
    assert [line for line in _unasked(_tracked(root)) if "wc" not in line] == []


def test_a_secret_file_asks_wherever_it_is_listed(tmp_path: Path) -> None:
    root = _tracked(_folder(tmp_path, "src/.env", "src/server.key"))
    lines = (
        "grep -rl foo src | xargs grep -n bar",
        "find src -type f | xargs grep foo",
        "git ls-files | xargs grep foo",
        "git ls-files | xargs cat",
        "rg --files --hidden | xargs cat",
        "find src -name '*' | xargs cat",
        "find src -name '.e*' | xargs cat",
        "find src -name '*.key' | xargs cat",
        "git ls-files '*.key' | xargs cat",
        "git ls-files | grep env | xargs cat",
        "git ls-files | grep '\\.env$' | xargs cat",
        "git ls-files | grep '\\.(env|py)$' | xargs cat",
        "fd -H -e env | xargs cat",
        'find src -type f | while read -r f; do cat "$f"; done',
        'for f in $(git ls-files); do cat "$f"; done',
    )
    assert _unasked(root, lines) == []


def test_what_is_done_with_the_names_beyond_reading_them_asks(tmp_path: Path) -> None:
    root = _tracked(_folder(tmp_path, "env", "sub/src/a.py"))
    lines = (
        "find . -name '*.py' | xargs rm",
        "find . -name '*.py' | xargs sed -i s/a/b/",
        "find . -name '*.py' | xargs python",
        "find . -name '*.py' | xargs uniq",
        "find . -name '*.py' | xargs -I{} sh -c 'cat {}'",
        "find . -name '*.py' | xargs -I{} cat ../{}",
        "find . -name '*.py' | xargs -I{} {}",
        "find . -name '*.py' | xargs -d / cat",
        "find . -name '*.py' | xargs -a list cat",
        "find . -name '*.py' | xargs -S 9 cat",
        "find . -name '*.py' | xargs sort -o",
        "find . -name '*.py' | xargs awk -f",
        "find . -name '*.py' | xargs git diff --output",
        "find . -name '*.py' | (cd sub && xargs cat)",
        "find . -name '*.py' | { cd sub; xargs cat; }",
        "(cd sub; find . -name '*.py') | xargs cat",
        "find . -name '*.py' 2>&1 | xargs cat",
        "find . -name '*.py' |& xargs cat",
        "find . -name '*.py' | head 5 | xargs cat",
        "find . -name '*.py' | head -5 list | xargs cat",
        "find . -name '*.py' | sort list | xargs cat",
        "find . -name '*.py' | grep -n a | xargs cat",
        "find . -name '*.py' | grep -o '[^/]*$' | xargs cat",
        "find . -name '*.py' | sed s/py/key/ | xargs cat",
        "find . -name '*.py' | awk '{print $1}' | xargs cat",
        "find . -name '*.py' -printf '%f\\n' | xargs cat",
        "find -L . -name '*.py' | xargs cat",
        "find . -name '*.py' -o -type f | xargs cat",
        "find . ! -name '*.py' | xargs cat",
        "find . -not \\( -name '*.py' \\) | xargs cat",
        "x=$(cat list); find . -name '*.py' | xargs grep \"$x\"",
        "x=$(cat list); find . -name '*.md' | xargs wc \"$x\"",
        "x=$(cat list); find . -name '*.py' | xargs -I{} grep \"$x\" {}",
        "grep -l foo < src/a.py | xargs cat",
        "rg -l foo --color=always | xargs cat",
        "rg -c foo | xargs cat",
        "fd -e py -x rm | xargs cat",
        "git -C sub ls-files '*.py' | xargs cat",
        "git ls-files -o '*.py' | xargs cat",
        "git ls-files ':(top)*.py' | xargs cat",
        "git diff --name-only | xargs cat",
        "cat list | xargs cat",
        "cat list | xargs wc -l",
        "echo .env | xargs cat",
        "printf '%s\\n' a .env | xargs cat",
        "echo a -o b | xargs sort",
        "echo 'a b/../.env' | xargs -I{} cat {}",
        "echo x | xargs rm",
        "echo x | xargs -I{} touch {}",
        "git ls-files '*.py' | while read -r f; do cat \".$f\"; done",
        "git ls-files '*.py' | while read -r f; do cat \"../$f\"; done",
        "git ls-files '*.py' | while read -r f; do cd sub; cat \"$f\"; done",
        "git ls-files '*.py' | (cd sub; while read -r f; do cat \"$f\"; done)",
        "git ls-files '*.py' | while read -r f; do cat \"${f%.py}.env\"; done",
        "git ls-files '*.py' | while read -r f; do f=.$f; cat \"$f\"; done",
        "git ls-files '*.py' | while read -r f g; do cat \"$g\"; done",
        "git ls-files '*.py' | while IFS=/ read -r f; do rm \"$f\"; done",
        "git ls-files '*.py' | while read -r f; do python \"$f\"; done",
        "git ls-files '*.py' | while read -r f; do echo x > \"$f\"; done",
        "for f in $(git ls-files '*.py'); do cat .$f; done",
        "for f in $(git ls-files '*.py'); do cd ..; cat $f; done",
        "for f in $(git ls-files '*.py'); do $f; done",
        "for f in $(find . -name '*.py'; echo .env); do cat $f; done",
        "for f in a $(cat list); do cat $f; done",
    )
    assert _unasked(root, lines) == []


def test_a_folder_with_more_files_than_are_looked_at_asks(tmp_path: Path) -> None:
    root = _folder(tmp_path)
    for number in range(MAX_ENTRIES + 1):
        (root / f"{number}").touch()
    assert _unasked(root, ("find . -name '*.py' | xargs cat", "rg -l foo | xargs grep -n bar")) == []


def test_an_index_of_another_form_tells_nothing(tmp_path: Path) -> None:
    root = _tracked(_folder(tmp_path))
    index = (root / ".git" / "index").read_bytes()
    assert tracked_names(index, 10) == ["src/a.py", "src/b.md", "vendor/v.py"]
    assert tracked_names(index, 2) is None
    assert tracked_names(index[:60], 10) is None
    assert tracked_names(index.replace(b"src/a.py", b"src/a\0py"), 10) is None
    assert tracked_names(index[:-20] + b"link\0\0\0\0" + index[-20:], 10) is None
    subprocess.run(["git", "-C", str(root), "update-index", "--index-version", "4"], check=True)
    assert tracked_names((root / ".git" / "index").read_bytes(), 10) is None
    assert tracked_names(b"", 10) == []
