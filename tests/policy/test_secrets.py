"""Secrets are hidden, ordinary text is left alone, and a stream that cuts anywhere gives the same as the whole."""

import base64
import html
import json
import re
import sys
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.policy.secrets import Redactor, known_secrets
from treadle.workspace.files.text import Decoder

REDACTOR = known_secrets(
    {"MY_TOKEN": "correct-horse-battery", "EDITOR": "vim-is-my-editor", "A_SECRET": "short", "PG_PASSWORD": "postgres"}
)
_BLOCK = "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nabcd\n-----END RSA PRIVATE KEY-----"
_PIECES = (
    "postgres", "post", "gres", "a", " ",
    "plain text ", "\n", "correct-horse-battery", "correct-horse", "sk-" + "a1B2" * 8, "ghp_" + "x" * 36, _BLOCK,
    "https://user:pa55word@host/x", "password = 'Abcdef123456xyz'", "AKIA" + "A1" * 8, "\r", "-----BEGIN ", "token: ",
    "Authorization: Bearer abc.def.ghi123", "x" * 500,
)  # fmt: skip


def test_known_values_are_hidden_by_name() -> None:
    assert REDACTOR.redact("a correct-horse-battery b") == "a [hidden: MY_TOKEN] b"


def test_values_of_ordinary_or_short_variables_stay() -> None:
    assert REDACTOR.redact("vim-is-my-editor short") == "vim-is-my-editor short"


def test_a_value_that_is_one_word_is_not_hidden_inside_others() -> None:
    redactor = known_secrets(
        {"PG_PASSWORD": "postgres", "MY_KEY": "aB3xK9qLmZ", "PIN_SECRET": "k", "APP_SECRET": "1234567"}
    )
    text = "postgresql postgres, my_postgres: (postgres) prepostgres"
    assert (
        redactor.redact(text)
        == "postgresql [hidden: PG_PASSWORD], my_[hidden: PG_PASSWORD]: ([hidden: PG_PASSWORD]) prepostgres"
    )
    assert redactor.redact("xaB3xK9qLmZy") == "x[hidden: MY_KEY]y"
    assert redactor.redact("API key 1234567") == "API key 1234567"


def test_a_value_that_holds_another_is_hidden_whole() -> None:
    redactor = known_secrets({}, [("abcdefgh", "inner"), ("abcdefgh-ijkl", "outer")])
    assert redactor.redact("abcdefgh-ijkl abcdefgh") == "[hidden: outer] [hidden: inner]"


def test_formats_of_keys_are_hidden() -> None:
    text = f"{'sk-' + 'a1B2' * 8} {'ghp_' + 'x' * 36} {'AKIA' + 'A1' * 8}"
    assert Redactor().redact(text) == "[hidden: key] [hidden: key] [hidden: key]"


def test_a_private_key_is_hidden_whole() -> None:
    assert Redactor().redact(f"a\n{_BLOCK}\nb") == "a\n[hidden: private key]\nb"


def test_a_password_in_a_url_is_hidden() -> None:
    assert Redactor().redact("git clone https://me:pa55word@host/x") == "git clone https://me:[hidden: password]@host/x"


def test_an_assigned_random_value_is_hidden_and_code_is_not() -> None:
    assert Redactor().redact('api_key = "Zx81kdP02mmQ"') == 'api_key = "[hidden: value]"'
    for code in ("token = get_token(request)", "password: string", "secret = os.environ['X_12345']", "tokens=12"):
        assert Redactor().redact(code) == code


def test_lines_are_given_out_as_they_end() -> None:
    stream = REDACTOR.stream()
    assert [stream.feed("one\ntw"), stream.feed("o\n"), stream.finish()] == ["one\n", "two\n", ""]


def test_a_key_block_without_end_is_bounded_and_stays_hidden() -> None:
    stream = Redactor().stream()
    shown = stream.feed("a\n-----BEGIN PRIVATE KEY-----\n")
    for _ in range(40):
        shown += stream.feed("MIIBabcd\n" * (320))
    shown += stream.feed("-----END PRIVATE KEY-----\nb\n") + stream.finish()
    assert shown == "a\n[hidden: private key]\nb\n"


@pytest.mark.parametrize(
    "text",
    [
        f"-----END PRIVATE KEY-----{_BLOCK}{_BLOCK}after",
        f'{{"kind": "of key",\n"key": "{_BLOCK}",\n"mail": "me"}} after\n',
        "a -----BEGIN PRIVATE KEY-----\nMIIB\n-----BEGIN RSA PRIVATE KEY-----\nabcd",
    ],
)
def test_a_private_key_is_hidden_alike_wherever_a_stream_is_cut(text: str) -> None:
    redactor = known_secrets({}, [(text.removesuffix(" after\n"), "it")] if "mail" in text else [])
    for cut in range(len(text)):
        stream = redactor.stream()
        assert stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.finish() == redactor.redact(text)


_SECRETS = (
    "correct-horse-battery",
    'quo"ted\\back/sl+sh',
    "ключ-от-двери",
    "AbCdEfGhIjKl0123",
    "two words & <more>",
    "-" * 9,
)


def _wrapped(data: bytes) -> str:
    """Base64 as programs print it, in lines of 76."""
    return base64.encodebytes(data).decode()


_ENCODINGS: tuple[Callable[[str], str], ...] = (
    str,
    lambda text: json.dumps({"a": text}),
    lambda text: json.dumps({"a": text}, ensure_ascii=False),
    lambda text: json.dumps({"a": json.dumps([text])}),
    urllib.parse.quote,
    urllib.parse.quote_plus,
    lambda text: urllib.parse.urlencode({"a": text}),
    html.escape,
    lambda text: text.encode().hex(),
    lambda text: text.encode().hex().upper(),
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    lambda text: _wrapped(text.encode()),
)


def _rest(text: str, secret: str) -> str:
    """What of a secret, or of an encoding of it, can be seen in a text: nothing, or the longest piece."""
    wanted = [encode(secret).strip('{}[]"a:= ') for encode in _ENCODINGS]
    pieces = (form[at : at + 8] for form in wanted for at in range(max(1, len(form) - 7)))
    return next((piece for piece in pieces if len(piece) == 8 and piece in text), "")


@pytest.mark.parametrize("secret", _SECRETS)
@pytest.mark.parametrize("encode", _ENCODINGS)
def test_a_known_value_is_hidden_in_every_encoding(encode: Callable[[str], str], secret: str) -> None:
    redactor = known_secrets({"MY_TOKEN": secret})
    for before in ("", "a", "ab", "abc", "user:", "line\n" + "x" * 40):
        text = encode(before + secret + "after")
        hidden = redactor.redact(text)
        assert "[hidden: MY_TOKEN]" in hidden, text
        assert _rest(hidden, secret) == ""


def test_a_value_in_wrapped_base64_is_hidden_wherever_the_line_breaks() -> None:
    secret = "correct-horse-battery"
    redactor = known_secrets({"MY_TOKEN": secret})
    for before in range(80):
        hidden = redactor.redact(_wrapped(b"x" * before + secret.encode() + b"y" * 60))
        assert "[hidden: MY_TOKEN]" in hidden
        assert _rest(hidden, secret) == ""


def test_a_value_in_another_width_of_characters_is_hidden() -> None:
    decoder = Decoder()
    shown = decoder.feed("a correct-horse-battery b".encode("utf-16-le"), final=True)
    assert "b\\x00a\\x00t" not in REDACTOR.redact(shown)


def test_colours_inside_of_a_value_do_not_show_it() -> None:
    shown = Decoder().feed(b"a correct-\x1b[01;31m\x1b[Khorse\x1b[m\x1b[K-battery b", final=True)
    assert REDACTOR.redact(shown) == "a [hidden: MY_TOKEN] b"


def test_lines_that_only_follow_each_other_stay_apart() -> None:
    redactor = known_secrets({"MY_TOKEN": "abcdefgh"})
    assert redactor.redact("one abcd\nefgh") == "one abcd\nefgh"


@pytest.mark.parametrize(
    "key",
    [
        "sk-ant-api03-" + "aB3_" * 20, "sk-proj-" + "aB3x" * 10, "github_pat_" + "a1B2" * 15, "glpat-" + "a1B2" * 5,
        "xoxb-123456789012-abcdefghij", "ASIA" + "A1" * 8, "AIza" + "a1B2c" * 7, "npm_" + "a1B2" * 9,
        "pypi-AgEIcHlwaS5vcmc" + "a1B2" * 8, "rk_live_" + "a1" * 12,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "ya29." + "a1B2" * 8, "GOCSPX-" + "a1B2" * 7, "whsec_" + "a1B2" * 8, "hf_" + "aB" * 17,
        "dckr_pat_" + "a1B2" * 6,
    ],
)  # fmt: skip
def test_a_format_is_hidden_wherever_it_stands(key: str) -> None:
    for text in (key, f'"{key}"', f"x={key}\n", json.dumps(f"a\n{key}"), f"https://host/?q={key}&b"):
        assert key not in Redactor().redact(text)


def test_a_password_of_a_database_is_hidden() -> None:
    for scheme in ("postgres", "mysql", "mongodb+srv", "redis", "amqps"):
        assert Redactor().redact(f"{scheme}://u:pa55w0rd@db:5432/x") == f"{scheme}://u:[hidden: password]@db:5432/x"
    assert Redactor().redact("redis://:pa55w0rd@db") == "redis://:[hidden: password]@db"


def test_places_and_sessions_are_no_secrets() -> None:
    environment = {
        "SSH_AUTH_SOCK": "/tmp/ssh-x/agent.1",
        "KEY_DIR_SECRET": "/run/secrets/x",
        "DESKTOP_SESSION": "wayland-x",
    }
    assert known_secrets(environment) == Redactor()


@pytest.mark.parametrize(
    "unit",
    ["a", "eyJ", "eyJabcdefghij.eyJ", "http://a:b", "secret_token_", "-----BEGIN ", "\n", "sk-", "x" * 16 + "\n"],
)
def test_time_grows_with_the_text_alone(unit: str) -> None:
    """Counted, not timed: no character is looked at again and again."""
    seen = [_steps(unit * (size // len(unit))) for size in (20_000, 80_000)]
    assert seen[1] < 6 * seen[0] + 1000


def _steps(text: str) -> int:
    """Count the calls that redacting takes."""
    steps = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        REDACTOR.redact(text)
    finally:
        sys.setprofile(None)
    return steps


@settings(max_examples=200)
@given(
    st.sampled_from(_SECRETS),
    st.sampled_from(_ENCODINGS),
    st.text(alphabet="ab \n", max_size=90),
    st.integers(0, 200),
    st.integers(1, 9),
)
def test_no_chunk_shows_a_piece_of_a_known_value(
    secret: str, encode: Callable[[str], str], before: str, first: int, size: int
) -> None:
    redactor = known_secrets({"MY_TOKEN": secret})
    text = encode(before + secret + " after")
    stream = redactor.stream()
    pieces = (text[:first], *(text[at : at + size] for at in range(first, len(text), size)))
    whole = "".join([*map(stream.feed, pieces), stream.finish()])
    assert whole == redactor.redact(text)
    assert _rest(whole, secret) == ""


@settings(max_examples=200)
@given(
    st.lists(st.text(alphabet="ab: -\n\r", max_size=30), max_size=8), st.lists(st.booleans(), min_size=9, max_size=9)
)
def test_all_that_came_is_given_once_however_often_it_is_asked_for(pieces: list[str], asked: list[bool]) -> None:
    stream = Redactor().stream()
    given = [
        stream.feed(piece) + (stream.flush() if flush else "") for piece, flush in zip(pieces, asked, strict=False)
    ]
    end = [stream.finish(), stream.flush(), stream.finish()]
    assert "".join(given + end) == "".join(pieces)


@settings(max_examples=150)
@given(st.lists(st.sampled_from(_PIECES), max_size=12), st.lists(st.integers(1, 60), min_size=1, max_size=40))
def test_a_stream_hides_what_the_whole_text_hides(pieces: list[str], sizes: list[int]) -> None:
    text = "".join(pieces)
    stream, shown, place = REDACTOR.stream(), "", 0
    for size in sizes * (len(text) // sum(sizes) + 1):
        shown += stream.feed(text[place : place + size])
        place += size
    assert shown + stream.feed(text[place:]) + stream.finish() == REDACTOR.redact(text)


@pytest.mark.parametrize("value", ["eight-88", "two words 4711", "fifteen-letters", "a-long-value-of-4711\tand-more"])
@pytest.mark.parametrize("around", ["\n{}\n", "x" * 50 + "{}" + "y" * 50, "a\u2028{}\x1cb", "'{}'" + "\n" * 300_000])
def test_a_value_is_found_between_words_of_every_length(value: str, around: str) -> None:
    hidden = known_secrets({}, [(value, "it")]).redact(around.format(value))
    assert hidden == around.format("[hidden: it]")


def test_an_encoded_value_is_hidden_though_its_letters_look_like_a_word() -> None:
    encoded = base64.b32encode(b"-dvXS0/P").decode()
    assert encoded == "FVSHMWCTGAXVA==="
    assert known_secrets({"DB_PASSWORD": "-dvXS0/P"}).redact(f"it is {encoded}") == "it is [hidden: DB_PASSWORD]A==="


KEYS = {
    "API_TOKEN": "k9fQx2LmZ7rB4vHs8Yw3KpE5tN6",
    "PHRASE_PASSWORD": "correct-horse-battery-staple-4711",
    "MODEL_API_KEY": "sk-ant-api03-Zq8Xw2" + "aB3d" * 20,
    "DB_PASSWORD": "postgres-4711-a",
}


@pytest.mark.parametrize("behind", ["", "\n", "\nnext", "…", " …", "...", " [... 20 more characters in this line]"])
@pytest.mark.parametrize("before", ["", "a ", "x=", "line\n"])
@pytest.mark.parametrize("name", KEYS)
def test_the_beginning_of_a_known_value_is_hidden_where_a_cut_left_it(name: str, before: str, behind: str) -> None:
    value, redactor = KEYS[name], known_secrets(KEYS)
    for size in range(8, len(value)):
        text = f"{before}{value[:size]}{behind}"
        words = all(piece.isalpha() for piece in re.split("[-0-9]", value[:size]) if piece)
        whole = value[:size] == "postgres"
        if not whole and (2 * size >= len(value) or not words or size > 24):
            assert redactor.redact(text) == f"{before}[hidden: {name}]{behind}", size
    assert redactor.redact(f"{before}{value[:7]}{behind}") == f"{before}{value[:7]}{behind}"
    for other in (f"{before}{value[:12]}?other", f"{before}{value[:12]}, and"):
        assert redactor.redact(other) == other


@pytest.mark.parametrize(
    "text", ["the password for postgres", "KEY=sk-ant-api03-...", "it is correct-horse", "postgres…"]
)
def test_words_with_which_a_known_value_begins_stay(text: str) -> None:
    assert known_secrets(KEYS).redact(text) == text
