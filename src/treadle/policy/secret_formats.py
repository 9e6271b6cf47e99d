"""The formats that keys have, what tells a key from a word, and the values in files that hold credentials.

Looking for a literal is a hundred times as fast as trying an expression at every character. So each format has
beginnings to look for, and its expression is tried only there.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from treadle.policy.marks import split_words, word_set
from treadle.policy.shell.dangers import VARIABLES_SECRET

LONGEST_TOKEN = 4096
"""Characters of a key without a blank, at most."""

_NAME = r"[A-Za-z0-9_-]"
_APART = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
"""Nothing before that names are made of, unless it is the end of an escaped line."""
_ALONE = r"(?:(?<![A-Za-z0-9_/+-])|(?<=\\[nrt]))"
"""The same, nor what may stand in base64."""


@dataclass(frozen=True, slots=True)
class Format:
    """A form of key: literals that it begins with (or `at` characters before), its expression, and a name for it.

    What is to be hidden is the group `secret`, or everything when there is none. With `words`, what consists of words
    is none.
    """

    starts: tuple[str, ...]
    shape: re.Pattern[str]
    name: str = "key"
    words: bool = False


def _key(starts: str, rest: str, *, words: bool = False) -> Format:
    """Describe a key of one word: beginnings, and what follows them; no key is endless."""
    return Format(tuple(starts.split()), re.compile(rest.replace(",}", f",{LONGEST_TOKEN}}}")), words=words)


def _begun(least: int, starts: str) -> Format:
    """Describe keys that are told by how they begin, whatever comes then, if only it is long and not made of words."""
    tail = rf"(?:{_NAME}|[.=+/%](?={_NAME})){{{least},{LONGEST_TOKEN}}}"
    listed = tuple(starts.split())
    return Format(listed, re.compile(rf"{_APART}(?:{'|'.join(map(re.escape, listed))}){tail}"), words=True)


FORMATS = (
    _begun(
        20,
        """
        sk- glpat- gldt- glrt- glptt- glcbt- gloas- glft- glimt- glsoat- glagent- glffct- GR1348941 GOCSPX- ya29. tvly-
        rk_live_ sk_live_ pk_live_ rk_test_ sk_test_ pk_test_ whsec_ SG. NRAK- NRAA- NRBR- dckr_pat_ dckr_oat_ tskey-
        sb_secret_ xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe. xapp- github_pat_ sq0atp- sq0csp- hvs.
        hvb. hvr. fw_
        """,
    ),
    _begun(
        30,
        """
        ghp_ gho_ ghu_ ghs_ ghr_ AIza AQ.Ab npm_ pypi- rubygems_ hf_ api_org_ gsk_ xai- csk- nvapi- pplx- pcsk_ lsv2_
        e2b_ jina_ r8_ dop_v1_ doo_v1_ dor_v1_ shpat_ shpss_ shpca_ shppa_ AGE-SECRET-KEY-1 lin_api_ lin_oauth_ ntn_
        figd_ ATATT3 ATCTT3 glsa_ glc_ pul- sntrys_ sntryu_ sbp_ pscale_tkn_ pscale_pw_ pscale_oauth_ CFPAT- CCIPAT_
        CCIPRJ_ CLOJARS_ HRKU- fo1_ fm2_ ops_eyJ PMAK- AKCp cmVmdGtu dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.
        """,
    ),
    _key("ATBB", rf"{_APART}ATBB[A-Za-z0-9]{{32}}"),
    _key("AKIA ASIA", rf"{_ALONE}A[KS]IA[A-Z0-9]{{16}}(?![A-Za-z0-9+/])"),
    _key("LTAI", rf"{_APART}LTAI[A-Za-z0-9]{{12,24}}(?![A-Za-z0-9+/=])"),
    _key("AKID", rf"{_APART}AKID[A-Za-z0-9]{{32}}(?![A-Za-z0-9+/=])"),
    _key("1//0", rf"{_ALONE}1//0{_NAME}{{30,}}"),
    _key("oy2", rf"{_APART}oy2[a-z0-9]{{43}}(?![A-Za-z0-9])"),
    _key("cio", rf"{_APART}cio[A-Za-z0-9]{{32}}(?![A-Za-z0-9_])", words=True),
    _key("sk_", rf"{_APART}sk_[a-f0-9]{{48}}"),
    _key("SK", rf"{_ALONE}SK[0-9a-f]{{32}}(?![A-Za-z0-9])"),
    _key("key-", rf"{_APART}key-[0-9a-f]{{32}}(?![0-9a-f])"),
    _key("secret_", rf"{_APART}secret_[A-Za-z0-9]{{40,50}}(?![A-Za-z0-9_])", words=True),
    _key(".atlasv1.", rf"\.atlasv1\.(?P<secret>{_NAME}{{60,}})"),
    _key("dapi", rf"{_APART}dapi[a-f0-9]{{32}}"),
    _key("EZAK EZTK", rf"{_APART}EZ[AT]K[A-Za-z0-9]{{54}}(?![A-Za-z0-9+/=])"),
    _key("pat", rf"{_APART}pat[A-Za-z0-9]{{14}}\.[a-f0-9]{{64}}"),
    _key(":AA", rf"(?<=[0-9]{{8}}):(?P<secret>AA{_NAME}{{33}})(?!{_NAME})"),
    _key(
        "MT Mj Mz ND NT Nj Nz OD OT",
        _ALONE
        + r"[MNO][DTjz][AEIMQUYcgk][A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_.-])",
    ),
    _key("Q~", r"(?<=[A-Za-z0-9_~.-]{3}[0-9])Q~[A-Za-z0-9_~.-]{31,34}"),
    _key("sig=", r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/=_-]{40,})"),
    _key("hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/]{20,})"),
    _key("/api/webhooks/", rf"/api/webhooks/[0-9]{{15,22}}/(?P<secret>{_NAME}{{50,}})"),
    _key(
        "LS0tLS1CRUdJTi",
        r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{0,28}(?:UFJJVkFURSBLRVk|QUklWQVRFIEtFWS|BSSVZBVEUgS0VZ)[A-Za-z0-9+/=]{0,12000}",
    ),
    _key(
        "eyJ",
        rf"eyJ{_NAME}{{10,{LONGEST_TOKEN}}}\.eyJ{_NAME}{{10,{LONGEST_TOKEN}}}\.{_NAME}{{10,{LONGEST_TOKEN}}}",
    ),
)
"""Keys that are recognised wherever they stand."""

URL = Format(
    ("://",),
    re.compile(r"://[^\s/:@]{0,256}:(?P<secret>(?![{$<*\[]|%[(s])[^\s/@]{3,256})@"),
    "password",
)
"""An address with a password, which is no place to put one in."""

_PRIVATE_KEY = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?[A-Z0-9 ]{0,9}"
KEY_BLOCK = re.compile(rf"-----BEGIN {_PRIVATE_KEY}-----.*?(?:-----END {_PRIVATE_KEY}-----|\Z)", re.DOTALL)
BLOCK_END = re.compile(rf"-----END {_PRIVATE_KEY}-----")
BLOCK_START = "-----BEGIN "
"""A private key in its usual frame, the end of the frame, and what is looked for."""

HEADER = Format(
    ("authorization",),
    re.compile(
        r"""(?ix) authorization ["']?+ [ \t]{0,4}+ [:=] [ \t]{0,4}+ \\{0,3}+["']?+ (?:bearer|basic|token|apikey|bot)
        [ \t]{1,4}+ (?P<secret>(?![$<{])[A-Za-z0-9._~+/=-]{8,2048})"""
    ),
    "authorization",
)
"""A header of HTTP, also in JSON and code; looked for in small letters."""

_PROMISING = """
    secret token passw passphrase api_key apikey api-key access_key accesskey account_key accountkey private_key
    privatekey credential encryption_key encryptionkey signing_key signingkey master_key masterkey app_key
    "auth bearer cookie
"""

ASSIGNED = Format(
    tuple(_PROMISING.split()),
    re.compile(
        r"""(?ix)
        (?: (?: secret|token|passw(?:or)?d|passphrase|api[_-]?key|access_?key|account_?key|private_?key|credential
            | (?:encryption|signing|master)_?key|app_key )
          (?P<more>[A-Z0-9_]{0,32}+) \\{0,3}+["']?+ [ \t]{0,4}+ [=:]
        | "auth\\{0,3}"\s{0,4}: | \bbearer[ \t] | \bcookie:[ \t]{0,4}+ [^\s=;]{1,64}= )
        [ \t]{0,4}+ \\{0,3}+["']?+ (?P<secret>[^\s"',;]{12,512})
        """
    ),
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


def is_wordy(text: str) -> bool:
    """Whether a text is put together from words and small numbers, as names in code are."""
    pieces = [piece for piece in _BETWEEN_WORDS.split(text) if piece]
    return all(map(_WORD.fullmatch, pieces))


def is_value(found: re.Match[str]) -> bool:
    """Whether what is given to a promising name is a secret: neither code, nor words, nor something about a secret."""
    value, more = found["secret"], found["more"] or ""
    if value.startswith(_NO_VALUES) or _OF_A_NAME.fullmatch(more):
        return False
    promise = found[0].lower()
    if promise.startswith('"auth'):
        return not is_wordy(value)
    if not looks_random(value):
        return False
    return not is_wordy(value) or (promise.startswith("pass") and _BETWEEN_CODE.search(value) is None)


def looks_random(value: str) -> bool:
    """Whether a value is more like a key than like a word of code: long, and mixed of letters and digits."""
    kinds = sum(bool(re.search(kind, value)) for kind in (r"[a-z]", r"[A-Z]", r"[0-9]"))
    return kinds >= 2 and bool(re.search(r"[0-9]", value)) and not re.search(r"[()\[\]]", value)


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
_NETRC = re.compile(r"\b(?:password|account)\s+(\S+)")
_NPMRC = re.compile(r"_(?:authToken|auth|password)\s*=\s*[\"']?([^\s\"']+)")
_ADDRESS = re.compile(r"://[^\s/:@]*:([^\s/@]+)@")
_SECRET_FIELDS = re.compile(r"(?i)auth|_?token|oauth_token|password|secret\w*|identitytoken|registrytoken")
_NO_SECRETS = frozenset({"true", "false", "none", "null", "development", "production", "localhost"})


def values_of(name: str, text: str) -> Iterator[str]:
    """Give the secrets of a file by its name (its last parts, with `/`)."""
    if name.endswith("netrc"):
        yield from _NETRC.findall(text)
    elif name.endswith(("git-credentials", "git/credentials")):
        yield from _ADDRESS.findall(text)
    elif name.endswith(".npmrc"):
        yield from _NPMRC.findall(text)
    elif name.endswith(".pgpass"):
        yield from (line.rpartition(":")[2] for line in text.splitlines() if line.count(":") >= 4)
    elif name.endswith(".vault-token"):
        yield text.strip()
    elif name.endswith(".json"):
        with suppress(ValueError, RecursionError):
            yield from _fields(json.loads(text))
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
        is_key = len(value) >= 20 and looks_random(value)
        if not passwords and "://" not in value and (is_key or VARIABLES_SECRET.fullmatch(name)):
            yield value


def _fields(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, inner in value.items():
                if isinstance(inner, str) and _SECRET_FIELDS.fullmatch(name):
                    yield inner
                else:
                    yield from _fields(inner)
        case list():
            for inner in value:
                yield from _fields(inner)
        case _:
            pass
