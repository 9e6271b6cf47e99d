// The timeline: events come a page at a time, each is opened where it stands.

import { get } from "./app.js";
import { keys } from "./keys.js";
import { fragment } from "./morph.js";
import { watch } from "./pages.js";
import { load } from "./reports.js";

const { timeline: session, topic } = document.body.dataset;
const most = Number(document.body.dataset.most);
const rows = document.getElementById("rows");
const earlier = document.getElementById("earlier");
const later = document.getElementById("later");
const fresh = document.getElementById("fresh");
const number = (row) => Number(row.dataset.seq);

let known = Number(document.body.dataset.events);
let newest = known;

async function fetched(query) {
  const answer = await get(`/s/${session}/timeline/rows?${new URLSearchParams({ topic, ...query })}`);
  if (!answer) return null;
  return fragment(await answer.text());
}

async function before() {
  const first = rows.firstElementChild;
  if (!first) return;
  const found = await fetched({ before: number(first) });
  if (!found) return;
  const height = document.documentElement.scrollHeight;
  earlier.hidden = found.childElementCount < most;
  rows.prepend(found);
  window.scrollBy(0, document.documentElement.scrollHeight - height);
}

async function after() {
  const last = rows.lastElementChild;
  const until = newest;
  const found = await fetched({ after: last ? number(last) : 0 });
  if (!found) return 0;
  const count = found.childElementCount;
  later.hidden = count < most;
  if (later.hidden) known = Math.max(known, until, ...[...found.children].map(number));
  rows.append(found);
  announce();
  return count;
}

/** Say how many events there are that are not shown yet. */
function announce() {
  const count = newest - known;
  fresh.querySelector("button").textContent = `${count.toLocaleString()} new ${count === 1 ? "event" : "events"}: show them`;
  fresh.hidden = count <= 0;
}

async function fill(detail) {
  if (detail.childElementCount) return;
  if (!(await load(`/s/${session}/timeline/event/${detail.dataset.event}`, detail))) detail.textContent = "This event cannot be read.";
}

rows.addEventListener(
  "toggle",
  (event) => {
    const detail = event.target.open ? event.target.querySelector(":scope > .detail") : null;
    if (detail) fill(detail);
  },
  true,
);

function show(seq) {
  const row = document.getElementById(`e${seq}`);
  if (!row) return false;
  history.replaceState(null, "", `#e${seq}`);
  row.querySelector("details").open = true;
  row.querySelector("summary").focus();
  row.scrollIntoView({ block: "center" });
  return true;
}

function goTo(seq) {
  if (!show(seq)) location.assign(`?${new URLSearchParams({ ...(topic ? { topic } : {}), at: seq })}#e${seq}`);
}

// --- from row to row ---

const summaries = (selector) => [...rows.querySelectorAll(selector)].map((row) => row.querySelector("summary"));

function step(selector, by) {
  const all = summaries(selector);
  const here = document.activeElement?.closest?.(".event");
  const far = (one) => (here ? number(one.closest(".event")) - number(here) : one.getBoundingClientRect().top - document.querySelector(".head").offsetHeight);
  const at = by > 0 ? all.findIndex((one) => far(one) > 0) : all.findLastIndex((one) => !here || far(one) < 0);
  if (at < 0) {
    if (by < 0 && !earlier.hidden) before();
    else if (by > 0 && !later.hidden) after();
    return;
  }
  all[at].focus();
  all[at].scrollIntoView({ block: "nearest" });
}

rows.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-event-link], a.seq");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  goTo(link.dataset.eventLink ?? link.textContent);
});

earlier.addEventListener("click", before);
later.addEventListener("click", after);
fresh.querySelector("button").addEventListener("click", latest);
document.getElementById("topic").addEventListener("change", (event) => {
  const chosen = event.target.value;
  location.assign(chosen ? `?topic=${chosen}` : "?view=events");
});
document.getElementById("goto").addEventListener("keydown", (event) => event.key === "Enter" && /^\d+$/.test(event.target.value) && goTo(event.target.value));

async function latest() {
  while ((await after()) === most);
  summaries(".event").at(-1)?.focus({ preventScroll: false });
}

keys([
  ["j", "next event", () => step(".event", 1)],
  ["k", "previous event", () => step(".event", -1)],
  ["n", "next checkpoint", () => step(".event.checkpoint", 1)],
  ["p", "previous checkpoint", () => step(".event.checkpoint", -1)],
  [".", "open or close the event", () => document.activeElement.closest(".event")?.querySelector("summary").click()],
  ["f", "filter the events", () => document.getElementById("topic").focus()],
  ["#", "go to an event by its number", () => document.getElementById("goto").focus()],
  ["r", "show new events", latest],
]);

watch(session, (news) => {
  newest = news.events;
  announce();
});

const linked = /^#e(\d+)$/.exec(location.hash);
if (linked) {
  if (!show(linked[1]) && !new URLSearchParams(location.search).has("at")) goTo(linked[1]);
} else rows.lastElementChild?.scrollIntoView({ block: "end" });
