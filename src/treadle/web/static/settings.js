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

const search = document.getElementById("search");

function narrow() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of document.querySelectorAll("tr.setting")) {
    const text = row.firstElementChild.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
  for (const section of document.querySelectorAll("section.panel:has(tr.setting)")) section.hidden = !section.querySelector("tr.setting:not([hidden])");
}

search?.addEventListener("input", narrow);
