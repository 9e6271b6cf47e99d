// The batches of this computer, which follow what their workers do.

import { get } from "./app.js";
import { fragment, morph } from "./morph.js";

const place = document.getElementById("fleet");
const EACH = 2_000;

async function read() {
  if (document.hidden) return;
  const answer = await get("/fleet/rows");
  if (!answer) return;
  const fresh = place.cloneNode(false);
  fresh.replaceChildren(fragment(await answer.text()));
  morph(place, fresh);
}

place.addEventListener("click", ({ target }) => target.closest("details")?.setAttribute("data-touched", "1")); // it stays as it is then
setInterval(read, EACH);
document.addEventListener("visibilitychange", read);
