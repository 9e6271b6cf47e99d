"""What a person may not be able to read or reach of the page that is open: axe-core, and a ruler."""

from collections.abc import Sequence
from typing import Literal

from playwright.async_api import Page

from tests.needed import PEERS

WIDTHS = (320, 360, 390, 820, 1080, 1440)
Look = tuple[Literal["light", "dark"], int]
"""A theme and a width."""

LOOKS: tuple[Look, ...] = (*(("light", width) for width in WIDTHS), *(("dark", width) for width in WIDTHS))
AXE = PEERS / "node_modules" / "axe-core" / "axe.min.js"

_OUT = """() => {
  const found = [];
  const cuts = (one) => one.parentElement && (getComputedStyle(one).overflowX !== "visible" || cuts(one.parentElement));
  if (document.documentElement.scrollWidth > innerWidth) found.push("wider than the window");
  for (const one of document.querySelectorAll("main *, header *, dialog *")) {
    const { left, right, width, height } = one.getBoundingClientRect();
    const out = width > 1 && height > 1 && (right > innerWidth + 1 || left < -1) && one.checkVisibility();
    if (out && !cuts(one.parentElement)) found.push(`<${one.localName} ${one.className}> sticks out`);
  }
  return [...new Set(found)].slice(0, 20);
}"""
_SMALL = """() => {
  const found = [];
  const named = (one) => `<${one.localName} ${one.id || one.className}> ${one.textContent.trim().slice(0, 20)}`;
  const targets = "button, a[href]:not(.skip), input, select, textarea, summary, [role=separator]";
  for (const one of document.querySelectorAll(targets)) {
    const { width, height } = (one.closest("label:not(:has(select))") ?? one).getBoundingClientRect();
    const alone = one.parentElement.textContent.trim() === one.textContent.trim();
    const inText = getComputedStyle(one).display === "inline" && !alone;
    const reaches = getComputedStyle(one, "::before").position === "absolute"; // further than what is drawn
    const shown = one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && width > 1 && height > 1;
    if (!shown || inText || reaches || (height >= 23.5 && (width >= 23.5 || alone))) continue;
    found.push(`${named(one)} is ${width} × ${height}`);
  }
  return [...new Set(found)].slice(0, 20);
}"""
_FOCUSED = """() => {
  const found = [];
  const focusable = ":is(main, dialog[open]) :is(a[href], button, summary, input, [tabindex='0'])";
  const holds = (one, hit) => one.contains(hit) || (hit.contains(one) && !hit.matches("html, body"));
  for (const one of document.querySelectorAll(focusable)) {
    document.activeElement.blur();
    scrollTo({ top: 0, behavior: "instant" });
    one.focus();
    if (document.activeElement !== one || one.tabIndex < 0) continue; // it is not shown
    const [{ left, top, width, height }] = one.getClientRects(); // of a link in two lines the first
    const x = left + Math.min(width, 300) / 2, drawn = one.closest("label") ?? one;
    const hits = [0.1, 0.5, 0.9].map((part) => document.elementFromPoint(x, top + height * part));
    if (width > 1 && height > 1 && hits.some((hit) => hit && holds(drawn, hit))) continue;
    found.push(`<${one.localName} ${one.className}> ${one.textContent.trim().slice(0, 20)} is out of sight`);
  }
  return [...new Set(found)].slice(0, 20);
}"""
_BROKEN = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.map((one) => `${one.id}: ${one.nodes[0].html} ${one.nodes[0].any[0]?.message ?? ""}`);
}"""


async def wrong(page: Page, looks: Sequence[Look] = LOOKS, *, focus: Sequence[int] = ()) -> list[str]:
    """Look at what is open in all widths; gives what is wrong.

    `looks` are those in which axe-core looks at it, `focus` the widths in which everything gets the focus once.
    """
    found: list[str] = []
    if AXE.exists():
        await page.evaluate(AXE.read_text())
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 800})
        scripts = (_OUT, _SMALL, *(_FOCUSED,) * (width in focus))
        found += [f"{width}: {one}" for script in scripts for one in await page.evaluate(script)]
        for theme in [theme for theme, at in looks if at == width and AXE.exists()]:
            await page.emulate_media(color_scheme=theme)
            found += [f"{theme} {width}: {one}" for one in await page.evaluate(_BROKEN)]
    return found
