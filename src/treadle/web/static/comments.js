// Comments on changes: kept in this browser until they are sent, all of them as one message.

import { during, newId, send, tell } from "./app.js";
import { nameOf } from "./keys.js";
import { made, parsed, pressed } from "./morph.js";
import { keep, kept } from "./pages.js";

const askTrust = async (...said) => (await import("./trust.js")).askTrust(...said);

const session = document.body.dataset.review;
const NAME = `comments:${session}`;
const HALF = `half:${session}`;
let all = kept(NAME, []);
let half = kept(HALF, {}); // what is typed in open fields, by field and change
let [offered, wrote] = ["", []]; // the message as it was made, and of which comments
let sent = {}; // with its id, so that it arrives once
let saved = true;
const isSame = (one) => (other) => one.id === other.id && one.key === other.key && one.text === other.text;
const waiting = () => all.filter((one) => !one.sent);

/** Change the comments as they are now: another tab may have changed them, too. */
function store(change) {
  all = change(saved ? kept(NAME, all) : all).slice(-500);
  saved = keep(NAME, all);
  showComments(document.getElementById("main"));
}

addEventListener("storage", ({ key }) => key === NAME && store((list) => list));

/** Show the comments beside their changes, and how many there are. */
export function showComments(main) {
  for (const old of main.querySelectorAll(".said-here")) old.remove();
  const answered = JSON.parse(document.getElementById("review").dataset.answered);
  for (const comment of all) {
    const hunk = main.querySelector(`.hunk[data-key="${CSS.escape(comment.key)}"]`);
    if (!hunk) continue;
    const card = parsed('<div class="said-here card"><p class="tools"><b>You</b><span class="meta grow"></span><span class="meta"></span></p><p></p></div>');
    const [where, state] = card.querySelectorAll(".meta");
    where.textContent = comment.where;
    state.textContent = !comment.sent ? "not sent yet" : comment.sent in answered ? `answered in step ${answered[comment.sent]}` : "sent";
    card.lastChild.textContent = comment.text;
    card.firstChild.append(pressed("Remove", () => store((list) => list.filter((one) => !isSame(one)(comment)))));
    hunk.append(card);
  }
  const count = waiting().length;
  document.getElementById("collected").hidden = count === 0;
  document.getElementById("count").textContent = `${count} ${count === 1 ? "comment" : "comments"} not sent yet`;
}

const halfWritten = (slot, said) => keep(HALF, (half = { ...kept(HALF, half), [slot]: said }));

/** Close a field: what was typed in it is used, or not wanted. */
export function closeField(form) {
  halfWritten(form.dataset.slot);
  form.remove();
}

/** Open the fields again that were open when the page was left, each by what opens it; where its change is gone at the top. */
export function reopen(main, does) {
  for (const slot of Object.keys(half)) {
    const [name, key] = slot.split(" ");
    const hunk = main.querySelector(`.hunk[data-key="${CSS.escape(key)}"]`);
    if (hunk) does[name](hunk);
    else lost(name, key);
  }
}

function lost(name, key) {
  const place = made("div", "", { tabIndex: -1 });
  place.dataset.key = key;
  document.getElementById("review").prepend(place);
  const [form] = fieldIn(place, name, "You wrote about a change that is not here now:", "", { rows: 3 });
  form.method = "dialog"; // it is sent nowhere
  form.querySelector("[type=submit]").remove();
}

/** Open a form with one field below a change; Ctrl-Enter sends it, Esc closes it. It is there again after a reload. */
export function fieldIn(hunk, name, word, label, properties) {
  const form = parsed(`<form class="field ${name}"><label>${word} </label><button type="submit">${label}</button> </form>`);
  const area = made("textarea", "", properties);
  form.dataset.slot = `${name} ${hunk.dataset.key}`;
  area.value = half[form.dataset.slot]?.at(-1) ?? area.value;
  form.addEventListener("input", () => halfWritten(form.dataset.slot, [...form.querySelectorAll("select, textarea")].map((one) => one.value)));
  const close = pressed("Cancel", () => (closeField(form), hunk.focus()));
  area.addEventListener("keydown", (event) => {
    if (nameOf(event) === "Ctrl-↵") form.requestSubmit();
    if (event.key === "Escape") close.click();
  });
  form.querySelector("label").append(area);
  form.append(close);
  hunk.append(form);
  area.focus();
  return [form, area];
}

function open(hunk, range, line = null) {
  const known = hunk.querySelector("form.comment textarea");
  if (known) return void known.focus();
  const about = document.createElement("select");
  about.append(made("option", "the whole change", { value: "" }));
  for (const side of ["new", "old"]) {
    for (const one of hunk.querySelectorAll(`.half.${side} .line`)) {
      const number = [...one.querySelectorAll(".num")].map((each) => each.textContent).find(Boolean);
      about.append(made("option", `${side} line ${number}`, { value: `${side} ${one.dataset.at} ${number}` }));
    }
  }
  const last = about.cloneNode(true);
  last.firstElementChild.textContent = "that line only";
  const at = line?.parentElement.classList.contains("half") ? line : null;
  if (at) {
    const side = at.parentElement.classList.contains("old") ? "old" : "new";
    about.value = [...about.options].map((one) => one.value).find((one) => one.startsWith(`${side} ${at.dataset.at} `)) ?? "";
  }
  const [form, area] = fieldIn(hunk, "comment", "Comment", "Add the comment", { rows: 3, required: true });
  const labels = [["About", about], ["to", last]].map(([text, field]) => {
    const label = made("label", `${text} `);
    label.append(field);
    return label;
  });
  const ends = () => (labels[1].hidden = !about.value);
  about.addEventListener("change", ends);
  const before = half[form.dataset.slot];
  if (before) [about.value, last.value] = before;
  ends();
  form.prepend(...labels);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const place = form.closest(".hunk");
    if (!place || !area.value.trim()) return;
    const [side = "", first = "0", number = ""] = about.value.split(" ");
    const [other, end, until] = last.value.split(" ");
    const more = side && other === side && Number(end) > Number(first);
    const comment = {
      id: newId(),
      key: place.dataset.key,
      path: place.closest(".file-changed").dataset.path,
      index: Number(place.dataset.index),
      text: area.value.trim(),
      side,
      first: Number(first),
      last: more ? Number(end) : Number(first),
      where: side ? `${side} line ${number}${more ? ` to ${until}` : ""}` : "the change",
      range,
    };
    closeField(form);
    store((list) => [...list, comment]);
    place.focus();
  });
}

async function write() {
  if (waiting().length === 0) return void tell("There are no comments yet. Press c to write one.");
  const field = document.getElementById("message-text");
  const own = field.value.trim() && field.value !== offered; // changed before: it stays, with what is new below
  const mine = waiting();
  const groups = Map.groupBy(mine.filter((one) => !own || !wrote.some(isSame(one))), (one) => JSON.stringify(one.range));
  const texts = [];
  for (const [range, comments] of groups) {
    const said = comments.map(({ path, index, text, side, first, last }) => ({ path, index, text, side, first, last }));
    const answer = await send(`/s/${session}/review/message`, { ...JSON.parse(range), comments: said });
    // What was shown then may not be kept any more: then without its lines.
    texts.push(answer?.text ?? comments.map((one) => `${one.path}, ${one.where}: ${one.text}`).join("\n\n"));
  }
  field.value = [own && field.value, ...texts].filter(Boolean).join("\n\n");
  if (!own) offered = field.value;
  wrote = mine;
  document.getElementById("message").showModal();
}

async function sendAll(button, more = {}) {
  const text = document.getElementById("message-text").value.trim();
  if (!text) return;
  if (sent.text !== text) sent = { text, id: newId() };
  const answer = await during(button, send(`/s/${session}/say`, { ...sent, ...more }, undefined, true));
  if (!answer) return;
  if (answer.trust) return void askTrust(document.getElementById("trust"), answer.trust, (said) => sendAll(button, said));
  document.getElementById("message").close();
  document.getElementById("message-text").value = "";
  store((list) => list.map((one) => (wrote.some(isSame(one)) ? { ...one, sent: one.sent || sent.id } : one)));
  tell(answer.shown || "The message was sent.");
}

document.getElementById("main").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.id === "write") write();
  else if (button?.id === "discard") {
    const gone = waiting();
    store((list) => list.filter((one) => one.sent));
    const line = made("p", "Comments discarded. ");
    line.append(pressed("Undo", () => (store((list) => [...list, ...gone]), line.remove())));
    document.getElementById("messages").append(line);
    setTimeout(() => line.remove(), 10_000);
  } else if (button?.id === "send") sendAll(button);
});

document.getElementById("message-text").addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && sendAll(document.getElementById("send")));

export const comments = { open, write };
