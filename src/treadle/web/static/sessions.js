// The list of sessions: starting one, with the question whether its folder is trusted.

import { send } from "./app.js";

const form = document.getElementById("start");
const asked = document.getElementById("trust");

async function start(more = {}) {
  const said = Object.fromEntries(new FormData(form));
  if (!said.mode) delete said.mode;
  const answer = await send("/sessions", { ...said, ...more });
  if (answer?.session) location.assign(`/s/${answer.session}`);
  if (answer?.trust) ask(answer.trust);
}

function ask(trust) {
  const card = document.createElement("article");
  card.className = "question";
  const title = document.createElement("h2");
  title.textContent = `${trust.again ? "Do you still trust" : "Do you trust"} ${trust.folder}?`;
  const about = document.createElement("p");
  about.textContent = "Its rules, settings, servers and hooks are used only if you trust it. A change asks again.";
  const lines = document.createElement("pre");
  lines.textContent = trust.lines.join("\n");
  const answers = document.createElement("div");
  answers.className = "answers";
  for (const [word, label] of [
    ["always", "Yes, trust it"],
    ["once", "Yes, until Treadle ends"],
    ["later", "Not now"],
    ["never", "Never for this folder"],
  ]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", () => {
      asked.replaceChildren();
      start({ trust: word, seen: trust.seen });
    });
    answers.append(button);
  }
  card.append(title, about, lines, answers);
  asked.replaceChildren(card);
  card.scrollIntoView();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
