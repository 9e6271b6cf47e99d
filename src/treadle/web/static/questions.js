// Answering questions: with the buttons of a card, or with keys while the card has the focus. Typing answers nothing.

import { send, tell } from "./app.js";

const QUIET = 600; // milliseconds in which a card that has just come takes no answer: it may have moved under a finger
const TYPING = "input, textarea, select, button, summary, a";
const mine = new Set();

/** Let the cards in an element be answered; `gone` is called with a card that was answered elsewhere. */
export function answerable(place, gone = (card) => card.remove()) {
  place.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-act]");
    if (button) act(button.closest(".question"), button, gone);
  });
  place.addEventListener("keydown", (event) => {
    const card = event.target.closest(".question");
    if (!card || event.isComposing) return;
    if (event.key === "Enter" && event.target.matches("input[name=comment]")) {
      event.preventDefault();
      if (event.target.value.trim()) act(card, card.querySelector("button[data-act=words], button.no"), gone);
    } else if (event.key === "Enter" && event.target.matches("input[name=sure]")) {
      event.preventDefault();
      act(card, card.querySelector("button[data-act=sure]"), gone);
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target === card) {
      event.preventDefault();
      const yes = card.querySelector("button[data-act=allow]");
      if (yes) act(card, yes, gone);
    } else if (event.key === "Escape" && panels(card).some((one) => !one.hidden)) {
      event.preventDefault();
      open(card, "");
      card.focus();
    }
  });
}

/** Note when a card came. */
export function came(card) {
  card.dataset.came = String(performance.now());
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

document.addEventListener("keydown", (event) => {
  if (!["j", "k"].includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest(TYPING) && !event.target.matches("button")) return;
  step(document, event.key === "j" ? 1 : -1);
});

const panels = (card) => [...card.querySelectorAll(".panel")];

function open(card, name) {
  for (const panel of panels(card)) panel.hidden = panel.dataset.panel !== name;
  for (const button of card.querySelectorAll("button[aria-expanded]")) {
    button.setAttribute("aria-expanded", String(button.dataset.act === name));
  }
  card.querySelector(`.panel[data-panel="${CSS.escape(name)}"] :is(input, button)`)?.focus();
}

const SURE = ["allow", "changed", "for real"];
const YES = { option: "allow_once" };
const ACTS = {
  allow: () => YES,
  sure: (card) => ({ option: card.dataset.yes, ...(card.dataset.changes ? changed(card) : {}) }),
  edits: () => ({ ...YES, edits: true }),
  session: () => ({ option: "allow_always", scope: "session" }),
  save: () => ({ option: "allow_always", scope: "user" }),
  "for real": () => ({ option: "run_for_real" }),
  reject: () => ({ option: "reject_once" }),
  option: (_, button) => ({ option: "answer", text: button.dataset.text }),
  words: (card) => ({ option: "answer", text: comment(card) }),
  keep: (card) => ({ ...YES, blocks: [...card.querySelectorAll("input[name=block]")].map((one) => one.checked) }),
  changed: (card) => ({ ...YES, ...changed(card) }),
};

function changed(card) {
  const field = card.querySelector("[name=changed]");
  return { name: field.dataset.name, changed: field.value };
}

const comment = (card) => card.querySelector("input[name=comment]")?.value.trim() ?? "";

function act(card, button, gone) {
  const name = button.dataset.act;
  const danger = card.classList.contains("danger");
  if (name === "close") {
    open(card, "");
    card.focus();
  } else if (name === "always" || name === "blocks" || (danger && SURE.includes(name))) {
    card.dataset.changes = name === "changed" ? "1" : "";
    open(card, SURE.includes(name) ? "allow" : name);
  } else if (name === "sure" && card.querySelector("input[name=sure]").value.trim().toLowerCase() !== "yes") {
    tell("Type yes into the field to continue.");
  } else if (name === "words" && !comment(card)) {
    card.querySelector("input[name=comment]").focus();
  } else give(card, { text: comment(card), ...ACTS[name](card, button) }, gone);
}

async function give(card, said, gone) {
  if (performance.now() - Number(card.dataset.came ?? 0) < QUIET) {
    tell("This question has just appeared. Read it, then answer.");
    return;
  }
  const fields = [...card.querySelectorAll(".field [name]")];
  if (fields.length && said.option === "allow_once") {
    if (!fields.every((field) => field.reportValidity())) return;
    said.fields = Object.fromEntries(fields.map((field) => [field.name, valueOf(field)]));
  }
  for (const one of card.querySelectorAll("button")) one.disabled = true;
  mine.add(keyOf(card));
  const path = `/s/${card.dataset.session}/answer`;
  const answered = await send(path, { question_id: card.dataset.question, ...said }, (status, why) => {
    if (status !== 409 || why.code !== "answered") return false;
    tell(why.what);
    gone(card);
    return true;
  });
  if (!answered) for (const one of card.querySelectorAll("button")) one.disabled = false;
}

const valueOf = (field) => (field.type === "checkbox" ? (field.checked ? "yes" : "no") : field.value);
