// What follows a session: the lanes of its subagents, a replay beside what was recorded.

import { watch } from "./pages.js";
import { follow } from "./reports.js";

const { lanes: session, rows } = document.body.dataset;
const read = () => follow(rows, document.getElementById("lanes"));

watch(session, read);
document.addEventListener("news", ({ detail }) => {
  if (detail.states) read();
});
