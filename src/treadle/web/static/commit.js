// The commit of a session's changes: its form, what git said, then the push and the pull request, each shown before it runs.

import { during, get, send } from "./app.js";
import { shownSession } from "./entering.js";
import { fragment, made, parsed, put } from "./morph.js";

const path = `/s/${shownSession}`;
const dialog = parsed('<dialog id="commit" aria-labelledby="commit-title"><form></form></dialog>');
const form = dialog.firstElementChild;
document.body.append(dialog);

const amends = () => form.querySelector("[name=amends]:checked")?.value ?? "";
const chosen = () => Object.fromEntries([...form.querySelectorAll("[name=path]:checked")].map((one) => [one.value, one.dataset.digest]));

const box = ({ type }) => type === "checkbox";
const slot = (one) => (box(one) ? `${one.name} ${one.value}` : one.name);
const touched = (one) => one.name && (box(one) ? one.checked !== one.defaultChecked : one.value !== one.defaultValue);

/** Load the form, and keep what the person wrote and chose in it; gives whether it is there. */
async function fill() {
  const answer = await get(`${path}/commit`);
  if (!answer) return false;
  const before = new Map([...form.elements].filter(touched).map((one) => [slot(one), one]));
  form.replaceChildren(fragment(await answer.text()));
  for (const one of form.elements) {
    const was = before.get(slot(one));
    if (was) [one.value, one.checked] = [was.value, was.checked];
  }
  changed({ target: form });
  return true;
}

/** Say what a command did: the line, all that it printed, and the address of what it made. */
function told(place, said, words) {
  place.append(made("p", words, { className: said.good ? "" : "no" }), made("pre", [said.line && `$ ${said.line}`, said.output].filter(Boolean).join("\n"), { tabIndex: 0 }));
  if (said.address) place.append(made("a", said.address, { href: said.address, target: "_blank", rel: "noopener noreferrer" }));
}

const wanted = () => Object.fromEntries([...form.querySelectorAll(".request [name]")].map((one) => [one.name, one.value]));

/** Run the command that is shown before a button. */
async function run(button) {
  const { previousElementSibling: shown, parentElement: place } = button;
  const { runs, done, failed } = button.dataset;
  const said = await during(button, send(`${path}/${runs}`, { ...wanted(), line: shown.textContent }));
  if (!said) return;
  if (said.good) button.remove();
  told(place, said, said.good ? done : failed);
}

/** Show the command that opens a pull request; it runs with the next click. */
async function show(button) {
  const shown = await during(button, send(`${path}/pull-request`, wanted()));
  const command = form.querySelector(".request .command");
  if (!shown) return;
  put(command.firstElementChild, shown.line);
  command.hidden = false;
  command.querySelector("button")?.focus();
}

async function commit(event) {
  event.preventDefault();
  if (document.activeElement.closest(".request")) return; // Enter in a field of the pull request commits nothing
  const place = document.getElementById("committed");
  const button = document.getElementById("do-commit");
  const message = form.elements.message.value;
  let old = null;
  const refused = (_, why) => why.code === "commit-changed" && (old = why);
  const said = await during(button, send(`${path}/commit`, { message, paths: chosen(), branch: form.elements.branch.value, amends: amends() }, refused));
  if (old && (await fill())) told(document.getElementById("committed"), { output: [old.what, old.why, old.fix].filter(Boolean).join("\n") }, "The commit was not made.");
  if (!said) return;
  place.replaceChildren();
  if (!said.good) {
    told(place, said, "The commit was not made.");
    return void place.scrollIntoView({ block: "nearest" });
  }
  form.replaceChildren(made("h2", `Committed on ${said.branch || "no branch"}${said.within}`, { id: "commit-title" }), place, parsed('<div class="answers"><button type="button" value="no">Close</button></div>'));
  told(place, { ...said, line: "" }, said.note);
  if (said.branch) put(document.getElementById("bar-branch"), said.branch);
  place.append(fragment(said.handing));
  const next = place.querySelector("[data-runs=push]") ?? form.querySelector("[value=no]");
  next.classList.add("fill");
  next.focus();
}

async function write(button) {
  const [before, words] = [form.elements.message.value, button.lastChild.data];
  button.lastChild.data = "The model writes …";
  const said = await during(button, send(`${path}/commit/message`, { paths: Object.keys(chosen()) }));
  button.lastChild.data = said ? "Write anew" : words;
  const { message } = form.elements; // none where it is committed by now
  if (said && message?.value === before) message.value = said.text;
}

form.addEventListener("submit", commit);
function changed({ target }) {
  const [count, button] = [Object.keys(chosen()).length, document.getElementById("do-commit")];
  if (!button) return;
  const { message, branch } = form.elements;
  const own = ![message.defaultValue, target.dataset.message, ""].includes(message.value);
  if (target.name === "amends" && !own) message.value = target.checked ? target.dataset.message : message.defaultValue;
  if ((branch.disabled = Boolean(amends()))) branch.value = "";
  const files = `${count} ${count === 1 ? "file" : "files"}`;
  button.textContent = amends() ? `Amend the commit${count ? ` with ${files}` : ""}` : `Commit ${files}`;
  button.disabled = count === 0 && !amends();
}
form.addEventListener("change", changed);
form.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.value === "no") dialog.close();
  else if (button?.dataset.write !== undefined) write(button);
  else if (button?.dataset.runs) run(button);
  else if (button?.dataset.shows !== undefined) show(button);
  else if (button?.dataset.only !== undefined) {
    for (const box of form.querySelectorAll("[name=path]")) box.checked = box.dataset.accepted !== undefined;
    changed({ target: button });
  }
});
document.addEventListener("click", async ({ target }) => target.closest("[data-commit]") && (await fill()) && dialog.showModal());
