// One session: its items come and change in place, its questions are asked, and what is true of it is shown.

import { get, listen, send, showWaiting } from "./app.js";
import { composer } from "./compose.js";
import { morph, parsed } from "./morph.js";
import { answerable, came } from "./questions.js";
import { beside } from "./beside.js";

const { session, cursor } = document.body.dataset;
const items = document.getElementById("items");
const questions = document.getElementById("questions");
const earlier = document.getElementById("earlier");
const newest = document.getElementById("newest");
const now = document.getElementById("now");
const page = document.documentElement;
const number = (element) => Number(element.id.slice(1));
let first = Number(document.body.dataset.first);
let status = null;
let skew = 0;

// ---- where the person is on the page: at the end it follows, elsewhere nothing moves

const NEAR = 60;
const GAP = 8; // pixels between what covers the top of the page and a card that is brought there
let lastTop = window.scrollY;
const atEnd = () => window.innerHeight + window.scrollY >= page.scrollHeight - NEAR;
let following = true;

/** Go to the end, or to the beginning of a question that is longer than the screen. */
function toEnd() {
  const card = questions.firstElementChild;
  const covered = document.querySelector("header.top").offsetHeight + GAP;
  const room = window.innerHeight - covered - document.getElementById("say").offsetHeight;
  const top = card && card.offsetHeight > room ? card.getBoundingClientRect().top + window.scrollY - covered : page.scrollHeight;
  window.scrollTo({ top, behavior: "instant" });
  lastTop = window.scrollY;
}

function follow(yes) {
  following = yes;
  if (yes) newest.hidden = true;
}

window.addEventListener(
  "scroll",
  () => {
    // What grows moves the end away without anybody scrolling: only going up ends the following.
    if (atEnd()) follow(true);
    else if (window.scrollY < lastTop - 2) {
      follow(false);
      newest.hidden = false;
    }
    lastTop = window.scrollY;
  },
  { passive: true },
);
new ResizeObserver(() => {
  // A card in which somebody reads or writes stays where it is.
  if (following && !questions.contains(document.activeElement)) toEnd();
}).observe(document.querySelector(".talk"));
newest.addEventListener("click", () => {
  follow(true);
  toEnd();
});

// ---- items

function place(position, html) {
  if (position < first) return;
  const fresh = parsed(html);
  const known = document.getElementById(`i${position}`);
  if (known) {
    morph(known, fresh);
    return;
  }
  let before = items.lastElementChild;
  while (before && number(before) > position) before = before.previousElementSibling;
  if (before) before.after(fresh);
  else items.prepend(fresh);
}

items.addEventListener("click", (event) => {
  const details = event.target.closest("summary")?.parentElement;
  if (details) details.dataset.touched = "1";
});

items.addEventListener("click", (event) => {
  const own = event.target.closest("button[data-own]");
  if (own) send(`/s/${session}/commands/stop`, { number: Number(own.dataset.own) });
});

let looking = false;

async function lookBack() {
  if (looking || earlier.hidden) return;
  looking = true;
  try {
    const answer = await get(`/s/${session}/items?before=${first}`);
    if (!answer) return;
    const holder = document.createElement("template");
    holder.innerHTML = await answer.text();
    const added = holder.content.querySelectorAll("li.item");
    const anchor = items.firstElementChild;
    const top = anchor?.getBoundingClientRect().top ?? 0;
    if (added.length) first = number(added[0]);
    items.prepend(holder.content);
    earlier.hidden = answer.headers.get("x-more") !== "yes";
    if (anchor) window.scrollBy({ top: anchor.getBoundingClientRect().top - top, behavior: "instant" });
  } finally {
    looking = false;
  }
}

earlier.addEventListener("click", lookBack);
new IntersectionObserver((seen) => {
  if (seen.some((one) => one.isIntersecting) && window.scrollY < lastTop + 1 && !following) lookBack();
}).observe(earlier);

// ---- what is true of the session

const WORDS = {
  ASSEMBLING_CONTEXT: "Preparing",
  AWAITING_LLM_RESPONSE: "Thinking",
  JUDGING: "Checking",
  AWAITING_USER_CONFIRMATION: "Waiting for your answer",
  EXECUTING_TOOL: "Working",
  COMPACTING: "Making room in the context",
  CANCELLING: "Stopping",
};

const side = beside(session);
const writing = composer(session, { isActive: () => status?.active ?? false, followed: () => follow(true) });

function show(news) {
  status = news;
  const { active } = news;
  document.body.classList.toggle("working", active);
  document.getElementById("stop").hidden = !active;
  document.getElementById("steer").hidden = !active;
  document.getElementById("send").textContent = active ? "Queue" : "Send";
  side.show(news);
  ask(news.questions);
  tick();
}

function ask(asked) {
  const known = new Map([...questions.children].map((card) => [card.dataset.question, card]));
  for (const [id, html] of asked) {
    const fresh = parsed(html);
    const card = known.get(id);
    if (!card) {
      came(fresh);
      questions.append(fresh);
    } else known.delete(id); // what was typed in it stays
  }
  for (const card of known.values()) leave(card);
}

function leave(card) {
  const focused = card.contains(document.activeElement);
  card.remove();
  if (focused) (questions.querySelector(".question") ?? writing.text).focus({ preventScroll: true });
}

answerable(questions, leave);

const two = (number) => String(number).padStart(2, "0");
const span = (seconds) => {
  const minutes = Math.floor(seconds / 60);
  if (!minutes) return `${seconds} s`;
  return minutes < 60 ? `${minutes}m ${two(seconds % 60)}s` : `${Math.floor(minutes / 60)}h ${two(minutes % 60)}m`;
};
const left = (at) => Math.max(0, Math.round((at - (Date.now() + skew)) / 1000));

/** Show what changes with the time alone. */
function tick() {
  for (const one of items.querySelectorAll(".since")) {
    const text = span(Math.max(0, Math.floor((Date.now() + skew - Number(one.dataset.since)) / 1000)));
    if (one.textContent !== text) one.textContent = text;
  }
  if (!status) return;
  const retry = status.retry && `${status.retry}${status.retry_at ? ` in ${span(left(status.retry_at))}` : ""}.`;
  const text = retry || (status.active ? `${WORDS[status.phase] ?? "Working"} …` : "");
  if (now.textContent !== text) now.textContent = text;
}
setInterval(tick, 1_000);

listen(
  (news) => {
    if (news.now) skew = news.now - Date.now();
    if (news.waiting) showWaiting(news.waiting);
    for (const [position, html] of news.items ?? []) place(position, html);
    if (news.status) show(news.status);
    if (news.items) {
      tick();
      side.mayHaveJobs();
      if (!following) newest.hidden = false;
    }
    if (following && (news.items || news.status) && !questions.contains(document.activeElement)) toEnd();
  },
  session,
  cursor,
);

document.getElementById("stop").addEventListener("click", () => writing.stop());
toEnd();
