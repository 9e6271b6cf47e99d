// A device that wants in: this computer says yes or no, and no is what Enter says first.

import { send } from "./app.js";
import { made } from "./morph.js";

let dialog = null;
let shown = "";

function ask(knock) {
  dialog = made("dialog", "", { className: "knock" });
  dialog.setAttribute("aria-labelledby", "knock-title");
  const keep = made("input", "", { type: "checkbox" });
  const label = made("label", "", { className: "check" });
  label.append(keep, "Keep it signed in when Treadle is started again");
  const answers = made("div", "", { className: "answers" });
  const answer = async (yes) => {
    await send("/devices/knock", { id: knock.id, yes, keep: keep.checked });
  };
  const [no, yes] = [made("button", "No", { type: "button" }), made("button", "Let it in", { type: "button" })];
  no.addEventListener("click", () => answer(false));
  yes.addEventListener("click", () => answer(true));
  answers.append(no, yes);
  dialog.append(
    made("h2", `Let in ${knock.about}?`, { id: "knock-title" }),
    made("p", `It comes from ${knock.address} with a link of yours, and shows the code ${knock.code}. A device sees all sessions and works in them.`),
    label,
    answers,
  );
  dialog.addEventListener("cancel", () => answer(false));
  document.body.append(dialog);
  dialog.showModal();
  no.focus();
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
