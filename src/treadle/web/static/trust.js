// The question whether a folder is trusted, before something is opened in it.

/** Ask in an element; `answered` gets what is to be sent along: the answer, and what was seen. */
export function askTrust(place, trust, answered) {
  const card = document.createElement("article");
  card.className = "question";
  card.tabIndex = -1;
  card.dataset.kind = "trust";
  const title = document.createElement("h2");
  title.textContent = `${trust.again ? "Do you still trust" : "Do you trust"} ${trust.folder}?`;
  const about = document.createElement("p");
  about.textContent = "Its rules, settings, servers and hooks are used only if you trust it. A change asks again.";
  const lines = document.createElement("pre");
  lines.textContent = trust.lines.join("\n");
  lines.tabIndex = 0;
  const answers = document.createElement("div");
  answers.className = "answers";
  for (const [word, label] of [
    ["later", "Not now"],
    ["always", "Yes, trust it"],
    ["once", "Yes, until Treadle ends"],
    ["never", "Never for this folder"],
  ]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", () => {
      place.replaceChildren();
      answered({ trust: word, seen: trust.seen });
    });
    answers.append(button);
  }
  card.append(title, about, lines, answers);
  place.replaceChildren(card);
  card.scrollIntoView({ block: "nearest" });
  card.focus();
}
