// What the screens of a session's past share: news of its log, what a browser keeps, and the way back.

import { during, newId, send } from "./app.js";
import { at, shownSession } from "./entering.js";
import { made, pressed } from "./morph.js";

const PAUSE = 2_000; // milliseconds between two looks at how far the log is

/** Look how far the log of a session is as long as the page is seen; `heard` gets it each time that it changed. Where a line says which steps and checkpoints the screen has, it says what came since. */
export function watch(session, heard = () => {}) {
  let known = "";
  const look = async () => {
    if (document.hidden) return;
    const answer = await fetch(`${at}/s/${session}/news`).catch(() => null);
    if (!answer?.ok) return;
    const text = await answer.text();
    if (text !== known) {
      known = text;
      const news = JSON.parse(text);
      const fresh = document.querySelector("#fresh[data-steps]");
      const [steps, checkpoints] = ["steps", "checkpoints"].map((name) => (fresh ? news[name] - Number(fresh.dataset[name]) : 0));
      if (steps > 0 || checkpoints > 0) {
        fresh.firstChild.textContent = `${steps > 0 ? `${steps.toLocaleString()} ${steps === 1 ? "step" : "steps"}` : "Changes"} since you looked: show`;
        fresh.hidden = false;
        for (const old of document.querySelectorAll(".undoes")) old.remove(); // it would be refused
      }
      heard(news);
    }
  };
  look();
  setInterval(look, PAUSE);
  document.addEventListener("visibilitychange", look);
}

/** Read what this browser keeps under a name. */
export function kept(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Keep something in this browser, or with null no more; gives whether it is kept, and not forgotten with the page. */
export function keep(name, value) {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, JSON.stringify(value));
    return true;
  } catch {} // the page itself keeps it as long as it is open
}

/** Bring words that have lost their place into the message field of a session, or into its draft where that is not shown. */
export function intoMessage(session, words) {
  const text = session === shownSession && document.getElementById("text");
  const draft = text ? { text: text.value } : kept(`draft:${session}`, { id: newId(), text: "", sending: false });
  draft.text = [draft.text, words].filter(Boolean).join("\n");
  if (!text) keep(`draft:${session}`, draft);
  else text.value = draft.text;
  text?.dispatchEvent?.(new Event("input", { bubbles: true }));
}

/** Say what was restored, with a button that undoes it; `after` is called when that is done. */
export function showRestored(session, said, after, place = document.getElementById("undo"), words = "") {
  const count = said.files.length;
  const lines = [(count && words) || said.said];
  lines.push(...said.conflicts.map((line) => `Not restored: ${line}`));
  if (said.error) lines.push(said.error);
  place.replaceChildren(...lines.map((line) => made("p", line)));
  place.classList.toggle("warns", Boolean(said.error || said.conflicts.length));
  if (count || said.undo.conversation) {
    const button = pressed("Undo", async () => {
      const undone = await during(button, send(`/s/${session}/restore`, said.undo));
      if (!undone) return;
      await after();
      showRestored(session, undone, after, place);
    }, { className: "undoes" });
    place.append(button);
  }
  place.append(pressed("Close", () => place.toggleAttribute("hidden", true)));
  place.hidden = false;
  if (document.activeElement === document.body) place.querySelector("button").focus({ preventScroll: true });
}
