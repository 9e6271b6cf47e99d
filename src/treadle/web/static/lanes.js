// The subagents of a session: their lanes follow what happens.

import { get } from "./app.js";
import { fragment, morph } from "./morph.js";
import { watch } from "./pages.js";

const session = document.body.dataset.lanes;
const place = document.getElementById("lanes");

async function read() {
  const answer = await get(`/s/${session}/agents/rows`);
  if (!answer) return;
  const fresh = place.cloneNode(false);
  fresh.replaceChildren(fragment(await answer.text()));
  morph(place, fresh);
}

watch(session, read);
document.addEventListener("news", ({ detail }) => {
  if (detail.states) read();
});
