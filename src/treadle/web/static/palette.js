// Everything that the page can do and go to, found by some of its letters, and the keys for it.

import { get, notices, tell } from "./app.js";
import { at, keepLook, shownSession } from "./entering.js";
import { keyParts, keys, mac, showKeys } from "./keys.js";
import { lost } from "./line.js";
import { fragment, icon, made, parsed } from "./morph.js";
import { keep, kept } from "./pages.js";

const LAST = "palette-last";
const MOST = 60;
const MOVES = 600; // milliseconds in which what moved takes no click
const looks = document.documentElement.classList;
const id = (name) => document.getElementById(name);
const always = () => true;
const press = (selector) => () => document.querySelector(selector)?.click();
const has = (selector) => () => {
  const found = document.querySelector(selector);
  return found !== null && !found.disabled && found.closest("[hidden]") === null;
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

const onLive = has("#say");

/** The undo of the last turn, where that is still possible: those of turns before it are not shown. */
const undo = () => [...document.querySelectorAll("[data-undo]:enabled")].findLast((one) => one.checkVisibility());

const findHere = () => show("Find in this session", [], said);

// What it is called, its icon and its key, whether it is possible on this screen, how it is done, and other words for it.
const COMMANDS = [
  ["Stop", "stop", "Esc Esc", has("#stop"), press("#stop"), "end cancel interrupt"],
  ["Choose the mode", "shield", "Alt-M", has("#choose-mode"), press("#choose-mode"), "change switch permissions"],
  ["Choose the model", "chip", "Alt-P", has("#choose-model"), press("#choose-model"), "change switch effort thinking"],
  ["Add images", "clip", "", onLive, press("#attach"), "attach pictures files"],
  ["Go to the newest", "down", "End", onLive, press("#newest"), "last bottom"],
  ["Go to the question", "alert", "Alt-Q", has("#questions .question"), press("#waits"), "answer allow reject"],
  ["Commit or push…", "branch", "", has("[data-commit]"), press("[data-commit]")],
  ["Undo the last turn", "undo", "", undo, () => undo().click(), "take back revert"],
  ...Object.entries({ Changes: "diff", Files: "file", Plan: "list", Terminal: "term", Context: "chart" }).map(([name, sign]) => [`Show ${name.toLowerCase()}`, sign, "", onLive, () => panel(name.toLowerCase())]),
  ["Next session", "down", "Alt-↓", always, () => beside(1)],
  ["Previous session", "up", "Alt-↑", always, () => beside(-1)],
  ["Narrow the column", "side", "[", always, press("#fold"), "fold widen"],
  ["Panel", "side", "]", has("#show-panel"), press("#show-panel"), "open close"],
  ...["as the system", "light", "dark"].map((name) => [`Theme: ${name}`, "eye", "", always, () => theme(name), "colours"]),
  ...[true, false].map((breaks) => [`Enter ${breaks ? "begins a line, Ctrl-Enter sends" : "sends"}`, "pencil", "", () => looks.contains("enter-breaks") !== breaks, () => { looks.toggle("enter-breaks", breaks); keepLook(); }]),
  ...[true, false].map((by) => [`Sessions by ${by ? "project" : "state"}`, "list", "", () => looks.contains("by-project") !== by, () => { looks.toggle("by-project", by); keepLook(); }, "group order"]),
  ["Notices", "bell", "", () => notices.length > 0, () => showNotices(), "messages"],
  ["Find in the session", "search", "/", () => shownSession !== "", findHere],
  ["Keys", "list", "?", always, showKeys, "shortcuts help"],
];

function showNotices() {
  const dialog = id("keys");
  dialog.replaceChildren(made("h2", "Notices"), ...notices.map((one) => made("p", one)));
  dialog.showModal();
}

const commands = () => COMMANDS.filter(([, , , possible]) => possible()).map(([title, sign, key, , does, also]) => ({ kind: "Do", title, icon: sign, about: "", key, does, also }));

/** Give an entry of the session's menu as a command; of one that is not possible now it says why. */
function ofMenu(entry) {
  const about = entry.querySelector("small")?.textContent ?? "This session";
  return { kind: "Do", title: entry.firstChild.data.trim(), icon: "more", about, also: "this session", does: () => (entry.disabled ? tell(about) : entry.click()) };
}

// ---- the list

const KINDS = { Recent: "Recent", Said: "In this session", Session: "Sessions", File: "Files", Do: "Commands", "Go to": "Commands", Setting: "Settings" };

const ICONS = { Recent: "clock", Said: "search", File: "file", "Go to": "right", Setting: "gear", Models: "chip", "Without a key": "key" };

const dialog = parsed(`<dialog id="palette" aria-label="Find and do"><label><input type="text" enterkeyhint="search" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-autocomplete="list" aria-label="Find" autocomplete="off" spellcheck="false"><button type="button" class="bare ico only-phone" aria-label="Close"></button></label><ul id="palette-list" role="listbox" aria-label="Found"></ul><p class="pkeys choosing" aria-hidden="true"><span><kbd>↑</kbd><kbd>↓</kbd> move</span><span><kbd>↵</kbd> choose</span></p><p class="pkeys" aria-hidden="true"><span><kbd>↑</kbd><kbd>↓</kbd> choose</span><span><kbd>↵</kbd> open</span><span><kbd>&gt;</kbd> commands only</span><span class="aside"><kbd>${mac ? "⌘" : "Ctrl"}</kbd><kbd>↵</kbd> open in a new tab</span></p></dialog>`);
document.body.append(dialog);
const [field, closes, list, aside] = dialog.querySelectorAll("input, button, ul, .aside");
field.before(icon("search"));
closes.append(icon("x"));
let known = [];
let only = null; // the rows that are chosen among, where it is not all that there is
let shown = [];
let chosen = 0;
let moved = false; // to the chosen row: it stays chosen when others come
let cameAt = 0; // when rows came that moved others: a click that was meant for one of these is none
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
  const all = only ?? ([...commands(), ...known, ...late].filter(({ kind }) => !wanted.startsWith(">") || KINDS[kind] === KINDS.Do));
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
    const said = letters.split(" ").every((word) => `${one.title} ${one.about}`.toLowerCase().includes(word) || ` ${one.also ?? ""}`.includes(` ${word}`));
    const strewn = !marks || gaps > (one.kind === "Setting" || letters.length < 3 ? 0 : 4 * letters.length); // over a sentence: no find
    if (said || !strewn) ranked.push([gaps + (marks?.[0] ? 1 : 0), { ...one, marks: strewn ? null : marks }]);
  }
  return ranked.sort(([a], [b]) => a - b).map(([, one]) => one);
}

function draw() {
  const order = Object.values(KINDS);
  const was = moved ? shown[chosen] : null;
  const group = ({ kind }) => order.indexOf(KINDS[kind]);
  shown = found(field.value.trimStart()).slice(0, MOST).sort((a, b) => group(a) - group(b));
  const still = shown.findIndex((one) => one.title === was?.title && one.path === was.path);
  chosen = still < 0 ? Math.min(chosen, Math.max(0, shown.length - 1)) : still;
  list.replaceChildren();
  shown.forEach((one, n) => {
    const heading = KINDS[one.kind] ?? one.kind;
    if (heading !== (KINDS[shown[n - 1]?.kind] ?? shown[n - 1]?.kind)) list.append(made("li", heading, { className: "kind", role: "presentation" }));
    const row = made("li", "", { id: `pal-${n}`, className: one.sign ?? (one.drawn ? "session" : "") });
    row.setAttribute("role", "option");
    const title = made("span", "", { className: one.kind === "File" ? "t cut mono" : "t cut" });
    for (const [place, char] of [...one.title].entries()) title.append(one.marks?.includes(place) ? made("u", char) : char);
    if (one.drawn) row.append(parsed(one.drawn));
    else if (ICONS[one.kind] || one.icon) row.append(icon(one.icon ?? ICONS[one.kind]));
    const ends = made("span", one.words ?? "", { className: "ends quiet" });
    ends.append(...(one.key ? keyParts(one.key) : []).map((key) => made("kbd", key)));
    row.append(title, made("span", one.about, { className: "g cut" }), one.now ? icon("check") : "", ends);
    list.append(row);
  });
  const less = lost() && !only ? "No connection: sessions, files and settings are not listed." : shown.length ? "" : "Nothing matches.";
  if (less) list.prepend(made("li", less, { className: "quiet", role: "option", ariaDisabled: "true" }));
  mark();
}

function mark() {
  const rows = [...list.querySelectorAll("[id]")];
  rows.forEach((row, n) => row.setAttribute("aria-selected", String(n === chosen)));
  field.setAttribute("aria-activedescendant", shown.length ? `pal-${chosen}` : "");
  aside.hidden = !shown[chosen]?.path;
  if (chosen === 0) list.scrollTop = 0;
  else rows[chosen]?.scrollIntoView({ block: "nearest" });
}

function run(one, beside = false) {
  if (!one) return;
  if (!only) keep(LAST, [one.title, ...last().filter((name) => name !== one.title)].slice(0, 8));
  dialog.close();
  if (beside && one.path) window.open(at + one.path, "_blank", "noopener");
  else if (one.does) one.does();
  else location.assign(at + one.path);
}

/** Give rows that the server finds in the session by words. */
const inSession = (what) => async (words) => {
  const answer = shownSession && (await fetch(`${at}/s/${shownSession}/${what}?${new URLSearchParams({ words })}`).catch(() => null));
  return answer?.ok ? answer.json() : [];
};
const [files, said] = ["named", "find"].map(inSession);

async function ask() {
  const mine = ++asked;
  const wanted = field.value.trim();
  const rows = more && wanted.length > 1 ? await more(wanted) : [];
  if (mine !== asked || !dialog.open) return;
  late = rows;
  if (rows.length) cameAt = performance.now();
  draw();
}

function show(placeholder, rows = null, finds = null) {
  [known, only, more, late, moved, chosen] = [[], rows, finds, [], false, Math.max(0, rows?.findIndex((one) => one.now) ?? 0)];
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
  const acts = document.querySelector("#more .acts");
  const paths = [`/palette?${new URLSearchParams({ session: shownSession })}`, ...(acts ? [`/s/${shownSession}/menu`] : [])];
  const [answer, menu] = lost() ? [] : await Promise.all(paths.map(get));
  if (!answer) return draw();
  if (menu) acts.replaceChildren(fragment(await menu.text()));
  known = [...(await answer.json()), ...[...(acts?.querySelectorAll("a, button") ?? [])].map(ofMenu)];
  cameAt = performance.now();
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
  [chosen, moved] = [0, false];
  draw();
  clearTimeout(typing);
  typing = setTimeout(ask, 150);
});
field.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by && shown.length) {
    event.preventDefault();
    [chosen, moved] = [(chosen + by + shown.length) % shown.length, true];
    mark();
  } else if (event.key === "Enter" && !event.isComposing) {
    event.preventDefault();
    run(shown[chosen], event.ctrlKey || event.metaKey);
  }
});
list.addEventListener("click", ({ target, timeStamp }) => timeStamp - cameAt > MOVES && run(shown[[...list.querySelectorAll("[id]")].indexOf(target.closest("li"))]));
dialog.addEventListener("click", ({ target }) => (target === dialog || target.closest("button")) && dialog.close());
document.addEventListener("line", () => dialog.open && draw());
document.addEventListener("click", ({ target }) => {
  const wanted = target.closest("[data-palette]")?.dataset.palette;
  if (wanted === "find") findHere();
  else if (wanted !== undefined) open();
});

const keyed = COMMANDS.filter(([, , key]) => key);
for (const [title, , key, possible, does] of keyed) keys([[key, title, does, possible]], possible === always);
keys([["n", "New session", () => location.assign(`${at}/`)], ["Ctrl-K", "Find and do", open]], true);
