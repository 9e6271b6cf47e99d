// The question whether a folder is trusted, before something is opened in it.

/** Ask in an element; `answered` gets what is to be sent along: the answer, and what was seen. */
export function askTrust(place, trust, answered) {
  const card = document.createElement("article");
  card.className = "question";
  card.tabIndex = -1;
  card.dataset.kind = "trust";
  const title = document.createElement("h2");
  title.textContent = trust.title;
  const about = document.createElement("p");
  about.textContent = trust.about;
  const lines = document.createElement("pre");
  lines.textContent = trust.lines.join("\n");
  lines.tabIndex = 0;
  const answers = document.createElement("div");
  answers.className = "answers";
  for (const [word, label] of trust.answers) {
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
