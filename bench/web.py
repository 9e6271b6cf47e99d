"""The page: opening a long session, a streaming reply, a scripted scroll, many sessions at once, and huge texts."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

EVENTS, SHORT = 10_000, 100
PER_SECOND, SECONDS = 200, 10
SESSIONS = 20
_SETTLES, _IDLE = 3, 20
"""Seconds after a turn, in which its end is still written, and that nothing happens."""

TICK = 1 / os.sysconf("SC_CLK_TCK")
PARAGRAPH = (
    "The **total** of the cart ignores the `count` of each item, so it is wrong.\n\n- first `look` at it\n"
    "- then *fix* it\n\n```python\ndef total(self) -> float:\n"
    "    return sum(item.price * item.count for item in self.items)\n```\n\n"
)


def long_session(name: str, events: int) -> int:
    """Write a session of about so many events, as an import does; gives how many it has."""
    from treadle.app.compose import open_store
    from treadle.app.importing.imported_log import (
        ForeignCall,
        ForeignMessage,
        ForeignResult,
        ForeignSession,
        imported_log,
    )
    from treadle.app.importing.session_import import rows_of
    from treadle.protocol.messages import Role, Text
    from treadle.store.keeping import add_session
    from treadle.store.sqlite import SessionRow

    messages: list[ForeignMessage] = []
    log: Any = ()
    while (size := len(log)) < events:
        messages.append(ForeignMessage(role=Role.USER, at=10**12, content=(Text(text="Go on with the next one."),)))
        for number in range(20):
            call = ForeignCall(id=f"c{number}", name="execute_command", arguments={"command": f"pytest -q {number}"})
            result = ForeignResult(content=(Text(text="12 passed\n" * 20),))
            messages.append(ForeignMessage(role=Role.ASSISTANT, content=(Text(text=PARAGRAPH),), calls=(call,)))
            messages.append(ForeignMessage(role=Role.USER, results={call.id: result}))
        log = imported_log(ForeignSession(origin="bench", id=name, messages=messages, workspace="/w"), name)
        messages *= max(1, min(8, events // len(log)))
    row = SessionRow(id=name, workspace="/w", model="b/m", title="a long one", created_at=1, updated_at=1, events=0)
    store = open_store()
    add_session(store, row, "", rows_of(log))
    store.close()
    return size


def script(tokens: int) -> Any:
    """A model that writes Markdown, `PER_SECOND` tokens of four characters a second."""
    from treadle.providers.scripted.script import Pace, SayText, Script, Turn

    text = (PARAGRAPH * (tokens * 4 // len(PARAGRAPH) + 1))[: tokens * 4]
    return Script(turns=(Turn(items=(SayText(text=text),), pace=Pace(chunk=4, delay=1 / PER_SECOND)),))


def cpu_of(pids: list[int]) -> float:
    """The processor time of some processes so far (seconds)."""
    total = 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) * TICK
    return total


def ran_of(pid: int) -> float:
    """The processor time of all threads of a process so far, to the nanosecond (seconds)."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def memory_of(pid: int) -> float:
    """What a process takes now (MB)."""
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(row for row in rows if row.startswith("VmRSS")).split()[1]) / 1024


def below(pid: int) -> list[int]:
    """All processes below one."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            found += [int(child) for child in task.read_text().split()]
    return found


async def opening(page: Any, address: str) -> float:
    """Open a page until its last item is there and drawn (ms)."""
    begun = time.perf_counter()
    await page.goto(address, wait_until="load")
    await page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return (time.perf_counter() - begun) * 1000


SCROLL = """async () => {
  let longest = 0, last = performance.now();
  const end = last + 4000;
  let step = -400;
  while (performance.now() < end) {
    window.scrollBy(0, step);
    if (window.scrollY === 0) step = 400;
    if (window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 2) step = -400;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  }
  return longest;
}"""


async def _pages() -> None:
    from tests.e2e.running import model
    from tests.web.driving import Seen, browser, serving, start_session

    from treadle.providers.scripted.scripted_server import ScriptedServer

    home = Path(os.environ["TREADLE_HOME"])
    many = long_session("long", EVENTS)
    few = long_session("short", SHORT)
    async with (
        ScriptedServer(script(PER_SECOND * SECONDS)) as server,
        serving(home, home.parent / "ws", *model(server), "--trust", "--mode", "full") as served,
        browser(own=True) as seen,
    ):
        assert isinstance(seen, Seen)
        page = await seen.page(served)
        pid = served.process.pid
        first = await opening(page, f"{served.address}/s/long")
        pairs = [
            (await opening(page, f"{served.address}/s/long"), await opening(page, f"{served.address}/s/short"))
            for _ in range(5)
        ]
        again, short = min(one for one, _ in pairs), min(other for _, other in pairs)
        print(f"session of {many:,} events opens   {first:7.0f} ms the first time, {again:.0f} ms again (budget 500)")
        print(f"  / one of {few} events                    {again / short:5.2f}x")
        await page.goto(f"{served.address}/s/long")
        for _ in range(8):
            if await page.locator("#earlier").is_visible():
                await page.click("#earlier")
                await page.wait_for_timeout(300)
        shown = await page.locator("#items > li").count()
        print(f"scroll over {shown:,} items: longest frame {await page.evaluate(SCROLL):6.0f} ms   (budget 50)")
        await page.goto(served.address)
        await start_session(page, "Write.")
        await page.wait_for_selector(".item.prose")
        renderers = [one for one in below(os.getpid()) if one not in below(pid) and one != os.getpid()]
        begun, of_server, of_page = time.perf_counter(), cpu_of([pid]), cpu_of(renderers)
        await asyncio.sleep(SECONDS - 2)
        span = time.perf_counter() - begun
        print(
            f"streaming {PER_SECOND} tokens a second: server "
            f"{100 * (cpu_of([pid]) - of_server) / span:5.1f} % of a core   (budget 6)"
        )
        print(
            f"  the browser, all of its processes     {100 * (cpu_of(renderers) - of_page) / span:5.1f} %   (budget 20)"
        )
        await page.wait_for_selector(".item.end")
        await asyncio.sleep(_SETTLES)
        begun, of_server = time.perf_counter(), ran_of(pid)
        await asyncio.sleep(_IDLE)
        span = time.perf_counter() - begun
        print(f"idle with a page open: server {100 * (ran_of(pid) - of_server) / span:.2f} % of a core   (budget 0)")


async def _many() -> None:
    """Print what many sessions at once cost a server that has nothing else."""
    from tests.e2e.running import model
    from tests.web.driving import browser, serving, start_session

    from treadle.providers.scripted.scripted_server import ScriptedServer

    home = Path(os.environ["TREADLE_HOME"])
    async with (
        ScriptedServer(script(PER_SECOND * SECONDS)) as server,
        serving(home, home.parent / "ws", *model(server), "--trust", "--mode", "full") as served,
        browser(own=True) as seen,
    ):
        page = await seen.page(served)
        pid = served.process.pid
        for _ in range(SESSIONS):
            await page.goto(served.address)
            await start_session(page, "Write.")
        begun, of_server = time.perf_counter(), cpu_of([pid])
        lists = []
        while time.perf_counter() - begun < 5:
            lists.append(await opening(page, served.address))
            await asyncio.sleep(0.3)
        span = time.perf_counter() - begun
        print(
            f"{SESSIONS} sessions at once, {PER_SECOND} tokens a second each: server "
            f"{100 * (cpu_of([pid]) - of_server) / span:5.1f} % of a core, {memory_of(pid):.0f} MB (budget 100); "
            f"the list opens in {min(lists):.0f} to {max(lists):.0f} ms"
        )


def taken(texts: Iterator[str], size: int, notification: Callable[[str], Any]) -> tuple[float, int]:
    """Let a page take pieces of a text, and give it to a browser now and then (seconds, and bytes that were sent)."""
    from treadle.protocol.attach import Stamped
    from treadle.web.page_view import PageContent

    view, known, sent, got = PageContent("/w"), 0, 0, 0
    begun = time.process_time()
    for number, text in enumerate(texts):
        view.take(Stamped(notification=notification(text)))
        got += len(text)
        if number % 40 == 0:
            sent += sum(len(view.html(entry)) for entry in view.changed_after(known))
            known = view.version
        if got >= size:
            break
    return time.process_time() - begun, sent


def huge() -> None:
    """Print what huge texts cost, and that they cost by their length."""
    from treadle.protocol.notifications import TextDelta

    def paragraphs() -> Iterator[str]:
        while True:
            for at in range(0, len(PARAGRAPH), 40):
                yield PARAGRAPH[at : at + 40]

    def lines() -> Iterator[str]:
        yield "```python\n"
        while True:
            yield "total = sum(item.price * item.count for item in items)\n"

    def one_line() -> Iterator[str]:
        while True:
            yield "x" * 40

    for what, text, size in (
        ("a reply of 10 MB", paragraphs, 10_000_000),
        ("a block of code of 50,000 lines", lines, 2_750_000),
        ("a reply of one line of 10 MB", one_line, 10_000_000),
    ):
        whole, sent = taken(text(), size, lambda piece: TextDelta(text=piece))
        tenth, _ = taken(text(), size // 10, lambda piece: TextDelta(text=piece))
        print(
            f"{what:<40} {whole:6.2f} s, {sent / 1e6:6.1f} MB sent; / a tenth of it {whole / tenth:5.1f}x (linear: 10x)"
        )


@contextmanager
def _home() -> Iterator[None]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["TREADLE_HOME"] = f"{folder}/home"
        os.environ["ANEW"] = "1"  # the process that is started is the one that serves
        (Path(folder) / "ws").mkdir()
        yield


def main() -> None:
    """Print the figures."""
    from tests.web.driving import CHROMIUM

    with _home():
        huge()
        if CHROMIUM:
            asyncio.run(_pages())
            asyncio.run(_many())
        else:
            print("no Chromium: the pages are not measured", file=sys.stderr)


if __name__ == "__main__":
    main()
