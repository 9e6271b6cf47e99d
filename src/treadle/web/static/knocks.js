// A device that wants in: this computer says yes or no, and no is what Enter says first.

import { send } from "./app.js";
import { parsed, pressed } from "./morph.js";

let dialog = null;
let shown = "";

function ask({ id, about, address, code }) {
  dialog = parsed('<dialog class="knock" aria-labelledby="knock-title"><h2 id="knock-title"></h2><p></p><label class="check"><input type="checkbox">Keep it signed in when Treadle is started again</label><div class="answers"></div></dialog>');
  const answer = (yes) => send("/devices/knock", { id, yes, keep: dialog.querySelector("input").checked });
  dialog.querySelector("h2").textContent = `Let in ${about}?`;
  dialog.querySelector("p").textContent = `It comes from ${address} with a link of yours, and shows the code ${code}. A device sees all sessions and works in them.`;
  dialog.querySelector(".answers").append(pressed("No", () => answer(false)), pressed("Let it in", () => answer(true)));
  dialog.addEventListener("cancel", () => answer(false));
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector("button").focus();
}

document.addEventListener("news", ({ detail: { knocks } }) => {
  if (!knocks) return;
  const [next] = knocks;
  if (next?.id === shown) return;
  dialog?.remove();
  dialog = null;
  shown = next?.id ?? "";
  if (next) ask(next);
});
