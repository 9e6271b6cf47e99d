"""Keys of many services are hidden wherever they stand and however a stream is cut; what only looks like one is not."""

import base64
import hashlib
import json
import random
import string
import uuid
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.policy.secrets import Redactor, known_secrets

_DICE = random.Random(7)
_LETTERS = string.ascii_letters + string.digits
_CAPITALS = string.ascii_uppercase + string.digits


def _any(size: int, alphabet: str = _LETTERS) -> str:
    return "".join(_DICE.choice(alphabet) for _ in range(size))


def _hex(size: int) -> str:
    return _any(size, "0123456789abcdef")


def _framed(kind: str) -> str:
    return f"-----BEGIN {kind}-----\n{_any(64)}\n-----END {kind}-----"


def _framed_in_base64(kind: str) -> str:
    return base64.b64encode(_framed(kind).encode()).decode()


@cache
def _keys() -> tuple[str, ...]:
    """Keys put together here, so that none stands in a file."""
    return (
        "AKIA" + _any(16, _CAPITALS),
        "ASIA" + _any(16, _CAPITALS),
        "LTAI" + _any(20),
        "ghp_" + _any(36),
        "ghs_" + _any(40),
        "github_pat_" + _any(22) + "_" + _any(59),
        "glpat-" + _any(20, _LETTERS + "_-"),
        "gldt-" + _any(20),
        "glpat-" + _any(27) + ".01." + _any(9),
        "xoxb-123456789012-1234567890123-" + _any(24),
        "xoxc-1-2-" + _hex(60),
        "xapp-1-A012-123-" + _hex(64),
        "sk_" + "live_" + _any(24),
        "rk_" + "live_" + _any(24),
        "whsec_" + _any(32),
        "sk-" + _any(20) + "T3BlbkFJ" + _any(20),
        "sk-proj-" + _any(120, _LETTERS + "-_"),
        "sk-ant-api03-" + _any(93) + "AA",
        "sk-" + _hex(32),
        "sk-or-v1-" + _hex(64),
        "AIza" + _any(35),
        "AQ.Ab8" + _any(45),
        "ya29." + _any(100),
        "GOCSPX-" + _any(28),
        "1//0" + _any(60),
        f"eyJ{_any(30)}.eyJ{_any(60)}.{_any(43)}",
        "npm_" + _any(36),
        "pypi-AgEIcHlwaS5vcmc" + _any(120),
        "rubygems_" + _hex(48),
        "oy2" + _any(43, string.ascii_lowercase),
        "cio" + _any(32),
        "SG." + _any(22) + "." + _any(43),
        "SK" + _hex(32),
        "key-" + _hex(32),
        "hf_" + _any(34),
        "gsk_" + _any(52),
        "xai-" + _any(80),
        "pplx-" + _any(48),
        "r8_" + _any(37),
        "tvly-" + _any(32),
        "lsv2_pt_" + _hex(32) + "_" + _hex(10),
        "hvs." + _any(90),
        "dapi" + _hex(32),
        "dp.pt." + _any(43),
        "glsa_" + _any(32) + "_" + _hex(8),
        "NRAK-" + _any(27),
        "lin_api_" + _any(40),
        "ntn_" + _any(46),
        "PMAK-" + _hex(24) + "-" + _hex(34),
        "pul-" + _hex(40),
        "sntrys_" + _any(60),
        "sbp_" + _hex(40),
        "pscale_pw_" + _any(43),
        "tskey-auth-" + _any(12) + "-" + _any(32),
        "dop_v1_" + _hex(64),
        "pat" + _any(14) + "." + _hex(64),
        "ATATT3" + _any(180),
        "CCIPAT_" + _any(22) + "_" + _hex(40),
        "fm2_" + _any(100),
        "HRKU-AA" + _any(58),
        "dckr_pat_" + _any(27),
        "AKCp" + _any(69),
        "AGE-SECRET-KEY-1" + _any(58, _CAPITALS),
        "shpat_" + _hex(32),
        "figd_" + _any(40),
        "ops_eyJ" + _any(200),
        "MTI" + _any(22) + "." + _any(6) + "." + _any(38),
        *map(_framed, ("OPENSSH PRIVATE KEY", "PRIVATE KEY", "PGP PRIVATE KEY BLOCK")),
        *map(_framed_in_base64, ("RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY")),
    )


@cache
def _given() -> tuple[tuple[str, str], ...]:
    """Secrets that are told by what stands before them, apart from it."""
    return tuple(
        (before, secret)
        for before, secret in (
            ("aws_secret_access_key = ", _any(40)),
            ('"SecretAccessKey": "', _any(40)),
            ("AccountKey=", _any(86) + "=="),
            ("SharedAccessKey=", _any(43) + "="),
            ("https://x?sv=2020&sig=", _any(43) + "%3D"),
            ("123456789:", "AA" + _any(33)),
            ("https://hooks.slack.com/services/", "T0000/B0000/" + _any(24)),
            ("ab18", "Q~" + _any(34)),
            ("https://discord.com/api/webhooks/123456789012345678/", _any(68)),
            ("x.atlasv1.", _any(67)),
            ("postgres://me:", _any(12) + "@db/x"),
            ("Authorization: Bearer ", _any(30)),
            ("x-api-key: ", _any(32)),
            ('{"Authorization": "Bearer ', _any(30)),
            ("X-Auth: Bearer ", _any(40)),
            ("PRIVATE-TOKEN: ", _any(24)),
            ("Set-Cookie: session=", _any(40)),
            ('password = "', "Tr0ub4dor&3xyz"),
            ("db_password: ", "hunter2hunter2"),
            ('"auth": "', base64.b64encode(b"user:password").decode()),
            ("APP_KEY=", "base64:" + _any(43) + "="),
            ("RAILS_MASTER_KEY=", _hex(32)),
            ("API_KEY=", str(uuid.UUID(_hex(32)))),
            ("secret_id: ", str(uuid.UUID(_hex(32)))),
        )
    )


def test_keys_of_many_services_are_hidden() -> None:
    for key in _keys():
        for text in (key, f"x='{key}' y", json.dumps(f"a\n{key}")):
            hidden = Redactor().redact(text)
            assert key[-20:] not in hidden, text
            assert "[hidden: " in hidden, text


def test_what_is_given_to_a_promising_name_is_hidden() -> None:
    for before, secret in _given():
        for text in (
            f"{before}{secret}",
            json.dumps(f"a\n{before}{secret}"),
            json.dumps(json.dumps(f"{before}{secret}")),
        ):
            assert secret[:10] not in Redactor().redact(text), text


_ORDINARY = """
"integrity": "sha512-{sha512}"
hash = "sha256:{sha256}"
"resolved": "https://registry.example/js-tokens/-/js-tokens-4.0.0.tgz#{sha1}"
github.com/x/tokens v1.2.3 h1:{sha256in64}
"@types/token": "^12.34.56-beta.1"
"css-tokenizer": "3.0.3-beta.12"
"node_modules/credential-provider2": "npm:@sdk/credential-provider-node@3.12"
id: {uuid}
commit {sha1}
{base64}
{urlsafe}
tokenizer = "gpt2-medium-v2"
tokenizer_name: bert-base-uncased-v12
const sk-circle-fade-dot-animation-v2
<div id="sk-container-id-1" class="sk-top-container-of-the-model">
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
pypi-some-very-long-package-name-with-many-words
MSG.aaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbb
password:e=>t.isPasswordValid2(e)
token=self.tokens.next1.value2
token === e.Token2StringValue
secret_name: my-app-secret-v2
token_url = "https://host1.example/oauth2/token"
API_KEY_FILE=/run/secrets/api_key1
token_type = "urn:ietf:params:oauth:token-type:jwt2"
postgres://{{user}}:{{password}}@{{host}}/db
postgres://${{USER}}:${{PASS}}@host
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
api_key=os.environ["OPENAI_API_KEY2"]
api_key: process.env.OPENAI_API_KEY_2
accessKeyId: config.accessKeyId2
secret: {{{{ .Values.secret1 }}}}
credentials: 'same-origin'
tokens_per_second = 123456789012345
"""


@pytest.mark.parametrize("number", range(20))
def test_what_has_to_be_edited_is_left_as_it_is(number: int) -> None:
    """Hashes, identifiers, encoded data and code: who changes a file must see what is in it."""
    bulk = b"".join(hashlib.sha512(bytes((number, part))).digest() for part in range(60))
    text = _ORDINARY.format(
        sha512=base64.b64encode(bulk[:64]).decode(),
        sha256=bulk[:32].hex(),
        sha1=bulk[:20].hex(),
        sha256in64=base64.b64encode(bulk[:32]).decode(),
        uuid=uuid.UUID(bytes=bulk[:16]),
        base64=base64.b64encode(bulk).decode(),
        urlsafe=base64.urlsafe_b64encode(bulk).decode(),
    )
    assert Redactor().redact(text) == text


@settings(max_examples=150)
@given(st.data())
def test_no_cut_shows_a_key(data: st.DataObject) -> None:
    """Also on a line that is longer than what is held back."""
    before, secret = data.draw(st.sampled_from([*(("", key) for key in _keys()), *_given()]))
    filling = data.draw(st.sampled_from(["word ", "x", "a.b/", "y\n"])) * data.draw(
        st.sampled_from([0, 1, 7_000, 40_000])
    )
    text = f"{filling} {before}{secret} {filling}"
    stream, shown, at = Redactor().stream(), "", 0
    while at < len(text):
        size = data.draw(st.sampled_from([1, 5, 61, 4096, 16_384, 65_536])) if at < 400 else 16_384
        shown += stream.feed(text[at : at + size])
        at += size
    assert shown + stream.finish() == Redactor().redact(text)


@settings(max_examples=150)
@given(st.data())
def test_a_pause_of_the_program_shows_no_key(data: st.DataObject) -> None:
    """What is shown when a program waits may hold the name of a secret, and never a part of it."""
    before, secret = data.draw(st.sampled_from([*(("", key) for key in _keys()), *_given()]))
    text = f"a word {before}{secret} and more\n"
    stream, shown, at = Redactor().stream(), "", 0
    while at < len(text):
        size = data.draw(st.integers(1, 40))
        shown += stream.feed(text[at : at + size]) + stream.flush()
        at += size
    shown += stream.finish()
    assert "[hidden: " in shown
    assert not any(line[-12:] in shown for line in secret.splitlines())


@pytest.mark.parametrize("beginning", ["sk-", "ghp_", "eyJ", "hvs.", "password=", "Bearer ", "://u:"])
def test_a_key_without_end_does_not_hide_all_that_follows(beginning: str) -> None:
    stream = Redactor().stream()
    shown = "".join(stream.feed(text) for text in (beginning, *["aB3" * 8000] * 10, "\nthe end\n"))
    assert (shown + stream.finish()).endswith("\nthe end\n")


def test_a_secret_of_several_lines_is_hidden_whole_and_line_by_line() -> None:
    key = f"{_any(64)}\n{_any(64)}\n{_any(20)}"
    redactor = known_secrets({"SSH_PRIVATE_SECRET": key, "B_SECRET": "abc123\ndef456\nxyz"})
    assert redactor.redact(f"a {key} b") == "a [hidden: SSH_PRIVATE_SECRET] b"
    assert redactor.redact(f"a {key[65:129]} b") == "a [hidden: SSH_PRIVATE_SECRET] b"
    assert redactor.redact("B=abc123\ndef456\nxyz\n") == "B=[hidden: B_SECRET]\n"


@pytest.mark.parametrize(
    "printed",
    [r"it\'s\ a\ \"q\$uote\"", r'"it' + "'" + r's a \"q\$uote\""', "'it'\\''s a \"q$uote\"'",
     "'it'\"'\"'s a \"q$uote\"'", "it&#39;s a &#34;q$uote&#34;", "it&apos;s a &quot;q$uote&quot;"],
)  # fmt: skip
def test_a_value_is_hidden_as_shells_and_pages_quote_it(printed: str) -> None:
    assert "uote" not in known_secrets({"MY_TOKEN": 'it\'s a "q$uote"'}).redact(printed)
