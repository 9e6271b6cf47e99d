"""A known value is hidden in every encoding that is promised, alone and in one inside of another; other text stays."""

import base64
import html
import json
import random
import re
import string
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from treadle.policy.secrets import Redactor, known_secrets

TOKEN = "tk_9fQx2LmZ7rB4vHs8Yw3K/pE5u"
REDACTOR = known_secrets({"MY_TOKEN": TOKEN})
MARK = "[hidden: MY_TOKEN]"

Encode = Callable[[bytes], bytes]


def _each(form: str) -> Encode:
    return lambda data: "".join(form.format(byte) for byte in data).encode()


ENCODINGS: dict[str, Encode] = {
    "base64": base64.b64encode,
    "base64 url": base64.urlsafe_b64encode,
    "base64 lines": lambda data: base64.encodebytes(data).strip(),
    "base32": base64.b32encode,
    "hex": lambda data: data.hex().encode(),
    "HEX": lambda data: data.hex().upper().encode(),
    "utf-16 hex": lambda data: data.decode().encode("utf-16-le").hex().encode(),
    "utf-16 be base64": lambda data: base64.b64encode(data.decode().encode("utf-16-be")),
    "base85": base64.b85encode,
    "ascii85": base64.a85encode,
    "percent": _each("%{:02X}"),
    "percent small": _each("%{:02x}"),
    "percent as usual": lambda data: quote(data.decode(), safe="").encode(),
    "\\u": _each("\\u{:04x}"),
    "\\u{}": _each("\\u{{{:04x}}}"),
    "\\U": _each("\\U{:08x}"),
    "\\x": _each("\\x{:02x}"),
    "octal": _each("\\{:03o}"),
    "&#": _each("&#{};"),
    "&#x": _each("&#x{:x};"),
    "quoted-printable": _each("={:02X}"),
    "html": lambda data: html.escape(data.decode()).encode(),
    "json": lambda data: json.dumps(data.decode())[1:-1].encode(),
}
OUTER = [name for name in ENCODINGS if name not in ("base85", "ascii85")]
BY_CHANCE = re.compile(rb"[%=][\dA-Fa-f]{2}|\\[0-3][0-7]{2}|\\x[\dA-Fa-f]{2}|&#")
"""What base85 holds by chance that reads as an escape: it is read as one where another encoding is around it."""

INSIDE_BASE85 = ["base64", "hex", "HEX", "percent as usual", "html", "json"]


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("around", ["{}", "x={} end", "before\n{}\nafter", "a {} b"])
def test_a_value_is_hidden_in_every_encoding(name: str, around: str) -> None:
    shown = REDACTOR.redact(around.format(ENCODINGS[name](TOKEN.encode()).decode()))
    assert MARK in shown
    assert shown.startswith(around.partition("{}")[0].removesuffix("x="))


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", ENCODINGS)
def test_a_value_is_hidden_in_an_encoding_of_an_encoding(inner: str, outer: str) -> None:
    text = ENCODINGS[outer](ENCODINGS[inner](TOKEN.encode())).decode()
    assert MARK in REDACTOR.redact(f"it is {text} here"), text


@pytest.mark.parametrize("outer", ["base85", "ascii85"])
@pytest.mark.parametrize("inner", INSIDE_BASE85)
def test_a_value_is_hidden_in_base85_of_an_encoding(inner: str, outer: str) -> None:
    text = ENCODINGS[outer](ENCODINGS[inner](TOKEN.encode())).decode()
    assert MARK in REDACTOR.redact(f"it is {text} here"), text


@given(
    st.text(string.ascii_letters + string.digits, min_size=16, max_size=60),
    st.sampled_from(OUTER),
    st.sampled_from(list(ENCODINGS)),
    st.text(string.ascii_letters + " \n=,", max_size=20),
)
def test_any_value_is_hidden_wherever_it_begins(value: str, outer: str, inner: str, before: str) -> None:
    redactor = known_secrets({"A_TOKEN": value})
    encoded = ENCODINGS[inner](f"{before}{value}".encode())
    assume(inner not in ("base85", "ascii85") or not BY_CHANCE.search(encoded))
    text = ENCODINGS[outer](encoded).decode()
    shown = redactor.redact(text)
    assert "[hidden: A_TOKEN]" in shown


@given(st.sets(st.integers(0, len(TOKEN) - 1), min_size=1), st.sampled_from(["%{:02x}", "\\u{:04x}", "\\x{:02x}"]))
def test_a_value_of_which_some_characters_are_written_as_numbers_is_hidden(places: set[int], form: str) -> None:
    text = "".join(form.format(ord(char)) if at in places else char for at, char in enumerate(TOKEN))
    assert MARK in REDACTOR.redact(f"curl https://example.com/?q={text} -s")


@given(st.text("abcdefABCDEF0123456789+/=%\\ux \n&#;", max_size=600))
def test_text_that_hides_no_value_stays(text: str) -> None:
    assert REDACTOR.redact(text) == Redactor().redact(text)


def test_the_same_is_hidden_in_chunks() -> None:
    twice = base64.b64encode(base64.b64encode(TOKEN.encode())).decode()
    stream = REDACTOR.stream()
    shown = "".join(stream.feed(char) for char in f"a {twice}\nb\n") + stream.finish()
    assert shown == f"a {MARK}\nb\n"


def test_a_picture_in_base64_stays() -> None:
    picture = base64.b64encode(random.Random(1).randbytes(200_000)).decode()
    assert REDACTOR.redact(f"data:image/png;base64,{picture}") == f"data:image/png;base64,{picture}"


def test_of_a_long_word_only_what_stands_for_the_value_is_hidden() -> None:
    noise = random.Random(2)
    whole = base64.b64encode(base64.b64encode(noise.randbytes(3000) + TOKEN.encode() + noise.randbytes(3000))).decode()
    before, mark, behind = REDACTOR.redact(whole).partition(MARK)
    assert (mark, whole.startswith(before), whole.endswith(behind)) == (MARK, True, True)
    assert 50 <= len(whole) - len(before) - len(behind) <= 60


def test_each_place_of_a_repeated_word_and_each_value_in_one_word_is_hidden() -> None:
    redactor = known_secrets({"A_TOKEN": TOKEN, "B_TOKEN": TOKEN[::-1]})
    twice = base64.b64encode(base64.b64encode(f"{TOKEN}, and then {TOKEN[::-1]}".encode())).decode()
    shown = redactor.redact(f"{twice}\n\n{twice} é {twice}")
    assert (shown.count("[hidden: A_TOKEN]"), shown.count("[hidden: B_TOKEN]"), " é " in shown) == (3, 3, True)


def test_what_no_escape_is_stays_in_its_place() -> None:
    escaped = "".join(f"%{ord(char):02x}" for char in TOKEN)
    odd = "100%-%zz-\\q-&#9999;-&#x;-%4-\\u{12-=4-\\777"
    assert REDACTOR.redact(f"{odd}{escaped}{odd}") == f"{odd}{MARK}{odd}"
    assert REDACTOR.redact(f"{escaped[:-3]}%") == f"{escaped[:-3]}%"
