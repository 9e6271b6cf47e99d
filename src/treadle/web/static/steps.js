// The past by steps: each leads to its files, back to them after a preview, or into a copy.

import { during, get, send, tell } from "./app.js";
import { at } from "./entering.js";
import { keys } from "./keys.js";
import { fragment } from "./morph.js";
import { showRestored, watch } from "./pages.js";

const pick = async (...said) => (await import("./palette.js")).pick(...said); // without it the rest works

const session = document.body.dataset.timeline;
const steps = document.getElementById("steps");
const panel = document.getElementById("restore");
const preview = document.getElementById("preview");
const rows = () => [...steps.querySelectorAll(".step")].filter((one) => one.offsetParent !== null);
const current = () => document.activeElement.closest?.(".step");

function step(by) {
  const all = rows();
  const here = all.indexOf(current());
  arrive(all[here < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, here + by))]);
}

function arrive(row) {
  row?.closest(".run > details")?.setAttribute("open", "");
  row?.focus();
  row?.scrollIntoView({ block: "nearest" });
}

const found = (row) => ({ kind: "Steps", title: row.dataset.name, about: row.querySelector(".said, .did")?.textContent ?? "", does: () => arrive(row) });

// ---- back to a step: what would happen is shown before anything does

let chosen = null;
let what = "both";
let asked = 0;
let shown = null; // what the preview is of

const wish = () => ({ checkpoint: Number(chosen.dataset.checkpoint), files: what !== "conversation", conversation: what !== "files", to: what === "files" ? 0 : Number(chosen.dataset.to), row: Number(chosen.dataset.seq) });

/** Mark the steps that would leave the conversation. */
function mark() {
  const from = chosen && what !== "files" ? Number(chosen.dataset.seq) + (chosen.dataset.name.startsWith("step") ? 1 : 0) : Infinity;
  for (const one of steps.querySelectorAll(".step")) {
    one.classList.toggle("leaving", Number(one.dataset.seq) >= from && !one.classList.contains("left"));
    one.classList.toggle("chosen", one === chosen);
  }
}

async function restore(row) {
  if (!Number(row?.dataset.checkpoint)) return;
  chosen = row;
  mark();
  const mine = ++asked;
  const wanted = wish();
  const answer = await send(`/s/${session}/restore/preview`, wanted);
  if (mine !== asked) return;
  if (!answer) return void close();
  shown = { ...wanted, seen: answer.seen };
  const within = preview.contains(document.activeElement); // who switches what goes back stays there
  preview.replaceChildren(fragment(answer.html));
  Object.assign(document.getElementById("really"), answer.button);
  panel.hidden = false;
  document.body.classList.add("with-panel");
  (within ? preview.querySelector("[aria-pressed=true]") : panel).focus({ preventScroll: true });
}

function close() {
  const row = chosen;
  asked++;
  chosen = null;
  mark();
  panel.hidden = true;
  document.body.classList.remove("with-panel");
  row?.focus();
}

/** Load the steps again, and keep the place. */
async function refresh() {
  const answer = await get(location.pathname.replace(at, ""));
  if (!answer) return;
  const fresh = fragment(await answer.text());
  steps.replaceChildren(...fresh.getElementById("steps").childNodes);
  document.getElementById("fresh").replaceWith(fresh.getElementById("fresh"));
}

document.getElementById("really").addEventListener("click", async ({ target }) => {
  const said = await during(target, send(`/s/${session}/restore`, shown));
  if (!said) return void restore(chosen); // shown as it is now
  const words = `Restored to ${chosen.dataset.name}. ${said.said}`;
  close();
  await refresh();
  showRestored(session, { ...said, said: words }, refresh);
});
document.getElementById("keep").addEventListener("click", close);
panel.addEventListener("click", ({ target }) => {
  if (!target.dataset.what) return;
  what = target.dataset.what;
  restore(chosen);
});
panel.addEventListener("keydown", ({ key }) => key === "Escape" && close());

async function fork(row) {
  if (!row?.querySelector("[data-act=fork]:enabled")) return;
  const made = await send(`/s/${session}/timeline/fork`, { seq: Number(row.dataset.seq) });
  if (made) location.assign(`${at}/s/${made.session}`);
}

const link = (row) => navigator.clipboard.writeText(`${location.origin}${location.pathname}#${row.id}`);
const copy = (row) => link(row).then(() => tell("The link is copied."), () => tell("This browser lets nothing be copied here."));
function menu() {
  const row = current();
  const open = row?.querySelector(".menu").toggleAttribute("open");
  (open ? row.querySelector(".choices :is(a, button:enabled)") : row)?.focus();
}

const DOES = { restore, fork, copy };

steps.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-act]");
  if (!button) return;
  button.closest("details").open = false;
  DOES[button.dataset.act](button.closest(".step"));
});
steps.parentElement.addEventListener("click", ({ target }) => target.closest("#fresh") && refresh());

keys([
  ["j", "next step", () => step(1)],
  ["k", "previous step", () => step(-1)],
  [".", "what can be done from the step", menu],
  ["v", "compare with now", () => current()?.querySelector("a[href*=review]")?.click()],
  ["r", "restore to the step", () => restore(current())],
  ["f", "fork a session from the step", () => fork(current())],
  ["#", "go to a step", () => pick("Go to a step", [...steps.querySelectorAll(".step")].map(found))],
]);

watch(session);

document.getElementById(location.hash.slice(1))?.scrollIntoView({ block: "center" });
