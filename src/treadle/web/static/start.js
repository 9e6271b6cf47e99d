// Where a session is started: the task with its files, its folder and its mode. What is being written is kept over a reload.

import { composer } from "./compose.js";
import { at } from "./entering.js";
import { made } from "./morph.js";
import { draftOf } from "./pages.js";

const id = (name) => document.getElementById(name);
const form = id("start");
const { text, folder, mode, model, copy, other } = form.elements;
const [another, owner] = [id("another"), id("owner")];
const chosen = () => ({ folder: folder.value || other.value.trim(), copy: copy.checked, mode: mode.value || null, model: model.value });

const kept = draftOf("")?.chosen; // a folder that is not listed was typed
if (kept) {
  folder.value = kept.folder;
  if (folder.value !== kept.folder) [another.checked, other.value] = [true, kept.folder];
  copy.checked = kept.copy;
  for (const field of [mode, model]) if ([...field.options].some((one) => one.value === kept[field.name])) field.value = kept[field.name];
}

function draw() {
  id("other").hidden = !another.checked;
  other.required = another.checked;
  for (const field of [mode, model]) id(field.name).textContent = field.selectedOptions[0].text;
  const { text, dataset } = mode.selectedOptions[0];
  id("mode").dataset.mode = dataset.mode;
  id("mode-name").textContent = text;
  id("mode-about").textContent = dataset.about;
}
draw();

composer("", {
  isActive: () => false,
  followed({ session, shown }) {
    if (shown) sessionStorage.setItem(`shown:${session}`, shown);
    location.assign(`${at}/s/${session}`);
  },
  more: chosen,
  where: () => ({ folder: chosen().folder }),
});

if (innerWidth < 480) text.placeholder = "Describe a task"; // there is no room for the rest
if (!matchMedia("(pointer: coarse)").matches && document.activeElement === document.body) text.focus();

form.addEventListener("change", ({ target }) => {
  draw();
  if (target === another) other.focus();
});
other.addEventListener("input", async () => {
  const answer = await fetch(`${at}/folders?${new URLSearchParams({ typed: other.value })}`).catch(() => null);
  const found = answer?.ok ? await answer.json() : [];
  if (other.value) id("folders").replaceChildren(...found.map((value) => made("option", "", { value })));
});

// ---- what is chosen from a menu, with a line on each

const choose = (one) => () => (one.selected = true) && form.dispatchEvent(new Event("change"));
const rows = (field) => [...field.options].map((one) => ({ kind: "For this session", title: one.text, ...one.dataset, now: one.selected, does: choose(one) }));
id("choose-mode").addEventListener("click", async () => (await import("./palette.js")).pickMode(rows(mode)));
id("choose-model").addEventListener("click", async () => (await import("./palette.js")).pick("Choose a model", rows(model)));

owner?.addEventListener("change", () => {
  const { page } = owner.selectedOptions[0].dataset;
  Object.assign(id("key-page"), { href: page, hidden: !page });
});
