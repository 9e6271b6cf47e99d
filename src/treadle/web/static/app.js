// What every screen has: requests, messages, the stream of news, and the keys of the navigation.

import { at, enter, goIn, key, tokenOfAddress } from "./entering.js";

const messages = document.getElementById("messages");

/** Show a line that goes away by itself. */
export function tell(text) {
  const line = document.createElement("p");
  line.textContent = text;
  messages.append(line);
  setTimeout(() => line.remove(), 10_000);
}

/** Give the id of a message: what comes a second time with the same one is not done again. */
export const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => one.toString(16).padStart(2, "0")).join("");

const PAUSES = [300, 1_000, 3_000]; // milliseconds before a request is repeated that did not get through
const later = (pause) => new Promise((done) => setTimeout(done, pause));

/** Ask, and ask again where the network fails; null where it keeps failing. */
async function fetched(path, request, pauses) {
  for (let time = 0; ; time++) {
    try {
      return await fetch(at + path, request);
    } catch {
      if (time >= pauses.length) return null;
      await later(pauses[time]);
    }
  }
}

/** Read something; gives a good answer, or null after the person was told what went wrong. */
export async function get(path) {
  const answer = await fetched(path, {}, PAUSES);
  if (!answer) tell("Treadle cannot be reached.");
  return answer && good(answer);
}

/**
 * Send a request; gives its answer, or null after the person was told what went wrong. `refused` may tell it instead.
 * One that is done `once`, however often it arrives, is repeated where the network fails.
 */
export async function sendFor(path, body = {}, refused = () => false, once = false) {
  const request = {
    method: "POST",
    headers: { "content-type": "application/json", "x-treadle-key": key() },
    body: JSON.stringify(body),
  };
  const answer = await fetched(path, request, once ? PAUSES : []);
  if (!answer) {
    tell(`Treadle cannot be reached. ${once ? "Try again." : "Check whether it was done before you try again."}`);
    return null;
  }
  return good(answer, refused);
}

async function good(answer, refused = () => false) {
  if (answer.ok) return answer;
  if (answer.status === 401) {
    location.reload();
    return null;
  }
  const said = await answer.json().catch(() => ({ what: `The server answered ${answer.status}.` }));
  if (refused(answer.status, said)) return null;
  tell([said.what, said.why, said.fix].filter(Boolean).join(" "));
  return null;
}

/** Send a request; gives the JSON of its answer, or null after the person was told what went wrong. */
export async function send(path, body = {}, refused = () => false, once = false) {
  const answer = await sendFor(path, body, refused, once);
  return answer ? answer.json() : null;
}

/** Listen to what happens as long as the page is seen; `heard` gets each piece of news. */
export function listen(heard, session = "", cursor = "") {
  const state = document.getElementById("link");
  let source = null;
  let known = cursor;
  const open = () => {
    const opened = document.body.dataset.opened === undefined ? "" : "yes";
    const query = new URLSearchParams({ session, cursor: known, opened });
    source = new EventSource(`${at}/events?${query}`);
    source.onopen = () => {
      state.textContent = "";
    };
    source.onmessage = (event) => {
      if (event.lastEventId) known = event.lastEventId;
      const news = JSON.parse(event.data);
      if (news.reload) {
        source.close();
        location.reload();
      } else heard(news);
    };
    source.onerror = () => {
      state.textContent = "Connecting …";
      if (source.readyState !== EventSource.CLOSED) return;
      setTimeout(again, 2_000);
      // A server that was started again knows neither this path nor this browser: the page that says so is shown.
      fetch(`${at}/inbox/cards`).then((answer) => answer.status === 401 && location.reload(), () => {});
    };
  };
  const again = () => {
    source?.close();
    if (!document.hidden) open();
  };
  let hidden = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    // A browser has few connections for one address: a page that nobody sees gives its own back.
    if (document.hidden) hidden = setTimeout(() => source?.close(), 10_000);
    else if (source.readyState === EventSource.CLOSED) open();
  });
  open();
}

/** Show how many questions wait. */
export function showWaiting(waiting) {
  const badge = document.getElementById("waiting");
  const count = Object.values(waiting).reduce((sum, one) => sum + one, 0);
  badge.textContent = String(count);
  badge.hidden = count === 0;
  document.title = document.title.replace(/^\(\d+\) /, "");
  if (count) document.title = `(${count}) ${document.title}`;
}

const typing = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;

let gone = -Infinity; // a page that has just been opened has heard no g
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (event.key === "g") {
    gone = event.timeStamp;
  } else if (event.timeStamp - gone < 1_500) {
    gone = -Infinity;
    const link = document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
    if (link) {
      event.preventDefault();
      link.click();
    }
  } else if (event.key === "?") showKeys();
});

function showKeys() {
  const dialog = document.getElementById("keys");
  dialog.replaceChildren();
  const list = document.createElement("dl");
  const rows = [...document.querySelectorAll("nav a[data-key]")].map((one) => [`g ${one.dataset.key}`, one.firstChild.textContent]);
  rows.push(["?", "these keys"], ["Esc", "close"]);
  for (const one of document.querySelectorAll("#page-keys [data-key]")) rows.push([one.dataset.key, one.textContent]);
  for (const [key, what] of rows) {
    const term = document.createElement("dt");
    const about = document.createElement("dd");
    term.textContent = key;
    about.textContent = what;
    list.append(term, about);
  }
  dialog.append(list);
  dialog.showModal();
}

if (!document.body.dataset.session && !document.body.dataset.listens) {
  listen((news) => {
    if (news.waiting) showWaiting(news.waiting);
    document.dispatchEvent(new CustomEvent("news", { detail: news }));
  });
}

async function comeAgain() {
  const token = tokenOfAddress();
  if (!token) return; // the address of a browser that was let in before loses the token, too
  const trouble = key() ? "" : await enter(token);
  if (trouble) tell(trouble);
  else goIn();
}

addEventListener("hashchange", comeAgain);
await comeAgain();

/** Say that the modules of the screen have run: keys are heard, and what came before is done now. */
function ready() {
  setTimeout(() => {
    document.documentElement.dataset.ready = "1";
    document.dispatchEvent(new Event("ready"));
  });
}

if (document.readyState === "complete") ready();
else addEventListener("load", ready);
