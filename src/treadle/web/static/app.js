// What every screen has: requests, messages, and what calls the person.

import { at, enter, files, goIn, key, takeLook, tokenOfAddress } from "./entering.js";
import { listen } from "./line.js";
import { made, pressed } from "./morph.js";

// The heights of the bars, so that nothing stands behind them, however large the letters are.
export const bars = new ResizeObserver(() => {
  for (const [name, bar] of [["--top", ".head, .strip"], ["--tabs", ".vtabs"], ["--under", ".compose"], ["--sheet", "#questions > .question:not(.behind)"]]) {
    const high = [...document.querySelectorAll(bar)].reduce((sum, one) => sum + one.offsetHeight, 0);
    document.documentElement.style.setProperty(name, `${high}px`);
  }
});
for (const one of document.querySelectorAll(".head, .strip, .vtabs, .compose")) bars.observe(one);

const messages = document.getElementById("messages");

const USED = "a, button, input, select, textarea, summary, .question, [role=tab], [tabindex='0']";

/** Put the notes where they lie over nothing that is used: as far up and to the right as there is room. */
function putNotes() {
  const own = messages.getBoundingClientRect();
  if (!own.height) return;
  const taken = [...document.querySelectorAll(USED)].filter((one) => !messages.contains(one)).map((one) => one.getBoundingClientRect()).filter(({ width }) => width);
  const free = (left, top) => !taken.some((one) => left < one.right + 4 && left + own.width > one.left - 4 && top < one.bottom + 4 && top + own.height > one.top - 4);
  const lefts = [1, 0.5, 0].map((part) => 16 + part * (innerWidth - 32 - own.width));
  if (free(own.left, own.top)) return;
  for (let top = 60; top + own.height < innerHeight - 8; top += 8) {
    const left = lefts.find((one) => free(one, top));
    if (left !== undefined) return void Object.assign(messages.style, { left: `${left}px`, top: `${top}px`, right: "auto" });
  }
}
new MutationObserver(putNotes).observe(messages, { childList: true });
addEventListener("scroll", putNotes, { passive: true });

/** What was told by lines that went away, the newest first. */
export const notices = [];

/** Show a line that goes away by itself. */
export function tell(text) {
  notices.unshift(`${new Date().toLocaleTimeString()}: ${text}`);
  notices.length = Math.min(notices.length, 50);
  const line = made("p", text);
  for (const same of [...messages.children].filter((one) => one.textContent === text)) same.remove();
  messages.append(line);
  setTimeout(() => line.remove(), 10_000);
}

let used = document.body; // what the person did something with last: what goes wrong then is said there
for (const kind of ["click", "change", "submit", "keydown"]) document.addEventListener(kind, ({ target }) => (used = target), true);

/** Say what went wrong where the person is, until it is closed or another thing goes wrong. */
export function fail({ what, why, fix, way, path }) {
  document.querySelector(".failed-here")?.remove();
  const near = used.closest?.("dialog, .question, .cbox, #queue, form, section.card, .pbody");
  const rows = used.closest?.("[data-rows]"); // they are drawn anew, and the card would go
  const place = rows ?? (near?.offsetHeight ? near : messages); // what was a menu is closed by now
  const [card, inner, buttons] = ["problem failed-here", "", "tools"].map((className) => made("div", "", { className }));
  card.role = "alert";
  if (path) buttons.append(made("a", way, { className: "btn", href: at + path }));
  buttons.append(pressed("Close", () => card.remove()));
  inner.append(made("strong", what), ...[why, fix].filter(Boolean).map((words) => made("p", words)), buttons);
  card.append(inner);
  used.closest?.("form")?.addEventListener("submit", () => card.remove(), { once: true });
  place[place.matches(".cbox, #queue, [data-rows]") ? "before" : "append"](card);
  card.scrollIntoView({ block: "nearest" });
}

/** Give the id of a message: what comes a second time with the same one is not done again. */
export const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => one.toString(16).padStart(2, "0")).join("");

const PAUSES = [300, 1_000, 3_000]; // milliseconds before a request is repeated that did not get through
const later = (pause) => new Promise((done) => setTimeout(done, pause));

/** Ask, and ask again where the network fails; null where it keeps failing. */
async function fetched(path, request, pauses) {
  for (let time = 0; ; time++) {
    try {
      return await fetch(at + path, request);
    } catch {
      if (time >= pauses.length) return null;
      await later(pauses[time]);
    }
  }
}

/** Read something; gives a good answer, or null after the person was told what went wrong. */
export async function get(path) {
  const answer = await fetched(path, {}, PAUSES);
  if (!answer) tell("Treadle cannot be reached.");
  return answer && good(answer);
}

/**
 * Send a request; gives its answer, or null after the person was told what went wrong. `refused` may tell it instead.
 * One that is done `once`, however often it arrives, is repeated where the network fails.
 */
export async function sendFor(path, body = {}, refused = () => false, once = false) {
  const request = { method: "POST", headers: { "content-type": "application/json", "x-treadle-key": key() }, body: JSON.stringify(body) };
  const answer = await fetched(path, request, once ? PAUSES : []);
  if (!answer) {
    tell(`Treadle cannot be reached. ${once ? "Try again." : "Check whether it was done before you try again."}`);
    return null;
  }
  return good(answer, refused);
}

async function good(answer, refused = () => false) {
  if (answer.ok) return answer;
  if (answer.status === 401) return location.reload() ?? null;
  const said = await answer.json().catch(() => ({ what: `The server answered ${answer.status}.` }));
  if (!refused(answer.status, said)) fail(said);
  return null;
}

/** Send a request; gives the JSON of its answer, or null after the person was told what went wrong. */
export async function send(path, body = {}, refused = () => false, once = false) {
  const answer = await sendFor(path, body, refused, once);
  return answer ? answer.json() : null;
}

/** Keep a button from being pressed again while what it began goes on; gives what that gives. */
export async function during(button, work) {
  button.disabled = true;
  const came = await work;
  button.disabled = false;
  return came;
}

const base = document.title;
const ICONS = { waiting: "icon-needs.svg", working: "icon-working.svg", "": "icon.svg" };

/** Say in the title, the icon and the badge what needs the person, on every screen and in tabs that nobody sees. */
function callFor(waiting, states) {
  // Those whose program ended while they waited are in the column only.
  const count = Object.values(waiting).reduce((sum, one) => sum + one, document.querySelectorAll("#sessions-column [data-state=asked]").length);
  for (const id of ["waiting", "waiting-phone"]) {
    const badge = document.getElementById(id);
    if (!badge) continue;
    badge.textContent = String(count);
    badge.hidden = count === 0;
  }
  const chip = document.getElementById("chip");
  const state = chip && !chip.classList.contains("done") ? chip.textContent : "";
  const where = document.getElementById("title")?.textContent;
  const plain = where ? [state, where].filter(Boolean).join(" · ") : base;
  const text = count ? `(${count}) ${plain}` : plain;
  if (document.title !== text) document.title = text;
  const sign = count ? "waiting" : Object.values(states).some((one) => one.sign === "working") ? "working" : "";
  const icon = document.getElementById("icon");
  const href = `${files}/${ICONS[sign]}`;
  if (icon.getAttribute("href") !== href) icon.setAttribute("href", href);
  navigator.setAppBadge?.(count).catch(() => {}); // 0 clears it
}

let [waiting, states] = [{}, {}];
document.addEventListener("news", ({ detail: news }) => {
  if (news.waiting) waiting = news.waiting;
  if (news.states) states = news.states;
  if (news.waiting || news.states || news.bar) call();
});
const call = () => queueMicrotask(() => callFor(waiting, states)); // when the chip says what came
for (const name of ["line", "column"]) document.addEventListener(name, call);

if (!document.body.dataset.session) listen(() => {});

async function comeAgain() {
  const token = tokenOfAddress();
  if (!token) return; // the address of a browser that was let in before loses the token, too
  const trouble = key() ? "" : await enter(token);
  if (trouble) tell(trouble);
  else goIn();
}

takeLook();
addEventListener("hashchange", comeAgain);
const coming = comeAgain(); // no module waits for it at its top level: WebKit would say before it that all have run

// All modules of the screen have run: keys are heard, news is read, and what came before is done now.
document.addEventListener("DOMContentLoaded", async () => {
  await coming;
  document.documentElement.dataset.ready = "1";
  document.dispatchEvent(new Event("ready"));
});
