// Everything that the page can do and go to, found by some of its letters, and the keys for it.

import { get, notices, tell } from "./app.js";
import { at, keepLook, shownSession } from "./entering.js";
import { keyParts, keys, mac, showKeys } from "./keys.js";
import { fragment, icon, made, parsed } from "./morph.js";
import { keep, kept } from "./pages.js";

const LAST = "palette-last";
const MOST = 60;
const looks = document.documentElement.classList;
const id = (name) => document.getElementById(name);
const always = () => true;
const press = (selector) => () => document.querySelector(selector)?.click();
const has = (selector) => () => {
  const found = document.querySelector(selector);
  return found !== null && !found.disabled && found.closest("[hidden]") === null;
};

/** Do something from the menu of the session, which is read first. */
const fromMenu = (names) => async () => {
  const menu = id("more");
  const found = () => menu.querySelector(names.map((name) => `[data-do=${name}]`).join());
  menu.querySelector(".acts").replaceChildren(); // what is possible now comes as it opens
  menu.open = true;
  for (let tries = 0; tries < 40 && !found(); tries++) await new Promise((done) => setTimeout(done, 50));
  menu.open = found()?.disabled === false;
  if (menu.open) found().click();
  else tell(found()?.querySelector("small")?.textContent || "This cannot be done with the session now.");
};

function theme(name) {
  for (const one of ["light", "dark"]) looks.toggle(one, one === name);
  keepLook();
}

function panel(name) {
  if (getComputedStyle(id("panel")).display === "none") id("show-panel").click();
  document.querySelector(`[data-tab=${name}]`).click();
}

function beside(by) {
  const rows = [...document.querySelectorAll("#sessions-column .ses")];
  const here = rows.findIndex((row) => row.dataset.session === shownSession);
  rows[here < 0 ? 0 : (here + by + rows.length) % rows.length]?.click();
}

const onSession = has("#more");
const onLive = has("#say");

const findHere = () => show("Find in this session", [], said);

// What it is called, its key, whether it is possible on this screen, and how it is done.
const COMMANDS = [
  ["Stop", "Esc Esc", has("#stop"), press("#stop")],
  ["Choose the mode", "Alt-M", has("#choose-mode"), press("#choose-mode")],
  ["Choose the model", "Alt-P", has("#choose-model"), press("#choose-model")],
  ["Add images", "", onLive, press("#attach")],
  ["Go to the newest", "End", onLive, press("#newest")],
  ["Go to the question", "Alt-Q", has("#questions .question"), press("#waits")],
  ["Commit or push…", "", has("[data-commit]"), press("[data-commit]")],
  ["Undo the last turn", "", has("[data-undo]"), () => [...document.querySelectorAll("[data-undo]")].at(-1).click()],
  ...["Changes", "Files", "Plan", "Terminal", "Context"].map((name) => [`Show ${name.toLowerCase()}`, "", onLive, () => panel(name.toLowerCase())]),
  ...["Rename", "Pin or unpin", "Fork", "Archive", "Close", "Delete"].map((name) => [`${name} this session`, "", onSession, fromMenu(name.toLowerCase().split(" or "))]),
  ["Next session", "Alt-↓", always, () => beside(1)],
  ["Previous session", "Alt-↑", always, () => beside(-1)],
  ["Narrow the column", "[", always, press("#fold")],
  ["Panel", "]", has("#show-panel"), press("#show-panel")],
  ...["as the system", "light", "dark"].map((name) => [`Theme: ${name}`, "", always, () => theme(name)]),
  ...[true, false].map((breaks) => [`Enter ${breaks ? "begins a line, Ctrl-Enter sends" : "sends"}`, "", () => looks.contains("enter-breaks") !== breaks, () => { looks.toggle("enter-breaks", breaks); keepLook(); }]),
  ...[true, false].map((by) => [`Sessions by ${by ? "project" : "state"}`, "", () => looks.contains("by-project") !== by, () => { looks.toggle("by-project", by); keepLook(); }]),
  ["Notices", "", () => notices.length > 0, () => showNotices()],
  ["Find in the session", "/", () => shownSession !== "", findHere],
  ["Keys", "?", always, showKeys],
];

function showNotices() {
  const dialog = id("keys");
  dialog.replaceChildren(made("h2", "Notices"), ...notices.map((one) => made("p", one)));
  dialog.showModal();
}

const commands = () => COMMANDS.filter(([, , possible]) => possible()).map(([title, key, , does]) => ({ kind: "Do", title, about: "", key, does }));

// ---- the list

const KINDS = { Recent: "Recent", Said: "In this session", Session: "Sessions", File: "Files", Do: "Commands", "Go to": "Go to", Setting: "Settings" };

const ICONS = { Recent: "clock", Said: "search", Session: "comment", File: "file", "Go to": "right", Setting: "gear", Models: "chip", "Without a key": "key" };

const dialog = parsed(`<dialog id="palette" aria-label="Find and do"><input type="text" enterkeyhint="search" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-autocomplete="list" aria-label="Find" autocomplete="off" spellcheck="false"><ul id="palette-list" role="listbox" aria-label="Found"></ul><p class="pkeys choosing" aria-hidden="true"><kbd>↑</kbd><kbd>↓</kbd> move <kbd>↵</kbd> choose</p><p class="pkeys" aria-hidden="true"><kbd>↑</kbd><kbd>↓</kbd> choose <kbd>↵</kbd> open <kbd>${mac ? "⌘" : "Ctrl"}</kbd><kbd>↵</kbd> open in a new tab <kbd>&gt;</kbd> commands only</p></dialog>`);
document.body.append(dialog);
const [field, list] = dialog.children;
let known = [];
let only = null; // the rows that are chosen among, where it is not all that there is
let shown = [];
let chosen = 0;
let asked = 0;
let more = null; // what finds rows for the words that are typed
let late = []; // those rows

const last = () => kept(LAST, []);

/** Give where the wanted letters are, the best first as a piece; null where they are not all there in this order. */
function places(text, wanted) {
  const low = text.toLowerCase();
  const piece = low.indexOf(wanted);
  if (piece >= 0) return Array.from(wanted, (_, n) => piece + n);
  const found = [];
  let from = 0;
  for (const char of wanted) {
    from = low.indexOf(char, from);
    if (from < 0) return null;
    found.push(from++);
  }
  return found;
}

function found(wanted) {
  const all = only ?? (wanted.startsWith(">") ? commands() : [...commands(), ...known, ...late]);
  const letters = wanted.replace(/^>\s*/, "").toLowerCase();
  if (more === said) return late.map((one) => ({ ...one, marks: places(one.title, letters) }));
  if (!letters && only) return only;
  if (!letters) {
    const names = last();
    const recent = names.map((name) => all.find((one) => one.title === name)).filter(Boolean);
    const others = all.filter((one) => !recent.includes(one) && (wanted || one.kind !== "Setting"));
    return [...recent.map((one) => ({ ...one, kind: "Recent" })), ...others.filter((one) => one.kind === "Session").slice(0, 8), ...others.filter((one) => one.kind !== "Session")];
  }
  const ranked = [];
  for (const one of all) {
    const marks = places(one.title, letters);
    const gaps = marks ? marks.at(-1) - marks[0] + 1 - marks.length : 50;
    const said = letters.split(" ").every((word) => `${one.title} ${one.about}`.toLowerCase().includes(word));
    const strewn = !marks || gaps > (one.kind === "Setting" ? 0 : 4 * letters.length); // over a sentence: no find
    if (said || !strewn) ranked.push([gaps + (marks?.[0] ? 1 : 0), { ...one, marks: strewn ? null : marks }]);
  }
  return ranked.sort(([a], [b]) => a - b).map(([, one]) => one);
}

function draw() {
  const order = Object.keys(KINDS);
  shown = found(field.value.trimStart()).slice(0, MOST).sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  chosen = Math.min(chosen, Math.max(0, shown.length - 1));
  list.replaceChildren();
  shown.forEach((one, n) => {
    if (one.kind !== shown[n - 1]?.kind) list.append(made("li", KINDS[one.kind] ?? one.kind, { className: "kind", role: "presentation" }));
    const row = made("li", "", { id: `pal-${n}`, className: one.sign ?? "" });
    row.setAttribute("role", "option");
    const title = made("span", "", { className: one.kind === "File" ? "t cut mono" : "t cut" });
    for (const [place, char] of [...one.title].entries()) title.append(one.marks?.includes(place) ? made("u", char) : char);
    if (ICONS[one.kind] || !only) row.append(icon(ICONS[one.kind] ?? "play"));
    row.append(title, made("span", one.about, { className: "g cut" }), one.now ? icon("check") : "");
    if (one.key) row.append(...keyParts(one.key).map((key) => made("kbd", key)));
    list.append(row);
  });
  if (!shown.length) list.append(made("li", "Nothing matches.", { className: "quiet", role: "option", ariaDisabled: "true" }));
  mark();
}

function mark() {
  const rows = [...list.querySelectorAll("[id]")];
  rows.forEach((row, n) => row.setAttribute("aria-selected", String(n === chosen)));
  field.setAttribute("aria-activedescendant", shown.length ? `pal-${chosen}` : "");
  if (chosen === 0) list.scrollTop = 0;
  else rows[chosen]?.scrollIntoView({ block: "nearest" });
}

function run(one, aside = false) {
  if (!one) return;
  if (!only) keep(LAST, [one.title, ...last().filter((name) => name !== one.title)].slice(0, 8));
  dialog.close();
  if (!one.path) one.does();
  else if (aside) window.open(at + one.path, "_blank", "noopener");
  else location.assign(at + one.path);
}

async function files(wanted) {
  if (!shownSession || wanted.startsWith(">") || !onLive()) return [];
  const answer = await fetch(`${at}/s/${shownSession}/files?${new URLSearchParams({ find: wanted })}`).catch(() => null);
  if (!answer?.ok) return [];
  return [...fragment(await answer.text()).querySelectorAll("[data-file]")].slice(0, 20).map((button) => ({
    kind: "File",
    title: button.dataset.file,
    about: "",
    does: () => {
      panel("files");
      document.dispatchEvent(new CustomEvent("show-file", { detail: button.dataset.file }));
    },
  }));
}

async function said(wanted) {
  const answer = await fetch(`${at}/s/${shownSession}/find?${new URLSearchParams({ words: wanted })}`).catch(() => null);
  return answer?.ok ? answer.json() : [];
}

async function ask() {
  const mine = ++asked;
  const wanted = field.value.trim();
  const rows = more && wanted.length > 1 ? await more(wanted) : [];
  if (mine !== asked || !dialog.open) return;
  late = rows;
  draw();
}

function show(placeholder, rows = null, finds = null) {
  [known, only, more, late, chosen] = [[], rows, finds, [], Math.max(0, rows?.findIndex((one) => one.now) ?? 0)];
  asked++;
  dialog.classList.toggle("picks", rows !== null);
  dialog.classList.toggle("few", 0 < rows?.length && rows.length < 8); // a menu, without a field to narrow it
  field.value = "";
  field.placeholder = placeholder;
  dialog.showModal();
  draw();
}

async function open() {
  if (document.querySelector("dialog[open]")) return;
  show("Find a session, file, setting or command", null, files);
  const answer = await get(`/palette?${new URLSearchParams({ session: shownSession })}`);
  if (!answer) return;
  known = await answer.json();
  draw();
}

/** Let one of these rows be chosen, in the same way; each has a kind, a title, words about it, what it does, and whether it is so `now`. */
export const pick = (placeholder, rows) => show(placeholder, rows);

/** Let a mode be chosen: to one that `asks` a person goes after a yes. */
export function pickMode(modes) {
  const sure = ({ title, about, does }, kind = `Go to mode ${title}?`) => () => pick(kind, [{ kind, title: "No", about: "", does() {} }, { kind, title: `Yes, ${title}`, about, does }]);
  pick("Choose a mode", modes.map((one) => ({ ...one, does: one.asks && !one.now ? sure(one) : one.does })));
}

let typing = 0;
field.addEventListener("input", () => {
  chosen = 0;
  draw();
  clearTimeout(typing);
  typing = setTimeout(ask, 150);
});
field.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by && shown.length) {
    event.preventDefault();
    chosen = (chosen + by + shown.length) % shown.length;
    mark();
  } else if (event.key === "Enter" && !event.isComposing) {
    event.preventDefault();
    run(shown[chosen], event.ctrlKey || event.metaKey);
  }
});
list.addEventListener("click", ({ target }) => run(shown[[...list.querySelectorAll("[role=option]")].indexOf(target.closest("li"))]));
dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
document.addEventListener("click", ({ target }) => {
  const wanted = target.closest("[data-palette]")?.dataset.palette;
  if (wanted === "find") findHere();
  else if (wanted !== undefined) open();
});

const keyed = COMMANDS.filter(([, key]) => key);
for (const [title, key, possible, does] of keyed) keys([[key, title, does, possible]], possible === always);
keys([["n", "New session", () => location.assign(`${at}/`)], ["Ctrl-K", "Find and do", open]], true);
