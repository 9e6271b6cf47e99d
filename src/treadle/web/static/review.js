// The review: going through files and changes, deciding on them, and collecting comments for one message.

import { during, fail, get, send } from "./app.js";
import { closeField, comments, fieldIn, reopen, showComments } from "./comments.js";
import { at } from "./entering.js";
import { keys } from "./keys.js";
import { fragment, made, parsed } from "./morph.js";
import { keep, kept, showRestored, watch } from "./pages.js";

const session = document.body.dataset.review;
const main = document.getElementById("main");
const page = () => document.getElementById("review");
const range = () => ({ old: Number(page().dataset.old), new: Number(page().dataset.new), trees: page().dataset.trees.split(",") });
const covered = () => document.querySelector(".head").getBoundingClientRect().bottom + 8; // what is fixed at the top
const VIEWED = `viewed:${session}`;
const SPLIT = "review:split";
const wide = matchMedia("(min-width: 1080px)"); // below that both sides have no room

function query(more = {}) {
  const { old, new: to, trees } = range();
  return new URLSearchParams({ from: old || "", to: to || "now", trees: trees.join(","), ...more });
}

const fileOf = (element) => element.closest(".file-changed");
const hunkOf = (element) => element.closest(".hunk");
const path = (element) => fileOf(element).dataset.path;
const shown = (selector) => [...main.querySelectorAll(selector)].filter((one) => one.offsetParent !== null);

// --- going from place to place ---

function current(selector) {
  const place = document.activeElement?.closest?.(".told")?.nextElementSibling ?? document.activeElement; // of what was just decided: the next
  const focused = place?.closest?.(selector);
  if (focused) return focused;
  return shown(selector).findLast((one) => one.getBoundingClientRect().top <= covered() + 20) ?? null;
}

function go(selector, by) {
  const all = shown(selector);
  const here = current(selector);
  const at = here ? all.indexOf(here) : by > 0 ? -1 : 0;
  const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
  if (next) arrive(next);
}

function arrive(element) {
  element.closest("details")?.setAttribute("open", "");
  element.focus({ preventScroll: true });
  window.scrollTo(0, window.scrollY + element.getBoundingClientRect().top - covered());
  const later = element.querySelector(":scope > .later button");
  if (later) load(later);
}

// --- what this browser keeps ---

function layout(split = kept(SPLIT, false)) {
  keep(SPLIT, split);
  document.body.classList.toggle("split", split && wide.matches);
  document.getElementById("split")?.setAttribute("aria-pressed", String(split));
  document.getElementById("unified")?.setAttribute("aria-pressed", String(!split));
}

function view() {
  const known = new Set(kept(VIEWED, []));
  const files = [...main.querySelectorAll(".file-changed:not([data-others])")];
  for (const file of files) {
    const done = known.has(`${file.dataset.path}|${file.dataset.raw}`);
    file.classList.toggle("done", done);
    for (const box of main.querySelectorAll(`.viewed[data-file="${file.id}"]`)) box.checked = done;
  }
  document.getElementById("progress").textContent = files.length ? `${main.querySelectorAll(".file-changed.done").length} of ${files.length} viewed` : "";
}

function setViewed(file, done) {
  file.querySelector("[data-do=look]").ariaPressed = "false";
  const known = new Set(kept(VIEWED, []));
  known[done ? "add" : "delete"](`${file.dataset.path}|${file.dataset.raw}`);
  keep(VIEWED, [...known].slice(-5_000));
  view();
}

// --- loading ---

async function load(button) {
  const file = fileOf(button);
  const answer = await during(button, get(`/s/${session}/review/file?${query({ path: file.dataset.path })}`));
  if (!answer) return;
  button.closest(".later").replaceWith(fragment(await answer.text()));
  showComments(main);
}

/** Load the page's content again; place, focus, open fields and what is typed in them stay, and so do conflicts and lines that offer to undo something. With `decides` the focus goes to what comes of it. */
async function refresh(decides = false) {
  const answer = await get(location.pathname.replace(at, "") + location.search);
  if (!answer) return;
  const fresh = fragment(await answer.text()).getElementById("review");
  const open = [...main.querySelectorAll("form.field")].map((form) => ({
    form,
    key: hunkOf(form)?.dataset.key,
    path: path(form),
  }));
  const lines = main.querySelectorAll(".told:not([hidden]), .conflict");
  const focused = main.querySelector(":is(form.field, .told, .conflict) :focus"); // else the next letters would be keys of the page
  const marks = shown(".hunk, .file-changed");
  const first = marks.findIndex((one) => one.getBoundingClientRect().bottom > covered());
  const places = marks.slice(Math.max(0, first)).map((one) => [one.dataset.key ?? one.dataset.path, one.getBoundingClientRect().top]);
  page().replaceWith(fresh);
  layout();
  view();
  showComments(main);
  for (const line of lines) stand(line, line.place);
  for (const one of open) {
    const place = find(one.key);
    if (place) place.append(one.form);
    else if (one.form.querySelector("textarea").value.trim()) {
      one.form.classList.add("lost");
      one.form.prepend(made("p", `This change in ${one.path} does not exist any more. What you wrote:`));
      page().prepend(one.form);
    }
  }
  const there = places.find(([key]) => find(key));
  if (there) window.scrollBy(0, find(there[0]).getBoundingClientRect().top - there[1]);
  if (document.activeElement === document.body && !decides) (focused?.isConnected ? focused : find(there?.[0]))?.focus({ preventScroll: true });
}

const find = (key) => (key ? main.querySelector(`.hunk[data-key="${CSS.escape(key)}"], .file-changed[data-path="${CSS.escape(key)}"]`) : null);

// --- deciding ---

async function accept(hunks, on) {
  const marks = Object.fromEntries(hunks.map((one) => [one.dataset.key, on ? "accepted" : ""]));
  if (!(await send(`/s/${session}/review/marks`, { marks }))) return;
  for (const hunk of hunks) {
    hunk.classList.remove("accepted", "rejected", "amended");
    hunk.classList.toggle("accepted", on);
    hunk.querySelector(".state").textContent = on ? "accepted" : "";
    hunk.querySelector("[data-do=accept]")?.setAttribute("aria-pressed", String(on));
  }
}

async function takeBack(button, hunks, marked) {
  const mark = hunks.some((one) => one.text !== undefined) ? "amended" : "rejected";
  const marks = Object.fromEntries(marked.map((one) => [one.dataset.key, mark]));
  const [place, behind] = [path(button), fileOf(button).nextElementSibling?.dataset.path];
  const all = [...fileOf(button).querySelectorAll(".hunk")];
  const [next, before] = [all[all.indexOf(marked.at(-1)) + 1], all[all.indexOf(marked[0]) - 1]].map((one) => one?.dataset.key);
  const said = await during(button, send(`/s/${session}/review/take-back`, { ...range(), path: place, hunks, marks }));
  if (!said) return;
  const form = mark === "amended" && !said.error && !said.conflicts.length && button.closest("form.field");
  if (form) closeField(form);
  const undone = async () => {
    const none = Object.fromEntries(Object.keys(marks).map((key) => [key, ""]));
    await send(`/s/${session}/review/marks`, { marks: none });
    await refresh(true);
  };
  for (const old of main.querySelectorAll(".undoes")) old.remove(); // only the last one is undone
  await refresh(true);
  if (said.conflict) showConflict(place, said.conflict);
  if (said.conflict && !said.error) return;
  const line = made("div", "", { className: "fresh undone told", role: "status" });
  stand(line, [place, next, before, behind]);
  showRestored(session, said, undone, line, `${mark === "amended" ? "Changed" : "Rejected"} in ${place}.`);
  line.scrollIntoView({ block: "nearest" });
}

/** Put an element where the change was that it is about: before the next one, behind the one before, else at the file or where that was. */
function stand(element, place) {
  element.place = place;
  const [file, next, before, behind] = place.map(find);
  if (next) next.before(element);
  else if (before) before.after(element);
  else if (file) file.querySelector("header").after(element);
  else if (behind) behind.before(element); // nothing of the file is changed any more
  else main.querySelector(".files-changed").append(element);
}

/** Show the three versions of a file that could not be merged, where its changes are. */
function showConflict(place, html) {
  const conflict = parsed(html);
  for (const old of main.querySelectorAll(".conflict")) if (old.ariaLabel === conflict.ariaLabel) old.remove();
  stand(conflict, [place]);
  arrive(conflict);
}

async function amend(hunk) {
  const known = hunk.querySelector("form.amend textarea");
  if (known) return void known.focus();
  const index = hunk.dataset.index;
  const answer = await get(`/s/${session}/review/text?${query({ path: path(hunk), index })}`);
  if (!answer) return;
  const said = await answer.json();
  const rows = Math.min(20, said.text.split("\n").length + 1);
  const [form, area] = fieldIn(hunk, "amend", "New lines", "Save", { value: said.text, rows, spellcheck: false });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const place = hunkOf(form);
    if (place) takeBack(form.querySelector("button"), [{ index: Number(place.dataset.index), text: area.value }], [place]);
    else fail({ what: "This change does not exist any more. Copy what you wrote." });
  });
}

const DOES = {
  load,
  compare: ({ form: { elements } }) => location.assign(`?from=${elements.from.value}&to=${elements.to.value}`),
  comment: (button) => comments.open(hunkOf(button), range()),
  amend: (button) => amend(hunkOf(button)),
  accept: (button) => accept([hunkOf(button)], button.getAttribute("aria-pressed") !== "true"),
  reject: (button) => takeBack(button, [{ index: Number(hunkOf(button).dataset.index) }], [hunkOf(button)]),
  "accept-file": async (button) => {
    const later = fileOf(button).querySelector(".later button");
    if (later) await load(later);
    await accept([...fileOf(button).querySelectorAll(".hunk")], true);
  },
  look: (button) => (button.ariaPressed = String(button.ariaPressed !== "true")),
  "close-conflict": (button) => button.closest(".conflict").remove(),
  "reject-file": (button) => takeBack(button, [], [...fileOf(button).querySelectorAll(".hunk")]),
};

main.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.do) DOES[button.dataset.do](button);
  else if (button?.id === "unified" || button?.id === "split") layout(button.id === "split");
  else if (button?.closest("#fresh")) refresh();
  const number = event.target.closest(".hunk .num");
  if (number && number.textContent) comments.open(hunkOf(number), range(), number.closest(".line"));
  const link = event.target.closest(".tree a");
  if (link) {
    event.preventDefault();
    const file = document.getElementById(`f${link.dataset.file}`);
    history.replaceState(null, "", link.hash);
    arrive(file);
  }
});

main.addEventListener("change", (event) => {
  if (event.target.matches(".viewed")) setViewed(document.getElementById(event.target.dataset.file), event.target.checked);
  if (event.target.name === "range") {
    const value = event.target.value;
    document.getElementById("between").hidden = value !== "between";
    if (value === "between") return;
    const [from, to] = value.split("-");
    location.assign(from ? `?from=${from}&to=${to}` : location.pathname);
  }
});

keys([
  ["n", "next file", () => go(".file-changed", 1)],
  ["p", "previous file", () => go(".file-changed", -1)],
  ["j", "next change", () => go(".hunk", 1)],
  ["k", "previous change", () => go(".hunk", -1)],
  ["a", "accept the change", () => current(".hunk")?.querySelector("[data-do=accept]")?.click()],
  ["x", "go to its Reject button", () => current(".hunk")?.querySelector("[data-do=reject]")?.focus()],
  ["e", "edit its new lines", () => current(".hunk")?.querySelector("[data-do=amend]")?.click()],
  ["c", "comment on it", () => current(".hunk")?.querySelector("[data-do=comment]")?.click()],
  ["v", "file viewed", () => current(".file-changed")?.querySelector(".viewed").click()],
  ["u", "unified or side by side", () => layout(!kept(SPLIT, false)), () => wide.matches],
  ["m", "write the message of your comments", () => comments.write()],
  ["r", "show newer changes", () => refresh()],
]);

let decided; // what was decided of changes, here or elsewhere
watch(session, ({ marks }) => void (decided !== undefined && marks !== decided && refresh(), (decided = marks)));

/** Go to the file that the address names. */
function named() {
  const wanted = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B")).get("file");
  const file = wanted && find(wanted);
  if (file) arrive(file);
}

layout();
wide.addEventListener("change", () => layout());
view();
showComments(main);
reopen(main, DOES);
named();
addEventListener("hashchange", named);
