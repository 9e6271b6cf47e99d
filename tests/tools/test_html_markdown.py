"""HTML as Markdown."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.tools.html_markdown import MarkdownPage, to_markdown
from treadle.tools.html_tokens import End, HtmlText, Start, html_tokens

BASE = "https://example.org/a/b"


def text(source: str) -> str:
    return to_markdown(source, BASE).text


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<h2>One  <em>two</em></h2>three", "## One *two*\n\nthree"),
        ("<p>a\n b<p>c<br>d", "a b\n\nc\nd"),
        ("<div>a</div><div><div>b</div></div>", "a\n\nb"),
        (
            "<a href='../x'>up</a> <a href='#f'>here</a> <a href='javascript:f()'>js</a>",
            "[up](https://example.org/x) here js",
        ),
        ("<a href='https://e.org/'>https://e.org/</a>", "<https://e.org/>"),
        ("<a href='/x y\n/z'>l</a>", "[l](https://example.org/x%20y/z)"),
        ("<table><tr><td>a<td><a href=/x>b</a> c</table>", "| a | [b](https://example.org/x) c |\n| --- | --- |"),
        ("<table><tr><td><a href=/x>b<td>c</a></table>", "| b | c |\n| --- | --- |"),
        ("<ul><li>a<li>b<ol start=3><li>c</li><li><p>d</p></li></ol></ul>e", "- a\n- b\n  3. c\n  4. d\n\ne"),
        ("<pre>a\n  b &lt;\n</pre>c", "```\na\n  b <\n```\n\nc"),
        ("<pre>```</pre>", "````\n```\n````"),
        ("<ul><li>x<pre>code</pre></ul>", "- x\n  ```\n  code\n  ```"),
        ("<p>Run <code>a | b</code>", "Run `a | b`"),
        ("<blockquote>q<blockquote>r</blockquote></blockquote>s", "> q\n\n> > r\n\ns"),
        ("<table><tr><th>A<th>B<tr><td>1|2<td>x<tr><td>3</table>", "| A | B |\n| --- | --- |\n| 1\\|2 | x |\n| 3 |  |"),
        ("<table><tr><td><table><tr><td>in<td>ner</table><td>b</table>", "| in ner | b |\n| --- | --- |"),
        ("<table><tr><td>only<tr><td>layout</table>", "only\n\nlayout"),
        ("a<hr>b<img src=x alt='a dog'><img src=y>", "a\n\n---\n\nb[image: a dog]"),
        ("a<script>if (a < b) '</b>'</script><style>p{}</style><noscript>n</noscript>b", "ab"),
        ("a <!-- no --> b <![CDATA[x]]> 1 < 2 & 3 &amp; &zzz;", "a b 1 < 2 & 3 & &zzz;"),
        ("", ""),
    ],
)
def test_html_becomes_markdown(source: str, expected: str) -> None:
    assert text(source) == expected


def test_the_title_stands_apart() -> None:
    assert to_markdown("<title>A &amp;\n <b>B</title><p>c<svg><title>no</title></svg>", BASE) == MarkdownPage(
        title="A & <b>B", text="c"
    )


def test_tags_are_cut_as_browsers_do() -> None:
    assert list(html_tokens("<P Class=x data='a>b' c>t</P ><br/></>\n<!doctype html>")) == [
        Start("p", {"class": "x", "data": "a>b", "c": ""}),
        HtmlText("t"),
        End("p"),
        Start("br"),
        HtmlText("\n"),
    ]


PIECES = "< > </ <a href=x> <p> <pre> </pre> <table> <td> <tr> <ul> <li> <!-- --> <title> <b> ' = & x ` </ul>"


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PIECES.split(" "))))
def test_nothing_is_ever_an_error(pieces: list[str]) -> None:
    assert "\n\n\n" not in text("".join(pieces)) or "<pre>" in pieces


@pytest.mark.sample(3)
@pytest.mark.parametrize("piece", ["<!--", "<", "<a ", "</a", "<a b='", "<table>", "<pre>`", "<ul><li>x", "&"])
def test_hostile_repetition_is_worked_off(piece: str) -> None:
    # Each of these takes minutes with a parser that looks ahead again and again; the test's own time limit tells.
    text(piece * 40_000)


@pytest.mark.parametrize(
    ("content", "leads_to"),
    [
        ("0;url=/new", "https://example.org/new"),
        ("5; URL='https://e.org/x'", "https://e.org/x"),
        ("3", ""),
        ("0;url=javascript:f()", ""),
    ],
)
def test_where_a_page_leads_on_by_itself_is_told(content: str, leads_to: str) -> None:
    assert to_markdown(f'<meta http-equiv="Refresh" content="{content}">', BASE).leads_to == leads_to
