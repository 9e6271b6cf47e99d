// What the next request holds, block by block: the text of a block comes when it is opened, the sums as the session works.

import { listen } from "./line.js";
import { load } from "./reports.js";

const { session, cursor } = document.body.dataset;
const report = document.getElementById("report");
const PAUSE = 2_000; // milliseconds between two looks while the session works
const step = () => report.querySelector(".blocks")?.dataset.step ?? "";

async function open(details) {
  const place = details.querySelector(".block-text");
  if (!details.open || details.dataset.loaded) return;
  details.dataset.loaded = "1";
  place.textContent = "Loading …";
  const query = new URLSearchParams({ at: details.dataset.at, step: step() });
  if (!(await load(`/s/${session}/context/block?${query}`, place))) {
    place.textContent = "";
    delete details.dataset.loaded;
  }
}

// `toggle` does not rise: it is caught on its way down.
report.addEventListener("toggle", (event) => open(event.target), true);

let wanted = false;
let running = false;

async function refresh() {
  if (step()) return; // a request that was sent stays as it was
  wanted = true;
  if (running) return;
  running = true;
  while (wanted) {
    wanted = false;
    const known = new Map([...report.querySelectorAll("details[open]")].map((one) => [one.dataset.key, one]));
    const typed = report.querySelector("input[name=text]")?.value ?? "";
    const focused = report.contains(document.activeElement) ? document.activeElement : null;
    const name = focused?.name ?? "";
    const at = focused?.closest("details")?.dataset.key;
    if (!(await load(`/s/${session}/context/parts`, report))) break;
    for (const details of report.querySelectorAll("details")) {
      const before = known.get(details.dataset.key);
      if (!before) continue;
      details.querySelector(".block-text").replaceChildren(...before.querySelector(".block-text").childNodes);
      details.dataset.loaded = "1";
      details.open = true;
    }
    const box = report.querySelector("input[name=text]");
    if (box) box.value = typed;
    if (name === "text") box?.focus();
    if (at) report.querySelector(`details[data-key="${CSS.escape(at)}"] summary`)?.focus();
    await new Promise((done) => setTimeout(done, PAUSE));
  }
  running = false;
}

document.addEventListener("posted", (event) => (event.detail.form.reset(), refresh()));

listen((news) => news.status && refresh(), session, cursor);
