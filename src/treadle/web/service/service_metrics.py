"""What a service counts, in the text format of Prometheus."""

from collections.abc import Iterable

from starlette.types import Message, Send

_ABOUT = {
    "treadle_requests_total": ("counter", "Requests by the class of their status."),
    "treadle_sign_ins_total": ("counter", "Browsers that were let in."),
    "treadle_sign_ins_refused_total": ("counter", "Sign-ins with a token that is not valid."),
    "treadle_turns_total": ("counter", "Turns that were let in, by user."),
    "treadle_turn_wait_seconds_sum": ("counter", "Seconds that turns have waited in the queue."),
    "treadle_turns_working": ("gauge", "Turns that work now, by user."),
    "treadle_turns_waiting": ("gauge", "Turns in the queue."),
    "treadle_turns_most": ("gauge", "Turns that can work at the same time."),
    "treadle_user_processes": ("gauge", "Processes of users."),
    "treadle_sessions_open": ("gauge", "Open sessions, by user."),
    "treadle_cost_dollars": ("gauge", "What the open sessions of a user have cost as far as it is known."),
    "treadle_folder_bytes": ("gauge", "What the folder of a user takes on the disk, where it is bounded."),
    "treadle_draining": ("gauge", "1 while the service ends."),
}

_Labels = tuple[tuple[str, str], ...]


class ServiceMetrics:
    """Counters, which only grow, and gauges, which are set anew each time that they are asked for."""

    def __init__(self) -> None:
        self._counters: dict[tuple[str, _Labels], float] = {}
        self._gauges: dict[tuple[str, _Labels], float] = {}

    def add(self, name: str, by: float = 1, **labels: str) -> None:
        """Count something."""
        key = (name, tuple(sorted(labels.items())))
        self._counters[key] = self._counters.get(key, 0.0) + by

    def clear(self) -> None:
        """Forget the gauges, before they are set anew."""
        self._gauges.clear()

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Say how much of something there is."""
        self._gauges[name, tuple(sorted(labels.items()))] = value

    def counting(self, send: Send) -> Send:
        """Count the answers that go through."""

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.add("treadle_requests_total", status=f"{message['status'] // 100}xx")
            await send(message)

        return counted

    def text(self) -> str:
        """Write all of them."""
        values = {**self._counters, **self._gauges}
        lines: list[str] = []
        for name, (kind, about) in _ABOUT.items():
            found = [(labels, value) for (known, labels), value in values.items() if known == name]
            if found:
                lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
                lines += [f"{name}{_labels(labels)} {value:g}" for labels, value in sorted(found)]
        return "\n".join([*lines, ""])


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    said = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{said}}}" if said else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
