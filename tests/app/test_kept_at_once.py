"""What is kept in one file outlives others that write there at the same time: none loses what another wrote."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import msgspec
import pytest

from treadle.app.config.key_hosts import confirm_host
from treadle.app.config.places import config_file, servers_file
from treadle.app.models import provider_keys
from treadle.app.models.provider_keys import forget_key, store_key, stored_names
from treadle.app.servers.configured import write_server

NAMES = [f"name{number}" for number in range(8)]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    monkeypatch.setattr(provider_keys, "_ask", lambda _: None)  # there is no keyring


def _at_once(write: Callable[[str], object], names: list[str]) -> None:
    together = Barrier(len(names))

    def writes(name: str) -> None:
        together.wait()
        write(name)

    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(writes, names))


def test_keys_that_are_stored_and_removed_at_once_are_all_as_they_were_left() -> None:
    _at_once(lambda name: store_key(name, f"key of {name}"), NAMES)
    assert stored_names() == set(NAMES)
    _at_once(forget_key, NAMES[1:])
    assert stored_names() == set(NAMES[:1])


def test_hosts_that_are_confirmed_at_once_are_all_kept() -> None:
    _at_once(lambda name: confirm_host(name, "https://host.example/v1"), NAMES)
    kept = msgspec.json.decode(config_file().with_name("hosts.json").read_bytes())
    assert set(kept["providers"]) == set(NAMES)


def test_servers_that_are_added_and_removed_at_once_are_all_as_they_were_left() -> None:
    _at_once(lambda name: write_server(servers_file(), name, {"command": "true"}), NAMES)
    assert set(msgspec.json.decode(servers_file().read_bytes())["mcpServers"]) == set(NAMES)
    _at_once(lambda name: write_server(servers_file(), name, None), NAMES[1:])
    assert set(msgspec.json.decode(servers_file().read_bytes())["mcpServers"]) == set(NAMES[:1])
