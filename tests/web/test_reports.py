"""The screens of reports in a real browser: one session works, and a person looks at everything about it."""

import json
from pathlib import Path

from playwright.async_api import Page

from tests.e2e.faults.driving import make
from tests.web.driving import Served, in_shared_browser, page_with_model, start_session
from treadle.protocol.usage import Usage
from treadle.providers.scripted.script import SayText, Turn

pytestmark = in_shared_browser

SECRET = "sk-ant-api03-" + "a1B2c3D4e5" * 9
HOSTILE = "<img src=x onerror=\"document.title='pwned'\"><script>document.title='pwned'</script>"
USED = Usage(input_tokens=900, output_tokens=100, cache_read_tokens=8_000, cache_write_tokens=400)

TURNS = (
    Turn(items=(SayText(text=f"I look. {HOSTILE}"), make("write_to_file", path="a.txt", content=SECRET)), usage=USED),
    Turn(items=(make("attempt_completion", result="All done."),), usage=USED),
    Turn(items=(make("attempt_completion", result="Once more."),), usage=USED),
)

ALLOW_THIS_SESSION = """async (session) => {
  const { send } = await import(document.querySelector("script[src$='/app.js']").src);
  const { question } = document.querySelector(".question").dataset;
  await send(`/s/${session}/answer`, { question_id: question, option: "allow_always", scope: "session" });
}"""


async def test_a_person_goes_through_all_reports_of_a_session(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "policy.toml").write_text(
        'version = 1\n[[rule]]\nid = "never"\nverdict = "deny"\nargv = ["npm", "publish"]\nmatch = ["npm publish"]\n'
    )
    (tmp_path / "home" / "mcp.json").write_text(json.dumps({"mcpServers": {"one": {"command": "false"}}}))
    async with page_with_model(tmp_path, TURNS) as (served, seen):
        page = await seen.page(served, viewport={"width": 360, "height": 740})
        session = await start_session(page, "Write a file.")
        await page.wait_for_selector(".question")
        await page.evaluate(ALLOW_THIS_SESSION, session)
        await page.wait_for_selector(".item.end")
        await _context(page, served, session)
        await _usage(page, session)
        await _policy(page, tmp_path / "home" / "policy.toml")
        await _share(page, served, session)
        await _health(page)
        await _settings(page, tmp_path / "home")
        assert await page.title() != "pwned"
        (refused,) = seen.complaints  # the value that could not be
        assert "status of 400" in refused
        seen.complaints.clear()


async def _go(page: Page, key: str) -> None:
    """Go to a screen with the keys of the navigation, and see that it fits."""
    await page.locator("main").focus()
    await page.wait_for_selector("html[data-ready]")
    await page.keyboard.press("g")
    await page.keyboard.press(key)
    current = f"nav a[data-key='{key}'][aria-current=page]"
    await page.wait_for_selector(current, state="attached")
    await page.wait_for_load_state()
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


async def _context(page: Page, served: Served, session: str) -> None:
    await _go(page, "c")
    other = await page.context.new_page()
    await other.goto(f"{served.address}/s/{session}")
    block = page.locator("details:has(.source:has-text('model'))").filter(has_text="said by the model").first
    await block.locator("summary").focus()
    await page.keyboard.press("Enter")
    await page.wait_for_selector("details[open] pre")
    assert HOSTILE in await block.locator("pre").inner_text()
    await page.fill("input[name=text]", "Keep this")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("li:has-text('Keep this')")
    before = await page.locator(".blocks > li").count()
    await other.fill("#text", "Go on.")
    await other.keyboard.press("Enter")
    await page.wait_for_selector(f".blocks > li >> nth={before}")
    assert await page.locator("details[open] pre").count() == 1  # what was open stays open
    await page.click("button[aria-label='Remove this pin']")
    await page.wait_for_selector("li:has-text('Nothing is pinned.')")
    await other.wait_for_selector(".item.end >> nth=1")
    await other.close()
    await page.fill("input[name=step]", "1")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("h2:has-text('Step 1 to')")
    assert "Counted by the provider" in await page.inner_text("#report")


async def _usage(page: Page, session: str) -> None:
    await _go(page, "u")
    assert await page.locator("svg[role=img]").count() > 5
    await page.select_option("select[name=since]", "7d")
    await page.click("form button[type=submit]")
    await page.wait_for_url("**since=7d**")
    assert await page.locator(f"main a[href$='/s/{session}']").inner_text() == "Write a file."


async def _policy(page: Page, file: Path) -> None:
    await _go(page, "p")
    await page.fill("#explain input[name=what]", f"echo '{HOSTILE}'")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#explained pre")
    assert "what would change it" in await page.inner_text("#explained pre")
    await page.select_option("#explain select[name=kind]", "path")
    assert await page.locator("#explain select[name=op]").is_visible()
    await page.wait_for_selector("#decisions tbody tr:has-text('write_to_file')")
    await page.select_option("#filter select[name=verdict]", "denied")
    await page.click("#filter button[type=submit]")
    await page.wait_for_selector("#decisions :text('No decision matches.')")
    await page.click("#suggest")
    await page.click("#suggestions button:has-text('Add this rule')")
    await page.wait_for_selector("#messages p:has-text('The rule is in')")
    assert "from what you approved" in file.read_text()
    await page.click("form[data-post='/policy/revoke'] button")
    await page.wait_for_selector(":text('Nothing is allowed beyond modes and rules.')")
    await page.click("button[aria-label='Remove rule never']")
    await page.click("dialog button:has-text('Cancel')")
    assert "never" in file.read_text()
    assert await page.evaluate("document.activeElement.ariaLabel") == "Remove rule never", "the focus goes back"
    await page.click("button[aria-label='Remove rule never']")
    await page.click("dialog button:has-text('Remove')")
    await page.wait_for_selector("#messages p:has-text('Removed never')")
    assert "never" not in file.read_text()


async def _share(page: Page, served: Served, session: str) -> None:
    await page.goto(f"{served.address}/s/{session}/share")
    await page.wait_for_selector("[data-filled] li")
    assert SECRET not in await page.content()
    await page.select_option("select[name=turn]", "2")
    await page.click("form button[type=submit]")
    await page.wait_for_url("**turn=2**")
    assert "I look." not in await page.inner_text(".shared")
    assert "Once more." in await page.inner_text(".shared")
    async with page.expect_download() as started:
        await page.click("[data-filled] a[download]")
    download = await started.value
    assert download.suggested_filename == f"treadle-{session}.html"
    text = Path(await download.path()).read_text()
    assert "Once more." in text
    assert SECRET not in text


async def _health(page: Page) -> None:
    await _go(page, "h")
    await page.click("button[data-check=local]")
    await page.wait_for_selector("#checks li:has-text('sandbox')")
    await page.wait_for_selector("#progress:not(:has-text('Checking'))")
    kinds = await page.locator("#checks li").evaluate_all("rows => rows.map((row) => row.dataset.status)")
    assert kinds == sorted(kinds, key=("fail", "warn", "ok").index)
    await page.click("text=Verify all logs")
    await page.wait_for_selector("#messages p:has-text('All logs are intact.')")


async def _tab(page: Page, name: str) -> None:
    """Go to one of the screens of the settings, and see that it fits."""
    await page.click(".only-phone > summary")
    await page.click(f".only-phone a:has-text('{name}')")
    await page.wait_for_selector(f".only-phone a[aria-current=page]:has-text('{name}')", state="attached")
    await page.wait_for_load_state()  # only then are the forms taken over
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


async def _settings(page: Page, home: Path) -> None:
    await _go(page, "e")
    await _tab(page, "All settings")
    await page.fill("#search", "colours")
    assert await page.locator("tr.setting:visible").count() == 1
    await page.select_option("tr.setting:visible select", "dark")
    await page.wait_for_selector("#messages p:has-text('Saved in')")
    assert 'theme = "dark"' in (home / "config.toml").read_text()
    await page.click("button[aria-label='Unset theme']")
    await page.wait_for_selector("button[aria-label='Unset theme']", state="detached")
    await page.wait_for_load_state()
    assert "theme" not in (home / "config.toml").read_text()
    await page.fill("input[aria-labelledby='k-max_steps']", "many")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".failed-here p:has-text('It must be a whole number from 1.')")
    await _tab(page, "Providers")
    await page.fill("input[name=key]", "sk-0123456789abcdef")
    await page.check("input[name=untried]")
    await page.click("button:has-text('Test and save')")
    await page.wait_for_selector("#messages p:has-text('is stored in')")
    assert "sk-0123456789abcdef" not in await page.content()
    await _tab(page, "MCP servers")
    await page.click("button:has-text('Connect and show tools')")
    await page.wait_for_selector(".server pre:visible")
    await page.click("button:has-text('Disable')")
    await page.wait_for_selector("button:has-text('Enable')")
    assert json.loads((home / "mcp.json").read_text())["mcpServers"]["one"]["disabled"] is True
    for name in ("Models", "Rules files and skills", "Hooks", "Trusted folders"):
        await _tab(page, name)
