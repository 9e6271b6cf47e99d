// The list of sessions: finding some, and what is done with one; it follows what happens.

import { get } from "./app.js";
import { at } from "./entering.js";
import { fragment, morph, put } from "./morph.js";

const filter = document.getElementById("filter");
const rows = document.getElementById("rows");

let all = false;
let wanted = 0;

function query() {
  const said = new URLSearchParams(new FormData(filter));
  for (const [name, value] of [...said]) if (!value) said.delete(name);
  if (all) said.set("all", "yes");
  return said;
}

/** Read the rows again; of several such requests the last one counts. */
async function read() {
  const mine = ++wanted;
  const said = query();
  const answer = await get(`/sessions/rows?${said}`);
  if (mine !== wanted || !answer) return;
  const fresh = document.createElement("tbody");
  fresh.replaceChildren(fragment(await answer.text()));
  const known = new Map([...rows.children].map((row) => [row.id, row]));
  const placed = [...fresh.children].map((row) => {
    const old = row.id ? known.get(row.id) : undefined;
    if (!old) return row;
    if (!old.querySelector("details[open]")) morph(old, row); // a menu that is open stays under the finger
    return old;
  });
  for (const row of known.values()) if (!placed.includes(row)) row.remove();
  placed.forEach((row, at) => rows.children[at] !== row && rows.insertBefore(row, rows.children[at] ?? null));
  history.replaceState(null, "", said.size ? `${at}/sessions?${said}` : `${at}/sessions`);
}

let later = 0;
function readIn(pause) {
  clearTimeout(later);
  later = setTimeout(read, pause);
}
filter.addEventListener("input", () => readIn(250));
filter.addEventListener("submit", (event) => event.preventDefault());

let open = null;
document.addEventListener("news", (event) => {
  const { states } = event.detail;
  if (!states) return;
  for (const [id, state] of Object.entries(states)) {
    const row = document.getElementById(`s-${id}`);
    if (!row) continue;
    const how = row.querySelector(".state");
    how.className = `chip state ${state.sign}`;
    put(how, state.words);
    const shown = { why: state.why, cost: state.cost, mode: state.mode, added: `+${state.added}`, removed: `−${state.removed}` };
    for (const [name, text] of Object.entries(shown)) put(row.querySelector(`.${name}`), text);
  }
  // A session is listed from its first message on, which may come after it was opened.
  const ids = Object.keys(states);
  const isNew = !query().size && ids.some((id) => !document.getElementById(`s-${id}`));
  const now = ids.map((id) => (filter.state.value ? `${id} ${states[id].state}` : id)).join(" ");
  const ended = open === null && [...rows.querySelectorAll("[data-open]")].some((row) => !states[row.dataset.session]);
  if (isNew || ended || (open !== null && now !== open)) readIn(400);
  open = now;
});

rows.addEventListener("click", (event) => {
  if (!event.target.closest("#all")) return;
  all = true;
  read();
});
document.addEventListener("session-done", read);
