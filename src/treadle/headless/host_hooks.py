"""The hooks of a host: callbacks in its own program, asked over the channel."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from treadle.door.hosts import HookAnswer, HookFailedError, HookHandler, HookRow
from treadle.door.settings import HookEvent
from treadle.headless.channel import Frame, HostError

if TYPE_CHECKING:
    from treadle.headless.hosting import HostedSession


def host_hooks(host: "HostedSession") -> tuple[HookRow, ...]:
    """Give the hooks that the host named when it began; what it has none for here is named, and never called."""
    return tuple(_rows(host))


def _rows(host: "HostedSession") -> Iterator[HookRow]:
    for event, matchers in host.began.hooks.items():
        if event not in list(HookEvent):
            host.warn(f"Hooks of the event {event} are not called: Treadle has no such moment.")
            continue
        for said in matchers if isinstance(matchers, list) else [matchers]:
            yield from _rows_of(host, event, said)


def _rows_of(host: "HostedSession", event: str, said: Any) -> Iterator[HookRow]:
    """Give the callbacks of a matcher; one that is wrong fails, for all of the event where nobody knows for what."""
    entry: dict[str, Any] = said if isinstance(said, dict) else {}
    matcher, callbacks = entry.get("matcher") or "", entry.get("hookCallbackIds")
    if not isinstance(matcher, str) or not isinstance(callbacks, list):
        host.warn(f"A hook of the event {event} cannot be called: it is not as the SDK writes it.")
        known = matcher if isinstance(matcher, str) else ""
        yield HookRow(event=event, matcher=known, handler=_not_called, name="of the host")
        return
    for callback in callbacks:
        yield HookRow(
            event=event,
            matcher=matcher,
            handler=_handler(host, event, str(callback)),
            timeout=_seconds(entry.get("timeout")),
            on_failure=str(entry.get("onFailure") or ""),
            name=f"{callback} of the host",
        )


async def _not_called(given: dict[str, Any]) -> HookAnswer:  # noqa: ARG001 - as every hook
    raise HookFailedError("it is not as the SDK writes it")


def _seconds(said: Any) -> float | None:
    return float(said) if isinstance(said, int | float) and not isinstance(said, bool) and said > 0 else None


def _handler(host: "HostedSession", event: str, callback: str) -> HookHandler:
    async def ask(given: dict[str, Any]) -> HookAnswer:
        request: Frame = {"subtype": "hook_callback", "callback_id": callback, "input": given}
        if "tool_use_id" in given:
            request["tool_use_id"] = given["tool_use_id"]
        shown = {"hook_id": callback, "hook_name": event, "hook_event": event}
        host.show_hook("hook_started", **shown)
        try:
            said = await host.channel.ask(request)
        except HostError as error:
            host.show_hook("hook_response", **shown, outcome="error", output=str(error))
            raise HookFailedError(str(error)) from error
        host.show_hook("hook_response", **shown, outcome="success", output=said)
        return HookAnswer(objects=(said,))

    return ask
