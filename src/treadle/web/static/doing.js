// What is done with a whole session: renamed, forked, archived, closed and deleted, asked for first where it lasts.

import { send } from "./app.js";
import { at, shownSession } from "./entering.js";
import { parsed } from "./morph.js";

let dialog = null;

/** Make the dialog with which something is asked for first. */
function made() {
  dialog = parsed(`<dialog id="ask" aria-labelledby="ask-title"><form method="dialog"><h2 id="ask-title"></h2><p id="ask-about"></p>
<label id="ask-field" hidden>Name <input name="name" autocomplete="off" maxlength="200"></label>
<div class="answers"><button value="no">Cancel</button><button value="yes" id="ask-yes" class="fill">Yes</button></div></form></dialog>`);
  document.body.append(dialog);
  // Enter in the field means yes; else the first button of the form, which is no, would be taken.
  dialog.querySelector("input").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    dialog.close("yes");
  });
}

function ask(title, about, yes, name = null) {
  if (!dialog) made();
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
  pin: (id) => send(`/s/${id}/pin`),
  unpin: (id) => send(`/s/${id}/unpin`),
  archive: (id) => send(`/s/${id}/archive`),
  unarchive: (id) => send(`/s/${id}/unarchive`),
  async close(id, title, { working }) {
    const sure = working === undefined ? "" : await ask("Stop and close this session?", `“${title}” is working.`, "Stop and close");
    return sure === null ? null : send(`/s/${id}/close`);
  },
  async delete(id, title) {
    const yes = await ask(`Delete “${title}” for good?`, "Its conversation and its checkpoints cannot be brought back.", "Delete it");
    const gone = yes === null ? null : await send(`/s/${id}/delete`);
    if (gone && id === shownSession) location.assign(`${at}/`);
    return gone;
  },
};

/** Do something with a session; gives the answer, null where nothing was done. */
export const sessionDone = (name, id, title, more) => DO[name](id, title, more);
