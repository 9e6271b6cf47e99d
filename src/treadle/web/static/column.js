// The column of all sessions: it follows what happens, can be narrowed, and is a drawer on a phone.

import { sessionDone } from "./doing.js";
import { at, keepLook, shownSession } from "./entering.js";
import { lost } from "./line.js";
import { count, fragment, morph, put } from "./morph.js";
import { intoMessage, keep, kept } from "./pages.js";

const page = document.documentElement;
const column = document.getElementById("column");
const place = document.getElementById("sessions-column");
const PLACE = "column-at";

place.scrollTop = Number(sessionStorage.getItem(PLACE) ?? 0);
place.addEventListener("scroll", () => sessionStorage.setItem(PLACE, String(place.scrollTop)), { passive: true });

// ---- what happens: figures are put in place, and whoever moves to another group is read again

const known = () => new Map([...place.querySelectorAll(".ses")].map((row) => [row.dataset.session, row]));
const chip = document.getElementById("chip");
let bar = null; // what is true of the session that is shown
let [later, listed] = [0, Number(place.dataset.listed)];

async function read() {
  later = 0;
  if (place.querySelector("details[open]")) return void readSoon(); // a menu that is open stays under the finger
  const answer = await fetch(`${at}/sessions/column?${new URLSearchParams({ session: shownSession })}`).catch(() => null);
  if (!answer?.ok) return;
  const fresh = place.cloneNode(false);
  fresh.replaceChildren(fragment(await answer.text()));
  morph(place, fresh);
  if (place.querySelector("[data-gone]")) return void (intoMessage("", document.getElementById("text")?.value), location.reload());
  note();
  const own = place.querySelector("[data-title]")?.dataset; // also of a session that is not listed
  if (own) put(document.getElementById("title"), own.title), showFiles(own.files);
  document.dispatchEvent(new Event("column"));
}

setInterval(() => document.hidden || readSoon(), 60_000); // how long ago things were
const readSoon = () => (later ||= setTimeout(read, 500));

// ---- what is new since the person looked: this browser keeps when it showed each session

const SEEN = "seen-sessions";

function note() {
  const seen = kept(SEEN, {});
  const now = {};
  for (const [id, row] of known()) {
    const at = Number(row.querySelector("time").dataset.at);
    now[id] = id === shownSession && !document.hidden ? Date.now() : (seen[id] ?? at);
    row.classList.toggle("new", at > now[id] && row.dataset.state !== "working");
  }
  keep(SEEN, now);
}

note();
document.addEventListener("visibilitychange", note);

let files = place.querySelector("[data-files]")?.dataset.files;

/** Show how many files a session changed, where its record says another number than before. */
function showFiles(now) {
  if (now !== files) count("changes", Number(now) || "");
  files = now;
}

function showBar(state) {
  if (!state || !chip) return;
  showFiles(String(state.files));
  chip.className = `chip ${state.sign}`;
  put(chip, state.words);
  chip.title = state.why;
  put(document.getElementById("under-chip"), state.words);
  for (const id of ["cost", "under-cost"]) put(document.getElementById(id), [state.cost, state.budget].filter(Boolean).join(" of "));
  const mode = document.getElementById("bar-mode");
  mode.dataset.mode = state.mode;
  put(mode, state.mode.charAt(0).toUpperCase() + state.mode.slice(1));
  put(document.getElementById("bar-model"), state.model.split("/").at(-1));
}

document.addEventListener("line", ({ detail: { lost } }) => {
  if (!chip) return;
  if (lost) {
    chip.className = "chip lost";
    for (const one of [chip, document.getElementById("under-chip")]) put(one, "No connection");
  } else showBar(bar);
});

document.addEventListener("news", ({ detail: news }) => {
  const own = news.bar ?? news.states?.[shownSession];
  if (own) bar = own;
  if (own && !lost()) showBar(own);
  if (news.listed !== undefined && listed !== news.listed) readSoon();
  listed = news.listed ?? listed;
  for (const [name, said] of Object.entries(news.foot ?? {})) put(document.getElementById(name), said);
  if (!news.states) return;
  const rows = known();
  for (const [id, state] of Object.entries(news.states)) {
    const row = rows.get(id);
    if (!row || row.dataset.state !== state.sign) readSoon();
    else {
      put(row.querySelector(".added"), `+${state.added}`);
      put(row.querySelector(".removed"), `−${state.removed}`);
      if (!row.querySelector(".pm") && (state.added || state.removed)) readSoon();
    }
  }
  for (const [id, row] of rows) if (["working", "waiting", "until"].includes(row.dataset.state) && !news.states[id]) readSoon();
});

// ---- narrow, and as a drawer

const fold = document.getElementById("fold");
fold.setAttribute("aria-pressed", String(page.classList.contains("folded-column")));
fold.addEventListener("click", () => {
  page.classList.remove("by-itself");
  const folded = page.classList.toggle("folded-column");
  fold.setAttribute("aria-pressed", String(folded));
  keepLook();
});

document.addEventListener("change", ({ target }) => {
  if (!target.matches("input.look")) return;
  for (const one of document.getElementsByName(target.name)) if (one.value) page.classList.toggle(one.value, one.checked !== one.matches(".switch"));
  keepLook();
});
document.addEventListener("look", readSoon);

const opener = document.getElementById("open-column");
function drawer(open) {
  document.body.classList.toggle("drawer", open);
  opener.setAttribute("aria-expanded", String(open));
  opener.closest(".main").inert = open; // nothing that has the focus is behind it
  (open ? column.querySelector("a") : opener).focus();
}
opener.addEventListener("click", () => drawer(true));
document.getElementById("close-column").addEventListener("click", () => drawer(false));
matchMedia("(max-width: 820px)").addEventListener("change", () => document.body.classList.contains("drawer") && drawer(false));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.body.classList.contains("drawer")) {
    event.preventDefault();
    drawer(false);
  }
});

// ---- menus of sessions

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-menu] [data-do], #title");
  if (!button) return;
  const menu = button.closest("[data-menu]");
  if (menu) menu.open = false;
  const title = menu?.dataset.title ?? button.textContent;
  if (await sessionDone(button.dataset.do, menu?.dataset.menu ?? shownSession, title, button.dataset)) document.dispatchEvent(new Event("session-done"));
});

// What can be done with a session is read when its menu opens: it is what is possible then.
document.addEventListener(
  "toggle",
  async ({ target: menu }) => {
    if (!menu.open || !menu.dataset.menu) return;
    const answer = await fetch(`${at}/s/${menu.dataset.menu}/menu`).catch(() => null);
    const acts = menu.querySelector(".acts");
    if (answer?.ok) acts.replaceChildren(fragment(await answer.text()));
    else acts.textContent = "This cannot be loaded.";
    menu.querySelector(".choices").scrollIntoView({ block: "nearest" });
  },
  true,
);
place.addEventListener("contextmenu", (event) => {
  const menu = event.target.closest("li")?.querySelector("[data-menu]");
  if (!menu) return;
  event.preventDefault();
  menu.open = true;
  menu.querySelector("summary").focus();
});
for (const kind of ["click", "focusin"]) document.addEventListener(kind, (event) => {
  const copied = kind === "click" && event.target.closest("button[data-copy]");
  if (copied) navigator.clipboard?.writeText(copied.dataset.copy || copied.closest(".code").querySelector("pre").textContent);
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target) || copied) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  const menu = event.target.closest?.("details.menu[open]");
  const by = menu && { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by) {
    const all = [...menu.querySelectorAll("summary, a, button:enabled")].filter((one) => one.offsetParent);
    all[(all.indexOf(event.target) + by + all.length) % all.length].focus();
    event.preventDefault();
  }
  if (event.key !== "Escape" || !menu) return;
  event.preventDefault();
  menu.open = false;
  menu.querySelector("summary").focus();
});
