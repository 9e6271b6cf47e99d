// The settings: forms are sent by reports.js; here is what shows an answer in place.

import { morph, parsed } from "./morph.js";
import "./reports.js";

document.addEventListener("posted", ({ detail: { form, answered, used } }) => {
  if (answered.row) {
    morph(form.closest("li"), parsed(answered.row));
    form.reset(); // the field has what the row says now
    if (used.matches("button") && document.activeElement === document.body) (used.isConnected ? used : form.querySelector(".sets > :not(.hidden)")).focus();
    return;
  }
  const place = form.closest(".server").querySelector("pre");
  place.textContent = answered.lines.join("\n");
  place.hidden = false;
  place.focus();
});

document.getElementById("search")?.addEventListener("input", ({ target }) => {
  const words = target.value.toLowerCase().split(/\s+/);
  for (const row of document.querySelectorAll("tr.setting")) row.hidden = !words.every((word) => row.cells[0].textContent.toLowerCase().includes(word));
});
