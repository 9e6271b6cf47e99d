// Everything that waits: the cards follow what happens in all sessions.

import { answerable, came } from "./questions.js";

const cards = document.getElementById("cards");
answerable(cards);
for (const card of cards.querySelectorAll(".question")) came(card);

document.addEventListener("news", async (event) => {
  if (!event.detail.waiting) return;
  const answer = await fetch("/inbox/cards");
  if (!answer.ok) return;
  const holder = document.createElement("template");
  holder.innerHTML = await answer.text();
  const known = new Map([...cards.querySelectorAll(".question")].map((one) => [one.dataset.question, one.parentElement]));
  const fresh = [...holder.content.children].map((one) => {
    const card = one.querySelector(".question");
    if (card && known.has(card.dataset.question)) return known.get(card.dataset.question); // what was typed in it stays
    if (card) came(card);
    return one;
  });
  cards.replaceChildren(...fresh);
});

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select") || !["j", "k"].includes(event.key)) return;
  const all = [...cards.querySelectorAll(".question")];
  const at = all.indexOf(document.activeElement);
  all[Math.min(all.length - 1, Math.max(0, at + (event.key === "j" ? 1 : -1)))]?.focus();
});
