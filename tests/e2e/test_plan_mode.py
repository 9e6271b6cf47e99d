"""Plan mode: a model that tries every tool, and many ways to write through the shell, changes no byte."""

import hashlib
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Program
from tests.e2e.running import model
from tests.needed import require
from treadle.app.compose import tool_specs
from treadle.policy.modes import UNTRUSTED
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

PATCH = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch"

TOOLS: dict[str, dict[str, Any]] = {
    "write_to_file": {"path": "new.txt", "content": "x\n"},
    "replace_in_file": {"path": "a.txt", "diff": "<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE"},
    "apply_patch": {"patch": PATCH},
    "edit_notebook": {"path": "a.ipynb", "action": "insert", "cell": "0", "content": "x"},
    "new_rule": {"path": "testing", "content": "x"},
    "use_skill": {"name": "greet"},
    "condense": {"context": "What was done."},
    "new_task": {"context": "What is next."},
    "read_file": {"path": "a.txt"},
    "list_files": {"path": "."},
    "search_files": {"path": ".", "regex": "one"},
    "list_code_definition_names": {"path": "."},
    "set_timer": {"seconds": 3600, "note": "Look again."},
    "web_fetch": {"url": "http://127.0.0.1:9/"},
    "browser_action": {"action": "launch", "url": "http://127.0.0.1:9/"},
}

LINES = r"""
echo x > a.txt
echo x >> a.txt
echo x >| a.txt
: > a.txt
printf x > new.txt
cat < a.txt > new.txt
cat a.txt | tee new.txt
tee -a a.txt < /dev/null
sed -i s/one/two/ a.txt
sed -n 'w new.txt' a.txt
sed --in-place=.bak s/one/two/ a.txt
dd if=/dev/null of=a.txt
cp a.txt new.txt
mv a.txt new.txt
ln a.txt new.txt
ln -s a.txt new.txt
install -m 755 a.txt new.txt
touch new.txt
touch -d @0 a.txt
truncate -s 0 a.txt
rm a.txt
unlink a.txt
rmdir empty
mkdir new
mkfifo new
mknod new p
chmod 777 a.txt
chown 0:0 a.txt
chattr +i a.txt
setfattr -n user.x -v y a.txt
shred a.txt
mktemp ./new.XXXXXX
python3 -c "open('new.txt', 'w')"
python3 - <<< "open('new.txt', 'w')"
perl -i -pe s/one/two/ a.txt
perl -e 'open(F, ">new.txt")'
ruby -e 'File.write("new.txt", "x")'
node -e 'require("fs").writeFileSync("new.txt", "x")'
awk 'BEGIN { print "x" > "new.txt" }'
awk 'BEGIN { system("touch new.txt") }'
git checkout -b other
git checkout -- changed.txt
git apply change.patch
git stash
git add new-file.txt
git commit -am x
git config user.name x
git worktree add ../tree
git update-index --refresh
git tag x
git branch other
git gc
git status
git diff --output=new.txt
git log --output=new.txt
git archive -o new.tar HEAD
git init new
patch -p1 < change.patch
tar cf new.tar a.txt
tar xf some.tar
zip new.zip a.txt
unzip some.zip
gzip -k a.txt
rsync a.txt new.txt
find . -name a.txt -delete
find . -name a.txt -exec touch new.txt ;
find . -fprint new.txt
ls | xargs touch new.txt
sort -o a.txt a.txt
sort a.txt --output=new.txt
uniq a.txt new.txt
split a.txt new
csplit -f new a.txt 1
cat > new.txt <<EOF\nx\nEOF
echo x > >(cat > new.txt)
diff a.txt a.txt > /dev/fd/1 >new.txt
nohup touch new.txt
touch new.txt &
trap 'touch new.txt' EXIT
make
npm run build
vim -c 'wq new.txt'
ed a.txt <<< w
ex -sc 'w new.txt' a.txt
sqlite3 new.db 'create table t(x)'
sqlite3 :memory: "select writefile('new.txt', 'x')"
curl -o new.txt http://127.0.0.1:9/
wget -O new.txt http://127.0.0.1:9/
exec > new.txt
exec 3> new.txt
coproc touch new.txt
bash -c 'touch new.txt'
bash -c 'bash -c "echo x > new.txt"'
sh script.sh
. ./script.sh
./script.sh
eval 'touch new.txt'
env -S 'touch new.txt'
env touch new.txt
nice touch new.txt
timeout 5 touch new.txt
xargs -a a.txt touch
parallel touch ::: new.txt
busybox touch new.txt
script -c 'touch new.txt' /dev/null
f() { touch new.txt; }; f
if true; then touch new.txt; fi
for i in 1; do touch new.txt; done
(touch new.txt)
x=$(touch new.txt)
`touch new.txt`
ls > new.txt 2>&1
cd empty && touch new.txt
pushd empty; touch new.txt
umask 0; touch new.txt
flock a.txt touch new.txt
flock new.lock true
logrotate -f x
iconv -o new.txt a.txt
xxd a.txt new.txt
base64 a.txt > new.txt
openssl rand -out new.txt 8
ssh-keygen -f new -N ''
python3 -m compileall code.py
python3 -m py_compile code.py
pip install -t new x
cargo new x
go mod init x
crontab script.sh
at now < script.sh
"""


def lines() -> tuple[str, ...]:
    return tuple(line.replace("\\n", "\n") for line in LINES.strip().splitlines())


def lay_out(folder: Path) -> None:
    """A repository with changed and new files, archives, scripts, and a build that writes."""
    (folder / "empty").mkdir(parents=True)
    files = {
        "a.txt": "one\n", "changed.txt": "one\n", "code.py": "def f(): pass\n", "Makefile": "all:\n\ttouch new.txt\n",
        "package.json": '{"scripts": {"build": "touch new.txt"}}', "script.sh": "#!/bin/sh\ntouch new.txt\n",
        "a.ipynb": '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}\n',
        "change.patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n",
    }  # fmt: skip
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "script.sh").chmod(0o755)
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@b", "-C", str(folder))
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "one")):
        subprocess.run((*git, *arguments), check=True)
    shutil.make_archive(str(folder / "some"), "tar", folder, "a.txt")
    shutil.make_archive(str(folder / "some"), "zip", folder, "a.txt")
    (folder / "changed.txt").write_text("two\n")
    (folder / "new-file.txt").write_text("new\n")


def state(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything that can be seen of a tree, also of what git keeps: names, kinds, modes, times, links, contents."""
    found: dict[str, tuple[object, ...]] = {}
    for place, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            path = Path(place, name)
            facts = path.lstat()
            content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(facts.st_mode) else ""
            extended = tuple(sorted(os.listxattr(path, follow_symlinks=False)))
            owner = (facts.st_uid, facts.st_gid, facts.st_nlink, facts.st_ino)
            found[str(path)] = (facts.st_mode, facts.st_mtime_ns, facts.st_size, owner, extended, content)
    return found


@pytest.fixture(params=["sandboxed", "not sandboxed"])
def variables(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The environment of the program; without a sandbox it finds none, whatever the system has."""
    if request.param == "sandboxed":
        require("sandbox")
        return {}
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import treadle.workspace.sandbox.backend as backend, treadle.workspace.sandbox.confine as confine\n"
        "backend.find_bubblewraps = lambda: []\n"
        "confine.version = lambda: 0\n"
    )
    return {"PYTHONPATH": str(tmp_path / "site")}


async def test_nothing_that_a_model_tries_in_plan_mode_changes_a_byte(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    lay_out(tmp_path / "ws")
    calls = [MakeCall(name=name, arguments=arguments) for name, arguments in TOOLS.items()]
    calls += [MakeCall(name="execute_command", arguments={"command": line}) for line in lines()]
    turns = [Turn(items=tuple(calls[at : at + 10])) for at in range(0, len(calls), 10)]
    done = MakeCall(name="plan_mode_respond", arguments={"response": "Nothing can be done."})
    before = state(tmp_path / "ws")
    async with ScriptedServer(Script(turns=(*turns, Turn(items=(done,))))) as server:
        flags = (*model(server), "--mode", "plan", "-C", str(tmp_path / "ws"))
        ended = await Program(tmp_path / "home", variables).run("-p", "Try everything.", *flags)
        asked, told = len(server.requests), str(server.requests[-1].body["messages"])
    assert asked == len(turns) + 1, ended.err
    refused = sum(map(told.count, ("plan mode changes nothing", UNTRUSTED)))
    assert refused > len(lines()) * 3 // 4, "most are understood and refused"
    assert state(tmp_path / "ws") == before
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "site") == ["home", "ws"]


def test_every_built_in_tool_that_acts_is_tried() -> None:
    talk = {
        "execute_command",
        "read_command_output",
        "ask_followup_question",
        "attempt_completion",
        "plan_mode_respond",
        *("use_subagents", "run_code"),  # of its calls each is judged
    }
    assert {spec.name for spec in tool_specs()} - talk <= TOOLS.keys()
