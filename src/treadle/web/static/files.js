// The files of the folder in the panel: found by name, looked at, and named in the message.

import { during, get, send } from "./app.js";
import { fragment, typeInto } from "./morph.js";

const place = document.getElementById("p-files");
const list = document.getElementById("file-list");
const shown = document.getElementById("file-shown");
const find = document.getElementById("find-file");
const path = `/s/${document.body.dataset.session}`;

let wanted = 0;
let begun = false;

async function read(query) {
  const mine = ++wanted;
  const answer = await get(`${path}/files?${new URLSearchParams(query)}`);
  if (!answer || mine !== wanted) return;
  const inside = list.contains(document.activeElement);
  list.replaceChildren(fragment(await answer.text()));
  if (inside) list.querySelector("button")?.focus();
}

async function show(file, goes = true) {
  const answer = await get(`${path}/file?${new URLSearchParams({ path: file })}`);
  if (!answer) return;
  shown.replaceChildren(fragment(await answer.text()));
  place.classList.add("reading");
  if (goes) history.pushState(null, "", `#file=${encodeURIComponent(file)}`); // Back leads to the list
  const [line, box] = [shown.querySelector(".add"), place.scrollHeight > place.clientHeight ? place : window]; // the panel, not the conversation beside it
  if (line) box.scrollBy({ top: line.getBoundingClientRect().top - innerHeight / 2, behavior: "instant" });
  shown.querySelector("button").focus({ preventScroll: true });
}

/** Read the list the first time that the tab is seen. */
new IntersectionObserver((seen) => {
  if (begun || !seen.some((one) => one.isIntersecting)) return;
  begun = true;
  read({});
}).observe(place);

document.addEventListener("show-file", ({ detail }) => show(detail));

let typing = 0;
find.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => read({ find: find.value }), 150);
});
place.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const { folder, file, named, edit } = button.dataset;
  if (edit) during(button, send(`${path}/file/open`, { file: edit }));
  if (folder !== undefined) read({ folder });
  if (file) show(file);
  if (named) {
    if (document.body.dataset.view !== "conversation") document.querySelector("[data-show=conversation]").click();
    typeInto(document.getElementById("text"), named);
  }
  if (button.dataset.back !== undefined) {
    history.pushState(null, "", "#files");
    named();
    find.focus();
  }
});

/** Show the file that the address names, or the list. */
function named() {
  const file = new URLSearchParams(location.hash.slice(1)).get("file");
  if (!file) return void place.classList.remove("reading");
  const { href } = location;
  [...document.querySelectorAll("[data-show=files], #tab-files")].find((one) => one.offsetParent)?.click();
  history.replaceState(null, "", href); // the tab has its own
  show(file, false);
}
addEventListener("popstate", named);
document.addEventListener("ready", named);
