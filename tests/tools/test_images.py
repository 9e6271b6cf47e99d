"""Images as models take them: scaled where they are too large, and refused with a way out where that cannot be done."""

import base64
import importlib
import struct
from pathlib import Path

import pytest
from tests.needed import require
from tests.pictures import drawn_png, png

from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Image
from treadle.tools import images
from treadle.tools.images import image_of
from treadle.workspace.installed import install_command


def size_of(image: Image) -> tuple[int, int]:
    raw = base64.b64decode(image.data)
    assert raw.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", raw[16:24])
    return width, height


@pytest.mark.parametrize(
    ("size", "scaled"), [((9_000, 300), (2_000, 67)), ((2_400, 1_200), (2_000, 1_000)), ((2_000, 40), (2_000, 40))]
)
def test_an_image_is_scaled_to_what_models_take_and_it_is_told(size: tuple[int, int], scaled: tuple[int, int]) -> None:
    require("PIL")
    image, said = image_of(drawn_png(*size), "shot.png")
    assert size_of(image) == scaled
    told = f"shot.png is {size[0]:,} by {size[1]:,} pixels and was scaled to {scaled[0]:,} by {scaled[1]:,}."
    assert said == ("" if size == scaled else told)


def test_a_picture_of_too_many_bytes_becomes_small_enough() -> None:
    require("PIL")
    pil = importlib.import_module("PIL.Image")
    import io
    import random

    noise = pil.frombytes("RGB", (1_600, 1_600), random.Random(1).randbytes(1_600 * 1_600 * 3))
    target = io.BytesIO()
    noise.save(target, "PNG")
    image, _ = image_of(target.getvalue(), "noise.png")
    assert image.media_type == "image/jpeg"
    assert len(image.data) < 5_000_000


def test_a_bomb_and_a_damaged_picture_are_refused_or_left_as_they_are() -> None:
    with pytest.raises(ToolError, match="models accept images of at most 8,000 on each side"):
        image_of(png(60_000, 60_000), "bomb.png")
    broken = drawn_png(3_000, 10)
    broken = broken[:60] + b"garbage" + broken[67:]
    image, said = image_of(broken, "broken.png")
    assert (base64.b64decode(image.data), said) == (broken, "")


def test_without_the_extra_a_large_image_is_refused_with_the_way_to_scale_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "_SCALE", tmp_path / "nothing.py")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ToolError) as raised:
        image_of(drawn_png(9_000, 10), "wide.png")
    assert raised.value.text.endswith(
        f"Shrink a copy. After `{install_command('images')}` Treadle scales it by itself."
    )
    assert image_of(drawn_png(3_000, 10), "fits.png")[1] == ""
