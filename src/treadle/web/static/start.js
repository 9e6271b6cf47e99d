// Where a session is started: the task, its folder and its mode. What is being written is kept over a reload.

import { send } from "./app.js";
import { at } from "./entering.js";
import { askTrust } from "./trust.js";

const form = document.getElementById("start");
const asked = document.getElementById("trust");
const mode = form.elements.mode;
const other = document.getElementById("other");

form.text.value = sessionStorage.getItem("start") ?? form.text.value;
form.text.addEventListener("input", () => sessionStorage.setItem("start", form.text.value));

async function start(more = {}) {
  const said = Object.fromEntries(new FormData(form));
  said.folder ||= said.other.trim();
  delete said.other;
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

const fromFinger = matchMedia("(pointer: coarse)");
form.text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing || event.shiftKey || (fromFinger.matches && !event.ctrlKey)) return;
  event.preventDefault();
  form.requestSubmit();
});

form.addEventListener("change", () => {
  other.hidden = !document.getElementById("another").checked;
  other.querySelector("input").required = !other.hidden;
  const chosen = mode.selectedOptions[0];
  document.getElementById("mode-name").textContent = chosen.textContent;
  document.getElementById("mode-about").textContent = chosen.dataset.about;
});
document.getElementById("another").addEventListener("change", () => other.querySelector("input").focus());
