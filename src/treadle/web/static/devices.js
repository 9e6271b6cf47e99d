// The browsers that were let in: a link for another one, and shutting one out.

import { send, sendFor } from "./app.js";

document.getElementById("new")?.addEventListener("click", async () => {
  const answer = await sendFor("/devices/link");
  if (!answer) return;
  const holder = document.createElement("template");
  holder.innerHTML = await answer.text();
  document.getElementById("made").replaceChildren(holder.content);
});

document.querySelector(".browsers").addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-out]");
  if (button && (await send("/devices/out", { name: button.dataset.out }))) location.reload();
});
