// The commit of a session's changes: its form, what git said, then the push and the pull request, each shown before it runs.

import { during, get, send } from "./app.js";
import { shownSession } from "./entering.js";
import { fragment, made, parsed, pressed, put } from "./morph.js";

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

/** Say what a command did: the line, and all that it printed. */
function told(place, said, good) {
  place.append(made("p", good, { className: said.good ? "" : "warns" }), made("pre", [said.line && `$ ${said.line}`, said.output].filter(Boolean).join("\n"), { tabIndex: 0 }));
}

/** Offer a command, which is shown and runs with the next click. */
function offer(place, label, line, run, done) {
  const button = pressed(label, async () => {
    const said = await during(button, run());
    if (!said) return;
    if (said.good) button.remove();
    told(place, said, said.good ? done : "That failed.");
  });
  place.append(made("pre", line, { tabIndex: 0 }), button);
  button.focus();
}

function pullRequest(place, message) {
  const [title, ...rest] = message.split("\n");
  const fields = parsed('<div class="request"><h3>Pull request</h3><label>Title<input name="title"></label><label>Text<textarea name="body" rows="4"></textarea></label><label>Into branch <input name="base" placeholder="the usual one"></label></div>');
  const field = (name) => fields.querySelector(`[name=${name}]`);
  field("title").value = title;
  field("body").value = rest.join("\n").trim();
  const show = pressed("Show the command", async () => {
    const wanted = { title: field("title").value, body: field("body").value, base: field("base").value };
    const shown = await send(`${path}/pull-request`, wanted);
    if (shown) offer(place, "Create it", shown.line, () => send(`${path}/pull-request`, { ...wanted, line: shown.line }), "The pull request is created.");
  });
  fields.append(show);
  place.append(fields);
}

async function commit(event) {
  event.preventDefault();
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
  form.replaceChildren(made("h2", `Committed on ${said.branch || "no branch"}`, { id: "commit-title" }), place, parsed('<div class="answers"><button type="button" value="no">Close</button></div>'));
  told(place, { ...said, line: "" }, said.note);
  if (said.branch) put(document.getElementById("bar-branch"), said.branch);
  if (said.push) offer(place, "Push it", said.push, () => send(`${path}/push`, { line: said.push }), "The commit is pushed.");
  if (said.requests) pullRequest(place, message);
}

async function write(button) {
  const before = form.elements.message.value;
  button.lastChild.data = "The model writes …";
  const said = await during(button, send(`${path}/commit/message`, { paths: Object.keys(chosen()) }));
  button.lastChild.data = "Write anew";
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
  else if (button?.dataset.only !== undefined) {
    for (const box of form.querySelectorAll("[name=path]")) box.checked = box.dataset.accepted !== undefined;
    changed({ target: button });
  }
});
document.addEventListener("click", async ({ target }) => target.closest("[data-commit]") && (await fill()) && dialog.showModal());
