"""Addresses: which are of the open network, and which may be connected to."""

from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from treadle.protocol.errors import ToolError
from treadle.workspace.network.checked_addresses import HostPort, checked_addresses, is_public


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("::ffff:8.8.8.8", True),
        ("127.0.0.1", False),
        ("0.0.0.0", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.0.1", False),
        ("100.64.0.1", False),
        ("169.254.1.1", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::1", False),
        ("fe80::1", False),
        ("fc00::1", False),
        ("::ffff:127.0.0.1", False),
        ("64:ff9b::a00:1", False),
        ("2002:7f00:1::", False),
    ],
)
def test_only_the_open_network_is_public(address: str, *, public: bool) -> None:
    assert is_public(ip_address(address)) is public


async def test_each_address_is_given_once_and_few_of_them() -> None:
    async def resolver(host: str, port: int) -> Sequence[str]:
        return ["9.9.9.9", "9.9.9.9", "8.8.8.8", "8.8.4.4", "1.1.1.1"]

    assert await checked_addresses(HostPort("a.test", 80), resolver, private=False) == ("9.9.9.9", "8.8.8.8", "8.8.4.4")


async def test_a_name_without_an_address_is_told() -> None:
    async def resolver(host: str, port: int) -> Sequence[str]:
        return []

    with pytest.raises(ToolError, match=r"a\.test has no address"):
        await checked_addresses(HostPort("a.test", 80), resolver, private=True)
