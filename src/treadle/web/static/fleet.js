// The batches of this computer, which follow what their workers do.

import { follow } from "./reports.js";

const place = document.getElementById("fleet");
const EACH = 2_000;
const read = () => document.hidden || follow(place.dataset.rows, place);

place.addEventListener("click", ({ target }) => target.closest("details")?.setAttribute("data-touched", "1")); // it stays as it is then
setInterval(read, EACH);
document.addEventListener("visibilitychange", read);
