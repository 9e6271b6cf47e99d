"""Look-ups and the beginnings of connections, as bytes that anybody may send."""

import ssl
import struct
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.workspace.namespaces.dns_names import (
    ADDRESSES,
    LookUpEnd,
    NameTable,
    is_public_name,
    read_query,
    registered,
    write_answer,
)
from treadle.workspace.namespaces.openings import MOST_HEAD, NotYetError, http_name, tls_name

labels = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_", min_size=1, max_size=63)
names = st.lists(labels, min_size=1, max_size=4).map(".".join)


def query(name: str, kind: int = 1, flags: int = 0x0100, number: int = 7) -> bytes:
    wire = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!6H", number, flags, 1, 0, 0, 1) + wire + b"\0" + struct.pack("!2H", kind, 1) + b"\0\0)extra"


@given(name=names, kind=st.sampled_from([1, 28, 65, 255]))
def test_a_look_up_is_read_and_answered_for_the_name_it_is_for(name: str, kind: int) -> None:
    found = read_query(query(name.upper(), kind))
    assert found is not None
    assert (found.name, found.kind, found.wants_address) == (name, kind, kind == 1)
    answer = write_answer(found, LookUpEnd.FOUND, IPv4Address("198.18.0.9") if found.wants_address else None)
    number, flags, asked, answers, *_ = struct.unpack_from("!6H", answer)
    assert (number, flags & 0x800F, asked, answers) == (7, 0x8000, 1, int(kind == 1))
    assert answer[12:].startswith(found.wire)
    assert answer.endswith(bytes([198, 18, 0, 9])) is (kind == 1)


def test_a_failure_is_told_as_one() -> None:
    found = read_query(query("example.com"))
    assert found is not None
    assert struct.unpack_from("!6H", write_answer(found, LookUpEnd.NO_SUCH_NAME))[1] & 0xF == 3


@given(packet=st.one_of(st.binary(max_size=80), names.map(query)), cut=st.integers(0, 80), noise=st.binary(max_size=4))
def test_no_packet_breaks_the_reader(packet: bytes, cut: int, noise: bytes) -> None:
    found = read_query(packet[:cut] + noise + packet[cut + len(noise) :])
    if found is not None:
        write_answer(found, LookUpEnd.REFUSED)


def test_an_answer_and_several_questions_are_no_look_up() -> None:
    assert read_query(query("example.com", flags=0x8100)) is None
    several = bytearray(query("example.com"))
    several[5] = 2
    assert read_query(bytes(several)) is None


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("pypi.org", True),
        ("registry.npmjs.org", True),
        ("_dmarc.example.com", True),
        ("xn--bcher-kva.example", True),
        ("example", False),
        ("printer.local", False),
        ("metadata.google.internal", False),
        ("1.0.0.127.in-addr.arpa", False),
        ("localhost", False),
        ("127.0.0.1", False),
        ("0x7f000001", False),
        ("a..b", False),
        ("-a.com", False),
        ("a.com-", False),
        ("exa mple.com", False),
        ("ex\u00e4mple.com", False),
        (f"{'a' * 64}.com", False),
        (".".join(["a" * 60] * 3) + ".com", False),
    ],
)
def test_only_names_that_may_be_of_the_open_network_are_served(name: str, public: bool) -> None:
    assert is_public_name(name) is public


def test_what_somebody_registered_comes_first() -> None:
    known = {"a.b.pypi.org": "pypi.org", "pypi.org.evil.com": "evil.com", "www.bbc.co.uk": "bbc.co.uk", "a.io": "a.io"}
    assert {name: registered(name) for name in known} == known


@given(several=st.lists(names, max_size=30))
def test_each_name_has_an_address_of_its_own(several: list[str]) -> None:
    table = NameTable()
    found = {name: table.address_of(name) for name in several}
    assert len(set(found.values())) == len(set(several))
    for name, address in found.items():
        assert address in ADDRESSES
        assert (table.name_of(str(address)), table.address_of(name)) == (name, address)
    assert table.name_of("198.18.250.1") == ""


def hello(name: str) -> bytes:
    """What OpenSSL begins with."""
    coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    made = ssl.create_default_context().wrap_bio(coming, going, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        made.do_handshake()
    return going.read()


@pytest.mark.parametrize("name", ["example.com", "a.very.long.name.of.some.host.example.org"])
def test_the_name_of_a_hello_is_read_as_soon_as_it_is_whole(name: str) -> None:
    whole = hello(name)
    assert tls_name(whole) == tls_name(whole + b"more") == name
    for size in (0, 1, 5, len(whole) - 1):
        with pytest.raises(NotYetError):
            tls_name(whole[:size])


@given(at=st.integers(0, 600), byte=st.integers(0, 255))
def test_a_damaged_hello_names_another_host_or_none_and_breaks_nothing(at: int, byte: int) -> None:
    damaged = bytearray(_HELLO)
    damaged[at % len(damaged)] = byte
    try:
        assert isinstance(tls_name(bytes(damaged)), str)
    except NotYetError:
        assert at % len(_HELLO) < 5


_HELLO = hello("example.com")


def test_what_is_no_tls_names_nothing() -> None:
    assert tls_name(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n") == ""
    assert tls_name(b"\x16\x03\x01\xff\xff") == ""


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"GET / HTTP/1.1\r\nHost: Example.COM\r\n\r\n", "example.com"),
        (b"GET / HTTP/1.1\r\na: b\r\nhost:example.com:80\r\n\r\nbody", "example.com"),
        (b"GET / HTTP/1.1\r\nHost: example.com\r\nHost: example.com\r\n\r\n", "example.com"),
        (b"GET / HTTP/1.1\r\nHost: example.com\r\nHOST : other.org\r\n\r\n", ""),
        (b"GET / HTTP/1.1\r\nHost: example.com\nHost: other.org\r\n\r\n", ""),
        (b"GET / HTTP/1.0\r\n\r\n", ""),
        (b"GET /?Host: example.com HTTP/1.1\r\nX: y\r\n\r\n", ""),
        (b"x" * (MOST_HEAD + 1), ""),
    ],
)
def test_the_host_of_a_request_is_the_one_that_all_of_it_names(head: bytes, name: str) -> None:
    assert http_name(head) == name


def test_a_head_that_has_not_ended_is_waited_for() -> None:
    with pytest.raises(NotYetError):
        http_name(b"GET / HTTP/1.1\r\nHost: example.com\r\n")
