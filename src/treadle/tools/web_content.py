"""What kind of content an answer of the web is, and its text."""

import re
from enum import Enum, auto

from treadle.protocol.errors import ToolError
from treadle.workspace.files.encodings import detect

_SAMPLE = 1024
_CHARSET = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_TEXTUAL = re.compile(
    r"text/.*|(application|image)/(.*\+)?(json|xml|x-?yaml|yaml|toml|javascript|ecmascript|typescript|sql|graphql|x-sh|"
    r"x-ndjson|ndjson|jsonl|rtf|x-httpd-php|x-python|x-www-form-urlencoded)"
)
_KNOWN_CHARSET = re.compile(
    r"utf-?8|utf-?16(le|be)?|(us-)?ascii|iso-?8859-?\d{1,2}|latin-?\d|(windows-|cp)125\d|shift[_-]?jis|(euc|iso-2022)-"
    r"(jp|kr)|gbk|gb2312|gb18030|big5|koi8-[ru]|macintosh|tis-620"
)


class Kind(Enum):
    """What can be done with an answer."""

    HTML = auto()
    TEXT = auto()
    OTHER = auto()


def content_kind(content_type: str, body: bytes) -> Kind:
    """Tell the kind by the declared type, or by the first bytes when none was declared."""
    declared = content_type.partition(";")[0].strip().lower()
    if declared in ("text/html", "application/xhtml+xml"):
        return Kind.HTML
    if _TEXTUAL.fullmatch(declared):
        return Kind.TEXT
    if declared not in ("", "application/octet-stream"):
        return Kind.OTHER
    start = body[:_SAMPLE].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return Kind.HTML
    return Kind.OTHER if not _is_text(body) else Kind.TEXT


def _is_text(body: bytes) -> bool:
    try:
        detect(body[:_SAMPLE], "the answer")
    except ToolError:
        return False
    return True


def decode_text(body: bytes, content_type: str, *, html: bool) -> str:
    """Decode by the declared character set, the one that the page itself names, or UTF-8; never fails."""
    declared = _CHARSET.search(content_type)
    if declared is None and html:
        declared = _CHARSET.search(body[:_SAMPLE].decode("latin-1"))
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if body.startswith(mark):
            return _decode(body[len(mark) :], encoding)
    name = declared.group(1).lower() if declared else "utf-8"
    # Python knows encodings that are no character sets, and some that take quadratic time.
    return _decode(body, name if _KNOWN_CHARSET.fullmatch(name) else "utf-8")


def _decode(body: bytes, encoding: str) -> str:
    try:
        return body.decode(encoding, errors="replace").replace("\r\n", "\n")
    except LookupError:
        return body.decode("utf-8", errors="replace").replace("\r\n", "\n")
