"""web_fetch: a page of the web as Markdown."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.policy.urls import HostKind, check_url
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import (
    CallResult,
    FetchUrl,
    Origin,
    Outcome,
    Preview,
    ToolSpec,
)
from treadle.tools.declarations import WEB_FETCH
from treadle.tools.quoted_words import is_own, origin_of_page, result_of
from treadle.workspace.files.text import visible
from treadle.workspace.network.checked_addresses import Resolver, resolve_host
from treadle.workspace.untrusted import mark_untrusted

if TYPE_CHECKING:
    from treadle.workspace.namespaces.listeners import CommandServers

_PAGE = 30_000


class WebFetch(Struct, frozen=True):
    """Fetches pages. `private_hosts` are names of the user's own network that may be reached by name.

    `servers` are those that the session's commands run: on this machine they come first.
    """

    resolver: Resolver = resolve_host
    private_hosts: frozenset[str] = frozenset()
    servers: "CommandServers | None" = None

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return WEB_FETCH

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name the URL; nothing is sent before it was judged."""
        url = _web_url(arguments["url"].strip())
        own = is_own(url, self.servers)
        return Prepared(
            accesses=(FetchUrl(url=url, own=own),),
            preview=Preview(title="Fetch", text=visible(url)),
            run=partial(self._fetch, url, arguments.get("start", 0), self.servers if own else None),
        )

    async def _fetch(
        self,
        url: str,
        start: int,
        servers: "CommandServers | None",
        output: Output,  # noqa: ARG002 - nothing to show live
    ) -> CallResult:
        # Loaded here: a session that never fetches should not wait for an HTTP client and what reads pages.
        from treadle.tools.html_markdown import to_markdown
        from treadle.tools.web_content import Kind, content_kind, decode_text
        from treadle.tools.web_request import WebClient

        answer = await WebClient(self.resolver, self.private_hosts, servers).get(url)
        if answer.elsewhere:
            return _redirected(answer.elsewhere)
        kind = content_kind(answer.content_type, answer.body)
        if kind is Kind.OTHER:
            raise ToolError(_no_text(answer.url, answer.content_type, len(answer.body)))
        content = decode_text(answer.body, answer.content_type, html=kind is Kind.HTML)
        title = notes = ""
        if kind is Kind.HTML:
            page = await asyncio.to_thread(to_markdown, content, answer.url)
            title, content = page.title, page.text
            notes = f"\n[the page redirects to {visible(page.leads_to)}]" if page.leads_to else ""
        notes += _cut_note(answer.cut)
        facts = [f"{answer.status} {answer.reason}".strip(), *([answer.content_type] if answer.content_type else [])]
        head = f"{visible(answer.url)} ({visible(', '.join(facts))})"
        shown = f"# {title}\n\n{content}" if title and not content.startswith(f"# {title}") else content
        text = f"{head}\n{_part(shown, start, answer.url)}{notes}"
        if answer.status < 400:
            return result_of(origin_of_page(answer.url), Outcome.OK, text)
        return result_of(origin_of_page(answer.url), Outcome.FAILED, f"{text}\n{_advice(answer.status)}")


def _redirected(url: str) -> CallResult:
    shown = visible(url)
    if not url.startswith(("http://", "https://")):
        text = f"It redirects to {shown}, which is not a web address. Use another source."
        return result_of(Origin.WEB, Outcome.FAILED, text)
    text = f"It redirects to another host: {shown}\nCall web_fetch with that URL if you want to follow it."
    return result_of(Origin.WEB, Outcome.OK, text)


def _advice(status: int) -> str:
    """Say what to do about an answer that is a failure."""
    match status:
        case 401 | 403 | 407:
            return "It requires a login, or blocks programs. Use another source."
        case 429 | 502 | 503 | 504:
            return "Try it again later, or use another source."
        case _:
            return "Check the URL, or use another source."


def _web_url(url: str) -> str:
    """Check that a URL can be fetched at all, and give it without what is not sent. Raises `ToolError`."""
    if any("\ud800" <= character <= "\udfff" for character in url):
        raise ToolError("The URL has an incomplete character. Give a URL like https://example.org/page.", invalid=True)
    check = check_url(url)
    if check.problem or not check.host or check.kind is HostKind.INVALID:
        raise ToolError(
            f"{visible(url)} cannot be fetched: {check.problem or 'its host cannot be read'}. "
            "Give a URL like https://example.org/page; for files of the workspace use read_file.",
            invalid=True,
        )
    return urldefrag(url).url


def _part(content: str, start: int, url: str) -> str:
    """Give the page of the content that begins at `start`, ended at a line end where there is one."""
    if not content.strip():
        return "(the page has no text; perhaps it needs scripts, which web_fetch does not run)"
    if start >= len(content):
        raise ToolError(f"The page has only {len(content):,} characters. Give a smaller `start`.")
    end = min(len(content), start + _PAGE)
    if end < len(content):
        line_end = content.rfind("\n", start + _PAGE // 2, end)
        end = line_end + 1 if line_end > 0 else end
    note = ""
    if start or end < len(content):
        note = f"\n[characters {start:,} to {end:,} of {len(content):,}"
        note += f"; continue with start={end}]" if end < len(content) else "]"
    return mark_untrusted(content[start:end], url) + note


def _cut_note(cut: int) -> str:
    return f"\n[the response was cut or ended too early, after {cut:,} bytes]" if cut else ""


def _no_text(url: str, content_type: str, size: int) -> str:
    what = visible(content_type) or "of no known type"
    advice = (
        "download it with execute_command (curl -fsSLo FILE URL) and read it with read_file"
        if content_type.startswith("image/")
        else "download it with execute_command (curl -fsSLo FILE URL) and then use read_file"
        if content_type.startswith("application/pdf")
        else "download it with execute_command (curl -fsSLo FILE URL) if the task needs it"
    )
    return f"{visible(url)} is not text but {what} ({size:,} bytes read). web_fetch reads only text; {advice}."
