"""The page about the machine's states, found by driving the machine: `python -m tests.engine.states_page` prints it."""

import random
import sys
from collections import defaultdict
from collections.abc import Iterator

from tests.engine.exploring import explore
from treadle.protocol.notifications import Phase

_WALKS = 4_000
_MEANING = {
    Phase.WAITING_FOR_EVENT: "idle; a prompt starts a turn",
    Phase.ASSEMBLING_CONTEXT: "the next user message is being built",
    Phase.AWAITING_LLM_RESPONSE: "the model writes; calls that only read may run already",
    Phase.JUDGING: "the security layer checks a call",
    Phase.AWAITING_USER_CONFIRMATION: "a question waits for the user",
    Phase.EXECUTING_TOOL: "a call runs",
    Phase.COMPACTING: "older messages are removed from the prompt",
    Phase.WAITING_TO_RETRY: "waiting before the request is sent again",
    Phase.CANCELLING: "running work is being stopped",
}


def states_page() -> str:
    """Write the page as Markdown: each phase, the events that it takes, and where they lead."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# States"
    yield ""
    yield (
        "Written by `make docs` from the state machine: it takes fixed random walks and lists the transitions they met."
    )
    yield "Events that a phase does not list are refused with a reason, and the state does not change."
    yield ""
    yield "| phase | meaning |"
    yield "|---|---|"
    for phase, meaning in _MEANING.items():
        yield f"| `{phase}` | {meaning} |"
    table: dict[tuple[Phase, str], set[Phase]] = defaultdict(set)
    for before, event, after in explore(random.Random(1), _WALKS):
        table[before, event].add(after)
    for phase in Phase:
        yield from ("", f"## {phase}", "", "| event | leads to |", "|---|---|")
        for (before, event), targets in sorted(table.items(), key=lambda item: item[0][1]):
            if before is phase:
                yield f"| {event} | {', '.join(f'`{target}`' for target in Phase if target in targets)} |"


if __name__ == "__main__":
    sys.stdout.write(states_page())
