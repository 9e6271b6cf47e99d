// What is done with a whole session: renamed, forked, archived, closed and deleted, asked for first where it lasts.

import { send } from "./app.js";
import { at, shownSession } from "./entering.js";
import { ask } from "./morph.js";

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
    const sure = working === undefined ? "" : await ask("Stop and close this session?", `“${title}” ${working}`, "Stop and close");
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
