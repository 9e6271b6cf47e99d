// Where a session is started: the task with its files, its folder and its mode. What is being written is kept over a reload.

import { composer } from "./compose.js";
import { at } from "./entering.js";
import { made } from "./morph.js";

const form = document.getElementById("start");
const mode = form.elements.mode;
const other = document.getElementById("other");
const folder = () => form.elements.folder.value || form.elements.other.value.trim();

composer("", {
  isActive: () => false,
  followed({ session, shown }) {
    if (shown) sessionStorage.setItem(`shown:${session}`, shown);
    location.assign(`${at}/s/${session}`);
  },
  more: () => ({ folder: folder(), copy: form.elements.copy.checked, mode: mode.value || null, model: form.elements.model?.value ?? "" }),
  where: () => ({ folder: folder() }),
});

if (innerWidth < 480) form.elements.text.placeholder = "Describe a task"; // there is no room for the rest

form.addEventListener("change", () => {
  other.hidden = !document.getElementById("another").checked;
  other.querySelector("input").required = !other.hidden;
  const chosen = mode.selectedOptions[0];
  document.getElementById("mode-name").textContent = chosen.textContent;
  document.getElementById("mode-about").textContent = chosen.dataset.about;
});
other.addEventListener("input", async ({ target }) => {
  const answer = await fetch(`${at}/folders?${new URLSearchParams({ typed: target.value })}`).catch(() => null);
  const found = answer?.ok ? await answer.json() : [];
  if (target.value) document.getElementById("folders").replaceChildren(...found.map((value) => made("option", "", { value })));
});
document.getElementById("another").addEventListener("change", () => other.querySelector("input").focus());
