// The settings: forms are sent by reports.js; here is what shows an answer in place.

import "./reports.js";

document.addEventListener("posted", (event) => {
  if (event.detail.form.dataset.lines === undefined) return;
  const place = event.detail.form.closest(".server").querySelector("pre");
  place.textContent = event.detail.answered.lines.join("\n");
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
  for (const section of document.querySelectorAll("section.panel:has(tr.setting)")) {
    section.hidden = !section.querySelector("tr.setting:not([hidden])");
  }
}

search?.addEventListener("input", narrow);
