"""`treadle serve` as a process, and users who sign in to it."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.e2e.process import Program
from tests.e2e.running import PATIENCE, model
from tests.ready import treadle
from treadle.providers.scripted.script import Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer


@dataclass
class SignedIn:
    """A browser of a user."""

    client: httpx2.AsyncClient
    name: str
    key: str
    base: str
    folder: Path

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        return await self.client.get(self.base + path, headers={"accept": "text/html", **headers})

    async def post(self, path: str, **body: Any) -> httpx2.Response:
        return await self.client.post(self.base + path, json=body)

    async def done(self, path: str, **body: Any) -> Any:
        answer = await self.post(path, **body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def start(self, text: str, **body: Any) -> str:
        """Start a session; gives its id."""
        said = await self.done("/sessions", folder=str(self.folder / "projects"), text=text, **body)
        assert "session" in said, said
        return str(said["session"])

    async def shows(self, session: str, *words: str) -> str:
        """Wait until the page of a session has all words."""
        async with asyncio.timeout(PATIENCE):
            while True:
                text = (await self.get(f"/s/{session}")).text
                if all(word in text for word in words):
                    return text
                await asyncio.sleep(0.1)

    async def status(self, session: str, wanted: str) -> str:
        """Wait until the page of an open session is told something in whose words `wanted` is."""
        page = (await self.get(f"/s/{session}")).text
        cursor = page.partition('data-cursor="')[2].partition('"')[0]
        async with asyncio.timeout(PATIENCE):
            while True:
                path = f"{self.base}/events?session={session}&opened=yes&cursor={cursor}"
                async with self.client.stream("GET", path) as stream:
                    async for line in stream.aiter_lines():
                        said = (
                            str(json.loads(line[5:]).get("status", {}).get("retry", "")) if line[:5] == "data:" else ""
                        )
                        if said and wanted in said:
                            return said
                await asyncio.sleep(0.1)


@dataclass
class Service:
    """A running service."""

    program: Program
    data: Path
    flags: tuple[str, ...]
    process: asyncio.subprocess.Process | None = None
    address: str = ""
    tokens: dict[str, str] = field(default_factory=dict)
    clients: list[httpx2.AsyncClient] = field(default_factory=list)

    async def add(self, name: str, *flags: str) -> None:
        ended = await self.program.run("serve", "add", name, "--data", str(self.data), *flags)
        assert ended.code == 0, ended.err
        self.tokens[name] = ended.out.strip()

    async def secret(self, what: str) -> str:
        ended = await self.program.run("serve", what, "--data", str(self.data))
        assert ended.code == 0, ended.err
        return ended.out.strip()

    async def begin(self, *flags: str) -> None:
        self.process = await self.program.start(
            "serve", "--port", "0", "--data", str(self.data), *self.flags, *flags, command=treadle()
        )
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            self.address = (await self.process.stdout.readline()).decode().strip().rstrip("/")
        if not self.address:
            raise AssertionError((await self.process.communicate())[1].decode())

    def browser(self, **headers: str) -> httpx2.AsyncClient:
        """A browser that is not signed in."""
        client = httpx2.AsyncClient(
            base_url=self.address, headers={"origin": self.address, **headers}, timeout=PATIENCE, trust_env=False
        )
        self.clients.append(client)
        return client

    async def sign_in(self, name: str, **headers: str) -> SignedIn:
        client = self.browser(**headers)
        answer = await client.post("/login", json={"token": self.tokens[name]})
        assert answer.status_code == 200, answer.text
        said = answer.json()
        client.headers["x-treadle-key"] = said["key"]
        return SignedIn(client, name, said["key"], said["base"], self.data / "users" / name)

    async def metrics(self, token: str) -> dict[str, float]:
        """Read what is counted, by name with labels."""
        async with httpx2.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"{self.address}/metrics", headers={"authorization": f"Bearer {token}"})
        assert answer.status_code == 200, answer.text
        lines = (line.rpartition(" ") for line in answer.text.splitlines() if line[:1] not in ("", "#"))
        return {name: float(value) for name, _, value in lines}

    async def until(self, token: str, **wanted: float) -> None:
        """Wait until metrics without labels have these values."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found = await self.metrics(token)
                if all(found.get(f"treadle_{name}", 0.0) == value for name, value in wanted.items()):
                    return
                await asyncio.sleep(0.1)

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def ended(self) -> int:
        assert self.process is not None
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    async def close(self) -> None:
        for client in self.clients:
            await client.aclose()
        if self.process is not None and self.process.returncode is None:
            for number in (signal.SIGTERM, signal.SIGTERM):
                with suppress(ProcessLookupError):
                    self.send(number)
                await asyncio.sleep(0.05)
            try:
                async with asyncio.timeout(PATIENCE):
                    await self.process.communicate()
            except TimeoutError:
                self.process.kill()
                await self.process.communicate()


def kill_page(folder: Path) -> None:
    """Kill the process of a user, and all that it runs."""
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"bwrap") and str(folder).encode() in words and b"--user-page" in words:
            with suppress(ProcessLookupError):
                os.kill(int(entry.name), signal.SIGKILL)


@asynccontextmanager
async def service_here(
    tmp_path: Path, turns: Sequence[Turn], *flags: str, users: Mapping[str, Sequence[str]], begins: bool = True
) -> AsyncIterator[Service]:
    """A service with users, and a scripted model behind it."""
    async with ScriptedServer(Script(turns=tuple(turns))) as server:
        service = Service(Program(tmp_path / "home"), tmp_path / "service", (*model(server), *flags))
        for name, said in users.items():
            await service.add(name, *said)
        if begins:
            await service.begin()
        try:
            yield service
        finally:
            await service.close()
