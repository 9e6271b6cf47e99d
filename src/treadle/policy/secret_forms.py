"""What secrets look like: the other forms of a known value, and the formats that keys have.

Looking for a literal is a hundred times as fast as trying an expression at every character. So each format has
beginnings to look for, and its expression is tried only there.
"""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from urllib.parse import quote, quote_plus

MIN_FORM_LENGTH = 8
"""Shorter texts are too likely to be part of something else."""

LONGEST_TOKEN = 4096
"""Characters of a key without a blank, at most."""

_NAME = r"[A-Za-z0-9_-]"


@dataclass(frozen=True, slots=True)
class Format:
    """A form of key: literals that it begins with (or `at` characters before), its expression, and a name for it.

    What is to be hidden is the group `secret`, or everything when there is none.
    """

    starts: tuple[str, ...]
    shape: re.Pattern[str]
    name: str = "key"


def _key(starts: str, rest: str) -> Format:
    """Describe a key of one word: beginnings, and what follows them."""
    return Format(tuple(starts.split()), re.compile(rest))


FORMATS = (
    _key("sk-", rf"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))sk-{_NAME}{{20,}}"),
    _key("ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,}"),
    _key("github_pat_", r"github_pat_[A-Za-z0-9_]{22,}"),
    _key("glpat- gldt- glrt- glptt- glcbt- gloas-", rf"gl[a-z]{{2,4}}-{_NAME}{{20,}}"),
    _key("xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe. xapp-", r"(?:xox[abeoprs]|xapp)[-.][A-Za-z0-9.-]{10,}"),
    _key("AKIA ASIA", r"A[KS]IA[A-Z0-9]{16}"),
    _key("AIza", rf"AIza{_NAME}{{35}}"),
    _key("ya29.", rf"ya29\.{_NAME}{{20,}}"),
    _key("GOCSPX-", rf"GOCSPX-{_NAME}{{20,}}"),
    _key("npm_", r"npm_[A-Za-z0-9]{36}"),
    _key("pypi-", rf"pypi-{_NAME}{{32,}}"),
    _key("hf_", r"hf_[A-Za-z0-9]{30,}"),
    _key("gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    _key("xai-", r"xai-[A-Za-z0-9]{40,}"),
    _key("nvapi-", rf"nvapi-{_NAME}{{40,}}"),
    _key("pplx-", r"pplx-[A-Za-z0-9]{40,}"),
    _key("r8_", r"r8_[A-Za-z0-9]{37}"),
    _key("rk_live_ sk_live_ pk_live_ rk_test_ sk_test_ pk_test_", r"[rsp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _key("whsec_", r"whsec_[A-Za-z0-9+/=]{24,}"),
    _key("SG.", rf"SG\.{_NAME}{{16,}}\.{_NAME}{{16,}}"),
    _key("dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    _key("shpat_ shpss_ shpca_ shppa_", r"shp(?:at|ss|ca|pa)_[a-fA-F0-9]{32}"),
    _key("AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    _key("dckr_pat_ dckr_oat_", rf"dckr_[po]at_{_NAME}{{20,}}"),
    _key("sq0atp- sq0csp-", rf"sq0[ac][ts]p-{_NAME}{{22,}}"),
    _key("lin_api_", r"lin_api_[A-Za-z0-9]{32,}"),
    _key("figd_", rf"figd_{_NAME}{{32,}}"),
    _key("ATATT3", r"ATATT3[A-Za-z0-9_=-]{40,}"),
    _key("hooks.slack.com/services/", r"hooks\.slack\.com/services/(?P<secret>[A-Za-z0-9/]{20,})"),
    _key(
        "eyJ",
        rf"eyJ{_NAME}{{10,{LONGEST_TOKEN}}}\.eyJ{_NAME}{{10,{LONGEST_TOKEN}}}\.{_NAME}{{10,{LONGEST_TOKEN}}}",
    ),
)
"""Keys that are recognised wherever they stand."""

URL = Format(("://",), re.compile(r"://[^\s/:@]{0,256}:(?P<secret>[^\s/@]{3,256})@"), "password")
"""An address with a password."""

KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL
)
BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----")
BLOCK_START = "-----BEGIN "
"""A private key in its usual frame, the end of the frame, and what is looked for."""

HEADER = Format(
    ("authorization:",),
    re.compile(r"(?i)authorization:[ \t]{0,4}(?:bearer|basic|token)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{8,2048})"),
    "authorization",
)
"""A header of HTTP; looked for in small letters."""

_PROMISING = """
    secret token passw passphrase api_key apikey api-key access_key accesskey account_key accountkey private_key
    privatekey credential
"""

ASSIGNED = Format(
    tuple(_PROMISING.split()),
    re.compile(
        r"""(?ix)
        (?:secret|token|passw(?:or)?d|passphrase|api[_-]?key|access_?key|account_?key|private_?key|credential)
        [A-Z0-9_]{0,32}+ ["']?+ [ \t]{0,4}+ [=:] [ \t]{0,4}+ ["']?+ (?P<secret>[^\s"',;]{12,512})
        """
    ),
    "value",
)
"""A value that is given to a name which promises a secret; looked for in small letters."""


def forms(value: str) -> tuple[str, ...]:
    """Give a value as tools print it: as it is, in URLs, JSON, HTML, hexadecimal, UTF-16 and base64."""
    quoted = json.dumps(value)[1:-1]
    plain = json.dumps(value, ensure_ascii=False)[1:-1]
    encoded = value.encode(errors="surrogatepass")
    hexadecimal = encoded.hex()
    found = (
        *(value, quoted, plain, json.dumps(quoted)[1:-1], json.dumps(plain)[1:-1]),
        *(quote(value, safe=""), quote(value), quote_plus(value), _lower_escapes(quote(value, safe=""))),
        *(html.escape(value), html.escape(value, quote=False)),
        *(hexadecimal, hexadecimal.upper(), "\\x00".join(value)),
        *chain.from_iterable(_base64(encoded)),
    )
    return tuple(dict.fromkeys(form for form in found if len(form) >= MIN_FORM_LENGTH))


def _lower_escapes(quoted: str) -> str:
    return re.sub(r"%[0-9A-F]{2}", lambda escape: escape.group().lower(), quoted)


def _base64(value: bytes) -> Iterator[tuple[str, str]]:
    """Encode a value at each of the three places it can have in what is encoded; the digits it shares are left out."""
    for before in range(3):
        first, last = (before * 8 + 5) // 6, (before + len(value)) * 8 // 6
        digits = base64.b64encode(bytes(before) + value + bytes(2)).decode()[first:last]
        yield digits, digits.replace("+", "-").replace("/", "_")


def find_all(text: str, literals: Iterable[str]) -> Iterator[int]:
    """Give every place where one of some literals stands, literal by literal."""
    for literal in literals:
        at = text.find(literal)
        while at >= 0:
            yield at
            at = text.find(literal, at + len(literal))


def lowered(text: str) -> str:
    """Give a text in small letters, of the same length."""
    small = text.lower()
    return small if len(small) == len(text) else text.replace("\u0130", "I").lower()


def looks_random(value: str) -> bool:
    """Whether a value is more like a key than like a word of code: long, and mixed of letters and digits."""
    kinds = sum(bool(re.search(kind, value)) for kind in (r"[a-z]", r"[A-Z]", r"[0-9]"))
    return kinds >= 2 and bool(re.search(r"[0-9]", value)) and not re.search(r"[()\[\]]", value)
