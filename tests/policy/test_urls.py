"""Addresses are read by their usual spelling; what the C library would read in another one is refused."""

import pytest

from treadle.policy.urls import HostKind, check_url, host_kind, matches_host
from treadle.protocol.metadata_hosts import METADATA_ADDRESSES, METADATA_NAMES
from treadle.workspace.network.checked_addresses import is_public


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://example.com/a?b#c", HostKind.PUBLIC),
        ("http://example.com:8080/", HostKind.PUBLIC),
        ("http://8.8.8.8/", HostKind.PUBLIC),
        ("http://localhost:3000", HostKind.LOOPBACK),
        ("http://app.localhost/", HostKind.LOOPBACK),
        ("http://127.1/", HostKind.INVALID),
        ("http://0x7f.1/", HostKind.INVALID),
        ("http://2130706433/", HostKind.INVALID),
        ("http://[::1]/", HostKind.LOOPBACK),
        ("http://[::ffff:127.0.0.1]/", HostKind.LOOPBACK),
        ("http://0.0.0.0/", HostKind.PRIVATE),
        ("http://10.0.0.1/", HostKind.PRIVATE),
        ("http://192.168.0.1/", HostKind.PRIVATE),
        ("http://172.16.0.1/", HostKind.PRIVATE),
        ("http://100.64.0.1/", HostKind.PRIVATE),
        ("http://[fc00::1]/", HostKind.PRIVATE),
        ("http://intranet/", HostKind.PRIVATE),
        ("http://db.internal/", HostKind.PRIVATE),
        ("http://printer.local/", HostKind.PRIVATE),
        ("http://10.0.0.1.nip.io/", HostKind.PRIVATE),
        ("http://169.254.169.254/", HostKind.METADATA),
        ("http://0xa9fea9fe/", HostKind.INVALID),
        ("http://2852039166/", HostKind.INVALID),
        ("http://0251.0376.0251.0376/", HostKind.INVALID),
        ("http://[::ffff:a9fe:a9fe]/", HostKind.METADATA),
        ("http://[64:ff9b::a9fe:a9fe]/", HostKind.METADATA),
        ("http://[fe80::1]/", HostKind.METADATA),
        ("http://metadata.google.internal./", HostKind.METADATA),
        ("http://168.63.129.16/machine", HostKind.METADATA),
        ("http://[::ffff:168.63.129.16]/", HostKind.METADATA),
        ("file:///etc/passwd", HostKind.INVALID),
        ("ftp://example.com/", HostKind.INVALID),
        ("javascript:alert(1)", HostKind.INVALID),
        ("https://user:pw@example.com/", HostKind.INVALID),
        ("https://example.com\\@evil.example/", HostKind.INVALID),
        ("https://exa mple.com/", HostKind.INVALID),
        ("https://example.com:99999/", HostKind.INVALID),
        ("https:///x", HostKind.INVALID),
        ("", HostKind.INVALID),
    ],
)
def test_where_an_address_leads(url: str, kind: HostKind) -> None:
    assert check_url(url).kind is kind


def test_a_host_matches_exactly_or_below_a_dot() -> None:
    allowed = ("example.com", ".example.org")
    hosts = ("example.com", "EXAMPLE.com.", "a.example.com", "a.example.org", "example.org", "evilexample.org")
    assert [matches_host(host, allowed) for host in hosts] == [True, True, False, True, False, False]


def test_every_place_where_a_cloud_tells_about_a_machine_is_refused_by_both_guards() -> None:
    for address in METADATA_ADDRESSES:
        assert host_kind(str(address)) is HostKind.METADATA
        assert not is_public(address)
    assert {host_kind(name) for name in METADATA_NAMES} == {HostKind.METADATA}
