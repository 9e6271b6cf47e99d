// Answering questions: with the buttons of a card, or with keys while the card has the focus. Typing answers nothing.

import { send, tell } from "./app.js";
import { keys, nameOf, OF_CARDS } from "./keys.js";
import { lost } from "./line.js";
import { made } from "./morph.js";
import { intoMessage, keep, kept } from "./pages.js";

const QUIET = 600; // milliseconds in which a card that has just come takes no answer: it may have moved under a finger
const mine = new Set();

/** Let the cards in an element be answered; `gone` is called with a card that was answered elsewhere. */
export function answerable(place, gone = (card) => card.remove()) {
  place.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-act]");
    const card = button?.closest(".question");
    if (!card) return;
    look(card);
    act(card, button, gone, event.detail > 0 && recent(card.dataset.moved));
  });
  place.addEventListener("change", ({ target }) => target.dataset.act && choose(target));
  place.addEventListener("keydown", (event) => {
    const card = event.target.closest(".question");
    if (!card || event.isComposing || event.repeat) return;
    const { key, target } = event;
    const button = target.closest(".panel")?.querySelector(".answers button");
    if (button && ((key === "Enter" && SENDS.includes(target.name)) || (nameOf(event) === "Ctrl-↵" && target.name))) {
      event.preventDefault();
      act(card, button, gone);
    } else if (key === "Escape" && panels(card).some((one) => !one.hidden)) {
      event.preventDefault();
      open(card, "");
      card.focus();
    } else if (target === card) keyIn(card, event, gone);
  });
}

const SENDS = ["comment", "note", "sure"]; // fields of which Enter is the first button below
const KEYS = { x: ["reject", "reject"], c: ["comment", "comment"], e: ["change", "change the call"] };
const asked = () => document.querySelector(".question") !== null;
const inCard = [["Ctrl-↵", "answer as chosen"], ["1…9", "choose how"], ...Object.entries(KEYS).map(([key, [, words]]) => [key, words])];
keys([
  ["j", "next question", () => stepBy(1), asked],
  ["k", "previous question", () => stepBy(-1), asked],
  ...inCard.map(([key, words]) => [key, `in a question: ${words}`, null, asked]),
]);

/** Do what a key means while the card itself has the focus; any other letter goes to the message. */
function keyIn(card, event, gone) {
  const key = nameOf(event);
  if (key === "Ctrl-↵") {
    event.preventDefault();
    const yes = card.classList.contains("danger") ? null : card.querySelector("button[data-act=allow]");
    if (yes) act(card, yes, gone);
    return;
  }
  if (key.length !== 1) return;
  const how = /^[1-9]$/.test(key) && [...card.querySelectorAll(".reach input")][Number(key) - 1];
  const button = key in KEYS && card.querySelector(`.answers button[data-act="${KEYS[key][0]}"]`);
  if (how) {
    event.preventDefault();
    how.checked = true;
    choose(how);
    showHow(card, true);
  } else if (button) {
    event.preventDefault();
    act(card, button, gone);
  } else if (!`${OF_CARDS} ${card.dataset.kind === "permission" ? "123456789" : ""}`.includes(key)) document.getElementById("text")?.focus(); // it is typed there
}

/** Let the button say what is chosen; only the button acts. */
function choose(input) {
  const button = input.closest(".question").querySelector("button[data-act=allow]");
  if (button) button.textContent = input.dataset.words;
}

function showHow(card, shown) {
  const list = card.querySelector(".reach");
  if (list) list.hidden = !shown;
  card.querySelector("button[data-act=how]")?.setAttribute("aria-expanded", String(shown));
  card.querySelector("footer").scrollIntoView({ block: "nearest" });
}

const chosen = (card) => card.querySelector(".reach input:checked")?.value ?? "allow";

// ---- what of a change was on the screen: a yes asks for a look first at what was never there

const seen = new IntersectionObserver((entries) => {
  for (const one of entries) {
    if (!one.isIntersecting) continue;
    one.target.dataset.seen = "1";
    seen.unobserve(one.target);
  }
});

const unseen = (card) => card.querySelector("[data-looked] .diff > :is(.add, .del):not([data-seen])");

/** Note that a card has come, or stands where another one stood: it takes no answer for a moment. */
export const moved = (card) => (card.dataset.came = String(performance.now()));
const recent = (since) => performance.now() - Number(since ?? -QUIET) < QUIET;

// A line that comes, a sheet that grows, a turned phone: where a card stands is looked at. What presses aimed at a place; a key has the focus.
const places = new WeakMap();
function look(card) {
  const boxes = [card, card.querySelector("footer > .answers") ?? card].map((one) => one.getBoundingClientRect());
  const place = boxes.flatMap(({ x, y }) => [Math.round(x), Math.round(y)]).join();
  if ((places.get(card) ?? place) !== place) card.dataset.moved = String(performance.now());
  places.set(card, place);
}
setInterval(() => document.querySelectorAll(".question").forEach(look), 100);

/** Begin with a card that has come. */
export function came(card) {
  moved(card);
  for (const row of card.querySelectorAll("[data-looked] .diff > :is(.add, .del)")) seen.observe(row);
  restore(card);
}

/** Whether this browser answered a question, or said so. */
export const wasMine = (card) => mine.has(keyOf(card));

/** What the answers of all sessions are known by. */
export const keyOf = (card) => `${card.dataset.session}/${card.dataset.question}`;

/** Move the focus to the next card, or the one before. */
export function step(place, by) {
  const all = [...place.querySelectorAll(".question")];
  const at = all.indexOf(document.activeElement?.closest(".question"));
  all[Math.min(all.length - 1, Math.max(0, at + by))]?.focus();
}

let stepBy = (by) => step(document, by);

/** Say what goes to the next card, or the one before, where they are not all on the screen. */
export const onStep = (does) => (stepBy = does);

const panels = (card) => [...card.querySelectorAll(".panel")];

function open(card, name, focused = true) {
  for (const panel of panels(card)) panel.hidden = panel.dataset.panel !== name;
  for (const button of card.querySelectorAll(".answers button[aria-expanded]:not([data-act=how])")) {
    button.setAttribute("aria-expanded", String(button.dataset.act === name));
  }
  if (!focused) return;
  card.querySelector(`.panel[data-panel="${CSS.escape(name)}"] :is(input, textarea, button)`)?.focus({ preventScroll: true });
  card.querySelector("footer").scrollIntoView({ block: "nearest" });
}

// ---- what is half-written in a card stays through a reload, but for the yes to what is dangerous

const fieldsOf = (panel) => [...panel.querySelectorAll("[name]:not([name=sure])")];
const written = (one) => one.value !== one.defaultValue || one.checked !== one.defaultChecked;
const half = (card) => panels(card).find((one) => !one.hidden && fieldsOf(one).some(written));
document.addEventListener("input", ({ target }) => {
  const panel = target.closest?.(".question .panel");
  if (panel) keep(panel.closest(".question").id, [panel.dataset.panel, ...fieldsOf(panel).map((one) => [one.value, one.checked])]);
});

function restore(card) {
  const [name, ...values] = kept(card.id, []);
  const panel = panels(card).find((one) => one.dataset.panel === name);
  if (panel) open(card, name, false); // a question takes the focus from nobody
  if (panel) fieldsOf(panel).forEach((one, at) => ([one.value, one.checked] = values[at] ?? ["", false]));
}

const LOOKED = ["allow", "edits", "session", "noted", "save", "keep", "changed", "sure"];
const SURE = ["allow", "changed", "for real"];
const PANELS = ["always", "blocks", "comment", "change", "reasons", "else"];
const YES = { option: "allow_once" };
const ACTS = {
  allow: () => YES,
  noted: (card) => ({ ...YES, text: card.querySelector("input[name=note]").value.trim() }),
  sure: (card) => ({ option: card.dataset.yes, ...(card.dataset.changes ? changed(card) : {}) }),
  edits: () => ({ ...YES, edits: true }),
  session: () => ({ option: "allow_always", scope: "session" }),
  save: () => ({ option: "allow_always", scope: "user" }),
  "for real": () => ({ option: "run_for_real" }),
  reject: () => ({ option: "reject_once" }),
  no: (card) => ({ option: "reject_once", text: comment(card) }),
  option: (_, button) => ({ option: "answer", text: button.dataset.text }),
  words: (card) => ({ option: "answer", text: comment(card) }),
  chosen: (card) => ({ option: "answer", text: several(card) }),
  keep: (card) => ({ ...YES, blocks: [...card.querySelectorAll("input[name=block]")].map((one) => one.checked) }),
  changed: (card) => ({ ...YES, ...changed(card) }),
};

const changed = (card, one = card.querySelector("[name=changed]")) => (one ? { name: one.dataset.name, changed: one.value } : { texts: fieldsOf(card.querySelector("[data-panel=change]")).map(({ value }) => value) });
const comment = (card) => card.querySelector(".panel:not([hidden]) input[name=comment]")?.value.trim() ?? "";
const several = (card) => [...card.querySelectorAll("[name=chosen]:checked")].map((one) => one.value).join("\n");
const isOpen = (card, name) => panels(card).some((one) => one.dataset.panel === name && !one.hidden);

/** Say in the card what an answer still needs, before a part of it. */
function say(card, words, where = card.querySelector("footer")) {
  card.querySelector(".needed")?.remove();
  if (words) where.before(made("p", words, { className: "needed", role: "alert" }));
}

function act(card, button, gone, astray = false) {
  let name = button.dataset.act;
  say(card);
  const danger = card.classList.contains("danger");
  if (name === "allow" && !danger) name = chosen(card);
  if ((ACTS[name] || name === "always") && half(card) && !half(card).contains(button)) {
    say(card, "What you wrote or chose below would be lost. Use the button beside it, or “Back”.");
  } else if (name === "close") {
    open(card, "");
    card.focus();
  } else if (name === "how") showHow(card, card.querySelector(".reach").hidden);
  else if (name === "whole") {
    for (const box of card.querySelectorAll(".box.long")) box.classList.add("all");
    for (const line of card.querySelectorAll(".more")) line.hidden = true;
  } else if (PANELS.includes(name) || (name === "reject" && card.querySelector(".panel[data-panel=reject]"))) {
    open(card, isOpen(card, name) && name !== "always" ? "" : name);
  } else if (danger && SURE.includes(name)) {
    card.dataset.changes = name === "changed" ? "1" : "";
    open(card, "allow");
  } else if (name === "sure" && card.querySelector("input[name=sure]").value.trim().toLowerCase() !== "yes") say(card, "Type yes into the field to continue.");
  else if (name === "words" && !comment(card)) card.querySelector("input[name=comment]").focus();
  else if (name === "chosen" && !several(card)) say(card, "Choose at least one of the answers.");
  else if (LOOKED.includes(name) && unseen(card)) {
    say(card, "Not all of this was on the screen. Look at it, then answer.", unseen(card));
    unseen(card).scrollIntoView({ block: "center" });
  } else if (astray) tell("This question has just moved. Read it, then answer.");
  else give(card, ACTS[name](card, button), gone);
}

async function give(card, said, gone) {
  if (recent(card.dataset.came)) return tell("This question has just appeared. Read it, then answer."); // in the card it would move it
  if (lost()) return say(card, "No connection. Answer when it is back.");
  const fields = [...card.querySelectorAll(".field [name]")];
  if (fields.length && said.option === "allow_once") {
    if (!fields.every((field) => field.reportValidity())) return;
    said.fields = Object.fromEntries(fields.map((field) => [field.name, valueOf(field)]));
  }
  if (card.contains(document.activeElement)) card.focus({ preventScroll: true }); // a button that is disabled would lose it
  for (const one of card.querySelectorAll("button")) one.disabled = true;
  mine.add(keyOf(card));
  const path = `/s/${card.dataset.session}/answer`;
  const answered = await send(path, { question_id: card.dataset.question, ...said }, (status, why) => {
    if (status !== 409 || why.code !== "answered") return false;
    closeLine(card, why.what, gone);
    return true;
  });
  if (answered) keep(card.id, null);
  else for (const one of card.querySelectorAll("button")) one.disabled = false;
}

const valueOf = (field) => (field.type === "checkbox" ? (field.checked ? "yes" : "no") : field.value);

const LINE = 4_000; // milliseconds that a card says how it was answered elsewhere

/** Let a card say how it was answered elsewhere, and go. */
export function closeLine(card, words, gone) {
  if (card.classList.contains("closed-line")) return;
  const focused = card.contains(document.activeElement);
  const left = half(card) && fieldsOf(half(card)).filter(({ type }) => type !== "checkbox").map(({ value }) => value.trim()).join("\n");
  card.classList.add("closed-line");
  card.replaceChildren(made("p", left ? `${words} What you were writing is in the message field.` : words, { id: card.getAttribute("aria-labelledby") }));
  if (left) intoMessage(card.dataset.session, left);
  keep(card.id, null);
  if (focused) card.focus({ preventScroll: true });
  setTimeout(() => gone(card), LINE);
}
