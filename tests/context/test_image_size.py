"""What images weigh, and what is estimated of a conversation when they have left."""

import base64
import struct
from collections.abc import Callable

import pytest

from treadle.context.sizes import size_of_block
from treadle.context.transcript import Transcript
from treadle.protocol.messages import Image, Message, Role, Text, ToolResult, ToolUse

BESIDE, PROMPT_TOKENS = 14_000, 3_900
"""What system prompt and tools have: bytes, and tokens as the provider counts them."""

ICON_TOKENS = 19
"""Anthropic counts a token for each 750 pixels: an icon of 120 x 120."""


def image(media_type: str, head: bytes) -> Image:
    return Image(media_type=media_type, data=base64.b64encode(head + bytes(400)).decode())


def png(width: int, height: int) -> Image:
    return image("image/png", b"\x89PNG\r\n\x1a\n" + bytes(4) + b"IHDR" + struct.pack(">II", width, height))


def gif(width: int, height: int) -> Image:
    return image("image/gif", b"GIF89a" + struct.pack("<HH", width, height))


def jpeg(width: int, height: int) -> Image:
    comment = b"\xff\xfe" + struct.pack(">H", 30) + bytes(28)
    return image("image/jpeg", b"\xff\xd8" + comment + b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", height, width))


@pytest.mark.parametrize("made", [png, gif, jpeg])
@pytest.mark.parametrize(
    ("width", "height", "tokens"), [(120, 120, 258), (1024, 500, 682), (513, 900, 768), (90, 1500, 598)]
)
def test_an_image_weighs_what_the_provider_counts_that_counts_most(
    made: Callable[[int, int], Image], width: int, height: int, tokens: int
) -> None:
    assert size_of_block(made(width, height), images=True) == round(tokens * 3.6)


@pytest.mark.parametrize(
    "one",
    [
        png(4000, 3000),
        png(0, 10),
        Image(media_type="image/png", data="x"),
        Image(media_type="image/jpeg", data=base64.b64encode(b"\xff\xd8\xff").decode()),
        image("image/webp", b"RIFF"),
        Image(media_type="image/png", data="€" * 80),
    ],
)
def test_a_large_image_and_one_that_cannot_be_read_weigh_as_much_as_ever(one: Image) -> None:
    assert size_of_block(one, images=True) == size_of_block(one) == 6_000


def with_icons(*, sizes_images: bool, icons: int = 6) -> Transcript:
    """A conversation in which icons were read, counted by the provider after each step."""
    told, tokens = Transcript(), PROMPT_TOKENS
    told.sizes_images = sizes_images
    told.add_user((Text(text="Look at the icons."),), seq=1)
    for number in range(icons):
        use = ToolUse(id=f"c{number}", name="read_file", arguments={"path": f"{number}.png"})
        tokens += 30
        told.add_assistant(Message(role=Role.ASSISTANT, content=(use,)), tokens, seq=10 + number, beside=BESIDE)
        told.add_user((ToolResult(call_id=use.id, name="read_file", content=(png(120, 120),)),), seq=10 + number)
        tokens += ICON_TOKENS
    told.add_assistant(Message(role=Role.ASSISTANT, content=(Text(text="Nice."),)), tokens, seq=90, beside=BESIDE)
    return told


@pytest.mark.parametrize("icons", [1, 6, 40])
def test_what_is_left_without_the_images_is_at_least_what_prompt_and_tools_take(icons: int) -> None:
    told = with_icons(sizes_images=True, icons=icons)
    before, gone = told.tokens, told.tokens_of(told.size_of(2 * icons))
    expected = told.tokens_without(gone, before)
    told.drop(80, "Icons were read.")
    assert PROMPT_TOKENS <= told.tokens <= before
    assert PROMPT_TOKENS <= expected <= before
    assert abs(told.tokens - expected) < 30, "what is told of it is what is estimated then"
    told.add_user((Text(text="x" * 3_600),), seq=91)
    assert told.tokens >= PROMPT_TOKENS + 500, "and what comes then is on top"


def test_a_result_that_no_count_covers_leaves_the_count_as_it_was() -> None:
    told = with_icons(sizes_images=True)
    counted = told.tokens
    told.add_user((ToolResult(call_id="new", name="read_file", content=(Text(text="x" * 9_000),)),), seq=92)
    told.replace_results({"new": (Text(text="short"),)})
    assert counted <= told.tokens <= counted + 10


def test_a_conversation_of_before_is_estimated_as_it_was() -> None:
    told = with_icons(sizes_images=False)
    told.drop(80, "Icons were read.")
    assert told.tokens == 0
