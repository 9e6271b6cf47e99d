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

/** Read what this browser, or with another `where` this tab, keeps under a name. */
export function kept(name, otherwise, where = "localStorage") {
  try {
    return JSON.parse(window[where].getItem(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Keep something, or with null no more; gives whether it is kept, and not forgotten with the page. */
export function keep(name, value, where = "localStorage") {
  try {
    if (value === null) window[where].removeItem(name);
    else window[where].setItem(name, JSON.stringify(value));
    return true;
  } catch {} // the page itself keeps it as long as it is open
}

/** Give the draft of this tab, or else what was typed last in this browser; with files only its own tab sends it again, and lets go of them. */
export const draftOf = (session, last = kept(`draft:${session}`, null)) =>
  kept(`draft:${session}`, last && { ...last, sending: last.sending && !last.files, out: last.out?.filter((one) => !one.files) ?? [] }, "sessionStorage");

/** Keep a draft; `was` is the id of the one before it: what another tab wrote since stays. */
export function keepDraft(session, draft, was = draft.id) {
  const [name, value] = [`draft:${session}`, draft.text || draft.files || draft.out?.length ? draft : null];
  keep(name, value, "sessionStorage");
  if (value || kept(name, null)?.id === was) keep(name, value);
}

/** Bring words that have lost their place into the message field of a session, or into its draft where that is not shown. */
export function intoMessage(session, words) {
  const text = session === shownSession && document.getElementById("text");
  const draft = text ? { text: text.value } : (draftOf(session) ?? { id: newId(), text: "", sending: false });
  draft.text = [draft.text, words].filter(Boolean).join("\n");
  if (!text) keepDraft(session, draft);
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
