"""Secrets are hidden, ordinary text is left alone, and a stream that cuts anywhere gives the same as the whole."""

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.policy.secrets import MAX_BLOCK, Redactor, known_secrets

REDACTOR = known_secrets({"MY_TOKEN": "correct-horse-battery", "EDITOR": "vim-is-my-editor", "A_SECRET": "short"})
_BLOCK = "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nabcd\n-----END RSA PRIVATE KEY-----"
_PIECES = (
    "plain text ", "\n", "correct-horse-battery", "correct-horse", "sk-" + "a1B2" * 8, "ghp_" + "x" * 36, _BLOCK,
    "https://user:pa55word@host/x", "password = 'Abcdef123456xyz'", "AKIA" + "A1" * 8, "\r", "-----BEGIN ", "token: ",
    "Authorization: Bearer abc.def.ghi123", "x" * 500,
)  # fmt: skip


def test_known_values_are_hidden_by_name() -> None:
    assert REDACTOR.redact("a correct-horse-battery b") == "a [hidden: MY_TOKEN] b"


def test_values_of_ordinary_or_short_variables_stay() -> None:
    assert REDACTOR.redact("vim-is-my-editor short") == "vim-is-my-editor short"


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
        shown += stream.feed("MIIBabcd\n" * (MAX_BLOCK // 200))
    shown += stream.feed("-----END PRIVATE KEY-----\nb\n") + stream.finish()
    assert shown == "a\n[hidden: private key]\nb\n"


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=12), st.lists(st.integers(1, 60), min_size=1, max_size=40))
def test_a_stream_hides_what_the_whole_text_hides(pieces: list[str], sizes: list[int]) -> None:
    text = "".join(pieces)
    stream, shown, place = REDACTOR.stream(), "", 0
    for size in sizes * (len(text) // sum(sizes) + 1):
        shown += stream.feed(text[place : place + size])
        place += size
    assert shown + stream.feed(text[place:]) + stream.finish() == REDACTOR.redact(text)
