// One session: its items come and change in place, its questions are asked, and what is true of it is shown.

import { bars, during, get, send } from "./app.js";
import { beside } from "./beside.js";
import { composer } from "./compose.js";
import { listen, lost } from "./line.js";
import { fragment, made, morph, parsed, pressed, put } from "./morph.js";
import { showRestored } from "./pages.js";
import { answerable, came, closeLine, keyOf, moved, wasMine } from "./questions.js";

const { session, cursor } = document.body.dataset;
const items = document.getElementById("items");
const questions = document.getElementById("questions");
const earlier = document.getElementById("earlier");
const newest = document.getElementById("newest");
const now = document.getElementById("now");
const line = document.getElementById("line");
const sign = document.getElementById("now-sign");
const more = document.getElementById("now-more");
const page = document.documentElement;
const number = (element) => Number(element.id.slice(1));
let [first, last] = [Number(document.body.dataset.first), Infinity]; // the items of the document: those further on are dropped
let status = null;
let skew = 0;

// ---- where the person is on the page: at the end it follows, elsewhere nothing moves

const NEAR = 60;
const GAP = 8; // pixels between what covers the top of the page and a card that is brought there
const shape = () => `${items.offsetWidth} ${window.innerHeight}`;
let [lastTop, lastHeight, lastShape] = [window.scrollY, 0, shape()];
const atEnd = () => window.innerHeight + window.scrollY >= page.scrollHeight - NEAR;
let following = true;

const inCard = () => questions.contains(document.activeElement);
const away = () => !items.checkVisibility(); // a view of the phone is shown instead: what it scrolls is not the conversation

/** Give from where to where the window is covered neither by its head nor by the field. */
const uncovered = () => [document.querySelector(".head").offsetHeight + GAP, document.getElementById("say").getBoundingClientRect().top];

/** Go to the end, or to the beginning of a question that is longer than the screen. */
function toEnd() {
  if (away()) return;
  const card = questions.firstElementChild;
  const [covered, field] = uncovered();
  const top = card && !sheet() && card.offsetHeight > field - covered ? card.getBoundingClientRect().top + window.scrollY - covered : page.scrollHeight;
  window.scrollTo({ top, behavior: "instant" });
  [lastTop, lastHeight] = [window.scrollY, page.scrollHeight];
}

const fresh = new Set(); // what is new or another below since the end was left

function follow(yes) {
  following = yes;
  fresh.clear();
  newest.textContent = "Newest ↓";
  if (yes) newest.hidden = true;
}

window.addEventListener(
  "scroll",
  () => {
    if (away()) return;
    // What grows, shrinks or gets another width moves without anybody scrolling: only going up on the same page ends the following.
    const same = shape() === lastShape && page.scrollHeight >= lastHeight;
    const up = window.scrollY < lastTop - 2;
    [lastTop, lastHeight, lastShape] = [window.scrollY, page.scrollHeight, shape()];
    if (atEnd()) last < Infinity ? read({ after: last }) : follow(true);
    else if (following && !same) inCard() ? document.activeElement.scrollIntoView({ block: "nearest" }) : toEnd();
    else if (up) {
      if (following) follow(false);
      newest.hidden = false;
    }
    seeWaits();
  },
  { passive: true },
);

/** Stay at the end where it is followed; a card in which somebody reads or writes stays where it is. */
function stay() {
  if (following && !inCard()) toEnd();
  seeWaits();
}
const grows = new ResizeObserver(stay);
window.addEventListener("resize", stay);
for (const one of [document.querySelector(".talk"), document.getElementById("say")]) grows.observe(one);
newest.addEventListener("click", toNewest);

async function toNewest() {
  if (last < Infinity && !(await read({}))) return;
  follow(true);
  toEnd();
}

// ---- items: of a long session some of them, as many as a page shows fast

const [MOST, AROUND] = [400, 40];
let reading = false;
const missed = new Map(); // what changed while others were read, which may be older

function place(position, html) {
  if (reading) missed.set(position, html);
  if (position < first || position > last) return;
  const fresh = parsed(html);
  const known = document.getElementById(`i${position}`);
  if (known) return void morph(known, fresh);
  let before = items.lastElementChild;
  while (before && number(before) > position) before = before.previousElementSibling;
  if (before) before.after(fresh);
  else items.prepend(fresh);
  if (following) shorten(true);
}

// ---- reads in a row are one line, which opens to them

function group() {
  let run = [];
  const close = () => {
    const [head] = run;
    if (run.length > 1) {
      const names = [...new Set(run.map((one) => one.dataset.read))].join(", ");
      const lines = run.reduce((sum, one) => sum + Number(one.dataset.lines), 0);
      let line = head.querySelector(":scope > .together");
      if (!line) {
        line = made("button", "", { type: "button", className: "together", ariaExpanded: "false" });
        const [icon, chevron] = head.querySelectorAll("summary .ic"); // a read has no other sign
        line.append(icon.cloneNode(true), made("b"), made("code", "", { className: "cut" }), made("span", "", { className: "ends" }), chevron.cloneNode(true));
        head.prepend(line);
      }
      const open = line.getAttribute("aria-expanded") === "true";
      put(line.querySelector("b"), `Read ${run.length} files`);
      put(line.querySelector("code"), names);
      put(line.querySelector(".ends"), lines ? `${lines.toLocaleString()} lines` : "");
      head.classList.remove("folded");
      head.querySelector("details").classList.toggle("folded", !open);
      for (const one of run.slice(1)) {
        one.querySelector(":scope > .together")?.remove();
        one.querySelector("details").classList.remove("folded");
        one.classList.toggle("folded", !open);
      }
    }
    run = [];
  };
  for (const one of items.children) {
    if (one.hidden) continue;
    if (one.dataset.read === undefined || one.classList.contains("left")) close();
    else run.push(one);
  }
  close();
}

items.addEventListener("click", (event) => {
  const summary = event.target.closest("summary");
  if (summary) summary.parentElement.dataset.touched = "1";
  const own = event.target.closest("button[data-own]");
  if (own) send(`/s/${session}/commands/stop`, { number: Number(own.dataset.own) });
  if (event.target.closest("[data-models]")) document.getElementById("choose-model").click();
  const line = event.target.closest(".together");
  if (line) {
    line.setAttribute("aria-expanded", String(line.getAttribute("aria-expanded") !== "true"));
    group();
  }
  if (event.target.closest("[data-stop]")) writing.stop();
  const all = event.target.closest("[data-all]");
  if (all) {
    const details = all.closest("li").querySelector("details");
    details.open = true;
    details.dataset.touched = "1";
    details.querySelector("summary").focus();
  }
});

items.addEventListener("click", async (event) => {
  const more = event.target.closest("[data-item]");
  const piece = more && (await during(more, get(`/s/${session}/output?${new URLSearchParams({ ...more.dataset })}`)));
  if (!piece) return;
  const out = more.closest(".out");
  out.before(fragment(await piece.text()));
  const printed = out.previousElementSibling.querySelector("pre");
  printed.scrollTop = printed.scrollHeight; // where it goes on
  printed.focus({ preventScroll: true });
  (more.dataset.before ? more.parentElement : out).remove(); // the end takes the place of what was shortened
});

items.addEventListener("click", async (event) => {
  const undo = event.target.closest("[data-undo]");
  if (!undo) return;
  const said = await during(undo, send(`/s/${session}/undo`, { turn: Number(undo.dataset.undo) }));
  const place = undo.closest(".done")?.querySelector(".undone");
  if (said && place) showRestored(session, said, () => {}, place);
});

/** Drop items at one end where there are too many. */
function shorten(above) {
  const over = items.children.length - MOST;
  for (let n = 0; n < over; n++) (above ? items.firstElementChild : items.lastElementChild).remove();
  if (over > 0 && above) [first, earlier.hidden] = [number(items.firstElementChild), false];
  if (over > 0 && !above) last = number(items.lastElementChild);
}

/** Show the items before one of the document or after it, where it goes on, or others instead of all; says whether it did. */
async function read(query) {
  if (reading) return false;
  reading = true;
  try {
    const answer = await get(`/s/${session}/items?${new URLSearchParams(query)}`);
    if (!answer) return false;
    const content = fragment(await answer.text());
    const added = [...content.children].map(number);
    const [up, down] = [query.before === first, query.after === last];
    const anchor = up ? items.firstElementChild : down ? items.lastElementChild : null;
    const top = anchor?.getBoundingClientRect().top;
    if (!up && !down) items.replaceChildren();
    items[up ? "prepend" : "append"](content);
    if (!down) [first, earlier.hidden] = [added[0] ?? first, answer.headers.get("x-more") !== "yes"];
    if (!up) last = answer.headers.get("x-later") === "yes" ? (added.at(-1) ?? last) : Infinity;
    shorten(down);
    newest.hidden = following && last === Infinity;
    group();
    if (anchor) window.scrollBy({ top: anchor.getBoundingClientRect().top - top, behavior: "instant" });
    return true;
  } finally {
    reading = false;
    for (const [position, html] of missed) place(position, html);
    missed.clear();
  }
}

const lookBack = () => earlier.hidden || read({ before: first });
earlier.addEventListener("click", lookBack);

/** Go to the item or the question that the address names. */
async function named() {
  questions.querySelector(`.behind[id="${CSS.escape(location.hash.slice(1))}"]`)?.click();
  const position = Number(/^#i(\d+)$/.exec(location.hash)?.[1] ?? NaN);
  if (Number.isNaN(position)) return;
  if (position < first || position > last) await read({ before: position + AROUND });
  const item = document.getElementById(location.hash.slice(1));
  if (!item) return;
  follow(false);
  item.querySelector("details")?.setAttribute("open", "");
  item.tabIndex = -1;
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: "center" });
}
addEventListener("hashchange", named);
new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && window.scrollY < lastTop + 1 && !following && lookBack()).observe(earlier);

// ---- what is true of the session

const side = beside(session);
const writing = composer(session, { isActive: () => status?.active ?? false, stopped: () => status?.stopped, followed: toNewest });

function show(news) {
  status = news;
  const { active } = news;
  document.body.classList.toggle("working", active);
  if (active) for (const old of items.querySelectorAll(".undoes")) old.remove();
  document.getElementById("stop").hidden = !news.stops;
  document.getElementById("steer").hidden = !active;
  document.getElementById("send").setAttribute("aria-label", active ? "Queue" : "Send");
  side.show(news);
  ask(news.questions);
  writing.invite(news.questions.length > 0);
  tick();
}

let said = {}; // how questions were answered, as far as the news tell

function ask(asked) {
  const known = new Map([...questions.querySelectorAll(".question:not(.closed-line)")].map((card) => [card.dataset.question, card]));
  for (const [id, html] of asked) {
    if (known.delete(id)) continue; // what was typed in it stays
    const fresh = parsed(html);
    came(fresh);
    questions.append(fresh);
    questions.classList.remove("away");
  }
  for (const card of known.values()) {
    const how = said[keyOf(card)];
    if (how && !wasMine(card)) closeLine(card, how, leave);
    else leave(card);
  }
  stack();
}

let openCard = null;

/** Of several questions one is open; the others are lines. */
function stack() {
  const cards = [...questions.children];
  document.body.classList.toggle("asked", cards.length > 0);
  if (!cards.includes(openCard)) {
    [openCard] = cards;
    if (openCard) moved(openCard), bars.observe(openCard);
  }
  cards.forEach((card, at) => {
    card.classList.toggle("behind", card !== openCard);
    let line = card.querySelector(":scope > header .of");
    if (!line && cards.length > 1) {
      line = pressed("", () => next(card), { className: "of plain", title: "Next question" });
      card.querySelector(":scope > header")?.append(line);
    }
    if (line) line.textContent = cards.length > 1 ? `${at + 1} of ${cards.length} ›` : "";
    if (line) line.hidden = cards.length < 2;
  });
  seeWaits();
}

function next(card) {
  const cards = [...questions.children];
  setTimeout(() => cards[(cards.indexOf(card) + 1) % cards.length].click()); // when this click is over
}

function leave(card) {
  const focused = card.contains(document.activeElement);
  card.remove();
  stack();
  if (focused) (questions.querySelector(".question") ?? writing.text).focus({ preventScroll: true });
}

for (const name of ["click", "focusin"]) {
  questions.addEventListener(name, (event) => {
    const card = event.target.closest(".question.behind");
    if (!card) return;
    openCard = card;
    stack();
    card.focus({ preventScroll: true });
  });
}

// ---- a question that is not on the screen, or was put away, is a line above the field

const waits = document.getElementById("waits");
const LEAST = 44; // pixels of a question that make it seen: its title

function seeWaits() {
  const count = questions.querySelectorAll(".question:not(.closed-line)").length;
  const away = questions.classList.contains("away");
  const { top, bottom, height } = questions.getBoundingClientRect();
  const [covered, field] = uncovered();
  const seen = height > 0 && Math.min(bottom, field) - Math.max(top, covered) >= Math.min(height, LEAST);
  waits.hidden = count === 0 || (seen && !away) || sheet();
  document.getElementById("waits-words").textContent = away ? `${count} ${count === 1 ? "question" : "questions"}` : "A question waits";
}

const sheet = () => {
  const card = questions.querySelector(".question");
  return card !== null && getComputedStyle(card).position === "fixed";
};

waits.addEventListener("click", () => {
  questions.classList.remove("away");
  if (!sheet()) toNewest();
  questions.querySelector(".question")?.focus({ preventScroll: true });
  seeWaits();
});
questions.addEventListener("click", (event) => {
  if (!event.target.closest("[data-away]")) return;
  questions.classList.add("away");
  seeWaits();
  writing.text.focus({ preventScroll: true });
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.defaultPrevented && event.target.matches?.(".question")) {
    event.preventDefault();
    writing.text.focus();
  }
});

answerable(questions, leave);

const span = (seconds) => {
  const minutes = Math.floor(seconds / 60);
  if (!minutes) return `${seconds} s`;
  return minutes < 60 ? `${minutes} min${seconds % 60 ? ` ${seconds % 60} s` : ""}` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};
const seconds = (since) => Math.max(0, Math.floor((Date.now() + skew - since) / 1000));
const left = (at) => Math.max(0, Math.round((at - (Date.now() + skew)) / 1000));

/** Show what changes with the time alone. */
function tick() {
  if (!lost()) for (const one of items.querySelectorAll(".since")) put(one, span(seconds(Number(one.dataset.since))));
  if (!status) return;
  const retry = status.retry && `${status.retry}${left(status.retry_at) ? ` in ${span(left(status.retry_at))}` : ""}`;
  const { asks } = status;
  const writes = status.listens && !asks && items.querySelector(".growing") !== null;
  const doing = retry || (writes ? "Writing" : status.doing);
  const works = status.active || status.checking;
  const was = `Was ${asks ? "waiting for your answer" : retry ? "waiting" : doing.charAt(0).toLowerCase() + doing.slice(1)}`;
  put(now, works ? (lost() ? was : doing) : "");
  line.hidden = !works;
  sign.className = asks || lost() ? "dot" : "spin";
  const counts = !asks && !lost() && !status.retry_at; // one clock: that of the wait counts down
  const facts = [counts && status.since && span(seconds(status.since)), status.tries || (status.step && `step ${status.step}`)].filter(Boolean);
  put(more, facts.map((one) => ` · ${one}`).join(""));
  put(more.nextElementSibling, counts ? status.came : "");
}
setInterval(tick, 1_000);

const MAY_RUN = /<li id="i\d+" class="item (call|own)/; // what begins and ends commands

listen(
  (news) => {
    if (news.now) skew = news.now - Date.now();
    if (news.answered) said = news.answered;
    for (const [position, html] of news.items ?? []) place(position, html);
    if (news.status) show(news.status);
    if (news.items) {
      if (news.items.some(([, html]) => MAY_RUN.test(html))) side.mayHaveJobs();
      for (const [position] of following ? [] : news.items) fresh.add(position);
      newest.textContent = fresh.size ? `Newest ↓ ${fresh.size}` : "Newest ↓";
      group();
      tick();
      if (!following) newest.hidden = false;
    }
  },
  session,
  cursor,
);

document.addEventListener("line", ({ detail }) => {
  for (const button of document.querySelectorAll("#stop, [data-stop], [data-job], .question [data-act]")) {
    button.disabled = detail.lost;
    button.title = detail.lost ? "No connection" : "";
  }
  tick();
  if (following) toEnd(); // the strip takes room
});
document.getElementById("stop").addEventListener("click", () => writing.stop());
for (const card of questions.querySelectorAll(".question")) came(card);
stack();
group();
toEnd();
named();
