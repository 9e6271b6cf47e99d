// Rows that follow what goes on: the subagents of a session, a replay beside what was recorded, the batches of this computer.

import { watch } from "./pages.js";
import { follow } from "./reports.js";

const place = document.querySelector("[data-rows]");
const { rows, of } = place.dataset;
const EACH = 2_000; // milliseconds between two looks where no session says that something changed
const read = () => document.hidden || follow(rows, place);

place.addEventListener("click", ({ target }) => target.closest("details")?.setAttribute("data-touched", "1")); // it stays as it is then
place.addEventListener("keydown", ({ key, target }) => {
  const square = target.closest(".squares li");
  ({ ArrowRight: square?.nextElementSibling, ArrowLeft: square?.previousElementSibling })[key]?.querySelector("a")?.focus();
});
document.addEventListener("posted", read);
if (of) {
  watch(of, read);
  document.addEventListener("news", ({ detail }) => detail.states && read());
} else {
  setInterval(read, EACH);
  document.addEventListener("visibilitychange", read);
}
