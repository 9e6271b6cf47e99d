"""The hooks of a host: callbacks in its own program, asked over the channel."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from treadle.app.config.hook_settings import HookEvent
from treadle.app.hooks.hook_rows import HookAnswer, HookFailedError, HookHandler, HookRow
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
        for said in (one for one in _listed(matchers) if isinstance(one, dict)):
            for callback in _listed(said.get("hookCallbackIds")):
                yield HookRow(
                    event=event,
                    matcher=str(said.get("matcher") or ""),
                    handler=_handler(host, event, str(callback)),
                    timeout=_seconds(said.get("timeout")),
                    on_failure=str(said.get("onFailure") or ""),
                    name=f"{callback} of the host",
                )


def _listed(said: Any) -> list[Any]:
    return said if isinstance(said, list) else []


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
