// The policy: what would be decided, what was decided, and the rules that follow from it.

import { during } from "./app.js";
import { made } from "./morph.js";
import { load } from "./reports.js";

const explain = document.getElementById("explain");
const filter = document.getElementById("filter");
const decisions = document.getElementById("decisions");

function fitting() {
  for (const one of explain.querySelectorAll("[data-kind]")) one.hidden = one.dataset.kind !== explain.elements.kind.value;
}
explain.elements.kind.addEventListener("change", fitting);
fitting();

explain.addEventListener("submit", (event) => {
  event.preventDefault();
  load(`/policy/explain?${new URLSearchParams(new FormData(explain))}`, document.getElementById("explained"));
});

async function show(start = "") {
  const query = new URLSearchParams(new FormData(filter));
  if (start) query.set("start", start);
  const place = made("div", "Loading …");
  if (start) decisions.append(place);
  else decisions.replaceChildren(place);
  if (!(await load(`/policy/decisions?${query}`, place))) place.remove();
}

filter.addEventListener("submit", (event) => (event.preventDefault(), show()));

decisions.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-older]");
  if (!button) return;
  button.remove();
  show(button.dataset.older);
});

document.getElementById("suggest")?.addEventListener("click", ({ target }) => {
  const place = document.getElementById("suggestions");
  place.textContent = "Reading what you approved …";
  during(target, load("/policy/suggestions", place));
});

show();
