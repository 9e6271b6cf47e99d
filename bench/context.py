"""What the conversation costs: the new tokens of each request beside all of it, and the time of the projection."""

import asyncio
import statistics
import time

from tests.engine.long_session import BYTES_PER_TOKEN, WINDOW, work

from treadle.context.transcript import Transcript
from treadle.protocol.messages import Message, Role, Text, ToolResult, ToolUse
from treadle.protocol.models import ToolProtocol

STEPS = 300
AT = 2_000
TIMES = 50


def conversation(steps: int) -> Transcript:
    """A conversation of so many steps."""
    transcript = Transcript()
    transcript.add_user((Text(text="Do it."),), seq=1)
    for step in range(steps):
        use = ToolUse(id=f"c{step}", name="read_file", arguments={"path": f"src/m{step}.py"})
        transcript.add_assistant(Message(role=Role.ASSISTANT, content=(Text(text="I look."), use)), seq=2 * step + 2)
        result = ToolResult(call_id=use.id, name=use.name, content=(Text(text="line of text\n" * 100),))
        transcript.add_user((result,), seq=2 * step + 3)
    return transcript


def projection(steps: int, protocol: ToolProtocol) -> float:
    """Give the seconds that the messages of a request take after so many steps."""
    transcript = conversation(steps)
    transcript.messages(protocol)
    taken = []
    for step in range(TIMES):
        transcript.add_user((Text(text=f"more {step}"),), seq=10**6 + step)
        transcript.add_assistant(Message(role=Role.ASSISTANT, content=(Text(text="yes"),)), seq=10**6 + step)
        begun = time.perf_counter()
        transcript.messages(protocol)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def main() -> None:
    """Print the figures."""
    worker, _, compactions = asyncio.run(work(STEPS))
    new, naive = sum(worker.uncached), sum(worker.sizes)
    print(f"{STEPS} steps in a window of {WINDOW:,} tokens, {compactions} compactions")
    for name, size in (("new to the cache", new), ("all of each request", naive)):
        tokens = size / BYTES_PER_TOKEN
        print(f"  {name:<20} {tokens / STEPS:>9,.0f} tokens a step   {tokens:>12,.0f} in all   {size / naive:5.2f}x")
    outside = worker.prefix_lost - compactions
    print(f"  requests that changed before their end outside of compactions: {max(0, outside)}")
    print(f"the projection at step {AT:,}   (budget 2 ms)")
    for protocol in ToolProtocol:
        early, late = projection(10, protocol), projection(AT, protocol)
        print(f"  {protocol:<8} {late * 1000:6.3f} ms, {late / early:5.1f}x of step 10")


if __name__ == "__main__":
    main()
