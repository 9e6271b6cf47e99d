// Everything that waits: the list and the cards follow what happens in all sessions; one card is shown.

import { get, send } from "./app.js";
import { keys } from "./keys.js";
import { lost } from "./line.js";
import { fragment, morph, parsed, put } from "./morph.js";
import { answerable, came, closeLine, keyOf, moved, onStep, wasMine } from "./questions.js";

const inbox = document.getElementById("inbox");
const list = document.getElementById("asked");
const cards = document.getElementById("cards");
const by = inbox.dataset.by ? `?by=${inbox.dataset.by}` : "";
let said = {};

const of = (section) => section.querySelector(".question");
const sections = () => [...cards.querySelectorAll(".card")];
const shown = () => cards.querySelector(".card.on");
const rows = () => [...list.querySelectorAll("a.item")];

/** Show a card; `focused` moves the focus to it. */
function show(section, focused = false) {
  if (section && section !== shown() && of(section)) moved(of(section));
  for (const one of sections()) one.classList.toggle("on", one === section);
  const id = section && of(section)?.id;
  const all = rows();
  all.forEach((row, at) => {
    const on = row.dataset.card === id;
    row.ariaCurrent = on ? "true" : null;
    if (on) section.querySelector("[data-of]").textContent = `${at + 1} of ${all.length}`;
  });
  if (!focused || !section) return;
  if (id && location.hash !== `#${id}`) location.replace(`#${id}`);
  (of(section) ?? section).focus();
}

const cardOf = (id) => sections().find((one) => of(one)?.id === id);

/** Give the card of the row that is so many further down than the one that is shown. */
function beside(by) {
  const all = rows();
  const at = all.findIndex((row) => row.hasAttribute("aria-current")) + by;
  return cardOf(all[Math.min(all.length - 1, Math.max(0, at))]?.dataset.card);
}

const step = (by) => beside(by) && show(beside(by), true);

onStep(step);

/** Show several calls of one effect in full, and allow those that are ticked, each by its own question. */
function together(ids) {
  const there = ids.map((id) => document.getElementById(id)).filter(Boolean);
  const dialog = parsed('<dialog class="alike" aria-labelledby="alike-title"><h2 id="alike-title">Allow these once?</h2><ul></ul><div class="answers"><button type="button">Cancel</button><button type="button" class="fill"></button></div></dialog>');
  const [no, yes] = dialog.querySelectorAll(".answers button");
  const boxes = there.map((card) => {
    const row = parsed('<li><label class="check"><input type="checkbox" checked><b></b></label></li>');
    row.querySelector("b").textContent = `${card.querySelector("h2").textContent} · ${card.closest(".card").querySelector(".crumb a").textContent}`;
    const what = card.querySelector(".scrolls-in").cloneNode(true);
    for (const one of what.querySelectorAll("button, .more")) one.remove();
    for (const one of what.querySelectorAll(".long")) one.classList.add("all");
    row.append(what);
    dialog.querySelector("ul").append(row);
    return row.querySelector("input");
  });
  const count = () => {
    const chosen = boxes.filter((one) => one.checked).length;
    yes.textContent = `Allow ${chosen} once`;
    yes.disabled = chosen === 0;
  };
  dialog.addEventListener("change", count);
  no.addEventListener("click", () => dialog.close());
  yes.addEventListener("click", async () => {
    dialog.close();
    for (const [at, card] of there.entries()) {
      if (boxes[at].checked && card.isConnected) await send(`/s/${card.dataset.session}/answer`, { question_id: card.dataset.question, option: "allow_once" });
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  count();
  document.body.append(dialog);
  dialog.showModal();
  no.focus();
}

inbox.addEventListener("click", (event) => {
  const alike = event.target.closest("[data-together]");
  if (alike) together(alike.dataset.together.split(" "));
  const button = event.target.closest("button[data-step]");
  if (button) step(Number(button.dataset.step));
});
keys([["o", "open the session", () => shown().querySelector(".crumb a").click(), () => Boolean(shown())]]);

function leave(card) {
  const section = card.closest(".card");
  if (!section) return;
  const next = [beside(1), beside(-1)].find((one) => one !== section);
  const [focused, on] = [section.contains(document.activeElement), section.classList.contains("on")];
  section.remove();
  if (on) show(next ?? null, focused);
  tidy();
  if (!sections().length) follow(); // that nothing waits is said once the last card is gone
}

answerable(cards, leave);

/** Take over a card that came: where there is room the ways to say yes stand open. */
function take(section) {
  const card = of(section);
  came(card);
  for (const how of card.querySelectorAll(".reach")) how.hidden = false;
  card.querySelector("[data-act=how]")?.remove();
}

/** Put the list into its place, and say how it stands. */
function tidy(fresh = null) {
  const found = fresh ?? cards.querySelector(".ilist");
  if (found) list.replaceChildren(found);
  const any = cards.querySelector(".card") !== null;
  if (!any) list.replaceChildren();
  put(document.getElementById("how-many"), (any && list.firstElementChild?.dataset.counted) || "");
  inbox.classList.toggle("none", !any);
  const known = new Set(sections().map((one) => of(one)?.id));
  for (const row of rows()) if (!known.has(row.dataset.card)) row.remove();
  show(shown() ?? cardOf(rows()[0]?.dataset.card) ?? null);
}

for (const section of sections()) take(section);
tidy();
const named = () => cardOf(location.hash.slice(1));
show(named() ?? shown());
addEventListener("hashchange", () => named() && show(named(), true));

async function follow() {
  const answer = await get(`/inbox/cards${by}`);
  if (!answer) return;
  const content = fragment(await answer.text());
  const known = new Map([...cards.querySelectorAll(".question:not(.closed-line)")].map((one) => [one.id, one]));
  for (const fresh of content.querySelectorAll(".card")) {
    const old = known.get(of(fresh).id)?.closest(".card");
    if (!old) {
      take(fresh);
      cards.append(fresh);
    } else for (const part of [".crumb .meta", ".alike"]) morph(old.querySelector(part), fresh.querySelector(part)); // what was typed in it stays
    known.delete(of(fresh).id);
  }
  for (const card of known.values()) {
    const how = said[keyOf(card)];
    if (how && !wasMine(card)) closeLine(card, how, leave);
    else leave(card);
  }
  const empty = cards.querySelector(".nothing");
  const any = cards.querySelector(".card") !== null;
  if (empty && any) empty.remove();
  const nothing = content.querySelector(".nothing");
  if (!empty && !any && nothing) cards.append(nothing);
  tidy(content.querySelector(".ilist"));
}

// One after the other: the answer to an older request must not undo a newer one.
let going = Promise.resolve();
setInterval(() => document.hidden || lost() || (going = going.then(follow, follow)), 60_000); // how long each waits
document.addEventListener("news", (event) => {
  if (event.detail.answered) said = event.detail.answered;
  if (event.detail.asked) going = going.then(follow, follow);
});
