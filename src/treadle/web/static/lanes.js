// The subagents of a session: their lanes follow what happens.

import { watch } from "./pages.js";
import { follow } from "./reports.js";

const session = document.body.dataset.lanes;
const read = () => follow(`/s/${session}/agents/rows`, document.getElementById("lanes"));

watch(session, read);
document.addEventListener("news", ({ detail }) => {
  if (detail.states) read();
});
