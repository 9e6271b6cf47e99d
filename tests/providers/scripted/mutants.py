"""For each rule of each format a request that breaks it, made of one that the real API takes."""

import base64
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from tests.providers.odd_histories import PICTURE, ROW, tool

from treadle.protocol.messages import Message, Role, Text, Thinking, ToolResult, ToolUse, WireData
from treadle.protocol.models import ModelRequest
from treadle.providers.provider_rows import Wire

Body: TypeAlias = dict[str, Any]
Mutate: TypeAlias = Callable[[Body], object]

OWN: dict[Wire, tuple[str, dict[str, Any]]] = {
    Wire.ANTHROPIC_MESSAGES: ("anthropic_messages", {}),
    Wire.OPENAI_CHAT: ("openai_chat", {"field": "reasoning"}),
    Wire.OPENAI_RESPONSES: (
        "openai_responses",
        {"item": {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": "gAAA"}},
    ),
    Wire.GEMINI: ("gemini", {"thoughtSignature": "QUJDRA=="}),
    Wire.BEDROCK_CONVERSE: ("bedrock_converse", {}),
}


def conversation(wire: Wire, provider: str, model: str, jitter: random.Random) -> ModelRequest:
    """A request with pictures, thinking, calls and their results, the last of them open, after one turn or a few."""
    api, data = OWN[wire]
    messages: list[Message] = []
    for turn in range(jitter.randint(1, 3)):
        if wire is Wire.OPENAI_RESPONSES:
            data = {"item": {**data["item"], "id": f"rs_{turn}"}}
        source = WireData(api=f"{api}:{provider}", data=data)
        thought = Thinking(text="Hm.", signature="c2ln", wire=source)
        calls = tuple(
            ToolUse(
                id=f"c{turn}{at}", name="read_file", arguments={"path": "a"}, wire_id=f"toolu{turn}{at}99", wire=source
            )
            for at in "ab"
        )
        results = tuple(
            ToolResult(
                call_id=call.id, name=call.name, content=(Text(text="x"),), wire_id=call.wire_id, is_error=failed
            )
            for call, failed in zip(calls, (False, True), strict=True)
        )
        messages += [
            Message(role=Role.USER, content=(Text(text=f"Look {turn}."), PICTURE)),
            Message(role=Role.ASSISTANT, content=(thought, Text(text="I look."), *calls)),
            Message(role=Role.USER, content=results),
            Message(role=Role.ASSISTANT, content=(thought, Text(text="Done."))),
        ]
        if wire is Wire.OPENAI_RESPONSES:
            messages[-1] = Message(role=Role.ASSISTANT, content=(Text(text="Done."),))
    read = tool("read_file", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})
    other = tool("other", "Does.", {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    return ModelRequest(
        id="r",
        model=model,
        system="Be brief.",
        messages=tuple(messages[:-1]),
        tools=(read, other),
        max_tokens=4_000,
        thinking_budget=2_000 if ROW[provider].wire in (Wire.ANTHROPIC_MESSAGES, Wire.BEDROCK_CONVERSE) else None,
    )


def nodes(value: object) -> Iterator[dict[str, Any]]:
    """Every object in a body."""
    if isinstance(value, dict):
        yield value
        for one in list(value.values()):
            yield from nodes(one)
    elif isinstance(value, list):
        for one in list(value):
            yield from nodes(one)


def first(body: Body, *keys: str) -> dict[str, Any]:
    """The first object with these keys."""
    return next(node for node in nodes(body) if all(key in node for key in keys))


def last(body: Body, *keys: str) -> dict[str, Any]:
    return [node for node in nodes(body) if all(key in node for key in keys)][-1]


def kind(body: Body, name: str) -> dict[str, Any]:
    """The last block of a kind."""
    return [node for node in nodes(body) if node.get("type") == name][-1]


def message(body: Body, role: str, messages: str = "messages") -> dict[str, Any]:
    """The last message of a role."""
    found: dict[str, Any] = [one for one in body[messages] if one.get("role") == role][-1]
    return found


def png(width: int, height: int) -> str:
    return base64.b64encode(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height)).decode()


def drawn(body: Body, mime: str, data: str) -> None:
    """Put other data, of another type, in the place of the first picture."""
    for node in nodes(body):
        if "media_type" in node:
            node.update(media_type=mime, data=data)
        elif "mimeType" in node:
            node.update(mimeType=mime, data=data)
        elif "bytes" in node:
            node["bytes"] = data
            first(body, "format")["format"] = mime.rpartition("/")[2]
        elif isinstance(node.get("image_url"), str):
            node["image_url"] = f"data:{mime};base64,{data}"
        elif str(node.get("url")).startswith("data:"):
            node["url"] = f"data:{mime};base64,{data}"
        else:
            continue
        return


def many(body: Body, times: int) -> None:
    """Put the first picture there so many times."""
    for node in nodes(body):
        for listed in node.values():
            if isinstance(listed, list):
                for one in listed:
                    if isinstance(one, dict) and ("image" in one or one.get("type") in ("image", "image_url")):
                        listed.extend([one] * times)
                        return


def many_tall(body: Body) -> None:
    drawn(body, "image/png", png(10, 2_001))
    many(body, 20)


def tools_of(body: Body) -> tuple[list[Any], dict[str, Any], str]:
    """The list of tools, the first one's declaration, and the key of its schema."""
    if "toolConfig" in body:
        tools = body["toolConfig"]["tools"]
        return tools, tools[0]["toolSpec"], "inputSchema"
    tools = body["tools"]
    if "functionDeclarations" in tools[0]:
        return tools[0]["functionDeclarations"], tools[0]["functionDeclarations"][0], "parametersJsonSchema"
    declared = tools[0].get("function", tools[0])
    return tools, declared, "input_schema" if "input_schema" in declared else "parameters"


def with_schema(**changes: Any) -> Mutate:
    def mutate(body: Body) -> None:
        _, declared, key = tools_of(body)
        schema = declared[key]["json"] if "json" in declared[key] else declared[key]
        schema.update(changes)

    return mutate


def of_tool(**changes: Any) -> Mutate:
    return lambda body: tools_of(body)[1].update(changes)


def field(name: str, value: object) -> Mutate:
    return lambda body: body.update({name: value})


def twice(body: Body) -> None:
    tools = tools_of(body)[0]
    tools.append(tools[0])


def drop(name: str) -> Mutate:
    return lambda body: body.pop(name)


HUGE = "iVBORw0KGgoA" * (5 << 20)
"""Base64 of a PNG: 60 MB."""

MEDIA: dict[str, Mutate] = {
    "images and documents that can be read": lambda body: drawn(body, "image/png", "R0lGODlh"),
    "PNG, JPEG, GIF, WebP": lambda body: drawn(body, "image/bmp", "Qk0AAA=="),
    "PNG, JPEG, WebP, HEIC, HEIF": lambda body: drawn(body, "image/gif", "R0lGODlh"),
    "5 MB an image": lambda body: drawn(body, "image/png", HUGE[: 6 << 20]),
    "3.75 MB an image": lambda body: drawn(body, "image/png", HUGE[: 6 << 20]),
    "100 images": lambda body: many(body, 100),
    "20 images a message": lambda body: many(body, 20),
    "8,000 pixels": lambda body: drawn(body, "image/png", png(8_001, 10)),
    "2,000 pixels with more than 20 images": many_tall,
    "20 MB": lambda body: drawn(body, "image/png", HUGE[: 21 << 20]),
    "32 MB": lambda body: drawn(body, "image/png", HUGE[: 33 << 20]),
    "50 MB": lambda body: drawn(body, "image/png", HUGE[: 51 << 20]),
}
TOOLS: dict[str, Mutate] = {
    "tool names": of_tool(name="a b"),
    "a schema of an object": with_schema(type="string"),
    "a description": of_tool(description=""),
    "no choice at the root": with_schema(oneOf=[{"type": "object"}]),
    "a schema of draft 2020-12": with_schema(properties={"a": {"type": "any"}}),
    "property names of letters, digits, _ . and -": with_schema(properties={"a b": {}}),
    "an array with items": with_schema(properties={"a": {"type": "array"}}),
    "names that it knows": with_schema(properties={"a": {"type": "string", "examples": []}}),
    "required properties that exist": with_schema(required=["nothing"]),
    "no empty text in an enum": with_schema(properties={"a": {"type": "string", "enum": ["", "b"]}}),
}
SHAPE: dict[str, Mutate] = {
    "a model": field("model", ""),
    "a stream": field("stream", False),
    "fields of the API": field("colour", "red"),
}


def reversed_last(body: Body) -> None:
    message(body, "user")["content"].reverse()


def last_reply(body: Body, text: str = "Well ") -> None:
    body["messages"].append({"role": "assistant", "content": [{"type": "text", "text": text}]})


def renamed(body: Body, old: str, new: str, *keys: str) -> None:
    """Give an id another value wherever it stands."""
    for node in nodes(body):
        for key in keys:
            if node.get(key) == old:
                node[key] = new


def other_id(body: Body, new: str, *keys: str) -> None:
    renamed(body, next(node[key] for node in nodes(body) for key in keys if key in node), new, *keys)


def marked(body: Body, count: int, **marker: str) -> None:
    blocks = [one for one in body["messages"] for one in [one["content"][-1]]]
    for block in blocks[-count:]:
        block["cache_control"] = {"type": "ephemeral", **marker}
    if count > len(blocks):
        body["system"] = [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}] * count


def failed(body: Body, content: list[Any]) -> None:
    kind(body, "tool_result").update(is_error=True, content=content)


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE.data}}
ANTHROPIC: dict[str, Mutate] = {
    "messages": field("messages", []),
    "max_tokens": field("max_tokens", 0),
    "max_tokens of the model": field("max_tokens", 200_000),
    "thinking budget": field("thinking", {"type": "enabled", "budget_tokens": 100}),
    "names of models": field("model", "claude-sonnet-4-5:1m"),
    "names of tools once": twice,
    "no temperature with thinking": field("temperature", 0.5),
    "no forced tool with thinking": field("tool_choice", {"type": "any"}),
    "one sampling parameter": lambda body: body.update(temperature=1, top_p=1),
    "no sampling parameter": field("top_p", 0.5),
    "adaptive thinking only": field("thinking", {"type": "enabled", "budget_tokens": 2_000}),
    "levels of effort": field("output_config", {"effort": "xhigh"}),
    "the user first": lambda body: body["messages"].pop(0),
    "the user last": last_reply,
    "no blanks at the end of a prefill": last_reply,
    "roles": lambda body: message(body, "user").update(role="tool"),
    "roles in turn": lambda body: body["messages"].append({"role": "user", "content": "Hi"}),
    "content": lambda body: message(body, "user").update(content=[]),
    "kinds of blocks": lambda body: message(body, "user")["content"].append({"type": "video"}),
    "fields of blocks": lambda body: kind(body, "tool_use").update(index=0),
    "no empty text": lambda body: kind(body["messages"][0], "text").update(text=""),
    "no blank text": lambda body: kind(body["messages"][0], "text").update(text=" \n"),
    "no blank reply": lambda body: kind(message(body, "assistant"), "text").update(text=" "),
    "no blank system text": field("system", [{"type": "text", "text": " "}]),
    "ids of calls": lambda body: other_id(body, "a b", "id", "tool_use_id"),
    "inputs of calls": lambda body: kind(body, "tool_use").update(input="{}"),
    "a result for every call": lambda body: message(body, "user")["content"].pop(0),
    "a call for every result": lambda body: kind(body, "tool_result").update(tool_use_id="nothing"),
    "one result for a call": lambda body: message(body, "user")["content"].append(kind(body, "tool_result")),
    "results first": lambda body: message(body, "user")["content"].insert(0, {"type": "text", "text": "Now:"}),
    "ids of calls once": lambda body: kind(body, "tool_use").update(id=first(body, "input", "id")["id"]),
    "errors in words": lambda body: failed(body, [IMAGE]),
    "errors with words": lambda body: failed(body, []),
    "kinds of results": lambda body: failed(body, [{"type": "audio"}]),
    "tools where there are calls": drop("tools"),
    "4 markers": lambda body: marked(body, 5),
    "no marker of thinking": lambda body: kind(body, "thinking").update(cache_control={"type": "ephemeral"}),
    "long markers first": lambda body: marked(body, 1, ttl="1h"),
    "thinking is signed": lambda body: kind(body, "thinking").pop("signature"),
    "thinking before calls": lambda body: message(body, "assistant")["content"].pop(0),
    "sources": lambda body: kind(body, "image").update(source={"type": "base64"}),
}


def unreasoned(body: Body) -> None:
    body["thinking"] = {"type": "enabled"}
    last(body, "tool_calls").pop("reasoning_content", None)


CHAT: dict[str, Mutate] = {
    "messages": field("messages", ["Hi"]),
    "stream_options": lambda body: body.update(stream_options={"include_usage": True}, stream=None),
    "max_completion_tokens": lambda body: body.update(max_tokens=9),
    "no sampling with reasoning": field("temperature", 0.2),
    "no stop with reasoning": field("stop", ["x"]),
    "no effort without reasoning": field("reasoning_effort", "low"),
    "no effort with tools": field("reasoning_effort", "low"),
    "some tools or none": field("tools", []),
    "128 tools": lambda body: body["tools"].extend([body["tools"][0]] * 128),
    "128 calls": lambda body: last(body, "tool_calls").update(tool_calls=last(body, "tool_calls")["tool_calls"] * 70),
    "names of tools once": twice,
    "roles": lambda body: message(body, "user").update(role="robot"),
    "the system first": lambda body: body["messages"].append({"role": "system", "content": "x"}),
    "a question or a result last": lambda body: body["messages"].append({"role": "assistant", "content": "x"}),
    "a call for every result": lambda body: last(body, "tool_call_id").update(tool_call_id="nothing"),
    "a result for every call": lambda body: body["messages"].pop(),
    "one result for a call": lambda body: body["messages"].append(body["messages"][-1]),
    "ids of calls once": lambda body: (
        last(body, "tool_calls")["tool_calls"].reverse()
        or last(body, "tool_calls")["tool_calls"].append(last(body, "tool_calls")["tool_calls"][0])
    ),
    "content": lambda body: message(body, "user").update(content=None),
    "content that is not empty": lambda body: message(body, "user").update(content=""),
    "parts of content": lambda body: message(body, "tool").update(content=[{"type": "video"}]),
    "calls": lambda body: last(body, "arguments").update(name=""),
    "arguments are JSON": lambda body: last(body, "arguments").update(arguments='{"a": '),
    "names of calls": lambda body: last(body, "arguments").update(name="a.b"),
    "ids of 40 characters": lambda body: other_id(body, "c" * 41, "id", "tool_call_id"),
    "ids of 9 characters": lambda body: other_id(body, "c" * 10, "id", "tool_call_id"),
    "no question after a result": lambda body: body["messages"].append({"role": "user", "content": "Hi"}),
    "reasoning of calls": unreasoned,
    "no reasoning in history": lambda body: message(body, "assistant").update(reasoning_content="Hm."),
    "texts of 10 MB": lambda body: message(body, "user").update(content="x" * (10 * 1024 * 1024 + 1)),
}


def items(body: Body, name: str) -> list[dict[str, Any]]:
    return [item for item in body["input"] if item.get("type", "message") == name]


def item(body: Body, name: str) -> dict[str, Any]:
    return items(body, name)[-1]


def spoken_between(body: Body) -> None:
    place = body["input"].index(item(body, "function_call"))
    body["input"].insert(place, {"role": "assistant", "content": "And then:"})


def asked_between(body: Body) -> None:
    place = body["input"].index(item(body, "function_call_output"))
    body["input"].insert(place, {"role": "user", "content": "Wait."})


RESPONSES: dict[str, Mutate] = {
    "messages": field("input", []),
    "16 tokens of room": field("max_output_tokens", 15),
    "no sampling with reasoning": field("temperature", 0.2),
    "no effort without reasoning": field("reasoning", {"effort": "low"}),
    "kinds of items": lambda body: body["input"].append({"type": "news"}),
    "roles": lambda body: message(body, "user", "input").update(role="robot"),
    "content": lambda body: message(body, "user", "input").update(content=None),
    "content that is not empty": lambda body: message(body, "user", "input").update(content=[]),
    "parts of content": lambda body: message(body, "assistant", "input").update(
        content=[{"type": "input_text", "text": "x"}]
    ),
    "calls": lambda body: item(body, "function_call").update(name=""),
    "arguments are JSON": lambda body: item(body, "function_call").update(arguments="{"),
    "names of calls": lambda body: item(body, "function_call").update(name="a.b"),
    "outputs": lambda body: item(body, "function_call_output").pop("output"),
    "call ids of 64 characters": lambda body: other_id(body, "c" * 65, "call_id"),
    "characters of ids": lambda body: item(body, "reasoning").update(id="rs 1"),
    "ids of 64 characters": lambda body: item(body, "reasoning").update(id="rs_" + "x" * 62),
    "what ids begin with": lambda body: item(body, "function_call").update(id="call_1"),
    "items once": lambda body: body["input"].insert(1, item(body, "reasoning")),
    "ids of calls once": lambda body: body["input"].append(item(body, "function_call")),
    "a result for every call": lambda body: body["input"].pop(),
    "a call for every result": lambda body: item(body, "function_call_output").update(call_id="nothing"),
    "results before the next question": asked_between,
    "results directly after calls": spoken_between,
    "reasoning has a summary": lambda body: item(body, "reasoning").pop("summary"),
    "reasoning that is not stored": lambda body: item(body, "reasoning").pop("encrypted_content"),
    "reasoning is followed": lambda body: body["input"].append({**item(body, "reasoning"), "id": "rs_9"}),
    "searches": lambda body: body["input"].append({"type": "web_search_call"}),
    "texts of 10 MB": lambda body: message(body, "user", "input").update(content="x" * (10 * 1024 * 1024 + 1)),
}


def contents(body: Body, role: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [one for one in body["contents"] if one["role"] == role][-1]["parts"]
    return found


def thinking(**config: Any) -> Mutate:
    return lambda body: body["generationConfig"].update(thinkingConfig=config)


GEMINI: dict[str, Mutate] = {
    "messages": field("contents", []),
    "fields of generationConfig": lambda body: body["generationConfig"].update(colour="red"),
    "roles": lambda body: body["contents"][-1].update(role="assistant"),
    "parts": lambda body: body["contents"][0].update(parts=[]),
    "one kind of data in a part": lambda body: contents(body, "user").append({}),
    "fields of parts": lambda body: contents(body, "user")[0].update(colour="red"),
    "parts of a role": lambda body: contents(body, "user").append({"functionCall": {"name": "x", "args": {}}}),
    "no empty text": lambda body: contents(body, "user").append({"text": ""}),
    "as many responses as calls": lambda body: contents(body, "user").pop(),
    "names of responses": lambda body: last(body, "functionResponse")["functionResponse"].update(name="other"),
    "ids of responses": lambda body: last(body, "functionResponse")["functionResponse"].update(id="nothing"),
    "calls after the user": lambda body: body["contents"].insert(1, {"role": "model", "parts": [{"text": "Well."}]}),
    "roles in turn": lambda body: body["contents"].append({"role": "user", "parts": [{"text": "Hi"}]}),
    "the user last": lambda body: body["contents"].append({"role": "model", "parts": [{"text": "Hi"}]}),
    "arguments and responses are objects": lambda body: last(body, "functionCall")["functionCall"].update(args=[]),
    "names of calls": lambda body: last(body, "functionCall")["functionCall"].update(name=""),
    "names of functions once": twice,
    "signatures of calls": lambda body: next(part for part in contents(body, "model") if "functionCall" in part).pop(
        "thoughtSignature"
    ),
    "signatures in base64": lambda body: last(body, "thoughtSignature").update(thoughtSignature="no base64!"),
    "thinking budget of the model": thinking(thinkingBudget=60_000),
    "budget or level": thinking(thinkingBudget=600, thinkingLevel="low"),
    "no level before Gemini 3": thinking(thinkingLevel="low"),
    "temperature": lambda body: body["generationConfig"].update(temperature=3),
    "room": lambda body: body["generationConfig"].update(maxOutputTokens=0),
}
PAPER = {"document": {"format": "pdf", "name": "a paper", "source": {"bytes": "JVBERi0="}}}


def papers(*documents: dict[str, Any]) -> Mutate:
    return lambda body: body["messages"][0]["content"].extend({"document": one} for one in documents)


DOCUMENT = PAPER["document"]
BEDROCK: dict[str, Mutate] = {
    "messages": field("messages", []),
    "inference profiles": field("model", "us.does-not-exist-v1:0"),
    "fields of inferenceConfig": lambda body: body["inferenceConfig"].update(topK=3),
    "room": lambda body: body["inferenceConfig"].update(maxTokens=0),
    "tools where there are calls": drop("toolConfig"),
    "some tools or none": field("toolConfig", {"tools": []}),
    "names of tools once": twice,
    "4 cache points": lambda body: body["system"].extend([{"cachePoint": {"type": "default"}}] * 4),
    "no cache points": lambda body: body["system"].append({"cachePoint": {"type": "default"}}),
    "thinking budget": field("additionalModelRequestFields", {"thinking": {"type": "enabled", "budget_tokens": 9}}),
    "no temperature with thinking": lambda body: body["inferenceConfig"].update(temperature=0.1),
    "the user first": lambda body: body["messages"].pop(0),
    "the user last": lambda body: body["messages"].append({"role": "assistant", "content": [{"text": "x"}]}),
    "roles": lambda body: message(body, "user").update(role="tool"),
    "roles in turn": lambda body: body["messages"].append({"role": "user", "content": [{"text": "x"}]}),
    "content": lambda body: body["messages"][0].update(content=[]),
    "kinds of blocks": lambda body: message(body, "user")["content"].append({"audio": {}}),
    "no blank text": lambda body: last(body["messages"], "text").update(text=" "),
    "no blank system text": field("system", [{"text": ""}]),
    "ids of calls": lambda body: other_id(body, "a b", "toolUseId"),
    "names of calls": lambda body: last(body, "toolUse")["toolUse"].update(name="a b"),
    "inputs of calls": lambda body: last(body, "toolUse")["toolUse"].update(input="{}"),
    "results of the calls before": lambda body: message(body, "user")["content"].pop(0),
    "ids of calls once": lambda body: message(body, "assistant")["content"].append(last(body, "toolUse")),
    "results alone": lambda body: message(body, "user")["content"].append({"text": "And now?"}),
    "errors with words": lambda body: last(body, "toolResult")["toolResult"].update(status="error", content=[]),
    "errors in words": lambda body: last(body, "toolResult")["toolResult"].update(
        status="error", content=[{"image": {"format": "png", "source": {"bytes": PICTURE.data}}}]
    ),
    "status of results": lambda body: last(body, "toolResult")["toolResult"].update(status="success"),
    "reasoning is signed": lambda body: last(body, "reasoningText")["reasoningText"].pop("signature"),
    "thinking before calls": lambda body: message(body, "assistant")["content"].pop(0),
    "sources": lambda body: last(body, "image")["image"].update(source={"s3Location": {"uri": "s3://a/b"}}),
    "names of documents": papers({**DOCUMENT, "name": "a.pdf"}),
    "names of documents once": papers(DOCUMENT, DOCUMENT),
    "words with documents": lambda body: body["messages"][0].update(content=[PAPER]),
    "5 documents a message": papers(*({**DOCUMENT, "name": f"paper {n}"} for n in range(6))),
    "kinds of documents": papers({**DOCUMENT, "format": "odt"}),
}
MUTANTS: dict[Wire, dict[str, Mutate]] = {
    Wire.ANTHROPIC_MESSAGES: {**SHAPE, **MEDIA, **TOOLS, **ANTHROPIC},
    Wire.OPENAI_CHAT: {**SHAPE, **MEDIA, **TOOLS, **CHAT},
    Wire.OPENAI_RESPONSES: {**SHAPE, **MEDIA, **TOOLS, **RESPONSES},
    Wire.GEMINI: {**SHAPE, **MEDIA, **TOOLS, **GEMINI},
    Wire.BEDROCK_CONVERSE: {**SHAPE, **MEDIA, **TOOLS, **BEDROCK},
}
