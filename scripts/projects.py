"""Work in public projects in mode `auto`: their tests give the same inside as outside, and nothing is asked.

`python scripts/projects.py [FOLDER]` fetches the source packages from the registries, puts each under git in FOLDER (a
new temporary one by default), installs what its tests need, runs them bare, and then lets a scripted model run them,
look at `git status` before and after, and make a commit, headless and confined. Needs pip, npm, node and git.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, kw_only=True)
class Project:
    """A package whose tests come with its source. `needs` is installed for them; `counts` finds how they went."""

    name: str
    version: str
    test: str
    counts: str
    needs: tuple[str, ...] = ()
    node: bool = False


PYTEST = ".venv/bin/python -m pytest -q"
COUNTS = r"\d+ (?:failed|passed).*? in "
NEEDS = ("pytest==8.4.2", "pretend==1.0.9")
PROJECTS = (
    Project(name="h11", version="0.16.0", test=PYTEST, counts=COUNTS, needs=NEEDS),
    Project(name="packaging", version="25.0", test=PYTEST, counts=COUNTS, needs=NEEDS),
    Project(name="click", version="8.3.0", test=PYTEST, counts=COUNTS, needs=NEEDS),
    Project(
        name="minimist",
        version="1.2.8",
        test="node_modules/.bin/tape 'test/*.js'",
        counts=r"# (?:tests|pass|fail) +\d+",
        needs=("tape@5",),
        node=True,
    ),
)
GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@example.org")
STATUS = "git status --porcelain"
COMMIT = "git add -A && git commit --allow-empty -q -m 'Try a commit' && git log -1 --format=%s"


def run(words: tuple[str, ...], folder: Path, **more: Any) -> str:
    """Run a program that must succeed; gives what it printed."""
    return subprocess.run(words, cwd=folder, check=True, text=True, stdout=subprocess.PIPE, **more).stdout


def fetch(project: Project, folder: Path) -> Path:
    """Unpack the source of a project under git, with what its tests need installed beside it."""
    place = folder / project.name
    if place.exists():
        return place
    packed = folder / f"{project.name}-packed"
    packed.mkdir()
    named = f"{project.name}@{project.version}" if project.node else f"{project.name}=={project.version}"
    if project.node:
        run(("npm", "pack", "--silent", named), packed)
    else:
        run((sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", project.name, named), packed)
    with tarfile.open(next(packed.iterdir())) as archive:
        archive.extractall(packed, filter="data")
    next(one for one in packed.iterdir() if one.is_dir()).rename(place)
    (place / ".gitignore").write_text(".venv/\nnode_modules/\n__pycache__/\n*.egg-info/\n.pytest_cache/\n")
    run(("git", "init", "-q", "-b", "main"), place)
    run((*GIT, "add", "-A"), place)
    run((*GIT, "commit", "-q", "-m", f"{named}"), place)
    if project.node:
        run(("npm", "install", "--silent", "--no-save", "--no-package-lock", *project.needs), place)
    else:
        run((sys.executable, "-m", "venv", ".venv"), place)
        run((".venv/bin/python", "-m", "pip", "install", "-q", "-e", ".", *project.needs), place)
    return place


def summary(project: Project, output: str) -> str:
    """Give the counts of passed and failed tests."""
    return " ".join(found.removesuffix(" in ") for found in re.findall(project.counts, _ANSI.sub("", output)))


def confined(project: Project, place: Path, home: Path) -> tuple[list[str], str]:
    """Let a model work there in mode auto; gives the results of its commands, and how it ended."""
    lines = (STATUS, project.test, STATUS, COMMIT, STATUS)
    turns = [{"items": [{"type": "call", "name": "execute_command", "arguments": {"command": line, "timeout": 600}}]}
             for line in lines]  # fmt: skip
    turns.append({"items": [{"type": "call", "name": "attempt_completion", "arguments": {"result": "Done."}}]})
    script = home.parent / f"{project.name}.json"
    script.write_text(json.dumps({"turns": turns}))
    words = (sys.executable, "-m", "treadle", "-p", "Run the tests and commit.", "--mode", "auto", "--trust")
    more = ("--model", f"scripted/{script}", "--output-format", "stream-json", "-C", str(place))
    identity = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org"}
    identity |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in identity.items()}
    for name, value in (("user.name", "A"), ("user.email", "a@example.org")):
        run(("git", "config", name, value), place)
    ended = subprocess.run(
        (*words, *more), env={**os.environ, "TREADLE_HOME": str(home)}, text=True, capture_output=True, check=False
    )
    results: list[str] = []
    for line in ended.stdout.splitlines():
        event = json.loads(line)
        if event["type"] == "call_changed" and event["status"] == "finished" and event["kind"] == "execute":
            content = event.get("result", {}).get("content", ())
            results.append("".join(part.get("text", "") for part in content))
    last = json.loads(ended.stdout.splitlines()[-1])
    return results, f"exit {ended.returncode}, {last.get('denied', 0)} denied"


def check(project: Project, folder: Path) -> bool:
    """Print how one project goes; whether it goes as it should."""
    place = fetch(project, folder)
    bare = subprocess.run(project.test, shell=True, cwd=place, text=True, capture_output=True, check=False)  # noqa: S602
    clean = run(("git", "status", "--porcelain"), place) == ""
    outside = summary(project, bare.stdout)
    results, ended = confined(project, place, folder / "home")
    inside = summary(project, results[1]) if len(results) > 1 else ""
    before, *_, committed, after = results if len(results) == 5 else ["?"] * 5
    fine = "Exit status 0.\n(no output)"
    good = (
        bool(outside)
        and outside == inside
        and clean
        and before == after == results[2] == fine
        and "Try a commit" in committed
        and ended == "exit 0, 0 denied"
    )
    said = f"{'good' if good else 'BAD'}  {project.name} {project.version}: {outside or bare.stdout[-400:]}; {ended}\n"
    sys.stdout.write(said if good else "\n---\n".join((said, *results, "")))
    return good


def main() -> None:
    """Check every project."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="projects-")).resolve()
    folder.mkdir(exist_ok=True)
    went_well = [check(project, folder) for project in PROJECTS]
    sys.exit(0 if all(went_well) else 1)


if __name__ == "__main__":
    main()
