"""The formats that keys have, what tells a key from a word, and the values in files that hold credentials.

Looking for a literal is a hundred times as fast as trying an expression at every character. So each format has
beginnings to look for, and its expression is tried only there.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from operator import eq
from typing import Any

from treadle.policy.marks import split_words, word_set
from treadle.policy.secret_disguises import Span, Values, find_all
from treadle.policy.shell.dangers import VARIABLES_SECRET
from treadle.protocol.base import SHORTEST_SECRET

_NAME = r"[A-Za-z0-9_-]"
_APART = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
"""Nothing before that names are made of, unless it is the end of an escaped line."""
_ALONE = r"(?:(?<![A-Za-z0-9_/+-])|(?<=\\[nrt]))"
"""The same, nor what may stand in base64."""
_TAIL = rf"(?:{_NAME}|[.=+/%](?={_NAME}))"
"""A character of keys that are told by how they begin, whatever comes then."""


@dataclass(frozen=True, slots=True)
class _Format:
    """A form of key: literals that it begins with, its expression, and what else it must be.

    What is to be hidden is the group `secret`, or everything when there is none.
    """

    starts: tuple[str, ...]
    shape: re.Pattern[str]
    is_secret: Callable[[re.Match[str]], bool] = bool
    name: str = "key"


def _is_no_words(found: re.Match[str]) -> bool:
    return not _is_wordy(found[0])


def _key(starts: str, tail: str, before: str = _APART, is_secret: Callable[[re.Match[str]], bool] = bool) -> _Format:
    """Describe a key of one word: beginnings, what follows them, and what is before them; no key is endless."""
    listed = tuple(starts.split())
    shape = f"{before}(?:{'|'.join(map(re.escape, listed))}){tail}"
    return _Format(listed, re.compile(shape.replace(",}", ",4096}")), is_secret)


_FORMATS = (
    _key(
        """
        sk- glpat- gldt- glrt- glptt- glcbt- gloas- glft- glimt- glsoat- glagent- glffct- GR1348941 GOCSPX- ya29. tvly-
        rk_live_ sk_live_ pk_live_ rk_test_ sk_test_ pk_test_ whsec_ SG. NRAK- NRAA- NRBR- dckr_pat_ dckr_oat_ tskey-
        sb_secret_ xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe. xapp- github_pat_ sq0atp- sq0csp- hvs.
        hvb. hvr. fw_
        """,
        rf"{_TAIL}{{20,}}",
        is_secret=_is_no_words,
    ),
    _key(
        """
        ghp_ gho_ ghu_ ghs_ ghr_ AIza AQ.Ab npm_ pypi- rubygems_ hf_ api_org_ gsk_ xai- csk- nvapi- pplx- pcsk_ lsv2_
        e2b_ jina_ r8_ dop_v1_ doo_v1_ dor_v1_ shpat_ shpss_ shpca_ shppa_ AGE-SECRET-KEY-1 lin_api_ lin_oauth_ ntn_
        figd_ ATATT3 ATCTT3 ATBB AKID EZAK EZTK glsa_ glc_ pul- sntrys_ sntryu_ sbp_ pscale_tkn_ pscale_pw_
        pscale_oauth_ CFPAT- CCIPAT_ CCIPRJ_ CLOJARS_ HRKU- fo1_ fm2_ ops_eyJ PMAK- AKCp cmVmdGtu dp.pt. dp.st. dp.ct.
        dp.sa. dp.scim. dp.audit.
        """,
        rf"{_TAIL}{{30,}}",
        is_secret=_is_no_words,
    ),
    _key("AKIA ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9+/])", _ALONE),
    _key("LTAI", r"[A-Za-z0-9]{12,24}(?![A-Za-z0-9+/=])"),
    _key("1//0", rf"{_NAME}{{30,}}", _ALONE),
    _key("oy2", r"[a-z0-9]{43}(?![A-Za-z0-9])"),
    _key("cio", r"[A-Za-z0-9]{32}(?![A-Za-z0-9_])", is_secret=_is_no_words),
    _key("dapi sk_", r"[a-f0-9]{32,48}"),
    _key("SK", r"[0-9a-f]{32}(?![A-Za-z0-9])", _ALONE),
    _key("key-", r"[0-9a-f]{32}(?![0-9a-f])"),
    _key("secret_", r"[A-Za-z0-9]{40,50}(?![A-Za-z0-9_])", is_secret=_is_no_words),
    _key(".atlasv1.", rf"(?P<secret>{_NAME}{{60,}})", ""),
    _key("pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    _key(":AA", rf"{_NAME}{{33}}(?!{_NAME})", "(?<=[0-9]{8})"),
    _key(
        "MT Mj Mz ND NT Nj Nz OD OT",
        r"[AEIMQUYcgk][A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_.-])",
        _ALONE,
    ),
    _key("Q~", r"[A-Za-z0-9_~.-]{31,34}", r"(?<=[A-Za-z0-9_~.-]{3}[0-9])"),
    _key("sig=", r"(?P<secret>[A-Za-z0-9%+/=_-]{40,})", "(?<=[?&;])"),
    _key("hooks.slack.com/", r"(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/]{20,})", ""),
    _key("/api/webhooks/", rf"[0-9]{{15,22}}/(?P<secret>{_NAME}{{50,}})", ""),
    _key(
        "LS0tLS1CRUdJTi",
        r"[A-Za-z0-9+/]{0,28}(?:UFJJVkFURSBLRVk|QUklWQVRFIEtFWS|BSSVZBVEUgS0VZ)[A-Za-z0-9+/=]{0,12000}",
        "",
    ),
    # What is only the first part of such a token is passed over at once, not tried again from inside.
    _key(
        "eyJ",
        rf"(?:{_NAME}{{10,}}\.eyJ{_NAME}{{10,}}\.{_NAME}{{10,}}|{_NAME}{{0,}})",
        "",
        lambda found: "." in found[0],
    ),
)
"""Keys that are recognised wherever they stand."""

_CUTS = ("\n", "\u2026", " \u2026", "...", " [...")
"""How what stands behind a text begins that was cut."""

_ADDRESS_WITH_PASSWORD = re.compile(r"://[^\s/:@]{0,256}:(?P<secret>(?![{$<*\[]|%[(s])[^\s/@]{3,256})@")
"""An address with a password, which is no place to put one in."""

_PRIVATE_KEY = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?[A-Z0-9 ]{0,9}"
_KEY_BLOCK = re.compile(rf"-----BEGIN {_PRIVATE_KEY}-----.*?(?:(?P<end>-----END {_PRIVATE_KEY}-----)|\Z)", re.DOTALL)
BLOCK_END = re.compile(rf"-----END {_PRIVATE_KEY}-----")
"""A private key in its usual frame, and the end of the frame."""

_HEADER = _Format(
    ("authorization",),
    re.compile(
        r"""(?ix) authorization ["']?+ [ \t]{0,4}+ [:=] [ \t]{0,4}+ \\{0,3}+["']?+ (?:bearer|basic|token|apikey|bot)
        [ \t]{1,4}+ (?P<secret>(?![$<{])[A-Za-z0-9._~+/=-]{8,2048})"""
    ),
    name="authorization",
)
"""A header of HTTP, also in JSON and code; looked for in small letters."""

_PROMISING = split_words("""
    secret token password passwd passphrase api_key apikey api-key access_key accesskey account_key accountkey
    private_key privatekey credential encryption_key encryptionkey signing_key signingkey master_key masterkey app_key
""")


def _is_value(found: re.Match[str]) -> bool:
    """Whether what is given to a promising name is a secret: neither code, nor words, nor something about a secret."""
    value, more = found["secret"], found["more"] or ""
    if value.startswith(_NO_VALUES) or _OF_A_NAME.fullmatch(more):
        return False
    promise = found[0].lower()
    is_code = _is_wordy(value) and not (promise.startswith("pass") and _BETWEEN_CODE.search(value) is None)
    return not is_code and (promise.startswith('"auth') or _looks_random(value))


_ASSIGNED = _Format(
    (*_PROMISING, '"auth', "bearer", "cookie"),
    re.compile(
        rf"""(?ix)
        (?: (?:{"|".join(_PROMISING)}) (?P<more>[A-Z0-9_]{{0,32}}+) \\{{0,3}}+["']?+ [ \t]{{0,4}}+ [=:]
        | "auth\\{{0,3}}"\s{{0,4}}: | \bbearer[ \t] | \bcookie:[ \t]{{0,4}}+ [^\s=;]{{1,64}}= )
        [ \t]{{0,4}}+ \\{{0,3}}+["']?+ (?P<secret>[^\s"',;]{{12,512}})
        """
    ),
    _is_value,
    "value",
)
"""A value that is given to a name which promises a secret; looked for in small letters."""

_OF_A_NAME = re.compile(
    r"(?i)i[sz](?:e|er|ers|ed|ing|ation)_?\w*|\w*(?:name|file|path|url|uri|type|kind|field|header|class|prefix|suffix|length"
    r"|size|count|ttl|version|provider|endpoint|arn|ref|policy|format|limit|s_per_\w+)"
)
"""The rest of a name that promises only something about a secret, such as `token_type` and `tokenizer`."""

_WORD = re.compile(
    r"[a-z]{1,20}(?:[A-Z][a-z]{1,19}){0,8}[0-9]{0,3}|(?:[A-Z][a-z]{1,19}){1,8}[0-9]{0,3}|[A-Z]{1,16}[0-9]{0,3}|[0-9]{1,4}"
)
_BETWEEN_WORDS = re.compile(r"[-_./:@\\{}<>|&?=+%#]+")


_NO_VALUES = (
    *("[hidden", "$", "<", "{", "=", ">", "^", "process.env", "os.environ"),
    *("http://", "https://", "./", "../", "~/", "/"),
)
"""How code, samples, versions and places begin."""
_BETWEEN_CODE = re.compile(r"[./:\\{}]")


def _is_wordy(text: str) -> bool:
    """Whether a text is put together from words and small numbers, as names in code are."""
    pieces = [piece for piece in _BETWEEN_WORDS.split(text) if piece]
    return all(map(_WORD.fullmatch, pieces))


def _looks_random(value: str) -> bool:
    """Whether a value is more like a key than like a word of code: long, and mixed of letters and digits."""
    return bool(re.search(r"[0-9]", value) and re.search(r"[A-Za-z]", value)) and not re.search(r"[()\[\]]", value)


def keys_in(text: str, words: str) -> Iterator[Span]:
    """Find keys by their formats, and what is given to promising names; `words` are the long words of the text."""
    for each in _FORMATS if words else ():
        if any(_matches(words, words, each)):
            yield from _matches(text, text, each)
    # The small form of a capital I with a dot is two characters.
    small = text.replace("\u0130", "I").lower()
    for each in (_HEADER, _ASSIGNED):
        yield from _matches(text, small, each)
    for at in find_all(text, "://"):
        found = _ADDRESS_WITH_PASSWORD.match(text, at) if text.find("@", at, at + 520) >= 0 else None
        if found is not None:
            yield *found.span("secret"), "password"


def blocks_in(text: str) -> Iterator[Span]:
    """Find private keys in their frames; one without an end goes on beyond the text."""
    for found in _KEY_BLOCK.finditer(text):
        yield found.start(), found.end() + (found["end"] is None), "private key"


def cut_short(text: str, values: Values) -> Iterator[Span]:
    """Find known values of which a cut left a beginning: the text or its line ends there, or an ellipsis follows.

    Words are none up to half of a secret, as all keys of a provider begin alike, nor is a whole one by itself.
    """
    for value, name in values:
        for at in find_all(text, value[:SHORTEST_SECRET]):
            size = sum(1 for _ in takewhile(bool, map(eq, text[at : at + len(value)], value)))
            is_word = value[:size].isalpha() and not value[size : size + 1].isalpha()
            is_cut = size < len(value) and (at + size == len(text) or text.startswith(_CUTS, at + size))
            if is_cut and not is_word and (2 * size >= len(value) or not _is_wordy(value[:size])):
                yield at, at + size, name


def _matches(text: str, searched: str, wanted: _Format) -> Iterator[Span]:
    """Try a format wherever one of its beginnings stands; `searched` is the text, perhaps in small letters."""
    group = "secret" if "secret" in wanted.shape.groupindex else 0
    for start in wanted.starts:
        at = searched.find(start)
        while at >= 0:
            found = wanted.shape.match(text, at)
            if found is not None and wanted.is_secret(found):
                yield *found.span(group), wanted.name
            at = searched.find(start, found.end() if found is not None else at + len(start))


ORDINARY_VARIABLES = word_set("""
    SSH_AUTH_SOCK XAUTHORITY DESKTOP_SESSION GDMSESSION SESSION_MANAGER DBUS_SESSION_BUS_ADDRESS SECURITYSESSIONID
    XDG_SESSION_ID XDG_SESSION_TYPE XDG_SESSION_CLASS XDG_SESSION_DESKTOP XDG_SESSION_PATH TERM_SESSION_ID
""")
"""Variables that are named like secrets and hold none."""


IN_HOME = split_words("""
    .netrc .aws/credentials .config/gh/hosts.yml .git-credentials .config/git/credentials .npmrc .pypirc
    .pgpass .docker/config.json .cargo/credentials.toml .vault-token
""")
"""Files below the home directory that are read for their values."""

_LONGEST = 4096
_ASSIGNMENT = re.compile(
    r"""(?m)^\s*(?:export\s+)?["']?([\w./:@-]*?)["']?\s*[=:]\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s\#]*))"""
)
_ADDRESS = re.compile(r"://[^\s/:@]*:([^\s/@]+)@")
_BY_NAME = (
    (("netrc",), re.compile(r"\b(?:password|account)\s+(\S+)")),
    (("git-credentials", "git/credentials"), _ADDRESS),
    ((".npmrc",), re.compile(r"_(?:authToken|auth|password)\s*=\s*[\"']?([^\s\"']+)")),
    ((".pgpass",), re.compile(r"(?m)^(?:[^:\n]*+:){3}.*:([^:\r\n]*)$")),
    ((".vault-token",), re.compile(r"\S+")),
)
"""How names of files end, and where the secrets are in such."""

_SECRET_FIELDS = re.compile(r"(?i)auth|_?token|oauth_token|password|secret\w*|identitytoken|registrytoken")
_NO_SECRETS = frozenset({"true", "false", "none", "null", "development", "production", "localhost"})


def values_of(name: str, text: str) -> Iterator[str]:
    """Give the secrets of a file by its name (its last parts, with `/`)."""
    shape = next((shape for endings, shape in _BY_NAME if name.endswith(endings)), None)
    if shape is not None:
        yield from shape.findall(text)
    elif name.endswith(".json"):
        fields: list[tuple[str, Any]] = []
        with suppress(ValueError, RecursionError):
            json.loads(text, object_pairs_hook=fields.extend)
        yield from (value for key, value in fields if isinstance(value, str) and _SECRET_FIELDS.fullmatch(key))
    else:
        yield from _assigned(text)


def _assigned(text: str) -> Iterator[str]:
    """Give what is assigned to names of secrets, what looks like a key, and the passwords of addresses."""
    for name, *values in _ASSIGNMENT.findall(text):
        value = "".join(values)
        if not value or len(value) > _LONGEST or value.lower() in _NO_SECRETS or value.startswith(("/", "$")):
            continue
        passwords = _ADDRESS.findall(value)
        yield from passwords
        is_key = len(value) >= 20 and _looks_random(value)
        if not passwords and "://" not in value and (is_key or VARIABLES_SECRET.fullmatch(name)):
            yield value
