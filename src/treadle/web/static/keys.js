// Every key of the screen in one table: what is heard, and what `?` lists. Single keys are none in fields, and can be switched off.

import { made } from "./morph.js";

const LETTERS = "treadle-letters";
const WITHIN = 2_000; // milliseconds between two keys that belong together
const FIELDS = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]";
const SIGNS = { ArrowUp: "↑", ArrowDown: "↓", Enter: "↵", Escape: "Esc" };
const table = new Map();
let half = { name: "", at: 0 };

/** The keys of the screen that work in a question, too: any other one goes from it to the message field. */
export const OF_CARDS = "jkgo?";

export const mac = /Mac|iP/.test(navigator.platform);

/** Give the keys of a name as they are called on this computer. */
export const keyParts = (name) => name.split(/[ -]/).map((part) => (mac ? ({ Ctrl: "⌘", Alt: "⌥" }[part] ?? part) : part));

/** Give the name of what was pressed; empty where it is none of the page's. */
export function nameOf({ key, code, altKey, ctrlKey, metaKey }) {
  const plain = SIGNS[key] ?? key;
  if (altKey && (ctrlKey || mac) && /^[^\p{L}\p{N}]$/u.test(key)) return key; // a sign on the third level of a keyboard
  if (altKey) return ctrlKey || metaKey ? "" : `Alt-${code.startsWith("Key") ? code.slice(3) : plain}`;
  if (mac ? metaKey : ctrlKey) return `Ctrl-${plain.length === 1 ? plain.toUpperCase() : plain}`;
  return ctrlKey || metaKey ? "" : plain;
}

/**
 * Add keys: each has a name (`j`, `g i`, `Alt-M`), what it does in words, how, and whether that is possible now.
 * Those of the screen take the place of those of every screen. What a part hears by itself says no how.
 */
export function keys(rows, everywhere = false) {
  for (const [name, about, does, possible = () => true] of rows) table.set(name, { about, does, possible, everywhere });
}

const possible = (name) => (table.get(name)?.does && table.get(name).possible() ? table.get(name) : null);

addEventListener("keydown", (event) => {
  const { target, repeat, timeStamp } = event;
  const name = nameOf(event);
  const before = timeStamp - half.at < WITHIN && !repeat ? half.name : "";
  if (!["Shift", "AltGraph"].includes(name)) half = { name: "", at: 0 };
  if (!name || event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]") || target.closest("#shell")) return;
  const single = name.length === 1;
  if ((single || name === "End") && target.closest(FIELDS)) return;
  if (single && localStorage.getItem(LETTERS) === "off") return;
  const card = target.closest(".question");
  if (card && (name.startsWith("Alt-") || (single && !before && !OF_CARDS.includes(name)))) return;
  const both = before && possible(`${before} ${name}`);
  if (!both && !repeat && [...table.keys()].some((one) => one.startsWith(`${name} `) && possible(one))) {
    half = { name, at: timeStamp };
    document.dispatchEvent(new CustomEvent("half-key", { detail: { name, within: WITHIN } }));
  }
  const row = both || (before.length === 1 ? null : possible(name)); // the second key after `g` is not one by itself
  if (!row) return;
  event.preventDefault();
  row.does(event);
});

/** List the keys that do something on this screen now. */
export function showKeys() {
  const dialog = document.getElementById("keys");
  dialog.replaceChildren();
  for (const [everywhere, title] of [[false, "On this screen"], [true, "Everywhere"]]) {
    const list = made("dl");
    for (const [name, row] of table) {
      if (row.everywhere !== everywhere || !row.possible()) continue;
      const term = made("dt");
      term.append(...keyParts(name).map((part) => made("kbd", part)));
      list.append(term, made("dd", row.about));
    }
    if (list.firstChild) dialog.append(made("h2", title), list);
  }
  const label = made("label", "", { className: "check" });
  const box = made("input", "", { type: "checkbox", checked: localStorage.getItem(LETTERS) !== "off" });
  box.addEventListener("change", () => localStorage.setItem(LETTERS, box.checked ? "on" : "off"));
  label.append(box, "Single letters are keys, outside of fields");
  dialog.append(label);
  dialog.showModal();
  dialog.scrollTop = 0;
}

for (const link of document.querySelectorAll("nav a[data-key]")) {
  const words = (link.querySelector("span:not(.num)") ?? link).firstChild.textContent.trim();
  const go = () => document.querySelector(`nav a[data-key="${link.dataset.key}"]`)?.click();
  keys([[`g ${link.dataset.key}`, words, go]], link.closest(".head") === null);
}
keys([["Esc", "leave the field", ({ target }) => target.closest(FIELDS)?.blur()]], true);
if (mac) for (const one of document.querySelectorAll("kbd, [title*=Ctrl]")) one[one.title ? "title" : "textContent"] = (one.title || one.textContent).replace(/Ctrl[- ]?/, "⌘");
