// The list of sessions: starting one, finding some, and what is done with one; it follows what happens.

import { get, send } from "./app.js";
import { at } from "./entering.js";
import { morph } from "./morph.js";
import { askTrust } from "./trust.js";

const form = document.getElementById("start");
const asked = document.getElementById("trust");
const filter = document.getElementById("filter");
const rows = document.getElementById("rows");
const dialog = document.getElementById("ask");

// What is being written is kept over a reload.
form.text.value = sessionStorage.getItem("start") ?? form.text.value;
form.text.addEventListener("input", () => sessionStorage.setItem("start", form.text.value));

async function start(more = {}) {
  const said = Object.fromEntries(new FormData(form));
  if (!said.mode) delete said.mode;
  const button = form.querySelector("button");
  button.disabled = true;
  const answer = await send("/sessions", { ...said, ...more });
  button.disabled = false;
  if (answer?.session) {
    sessionStorage.removeItem("start");
    location.assign(`${at}/s/${answer.session}`);
  }
  if (answer?.trust) askTrust(asked, answer.trust, start);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
form.text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});

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
  fresh.innerHTML = await answer.text();
  const known = new Map([...rows.children].map((row) => [row.id, row]));
  const placed = [...fresh.children].map((row) => {
    const old = row.id ? known.get(row.id) : undefined;
    if (!old) return row;
    if (!old.querySelector("details[open]")) morph(old, row); // a menu that is open stays under the finger
    return old;
  });
  for (const row of known.values()) if (!placed.includes(row)) row.remove();
  placed.forEach((row, at) => {
    if (rows.children[at] !== row) rows.insertBefore(row, rows.children[at] ?? null);
  });
  history.replaceState(null, "", said.size ? `${at}/?${said}` : `${at}/`);
}

let typing = 0;
filter.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(read, 250);
});
filter.addEventListener("submit", (event) => event.preventDefault());

function put(row, name, text) {
  const cell = row.querySelector(name);
  if (cell.textContent !== text) cell.textContent = text;
}

let later = 0;
let open = null;
document.addEventListener("news", (event) => {
  const { states } = event.detail;
  if (!states) return;
  for (const [id, state] of Object.entries(states)) {
    const row = document.getElementById(`s-${id}`);
    if (!row) continue;
    const how = row.querySelector(".state");
    how.className = `state ${state.state}`;
    put(row, ".state", state.words);
    put(row, ".cost", state.cost);
    put(row, ".mode", state.mode);
    put(row, ".added", `+${state.added}`);
    put(row, ".removed", `-${state.removed}`);
  }
  // A session is listed from its first message on, which may come after it was opened.
  const ids = Object.keys(states);
  const isNew = !query().size && ids.some((id) => !document.getElementById(`s-${id}`));
  const now = ids.map((id) => (filter.state.value ? `${id} ${states[id].state}` : id)).join(" ");
  if (isNew || (open !== null && now !== open)) {
    clearTimeout(later);
    later = setTimeout(read, 400);
  }
  open = now;
});

function ask(title, about, yes, name = null) {
  document.getElementById("ask-title").textContent = title;
  document.getElementById("ask-about").textContent = about;
  document.getElementById("ask-yes").textContent = yes;
  const field = document.getElementById("ask-field");
  field.hidden = name === null;
  field.querySelector("input").value = name ?? "";
  dialog.returnValue = "";
  dialog.showModal();
  if (name !== null) field.querySelector("input").select();
  return new Promise((answered) => {
    dialog.addEventListener("close", () => answered(dialog.returnValue === "yes" ? field.querySelector("input").value : null), {
      once: true,
    });
  });
}

// Enter in the field means yes; else the first button of the form, which is no, would be taken.
dialog.querySelector("input").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  event.preventDefault();
  dialog.close("yes");
});

const DO = {
  async rename(id, title) {
    const name = await ask("Rename this session", "An empty name gives it its first title again.", "Rename", title);
    return name === null ? null : send(`/s/${id}/rename`, { name });
  },
  async fork(id) {
    const made = await send(`/s/${id}/fork`);
    if (made) location.assign(`${at}/s/${made.session}`);
    return made;
  },
  archive: (id) => send(`/s/${id}/archive`),
  unarchive: (id) => send(`/s/${id}/unarchive`),
  close: (id) => send(`/s/${id}/close`),
  async delete(id, title) {
    const yes = await ask(`Delete “${title}” for good?`, "Its conversation and its checkpoints cannot be brought back.", "Delete it");
    return yes === null ? null : send(`/s/${id}/delete`);
  },
};

rows.addEventListener("click", async (event) => {
  if (event.target.closest("#all")) {
    all = true;
    read();
    return;
  }
  const button = event.target.closest("button[data-do]");
  if (!button) return;
  const row = button.closest("tr");
  row.querySelector("details").open = false;
  if (await DO[button.dataset.do](row.dataset.session, row.dataset.title)) read();
});

document.addEventListener("click", (event) => {
  for (const menu of rows.querySelectorAll("details[open]")) if (!menu.contains(event.target)) menu.open = false;
});
rows.addEventListener("keydown", (event) => {
  const menu = event.target.closest("details[open]");
  if (event.key !== "Escape" || !menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
