// Answering questions: with the buttons of a card, or with keys while the card has the focus. Typing answers nothing.

import { send, tell } from "./app.js";

const QUIET = 600; // milliseconds in which a card that has just come takes no answer: it may have moved under a finger

/** Let the cards in an element be answered. */
export function answerable(place) {
  place.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-option]");
    if (button) give(button.closest(".question"), button);
  });
  place.addEventListener("keydown", (event) => {
    const card = event.target.closest(".question");
    if (!card) return;
    if (event.target.matches("input[name=comment]") && event.key === "Enter") {
      event.preventDefault();
      const words = card.querySelector("button[data-words]") ?? card.querySelector("button.no");
      if (event.target.value.trim()) give(card, words);
    } else if (event.target === card && (event.ctrlKey || event.metaKey) && event.key === "Enter") {
      event.preventDefault();
      const first = card.querySelector("button[data-option=allow_once]");
      if (first) give(card, first);
    }
  });
}

/** Note when a card came. */
export function came(card) {
  card.dataset.came = String(performance.now());
}

async function give(card, button) {
  if (performance.now() - Number(card.dataset.came ?? 0) < QUIET) {
    tell("That came just now. Look at it, then answer.");
    return;
  }
  const comment = card.querySelector("input[name=comment]")?.value.trim() ?? "";
  const said = {
    question_id: card.dataset.question,
    option: button.dataset.option,
    text: button.dataset.text ?? comment,
    scope: button.dataset.scope ?? "session",
  };
  const fields = [...card.querySelectorAll(".field [name]")];
  if (fields.length && said.option === "allow_once") {
    said.arguments = Object.fromEntries(fields.map((field) => [field.name, valueOf(field)]));
  }
  for (const one of card.querySelectorAll("button")) one.disabled = true;
  const answered = await send(`/s/${card.dataset.session}/answer`, said);
  if (!answered) for (const one of card.querySelectorAll("button")) one.disabled = false;
}

function valueOf(field) {
  if (field.type === "checkbox") return field.checked;
  if (field.type === "number") return field.value === "" ? null : Number(field.value);
  return field.value;
}
