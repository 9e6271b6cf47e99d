"""Replies that come whole although a stream was wanted, as the events of a stream."""

from collections.abc import Iterator
from typing import Any

import msgspec

from treadle.providers.sse import SseEvent
from treadle.providers.wire import decode_json, dump


def events_of_whole(body: bytes) -> list[SseEvent]:
    """Give the events that a whole reply stands for; none where it is no reply of an API that is known."""
    try:
        found = decode_json(body)
    except msgspec.DecodeError:
        return []
    match found:
        case {"choices": list(choices)} if choices and isinstance(choices[0], dict) and "message" in choices[0]:
            return [_event(found)]
        case {"candidates": list()}:
            return [_event(found)]
        case [{"candidates": list()}, *_]:
            return [_event(part) for part in _objects(found)]
        case {"object": "response", "output": list()}:
            return list(_of_responses(found, _objects(found["output"])))
        case {"type": "message", "content": list()}:
            return list(_of_message(found, _objects(found["content"])))
        case _:
            return []


def _event(value: dict[str, Any], name: str = "") -> SseEvent:
    return SseEvent(name=name, data=dump(value))


def _named(value: dict[str, Any]) -> SseEvent:
    return _event(value, value["type"])


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; servers also send what is none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _of_responses(reply: dict[str, Any], output: list[dict[str, Any]]) -> Iterator[SseEvent]:
    for index, item in enumerate(output):
        yield _named({"type": "response.output_item.added", "output_index": index, "item": item})
        for part_index, part in enumerate(_objects(item.get("content"))):
            if item.get("type") == "message" and isinstance(part.get("text"), str):
                place = {"output_index": index, "content_index": part_index}
                yield _named({"type": "response.output_text.delta", **place, "delta": part["text"]})
        yield _named({"type": "response.output_item.done", "output_index": index, "item": item})
    kind = "response.incomplete" if reply.get("status") == "incomplete" else "response.completed"
    yield _named({"type": kind, "response": reply})


_GROWING = {
    "text": (("text", "text_delta"),),
    "thinking": (("thinking", "thinking_delta"), ("signature", "signature_delta")),
}


def _of_message(reply: dict[str, Any], content: list[dict[str, Any]]) -> Iterator[SseEvent]:
    yield _named({"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}})
    for index, block in enumerate(content):
        growing = _GROWING.get(str(block.get("type")), ())
        start = {**block, **{name: "" for name, _ in growing}}
        deltas = [{"type": kind, name: block[name]} for name, kind in growing if block.get(name)]
        if block.get("type") == "tool_use":
            start["input"] = {}
            deltas = [{"type": "input_json_delta", "partial_json": dump(block.get("input") or {}).decode()}]
        yield _named({"type": "content_block_start", "index": index, "content_block": start})
        for delta in deltas:
            yield _named({"type": "content_block_delta", "index": index, "delta": delta})
        yield _named({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": reply.get("stop_reason") or "end_turn", "stop_sequence": None}
    yield _named({"type": "message_delta", "delta": stop, "usage": reply.get("usage") or {}})
    yield _named({"type": "message_stop"})
