"""What a folder has is known without reading it again, whatever was changed in it meanwhile."""

import os
import py_compile
import random
import shutil
from pathlib import Path

import pytest

from treadle.protocol.protected_names import control_name, secret_name
from treadle.workspace.sandbox import Survey, Surveyor

NAMES = ("a", "b", "AGENTS.md", ".env", ".git", "node_modules", ".bin", "pyvenv.cfg", "c")


def is_control(path: str) -> bool:
    return Path(path).name.casefold() in ("agents.md", ".git", ".npmrc")


def is_secret(path: str) -> bool:
    return Path(path).name in (".env", ".npmrc", "keys")


def surveyor(root: Path) -> Surveyor:
    return Surveyor(str(root), is_control=is_control, is_secret=is_secret)


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")


def test_control_files_secrets_and_installed_programs_are_found(tmp_path: Path) -> None:
    write(tmp_path, "a/.git/config", "a/b/.npmrc", ".env", "src/x.py", "node_modules/.bin/tsc", "node_modules/x/.npmrc")
    write(tmp_path, "env/pyvenv.cfg", "env/AGENTS.md", "keys/one", "keys/two", "more/keys/deep/one")
    (tmp_path / "agents.MD").symlink_to("src/x.py")
    assert surveyor(tmp_path).look() == Survey(
        control=(
            (f"{tmp_path}/agents.MD", "src/x.py"),
            (f"{tmp_path}/a/.git", ""),
            (f"{tmp_path}/env/AGENTS.md", ""),
            (f"{tmp_path}/a/b/.npmrc", ""),
        ),
        secrets=(
            f"{tmp_path}/.env",
            f"{tmp_path}/keys/one",
            f"{tmp_path}/keys/two",
            f"{tmp_path}/a/b/.npmrc",
            f"{tmp_path}/more/keys",
            f"{tmp_path}/node_modules/x/.npmrc",
        ),
        python=(f"{tmp_path}/env",),
        node=(f"{tmp_path}/node_modules/.bin",),
    )


def _change(jitter: random.Random, root: Path) -> None:
    """Make, remove, move or link something at a random place."""
    folders = [root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]
    at = jitter.choice(folders) / jitter.choice(NAMES)
    match jitter.randrange(6):
        case 0 | 1 if not os.path.lexists(at):
            at.mkdir()
        case 2 if not os.path.lexists(at):
            at.write_text("x")
        case 3 if not os.path.lexists(at):
            at.symlink_to(jitter.choice(NAMES))
        case 4 if os.path.lexists(at):
            shutil.rmtree(at) if at.is_dir() and not at.is_symlink() else at.unlink()
        case 5 if at.is_dir() and not at.is_symlink():
            to = jitter.choice(folders) / jitter.choice(NAMES)
            if not os.path.lexists(to) and at not in to.parents:
                at.rename(to)
                os.utime(to.parent, (1, 1))  # as one does who wants it not to be seen
        case _:
            pass


@pytest.mark.parametrize("seed", range(8))
def test_what_is_kept_is_what_a_new_look_finds(seed: int, tmp_path: Path) -> None:
    jitter = random.Random(seed)
    kept = surveyor(tmp_path)
    for _ in range(60):
        for _ in range(jitter.randrange(4)):
            _change(jitter, tmp_path)
        assert kept.look() == surveyor(tmp_path).look()


def test_a_folder_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    kept = surveyor(tmp_path)
    assert kept.look().control == ()
    (tmp_path / "a").rename(tmp_path / "old")
    write(tmp_path, "a/AGENTS.md")
    assert kept.look().control == ((f"{tmp_path}/a/AGENTS.md", ""),)


def test_what_is_public_in_installed_folders_is_known_by_its_content_alone(tmp_path: Path) -> None:
    installed = tmp_path / "target"
    installed.mkdir()
    source = tmp_path / "credentials.py"
    source.write_text("x = 1\n")
    compiled = tmp_path / "compiled"
    py_compile.compile(str(source), str(compiled), doraise=True)
    texts = {
        "a.pem": b"-----BEGIN CERTIFICATE-----\n",
        "credentials.pyc": compiled.read_bytes(),
        "credentials.js.map": b'{"version":3,"mappings":""}',
    }
    for name, text in texts.items():
        (installed / name).write_bytes(text)
    kept = Surveyor(str(tmp_path), is_control=is_control, is_secret=lambda path: path.startswith("target/"))
    assert kept.look().secrets == ()
    for name, text in texts.items():
        (installed / name).write_bytes(text.replace(b"CERT", b"PRIVATE KEY") if name == "a.pem" else b"told")
        os.utime(installed / name, (1, 1))
        assert f"{installed}/{name}" in kept.look().secrets, "written over in place"
    (tmp_path / "target").rename(tmp_path / "plain")
    (tmp_path / "plain/a.pem").write_bytes(texts["a.pem"])
    plain = Surveyor(str(tmp_path), is_control=is_control, is_secret=lambda path: path == "plain/a.pem").look()
    assert plain.secrets == (f"{tmp_path}/plain/a.pem",), "elsewhere a name is enough"


def test_program_texts_of_packages_stay_readable_beside_secrets(tmp_path: Path) -> None:
    write(tmp_path, *(f"node_modules/sdk/credentials/{name}" for name in ("chain.js", "chain.d.ts", "in/er.mjs")))
    write(
        tmp_path, *(f"node_modules/sdk/credentials/{name}" for name in ("token", "deep/key.json")), "credentials/a.js"
    )
    found = Surveyor(
        str(tmp_path),
        is_control=lambda path: control_name(path) is not None,
        is_secret=lambda path: secret_name(path) is not None,
    ).look()
    inside = f"{tmp_path}/node_modules/sdk/credentials"
    assert {*found.secrets} == {f"{tmp_path}/credentials/a.js", f"{inside}/token", f"{inside}/deep/key.json"}
