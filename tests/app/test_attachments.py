from pathlib import Path
from urllib.parse import quote

import pytest

from treadle.app.session.mentions.attachments import attach, dragged_images
from treadle.protocol.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.png", "my shot.JPG", "it's.webp", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.png").mkdir()
    return tmp_path


def test_paths_of_images_are_found_however_terminals_write_them(folder: Path) -> None:
    shot = folder / "my shot.JPG"
    for pasted in (
        f"{shot}",
        f"'{shot}'",
        str(shot).replace(" ", "\\ "),
        f"file://{quote(str(shot))}\n",
        f' "{shot}" ',
    ):
        assert dragged_images(pasted, Path("/")) == (shot,), pasted
    assert dragged_images(str(folder / "it's.webp"), Path("/")) == (folder / "it's.webp",)
    assert dragged_images("a.png", folder) == (folder / "a.png",)
    assert dragged_images(f"'{shot}' {folder}/a.png ", Path("/")) == (shot, folder / "a.png")


@pytest.mark.parametrize(
    "pasted",
    [
        "",
        " ",
        "a.png is broken",
        "b.png",
        "notes.txt",
        "folder.png",
        "a.png notes.txt",
        "'a.png",
        "\0.png",
        "~nobody/a.png",
        "x.png " * 9_000,
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_other_text_is_no_image(folder: Path, pasted: str) -> None:
    assert dragged_images(pasted, folder) == ()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gone.md", "does not exist."),
        ("no/gone.md", "does not exist, nor does its directory."),
        ("folder.png", "is a directory."),
        ("note.txt", "does not exist. Did you mean notes.txt?"),
    ],
)
def test_a_person_reads_of_a_file_that_is_none_without_advice_for_the_model(folder: Path, name: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        attach([folder / name], print)
    assert refused.value.why == f"{folder / name} {why}"
    assert "list_files" not in str(refused.value.fix)
