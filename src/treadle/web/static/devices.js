// The browsers that were let in: a link for another one, and shutting one out.

import { send, sendFor } from "./app.js";
import { ask, fragment } from "./morph.js";

document.getElementById("new")?.addEventListener("click", async () => {
  const answer = await sendFor("/devices/link");
  if (!answer) return;
  document.getElementById("made").replaceChildren(fragment(await answer.text()));
});

const browsers = document.querySelector(".browsers");
browsers.addEventListener("click", async (event) => {
  const { out, name } = event.target.closest("button")?.dataset ?? {};
  const wanted = name && (await ask("Name of this device", "", "Rename", name));
  if ((out && (await send("/devices/out", { name: out }))) || (wanted && (await send("/devices/name", { name, new: wanted })))) location.reload();
});
browsers.addEventListener("change", async ({ target }) => {
  if (target.dataset.keep && !(await send("/devices/keep", { name: target.dataset.keep, kept: target.checked }))) target.checked = !target.checked;
});
