"""Effects that a command can have on a workspace, and what the workspace is after all of one, and after none of it."""

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

DATES = MappingProxyType(
    {
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
        "GIT_AUTHOR_NAME": "t",
        "GIT_AUTHOR_EMAIL": "t@t",
        "GIT_COMMITTER_NAME": "t",
        "GIT_COMMITTER_EMAIL": "t@t",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ALLOW_PROTOCOL": "file",
    }
)
"""What makes the same commit have the same name wherever it is made."""

_FIRST = """
git init -q -b main
mkdir app src .github .github/workflows
printf 'one\\ntwo\\nthree\\n' > a.txt; cp a.txt b.txt; echo code > app/code.py; echo '*.db' > .gitignore
printf 'build/\\n.venv/\\nnode_modules/\\n' >> .gitignore
echo '#!/bin/sh' > tool.sh; printf 'all:\\n\\techo made > made.txt\\n' > Makefile
printf 'echo n >> a.txt\\ngit commit -qam "by a script"\\n' > step.sh; echo 'on: push' > .github/workflows/ci.yml
git add . && git commit -qm first
git switch -q -c other && echo other > a.txt && git commit -qam other && git switch -q main
git switch -q -c apart && echo apart > apart.txt && git add . && git commit -qm apart && git switch -q main
python3 -c "import sqlite3; db = sqlite3.connect('app.db'); db.execute('CREATE TABLE t (a)'); db.close()"
mkdir build; echo old > build/old.o; echo rows > app/prod.db; echo rows > data.db; echo KEY=secret > .env
echo .env >> .git/info/exclude; echo dirty >> b.txt
"""

_MIGRATES = (
    "import sqlite3; db = sqlite3.connect('app.db'); db.execute('ALTER TABLE t ADD COLUMN b'); "
    "db.execute('INSERT INTO t VALUES (1, 2)'); db.commit()"
)
_SERVES = """port=$((20000 + $$ % 20000)); python3 -m http.server $port --bind 127.0.0.1 > /dev/null 2>&1 &
until curl -s 127.0.0.1:$port/a.txt > got.txt; do sleep 0.1; done; kill $!"""

EFFECTS: Mapping[str, str] = MappingProxyType(
    {
        "nothing": "cat a.txt",
        "edit": "sed -i s/two/2/ a.txt",
        "new files": "mkdir -p new/deep && echo x > new/deep/x && echo y > y.txt",
        "delete": "rm a.txt",
        "rename": "mv a.txt renamed.txt",
        "folder with ignored": "mv app core",
        "folder removed": "rm -r app",
        "many files": "mkdir many; for n in $(seq 300); do echo $n > many/$n; done",
        "10,000 files": "mkdir many && cd many && seq 10000 | split -l 1 -a 3",
        "mode": "chmod +x tool.sh",
        "link": "ln -s a.txt link",
        "link out": "ln -s /etc/hostname out",
        "binary": "head -c 3000 /dev/zero > zeros.bin",
        "too large to show": "seq 100000 > long.txt",
        "fails half-way": "echo x >> a.txt; exit 3",
        "fails": "false",
        "build": "mkdir -p build; echo new > build/new.o; echo changed > build/old.o",
        "build and source": "echo new > build/new.o; echo x >> a.txt",
        "build fails": "echo new > build/new.o; exit 2",
        "build and use": "mkdir -p build && echo 'echo built >> a.txt' > build/run.sh && sh build/run.sh",
        "make": "make",
        "database migrated": f"python3 -c {_MIGRATES!r}",
        "server and curl": _SERVES,
        "child ended": "sleep 60 & echo x >> a.txt; kill $!; wait $!; echo y >> a.txt",
        "ends itself": "echo x >> a.txt; kill -9 $$",
        "ignored changed": "echo more >> data.db",
        "ignored removed": "rm data.db",
        "ignored folder removed": "rm -r build",
        "venv": "python3 -m venv --without-pip .venv",
        "venv, not ignored": "python3 -m venv --without-pip env",
        "package scripts": """echo '{"scripts": {"postinstall": "echo x"}}' > package.json""",
        "pipe": "mkfifo pipe; echo x >> a.txt",
        "control file": "echo 'on: pull_request' > .github/workflows/ci.yml; echo x >> a.txt",
        "secret": "echo KEY=other > .env; echo x >> a.txt",
        "add": "git add b.txt",
        "commit": "git commit -qam second",
        "stash": "git stash -q",
        "stash and pop": "git stash -q && git stash pop -q",
        "switch -c": "git switch -q -c mine",
        "switch": "git switch -q apart",
        "checkout refused": "git switch -q other",
        "merge": "git merge -q apart",
        "merge conflict": "git stash -q; echo main > a.txt; git commit -qam main; git merge other",
        "rebase": "git commit -qam second; git rebase -q apart",
        "tag": "git tag v1",
        "cherry-pick": "git cherry-pick apart",
        "add -p": "printf 'y\\n' | git add -p",
        "mixed": "echo x >> a.txt && git add -A && git commit -qm mixed",
        "mixed and failing": "echo x >> a.txt; git commit -qam x; exit 4",
        "script that commits": "sh step.sh",
        "repository inside": "git init -q sub; echo x > sub/x",
        "submodule": 'git submodule --quiet add "$PWD/.git" part',
        "worktree": "git worktree add -q side apart",
        "apply": "git diff > /tmp/p.patch; git stash -q; git apply /tmp/p.patch",
    }
)

_VOLATILE = ("index", "logs", "objects", "COMMIT_EDITMSG", "ORIG_HEAD", "gc.log", "FETCH_HEAD", "AUTO_MERGE")
"""Of git's data: what holds times, or is seen through the references."""


@dataclass(frozen=True)
class Ends:
    """What the workspace is before a line runs, and after it has run bare; `status` is how it ended there."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    status: int


def lay_out(folder: Path) -> None:
    """Make the workspace."""
    folder.mkdir(parents=True)
    subprocess.run(["bash", "-ec", _FIRST], cwd=folder, check=True, env={**os.environ, **DATES}, capture_output=True)


def ends_of(name: str, folder: Path) -> Ends:
    """Run a line bare, in a workspace of its own that stands where the other one will."""
    lay_out(folder)
    before = state_of(folder)
    done = subprocess.run(
        ["bash", "-c", EFFECTS[name]], cwd=folder, check=False, env={**os.environ, **DATES}, capture_output=True
    )
    after = state_of(folder)
    shutil.rmtree(folder)
    return Ends(before, after, done.returncode)


def state_of(folder: Path) -> dict[str, str]:
    """Describe a workspace: every file, link, folder and mode, and what git makes of its repository."""
    found = dict(_entries(folder, ""))
    for words in ("for-each-ref", "status --porcelain", "stash list --format=%s", "worktree list --porcelain"):
        done = subprocess.run(["git", *words.split()], cwd=folder, check=False, capture_output=True, text=True)
        found[f"git {words}"] = done.stdout + done.stderr
    return found


def _entries(folder: Path, above: str) -> "list[tuple[str, str]]":
    rows: list[tuple[str, str]] = []
    for entry in sorted(folder.iterdir()):
        name = f"{above}{entry.name}"
        if entry.name == "__pycache__" or ("/.git/" in f"/{above}" and entry.name in _VOLATILE):
            continue
        status = entry.lstat()
        if stat.S_ISLNK(status.st_mode):
            rows.append((name, f"link {entry.readlink()}"))
        elif stat.S_ISDIR(status.st_mode):
            rows.append((name, f"folder {status.st_mode:o}"))
            rows += _entries(entry, f"{name}/")
        elif stat.S_ISREG(status.st_mode):
            rows.append((name, f"file {status.st_mode:o} {hashlib.sha256(entry.read_bytes()).hexdigest()}"))
        else:
            rows.append((name, "special"))
    return rows
