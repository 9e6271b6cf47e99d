// The question whether a folder is trusted, before something is opened in it.

import { made, pressed } from "./morph.js";

/** Ask in an element; `answered` gets what is to be sent along: the answer, and what was seen. */
export function askTrust(place, trust, answered) {
  const card = made("article", "", { className: "question", tabIndex: -1 });
  card.dataset.kind = "trust";
  const answers = made("div", "", { className: "answers" });
  const give = (word) => () => {
    place.replaceChildren();
    answered({ trust: word, seen: trust.seen });
  };
  answers.append(...trust.answers.map(([word, label]) => pressed(label, give(word))));
  card.append(made("h2", trust.title), made("p", trust.about), made("pre", trust.lines.map((one) => one.replace(/^ {2}/, "")).join("\n"), { tabIndex: 0 }), answers);
  place.replaceChildren(card);
  card.scrollIntoView({ block: "nearest" });
  card.focus();
}
