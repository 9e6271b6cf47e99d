// The checks: they come one by one, problems first.

import { sendFor } from "./app.js";
import { records } from "./line.js";
import { fragment } from "./morph.js";
import "./reports.js";

const checks = document.getElementById("checks");
const progress = document.getElementById("progress");
const ORDER = ["fail", "warn", "ok"];

const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

function add(line) {
  const rank = ({ dataset }) => ORDER.indexOf(dataset.status);
  checks.insertBefore(line, [...checks.children].find((one) => rank(one) > rank(line)) ?? null);
}

async function run(calls) {
  const buttons = document.querySelectorAll("button[data-check]");
  for (const one of buttons) one.disabled = true;
  progress.textContent = "Checking …";
  let done = 0;
  try {
    const answer = await sendFor("/health/check", { calls });
    if (!answer) return;
    checks.replaceChildren();
    for await (const line of records(answer, "\n")) {
      add(fragment(JSON.parse(line)).firstElementChild);
      done += 1;
      progress.textContent = `Checking … ${done} done`;
    }
    const found = checks.querySelectorAll("[data-status=fail]").length;
    const warned = checks.querySelectorAll("[data-status=warn]").length;
    document.getElementById("checked").textContent = "Checked just now.";
    progress.textContent = found || warned ? `${count(found, "problem")}, ${count(warned, "warning")}.` : "Everything is fine.";
  } catch {
    progress.textContent = "Treadle cannot be reached.";
  } finally {
    for (const one of buttons) one.disabled = false;
  }
}

for (const button of document.querySelectorAll("button[data-check]")) button.addEventListener("click", () => run(button.dataset.check === "calls"));
