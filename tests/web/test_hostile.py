"""Hostile content on every screen, in a real browser: nothing of it runs, loads, hides or breaks out of its place.

On the way every screen is looked through by axe-core, in a light window and on a dark phone.
"""

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page

from tests.e2e.faults.driving import make, run
from tests.e2e.running import model
from tests.needed import PEERS
from tests.web.driving import PATIENCE, Seen, Served, becomes, browser, curl, in_shared_browser, serving
from treadle.providers.scripted.script import SayText, SayThinking, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.web.navigation import SCREENS, SESSION_SCREENS

pytestmark = in_shared_browser

AXE = PEERS / "node_modules" / "axe-core" / "axe.min.js"

RUNS = "<img src=http://evil.invalid/i.png onerror=window.ran=1>"
HIDES = "\u202egpj.exe\u202c \u2066x\u2069 \x1b[31mred\x1b[0m \x1b]0;title\x07 \x00 \u200b"
EVIL = (
    f"{RUNS}<script>window.ran=1</script><svg onload=window.ran=1><style>*{{display:none}}</style>"
    f"</pre></li></ol></main><iframe src=http://evil.invalid/f></iframe><base href=http://evil.invalid/> {HIDES} "
    "' onmouseover='window.ran=1' \" autofocus onfocus=\"window.ran=1\" {{7*7}} {% raw %} &lt;b&gt; "
)
MARKDOWN = (
    f"# {EVIL}\n\n{EVIL}\n\n[click](javascript:window.ran=1) [data](data:text/html,<script>window.ran=1</script>) "
    "[vb](vbscript:x) [ok](http://evil.invalid/ok) ![pic](http://evil.invalid/p.png) <http://evil.invalid/auto> "
    '<javascript:window.ran=1> [x]: javascript:window.ran=1\n\n[x][x]\n\n```"><script>window.ran=1</script>\n'
    f"{EVIL}\n```\n\n```html\n{EVIL}\n```\n\n| {EVIL.replace('|', '')} | b |\n|---|---|\n| {RUNS} | {'y' * 3_000} |\n\n"
    f"{'w' * 8_000}\n\n{'> ' * 400}deep\n\n{'- ' * 200}deep\n\n{'*' * 5_000}\n\n{'[' * 5_000}\n\n"
)
FILE = f"{RUNS.replace('/', '_')}\u202etxt.py"
TURNS = (
    Turn(
        items=(
            SayThinking(text=EVIL),
            SayText(text=MARKDOWN),
            make("write_to_file", path=FILE, content=f"{EVIL}\n" * 5 + "z" * 30_000),
        )
    ),
    Turn(
        items=(make("list_files", path="."), run(f"cat *.py; head -c 1000000 /dev/zero | tr '\\0' x; echo \"{RUNS}\""))
    ),
    Turn(items=(make("ask_followup_question", question=f"{EVIL}?", options=[RUNS, HIDES, "q" * 300]),)),
    Turn(items=(make("attempt_completion", result=MARKDOWN[:2_000]),)),  # the whole of it stands in the first reply
)

LOOK = """(at) => {
  const found = [];
  if (window.ran) found.push("a script ran");
  for (const one of document.querySelectorAll("*")) {
    const name = one.localName;
    if (["img", "iframe", "object", "embed", "base", "style", "video", "audio"].includes(name)) found.push(`<${name}>`);
    if (name === "script" && !one.src.startsWith(`${at}/static/`)) found.push("a script");
    for (const { name: key, value } of one.attributes) {
      const measured = name === "html" && /^(--(top|tabs|under|sheet): \\d+px; ?)*$/.test(value);
      if (key.startsWith("on") || (key === "style" && !measured)) found.push(`${name} ${key}=${value.slice(0, 40)}`);
      const leads = ["href", "src", "action"].includes(key);
      if (leads && !/^(https?:|mailto:|\\/|#|\\?)/.test(value)) found.push(`${key}=${value}`);
    }
  }
  const hidden = document.documentElement.outerHTML.match(
    /[\\u0000\\u0007\\u001b\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udbff](?![\\udc00-\\udfff])/,
  );
  if (hidden) found.push(`U+${hidden[0].charCodeAt(0).toString(16)}`);
  if (document.querySelector("main").children.length === 0) found.push("an empty page");
  if (document.documentElement.scrollWidth > window.innerWidth + 1) {
    const wide = [...document.querySelectorAll("main *, header *")]
      .find((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest("pre, dialog"));
    found.push(`wider than the window: <${wide?.localName} ${wide?.className}>`);
  }
  return found;
}"""

ASKS = """(answered) => {
  const card = document.querySelector(".question");
  return card !== null && !answered.includes(card.dataset.question);
}"""

GIVE = """async ([session, question_id, option, text]) => {
  const { send } = await import(document.querySelector("script[src$='/app.js']").src);
  await send(`/s/${session}/answer`, { question_id, option, text });
}"""

CHECK = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => {
      const where = one.nodes.slice(0, 3).map((node) => `${node.target.join(" ")} ${node.any[0]?.message ?? ""}`);
      return `${one.id}: ${where.join("; ")}`;
    });
}"""


async def _look(page: Page, served: Served, paths: Iterable[str], requests: list[str]) -> list[str]:
    """Go over screens; gives what is wrong with them."""
    found = []
    for path in paths:
        await page.goto(served.address + path)
        await page.wait_for_selector("html[data-ready]", state="attached")
        found += [f"{path}: {one}" for one in await page.evaluate(LOOK, served.address)]
        if AXE.exists():
            await page.add_script_tag(path=AXE)
            found += [f"{path}: {one}" for one in await page.evaluate(CHECK)]
    return found + [one for one in requests if not one.startswith(served.origin)]


async def _eyes(seen: Seen, served: Served) -> list[tuple[Page, list[str]]]:
    """A light window and a dark phone, without the policy that would stop what runs: nothing is to run anyway."""
    made = []
    for scheme, width, height in (("light", 1200, 900), ("dark", 360, 740)):
        context: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": width, "height": height}}
        page = await seen.page(served, bypass_csp=True, **context)
        requests: list[str] = []
        page.on("request", lambda one, urls=requests: urls.append(one.url))  # type: ignore[call-overload]
        made.append((page, requests))
    return made


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.soak)])
async def test_nothing_hostile_runs_loads_hides_or_breaks_out_on_any_screen(tmp_path: Path, whole: bool) -> None:
    folder = tmp_path / f"ws {RUNS.replace('/', '_')}"
    folder.mkdir()
    Path(os.fsdecode(os.fsencode(folder) + b"/bad\xff<b onclick=x>.txt")).write_text("x")
    async with (
        ScriptedServer(Script(turns=TURNS)) as server,
        serving(tmp_path / "home", folder, *model(server)) as served,
        browser() as seen,
    ):
        eyes = await _eyes(seen, served)
        page = eyes[0][0]
        await page.goto(served.address)
        await page.fill("#start textarea", f"{EVIL} {'t' * 3_000}".replace("\x00", ""))
        await page.click("#start button[type=submit]")
        await page.wait_for_url("**/s/*")
        session = page.url.rpartition("/s/")[2]
        found: list[str] = []
        answered: set[str] = set()
        while len(answered) < 3:
            await page.goto(f"{served.address}/s/{session}")
            await becomes(page, ASKS, [*answered])
            card = page.locator(".question").first
            question, kind = [str(await card.get_attribute(f"data-{name}")) for name in ("question", "kind")]
            if kind == "followup":
                one, requests = eyes[-1]  # a question is on these screens alone
                found += await _look(one, served, (f"/s/{session}", "/inbox"), requests)
            given = ["answer", RUNS] if kind == "followup" else ["allow_once", ""]
            await page.evaluate(GIVE, [session, question, *given])
            answered.add(question)
        await page.goto(f"{served.address}/s/{session}")
        await page.wait_for_selector(".item.end")
        (light, seen_light), (phone, seen_phone) = eyes
        all_, inside = [screen.path for screen in SCREENS], [f"/s/{session}{screen.path}" for screen in SESSION_SCREENS]
        found += await _look(light, served, all_ + inside * whole, seen_light)
        found += await _look(phone, served, inside + all_ * whole, seen_phone)
        assert sorted(set(found)) == []


EVIL_PAGE = """<!doctype html><title>evil</title><body><script>
const there = "http://TARGET";
const body = JSON.stringify({ folder: "/tmp", text: "evil" });
const json = { "content-type": "application/json" };
const given = { credentials: "include" };
const seen = {};
const tried = [];
function note(name, promise) {
  const late = new Promise((_, failed) => setTimeout(failed, 20_000)); // nothing was read until then
  tried.push(Promise.race([promise, late]).then((value) => { seen[name] = value; }, () => { seen[name] = "refused"; }));
}
function loaded(tag, path) {
  return new Promise((done, failed) => {
    const made = document.createElement(tag);
    made.onload = () => done("loaded");
    made.onerror = failed;
    made.src = there + path;
    document.body.append(made);
  });
}
note("fetch", fetch(`${there}/`, given).then((answer) => answer.text()));
note("post", fetch(`${there}/sessions`, { ...given, method: "POST", mode: "no-cors", body }).then((one) => one.type));
note("json", fetch(`${there}/sessions`, { ...given, method: "POST", headers: json, body }).then((one) => one.text()));
note("script", loaded("script", "/static/app.js"));
note("image", loaded("img", "/static/icon.svg"));
note("events", new Promise((done, failed) => {
  const source = new EventSource(`${there}/events`, { withCredentials: true });
  source.onmessage = () => done("heard");
  source.onerror = failed;
}));
note("socket", new Promise((done, failed) => {
  const socket = new WebSocket("ws://TARGET/events");
  socket.onopen = () => done("open");
  socket.onerror = failed;
}));
const words = (view) => {
  try {
    return view?.document?.body?.innerText || "refused";
  } catch {
    return "refused";
  }
};
note("frame", new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.src = `${there}/`;
  frame.onload = () => done(words(frame.contentWindow));
  document.body.append(frame);
}));
const form = document.createElement("form");
Object.assign(form, { method: "post", enctype: "text/plain", action: `${there}/sessions`, target: "f2" });
form.innerHTML = '<input name=\\'{"folder": "/tmp", "text": "evil", "x": "\\' value=\\'"}\\'>';
const target = document.createElement("iframe");
target.name = "f2";
document.body.append(target, form);
form.submit();
const opened = window.open(`${there}/inbox`);
setTimeout(() => { seen.opened = words(opened); }, 500);
Promise.all(tried).then(() => setTimeout(() => { window.done = seen; }, 700));
</script>"""


async def test_another_site_s_page_in_the_same_browser_reaches_nothing(tmp_path: Path) -> None:
    stolen: list[str] = []
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heads.extend(head.splitlines())
        stolen.extend(line for line in head.splitlines() if line.lower().startswith("cookie:"))
        body = EVIL_PAGE.replace("TARGET", target).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    async with serving(tmp_path / "home", tmp_path / "ws") as served, browser() as seen:
        target = served.origin.removeprefix("http://")
        evil = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = evil.sockets[0].getsockname()[1]
        page = await seen.page(served)
        for host in ("127.0.0.1", "localhost"):  # the same site by the rule for cookies, and another one
            other = await page.context.new_page()
            await other.goto(f"http://{host}:{port}/")
            found = await (await other.wait_for_function("window.done", timeout=3 * PATIENCE * 1000)).json_value()
            assert {name for name, value in found.items() if value not in ("refused", "opaque")} == set(), (host, found)
            await other.close()
        evil.close()
        await page.goto(f"{served.address}/sessions")
        assert "No sessions yet" in await page.inner_text("main")
        # Cookies go to every port of a computer: the page's goes only below its path, which no other server knows.
        assert stolen == []
        assert [line for line in heads if served.at in line] == []
        (cookie,) = [one for one in await page.context.cookies() if one["name"].startswith("treadle-")]
        assert (cookie["path"], cookie["httpOnly"], cookie["sameSite"]) == (served.at, True, "Strict")
        for path in ("/", "/inbox", "/events", "/sessions/rows", "/~guessed/inbox", "//inbox"):
            replayed = curl(f"{served.origin}{path}", "-H", f"cookie: {cookie['name']}={cookie['value']}")
            assert "<nav" not in replayed.stdout, path
            assert served.at not in replayed.stdout, path
        # With the cookie and the path, but without the key that only its own pages have, nothing is done.
        headers = {"origin": served.origin, "content-type": "application/json"}
        answer = await page.context.request.post(f"{served.address}/sessions", headers=headers, data="{}")
        assert answer.status == 403
        assert "lost its key" in await answer.text()
        # A link that is opened in a browser that was let in before leaves no token in its address either.
        await page.goto(served.link)
        await becomes(page, "location.hash === ''")
        assert "token" not in page.url
