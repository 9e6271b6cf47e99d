"""What a model cannot take is told in words, in messages and in results."""

from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.messages import add_user

from treadle.context.media import without_media
from treadle.context.transcript import Transcript
from treadle.protocol.messages import ContentBlock, Document, Image, Message, Role, Text, ToolResult, ToolUse
from treadle.protocol.models import ToolProtocol

IMAGE = Image(media_type="image/png", data="A" * 1200)
PAPER = Document(media_type="application/pdf", data="A" * 40_000, title="plan.pdf")
NO_IMAGE = Text(
    text="[An image (image/png, 900 bytes) was left out: this model cannot see images. Do not guess what it shows.]"
)
NO_PAPER = Text(
    text="[A document (plan.pdf, application/pdf, 29 KB) was left out: this model cannot read documents. "
    "Read its text with read_file.]"
)


def result(*content: Text | Image | Document) -> ToolResult:
    return ToolResult(call_id="c", name="t", content=content, wire_id="w")


def user(*content: ContentBlock) -> Message:
    return Message(role=Role.USER, content=content)


def test_images_and_documents_become_notes_and_the_rest_stays() -> None:
    message = user(result(Text(text="a"), IMAGE), IMAGE, PAPER, Text(text="b"))
    assert without_media(message, images=False, documents=True) == user(
        result(Text(text="a"), NO_IMAGE), NO_IMAGE, PAPER, Text(text="b")
    )
    assert without_media(message, images=True, documents=False) == user(
        result(Text(text="a"), IMAGE), IMAGE, NO_PAPER, Text(text="b")
    )


texts = st.builds(Text, text=st.text(max_size=5))
media = st.sampled_from([IMAGE, PAPER])
results = st.builds(
    ToolResult, call_id=st.just("c"), name=st.just("t"), content=st.lists(texts | media, max_size=3).map(tuple)
)
uses = st.builds(ToolUse, id=st.just("c"), name=st.just("t"), arguments=st.just({}))
messages = st.builds(Message, role=st.sampled_from(Role), content=st.lists(texts | media | results | uses).map(tuple))


@given(messages, st.booleans(), st.booleans())
def test_nothing_that_a_model_cannot_take_is_left_and_nothing_else_is_touched(
    message: Message, images: bool, documents: bool
) -> None:
    projected = without_media(message, images=images, documents=documents)
    blocks = [
        inner for block in projected.content for inner in (block.content if isinstance(block, ToolResult) else (block,))
    ]
    assert images or not any(isinstance(block, Image) for block in blocks)
    assert documents or not any(isinstance(block, Document) for block in blocks)
    assert len(projected.content) == len(message.content)
    assert without_media(projected, images=images, documents=documents) is projected
    assert without_media(message, images=True, documents=True) is message


def test_a_projected_message_is_built_once_and_follows_the_conversation() -> None:
    transcript = Transcript()
    add_user(transcript, results=(), prompts=((Text(text="go"), IMAGE),), notes=(), environment="")
    (first,) = transcript.messages(ToolProtocol.NATIVE, images=False)
    assert NO_IMAGE in first.content
    transcript.add_assistant(Message(role=Role.ASSISTANT, content=(ToolUse(id="c", name="t", arguments={}),)))
    add_user(transcript, results=(result(IMAGE),), prompts=(), notes=(), environment="")
    for protocol in ToolProtocol:
        blind = transcript.messages(protocol, images=False)
        again = transcript.messages(protocol, images=False)
        assert all(new is old for new, old in zip(again, blind, strict=True))
        assert "cannot see images" in str(blind[2])
        assert "image/png" in str(transcript.messages(protocol)[2])
        assert IMAGE.data not in str(blind)
    assert transcript.messages(ToolProtocol.NATIVE, images=False)[0] is first
    add_user(transcript, results=(), prompts=((IMAGE,),), notes=(), environment="")
    assert IMAGE.data not in str(transcript.messages(ToolProtocol.NATIVE, images=False))
