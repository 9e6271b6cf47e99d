"""Each screen in each width and in three fonts, a very wide one among them: nothing sticks out or lies over another.

Axe-core looks at contrast and names elsewhere; here rectangles are compared, with an open question, a diff and long
names.
"""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page

from tests.e2e.faults.driving import make, run
from tests.web.driving import Served, in_shared_browser, page_with_model, start_session
from treadle.providers.scripted.script import SayText, Turn

pytestmark = in_shared_browser

SOAK = pytest.mark.soak
WIDTHS = (320, 360, 390, 820, 1080, 1440)
FONTS = {"system": "", "serif": "DejaVu Serif Condensed", "wide": "DejaVu Sans Mono"}
LONG = "a_very_long_name_of_a_file_that_says_all_that_is_in_it_and_more.py"
CODE = "\n".join(
    f"print('a line of code that is wider than any phone, and than some tables: number {n}')" for n in range(9)
)
TURNS = (
    Turn(
        items=(
            SayText(
                text=f"I write it.\n\n| one | two |\n|---|---|\n| {'word ' * 9} | {LONG} |\n\n```python\n{CODE}\n```"
            ),
        )
    ),
    Turn(items=(make("write_to_file", path=LONG, content=f"{CODE}\n"),)),
    Turn(items=(run(f"git push origin {'feature/' + LONG}"),)),
)
SCREENS = (
    *(
        "/",
        "/inbox",
        "/sessions",
        "/fleet",
        "/usage",
        "/policy",
        "/health",
        "/devices",
        "/settings",
        "/settings/models",
    ),
    *("/settings/rules", "/settings/budgets", "/settings/notifications", "/s/ID", "/s/ID/review", "/s/ID/timeline"),
    *("/s/ID/timeline?view=events", "/s/ID/context", "/s/ID/share", "/s/ID/replay"),
)

WRONG = """(width) => {
  const [found, right] = [[], document.documentElement.scrollWidth];
  const named = (one) => `<${one.localName} ${one.id || one.className}> ${one.textContent.trim().slice(0, 20)}`;
  if (right > width) {
    const all = [...document.querySelectorAll("main *, header *")].filter((one) => !one.closest("pre, .tablewrap"));
    const out = all.filter((one) => one.getBoundingClientRect().right > width + 1);
    found.push(`it scrolls to ${right}: ${out.slice(0, 5).map(named)}`);
  }
  const layers = ".compose, .head, .strip, dialog, .side, .beside, .vtabs, footer, header";
  const acts = [...document.querySelectorAll("button, a[href], input, select, textarea, summary")];
  const boxes = acts
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.matches(".hidden, .handle"))
    .map((one) => [one, one.getBoundingClientRect(), one.closest(layers)])
    .filter(([, { width, height }]) => width > 1 && height > 1);
  for (const [at, [one, a, where]] of boxes.entries()) {
    for (const [other, b, there] of boxes.slice(at + 1)) {
      if (where !== there || one.contains(other) || other.contains(one) || one.closest(".event, .ses")) continue;
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 2) found.push(`${named(one)} lies over ${named(other)}`);
    }
  }
  for (const one of document.querySelectorAll("button, .chip")) {
    const texts = document.createTreeWalker(one, NodeFilter.SHOW_TEXT), word = document.createRange();
    while (texts.nextNode()) {
      for (const { index, 0: { length } } of texts.currentNode.data.matchAll(/[a-z]{1,20}/gi)) {
        word.setStart(texts.currentNode, index), word.setEnd(texts.currentNode, index + length);
        if (new Set([...word.getClientRects()].map((rect) => rect.top)).size > 1) found.push(`${named(one)} is broken`);
      }
    }
  }
  return [...new Set(found)].slice(0, 8);
}"""


SMALL = """() => {
  const found = [];
  const named = (one) => `<${one.localName} ${one.id || one.className}> ${one.textContent.trim().slice(0, 20)}`;
  for (const one of document.querySelectorAll("button, a[href], input, select, textarea, summary")) {
    const alone = one.parentElement.textContent.trim() === one.textContent.trim();
    const inText = getComputedStyle(one).display === "inline" && !alone;
    if (!one.checkVisibility({ visibilityProperty: true }) || inText) continue;
    one.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
    const { left, top, width, height } = one.getBoundingClientRect();
    const [x, y, whole] = [left + width / 2, top + height / 2, one.closest("label") ?? one];
    const hit = (dx, dy) => whole.contains(document.elementFromPoint(x + dx, y + dy));
    if (width < 1 || height < 1 || !hit(0, 0)) continue;  // something else lies there, or it is off the screen
    const reach = (dx, dy) => { let far = 0; while (far < 12 && hit(dx * far, dy * far)) far += 0.5; return far; };
    const [wide, high] = [reach(-1, 0) + reach(1, 0), reach(0, -1) + reach(0, 1)];
    if (wide < 23.5 || high < 23.5) found.push(`${named(one)} is ${wide} × ${high}`);
  }
  return [...new Set(found)].slice(0, 20);
}"""
"""What a finger meets of each target: it may reach further than what is drawn."""

FINGERS = """() => {
  const found = [];
  const named = (one) => `<${one.localName} ${one.id || one.className}> ${one.textContent.trim().slice(0, 20)}`;
  const boxes = [];
  const field = "select, textarea, input:not([type=checkbox], [type=radio])";
  for (const one of document.querySelectorAll("button, a[href]:not(.skip), input, select, textarea, summary")) {
    const alone = one.parentElement.textContent.trim() === one.textContent.trim();
    const inText = getComputedStyle(one).display === "inline" && !alone;
    const drawn = one.closest(`label:not(:has(${field}))`) ?? one;
    const box = drawn.getBoundingClientRect();
    const shown = one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && box.width > 1;
    if (!shown || box.height <= 1 || inText || one.matches(".hidden, .handle, .veil, .shell textarea")) continue;
    const reaches = getComputedStyle(one, "::before").position === "absolute"; // further than what is drawn
    if (box.height < 39.5 && !reaches) found.push(`${named(one)} is ${box.height} high`);
    boxes.push([drawn, box]);
  }
  const layer = (one) => one.closest(".compose, .head, .strip, dialog, .side, .beside, .vtabs, .question");
  const parts = ".seg, .tabs, .vtabs, .split"; // of one control: they touch
  const rows = `${parts}, .choices, .reach, .files-here, .flist, .tree, .queue, .items, .steps, .lines, .shared,
    .blocks, table, nav, .srows`;
  for (const [at, [one, a]] of boxes.entries()) {
    for (const [other, b] of boxes.slice(at + 1)) {
      if (one.contains(other) || other.contains(one) || layer(one) !== layer(other) || one.closest(".ses")) continue;
      const across = Math.max(a.left, b.left) - Math.min(a.right, b.right);
      const down = Math.max(a.top, b.top) - Math.min(a.bottom, b.bottom);
      const below = down > -2 && one.closest(rows)?.contains(other);
      if (Math.max(across, down) > 7.5 || below || one.closest(parts)?.contains(other)) continue;
      found.push(`${named(one)} is ${across} × ${down} from ${named(other)}`);
    }
  }
  return [...new Set(found)].slice(0, 20);
}"""
"""What is too low for a finger, or too near to another target: rows of a list may touch, and parts of one control."""

LONGEST = f"for (const one of document.querySelectorAll('select')) one.add(new Option('{LONG}'))"
"""A menu is as wide as its longest line, whichever is chosen."""


async def _wrong(page: Page, served: Served, session: str, widths: tuple[int, ...]) -> list[str]:
    found: list[str] = []
    for screen in SCREENS:
        await page.set_viewport_size({"width": widths[0], "height": 800})
        await page.goto(served.address + screen.replace("ID", session))
        await page.wait_for_selector("html[data-ready]", state="attached")
        if small := await page.evaluate("matchMedia('(pointer: coarse)').matches") and await page.evaluate(SMALL):
            found += [f"{screen}: {one}" for one in small]
        if await page.evaluate("matchMedia('(pointer: coarse)').matches"):
            found += [f"{screen}: {one}" for one in await page.evaluate(FINGERS)]
            for view in await page.locator(".vtabs [data-show]").all() if screen == "/s/ID" else ():
                await view.click()
                found += [f"{await view.text_content()}: {one}" for one in await page.evaluate(FINGERS)]
            await page.click("#open-column")
            found += [f"{screen}, its column: {one}" for one in await page.evaluate(FINGERS)]
            await page.reload()
            await page.wait_for_selector("html[data-ready]", state="attached")
        await page.evaluate(LONGEST)
        for name, family in FONTS.items():
            if family:
                await page.add_style_tag(content=f"* {{ font-family: '{family}' !important }}")
            for width in widths:
                await page.set_viewport_size({"width": width, "height": 800})
                found += [f"{screen} {name} {width}: {one}" for one in await page.evaluate(WRONG, width)]
        found += [f"{screen}: {one}" for one in await page.evaluate(SMALL) if one.startswith("<summary")]
    return found


PHONE = {"is_mobile": True, "has_touch": True}
"""On a phone the window grows with what sticks out."""


@pytest.mark.parametrize(
    ("widths", "window"),
    [((320, 820, 1440), {}), ((320, 430), PHONE), *(pytest.param(WIDTHS, one, marks=SOAK) for one in ({}, PHONE))],
)
async def test_in_each_width_and_font_nothing_sticks_out_and_nothing_lies_over_another(
    tmp_path: Path, widths: tuple[int, ...], window: dict[str, Any]
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "auth.json").write_text('{"version": 1, "keys": {"anthropic": "sk-of-no-use"}}')
    (tmp_path / "home" / "auth.json").chmod(0o600)
    async with page_with_model(tmp_path, TURNS, "--mode", "edits", "--trust") as (served, seen):
        page = await seen.page(served, bypass_csp=True, **window)
        session = await start_session(page, "Write it, and push it.")
        await page.wait_for_selector(".item.end", state="attached")
        await page.fill("#text", "Go on.")
        await page.click(".compose .send")
        await page.wait_for_selector(".question")
        assert await _wrong(page, served, session, widths) == []
