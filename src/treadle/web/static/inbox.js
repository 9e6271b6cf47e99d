// Everything that waits: the cards follow what happens in all sessions.

import { get, tell } from "./app.js";
import { answerable, came, keyOf, wasMine } from "./questions.js";

const cards = document.getElementById("cards");
let said = {};

const of = (section) => section.querySelector(".question");

function leave(card) {
  const section = card.closest(".card");
  const next = section.nextElementSibling ?? section.previousElementSibling;
  const focused = section.contains(document.activeElement);
  section.remove();
  if (focused && next) of(next)?.focus();
}

answerable(cards, leave);
for (const card of cards.querySelectorAll(".question")) came(card);

async function follow() {
  const answer = await get("/inbox/cards");
  if (!answer) return;
  const holder = document.createElement("template");
  holder.innerHTML = await answer.text();
  const known = new Map([...cards.querySelectorAll(".question")].map((one) => [one.id, one]));
  for (const fresh of [...holder.content.children]) {
    const card = of(fresh);
    if (card && known.delete(card.id)) continue; // what was typed in it stays
    if (card) came(card);
    if (card || known.size === 0) cards.append(fresh);
  }
  for (const card of known.values()) {
    const how = said[keyOf(card)];
    if (how && !wasMine(card)) tell(how);
    leave(card);
  }
  const empty = cards.querySelector(".nothing");
  const any = cards.querySelector(".question") !== null;
  if (empty && any) empty.remove();
  if (!empty && !any) cards.append(...holder.content.children);
}

// One after the other: the answer to an older request must not undo a newer one.
let going = Promise.resolve();
document.addEventListener("news", (event) => {
  if (event.detail.answered) said = event.detail.answered;
  if (event.detail.asked) going = going.then(follow, follow);
});
