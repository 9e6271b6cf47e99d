// One session: its items come and change in place, its questions are answered, and the person says what is next.

import { listen, send, showWaiting, tell } from "./app.js";
import { answerable, came } from "./questions.js";

const { session, cursor } = document.body.dataset;
const items = document.getElementById("items");
const questions = document.getElementById("questions");
const text = document.getElementById("text");
const number = (element) => Number(element.id.slice(1));
let first = Number(document.body.dataset.first);
let active = false;

const atEnd = () => window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 80;

function parsed(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  return holder.content.firstElementChild;
}

function place(position, html) {
  if (position < first) return;
  const fresh = parsed(html);
  const known = document.getElementById(`i${position}`);
  if (known) {
    for (const [index, details] of known.querySelectorAll("details").entries()) {
      const same = fresh.querySelectorAll("details")[index];
      if (same && details.dataset.touched) {
        same.open = details.open;
        same.dataset.touched = "1";
      }
    }
    known.replaceWith(fresh);
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

function show(status) {
  active = status.active;
  document.getElementById("mode").value = status.mode;
  document.getElementById("model").textContent = status.model;
  const share = status.window ? ` (${Math.round((100 * status.tokens) / status.window)} %)` : "";
  document.getElementById("context").textContent = `${status.tokens.toLocaleString()} tokens${share}`;
  document.getElementById("cost").textContent = status.unpriced ? "unknown" : `$${status.cost.toFixed(4)}`;
  document.getElementById("changes").textContent = `+${status.added} -${status.removed}`;
  document.getElementById("now").textContent = status.retry || (active ? `${WORDS[status.phase] ?? "Working"} …` : "");
  document.getElementById("stop").hidden = !active;
  document.getElementById("steer").hidden = !active;
  list("todo", status.todo, (row, todo) => {
    row.textContent = `${todo.done ? "☑" : "☐"} ${todo.text}`;
  });
  list("queue", status.queue, (row, waiting) => {
    const drop = document.createElement("button");
    drop.textContent = "Remove";
    drop.addEventListener("click", () => send(`/s/${session}/change`, { dropped: waiting.id }));
    row.append(waiting.text, " ", drop);
  });
  const known = new Map([...questions.children].map((card) => [card.dataset.question, card]));
  for (const [id, html] of status.questions) {
    if (known.has(id)) known.delete(id);
    else {
      const card = parsed(html);
      came(card);
      questions.append(card);
    }
  }
  for (const card of known.values()) card.remove();
}

const WORDS = {
  ASSEMBLING_CONTEXT: "Preparing the request",
  AWAITING_LLM_RESPONSE: "The model answers",
  JUDGING: "Checking a call",
  AWAITING_USER_CONFIRMATION: "Waiting for you",
  EXECUTING_TOOL: "Running",
  COMPACTING: "Making room",
  CANCELLING: "Stopping",
};

function list(id, rows, fill) {
  const section = document.getElementById(id);
  section.hidden = rows.length === 0;
  section.querySelector("ul").replaceChildren(
    ...rows.map((row) => {
      const made = document.createElement("li");
      fill(made, row);
      return made;
    }),
  );
}

listen(
  (news) => {
    if (news.waiting) showWaiting(news.waiting);
    const follow = atEnd();
    for (const [position, html] of news.items ?? []) place(position, html);
    if (news.status) show(news.status);
    if (follow && (news.items || news.status)) window.scrollTo(0, document.documentElement.scrollHeight);
  },
  session,
  cursor,
);

answerable(questions);

async function say(steer) {
  const message = text.value.trim();
  if (!message) return;
  const id = crypto.randomUUID?.().replaceAll("-", "") ?? String(Math.random()).slice(2);
  text.disabled = true;
  const answered = await send(`/s/${session}/say`, { text: message, id, steer });
  text.disabled = false;
  text.focus();
  if (!answered) return;
  text.value = "";
  if (answered.shown) tell(answered.shown);
}

document.getElementById("say").addEventListener("submit", (event) => {
  event.preventDefault();
  say(false);
});
document.getElementById("steer").addEventListener("click", () => say(true));
document.getElementById("stop").addEventListener("click", () => send(`/s/${session}/interrupt`));
document.getElementById("mode").addEventListener("change", (event) => send(`/s/${session}/change`, { mode: event.target.value }));
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    say(false);
  }
});

document.getElementById("earlier").addEventListener("click", async (event) => {
  const answer = await fetch(`/s/${session}/items?before=${first}`);
  if (!answer.ok) return;
  const holder = document.createElement("template");
  holder.innerHTML = await answer.text();
  const added = holder.content.querySelectorAll("li");
  const height = document.documentElement.scrollHeight;
  if (added.length) first = number(added[0]);
  items.prepend(holder.content);
  event.target.hidden = first === 0 || added.length === 0;
  window.scrollBy(0, document.documentElement.scrollHeight - height);
});

window.scrollTo(0, document.documentElement.scrollHeight);
