// What the screens of reports share: fragments of HTML from the server, and forms that ask it for something.

import { during, fail, get, send, tell } from "./app.js";
import { at } from "./entering.js";
import { ask, fragment, morph } from "./morph.js";

/** Load a fragment of HTML into an element; gives whether that worked. The person hears why it did not. */
export async function load(path, place) {
  const answer = await get(path);
  if (!answer) return false;
  place.replaceChildren(fragment(await answer.text()));
  return true;
}

/** Bring an element to what the server says of it now: what is the same stays, and the focus in its row where a button of that went. */
export async function follow(path, place) {
  const fresh = place.cloneNode(false);
  if (!(await load(path, fresh))) return;
  const row = place.contains(document.activeElement) && document.activeElement.closest("[id]");
  morph(place, fresh);
  if (row && document.activeElement === document.body) row.querySelector("a")?.focus();
}

// Elements that are filled once the page is there, and buttons that load a fragment into one.
for (const place of document.querySelectorAll("[data-filled]")) {
  load(place.dataset.filled, place).then((filled) => filled || (place.textContent = "This could not be read. Load the page again."));
}
for (const button of document.querySelectorAll("button[data-load]")) {
  button.addEventListener("click", async () => {
    const place = document.getElementById(button.dataset.into);
    place.textContent = "Looking …";
    if (!(await during(button, load(button.dataset.load, place)))) place.textContent = "";
  });
}

/** Give the values of a form; boxes, and fields that are marked so, are true or false. */
export function values(form, pressed) {
  const said = Object.fromEntries(new FormData(form, pressed));
  for (const box of form.querySelectorAll("input[type=checkbox]")) said[box.name] = box.checked;
  for (const flag of form.querySelectorAll("input[data-flag]")) said[flag.name] = flag.value === "true";
  return said;
}

/** Send a form whose `data-post` is a path; then show what was said, and load the page again. */
async function post(form, pressed) {
  const does = (pressed ?? form.querySelector("button"))?.textContent.replace(" …", "").replace("…", "") || "Save";
  if (form.dataset.sure && (await ask(form.dataset.sure, "", does)) === null) return;
  const buttons = form.querySelectorAll("button");
  const body = values(form, pressed);
  const used = document.activeElement;
  for (const one of buttons) one.disabled = true;
  let answered = await send(form.dataset.post, body);
  if (answered?.confirm) {
    const { confirm, host, why } = answered;
    const typed = await ask(confirm, why ?? "", answered.does ?? does, host ? "" : null);
    if (typed === null && form.dataset.changes !== undefined) form.reset(); // it shows what is so
    answered = typed === null ? null : await send(form.dataset.post, { ...body, sure: true, host: typed });
    if (answered?.confirm) {
      fail({ what: "That is another host. Nothing was saved." });
      answered = null;
    }
  }
  for (const one of buttons) one.disabled = false;
  if (document.activeElement === document.body) used.focus();
  if (!answered) return; // a key that was typed can be sent again
  for (const one of form.querySelectorAll("input[type=password]")) one.value = "";
  if (answered.path) return void location.assign(at + answered.path);
  if (form.dataset.stays === undefined) {
    if (answered.said) sessionStorage.setItem("said", answered.said);
    location.reload();
    return;
  }
  if (answered.said) tell(answered.said);
  document.dispatchEvent(new CustomEvent("posted", { detail: { form, answered, used } }));
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-post]");
  if (!form) return;
  event.preventDefault();
  post(form, event.submitter);
});

document.addEventListener("change", ({ target }) => target.closest("form[data-changes]")?.requestSubmit());

const said = sessionStorage.getItem("said");
if (said) {
  sessionStorage.removeItem("said");
  tell(said);
}

// Forms that only choose what is shown: the policy for content lets no form go anywhere by itself.
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[method=get]:not([data-post])");
  if (!form || event.defaultPrevented) return;
  event.preventDefault();
  const query = [...new FormData(form)].filter(([, value]) => value !== "");
  location.assign(`${form.dataset.path ?? location.pathname}?${new URLSearchParams(query)}`);
});
