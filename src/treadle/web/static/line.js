// The living line to the server: news as they come, a word where none come, and one browser's tabs that share them.

import { at, key } from "./entering.js";
import { made } from "./morph.js";

const SILENT = 20_000; // milliseconds without a byte after which the line counts as lost
const PAUSES = [1_000, 2_000, 4_000, 8_000, 10_000]; // before each further try; the last one again and again
const LIVES = 3_000; // milliseconds of life after which the strip goes
const STREAMS = 3; // of one browser, beside that of the tab that leads: it has six connections for one address
const ASKS_AGAIN = 2_000; // milliseconds after which a tab without a stream asks for news
const SHARED = ["waiting", "asked", "states", "listed", "reached", "answered", "now"];
const WHOLE = SHARED.slice(0, 5); // each says all of what it is about

const strip = document.getElementById("lost");
const words = document.getElementById("lost-words");
const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("treadle-news") : null;

let heardAt = performance.now(); // when the last byte came
let asked = 0; // when this stream was asked for, which a proxy may never answer
let begun = -Infinity; // since when it lives
let nextTry = 0;
let tries = 0;
let stream = null;
let isLost = false;
let leads = false; // this tab reads for the others, also while nobody sees it
let leave = null; // gives back the place of this tab's stream
let settings = null;
const latest = {}; // what a tab that comes has missed
let retry = 0;

/** Whether this tab reads for all of its browser; without locks each tab reads for itself. */
export const reads = () => leads || !navigator.locks;

/** Whether the line is lost. */
export const lost = () => isLost;

function setLost(now) {
  if (now === isLost) return;
  isLost = now;
  strip.hidden = !now;
  document.body.classList.toggle("lost", now);
  document.dispatchEvent(new CustomEvent("line", { detail: { lost: now } }));
}

function said(news) {
  if (news.reload && !document.querySelector("#images:not([data-kept=yes]) li, .sends-files")) return void location.reload();
  if (news.reload) {
    // Files that the browser does not keep would be lost: it is asked again soon, when they may be sent or removed.
    setLost(false);
    tries = 0;
    strip.hidden = document.querySelector(".sends-files") !== null; // they are on their way
    return void (words.textContent = "The session was opened or closed elsewhere. This page follows when your files are sent or removed.");
  }
  settings.heard(news);
  document.dispatchEvent(new CustomEvent("news", { detail: news }));
}

function share(news) {
  const shared = Object.fromEntries(SHARED.filter((name) => name in news).map((name) => [name, news[name]]));
  for (const name of WHOLE) if (name in news) latest[name] = news[name];
  if (leads && Object.keys(shared).length > 1) channel?.postMessage(shared);
}

/** Read an answer as it comes, record by record; `heard` is called for each piece of it. */
export async function* records(answer, between, heard = () => {}) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    const whole = (rest + value).split(between);
    rest = whole.pop();
    yield* whole;
  }
}

async function read(answer, stays) {
  for await (const record of records(answer, "\n\n", () => (heardAt = performance.now()))) {
    let data = "";
    for (const line of record.split("\n")) {
      if (line.startsWith("id: ")) settings.cursor = line.slice(4);
      else if (line.startsWith("data: ")) data += line.slice(6);
    }
    if (!data) continue;
    const news = JSON.parse(data);
    share(news);
    said(news);
    if (!stays) return;
  }
}

/** Whether this tab may keep a stream. Others ask for news again and again, so that one connection is free for what is sent. */
async function keeps() {
  for (let place = 0; place < STREAMS && !leads && !leave && navigator.locks; place++) {
    const held = (known) => (lock) => (known(), lock && new Promise((done) => (leave = done))); // until this tab leaves it
    await new Promise((known) => navigator.locks.request(`treadle-stream-${place}`, { ifAvailable: true }, held(known)));
  }
  return leads || leave || !navigator.locks;
}

async function open() {
  clearTimeout(retry);
  stream?.abort();
  const mine = (stream = new AbortController());
  asked = performance.now();
  const stays = await keeps();
  const opened = document.body.dataset.opened === undefined ? "" : "yes";
  const query = new URLSearchParams({ session: settings.session, cursor: settings.cursor, opened });
  let told = 0;
  let asksAgain = false;
  try {
    const answer = await fetch(`${at}/events?${query}`, { headers: { "x-treadle-key": key() }, signal: mine.signal });
    if (answer.status === 401) return location.reload(); // the page that says so is shown
    told = Number(answer.headers.get("retry-after")) * 1_000; // by a server that is busy
    if (answer.ok) {
      begun = heardAt = performance.now();
      await read(answer, stays);
      asksAgain = !stays;
    }
  } catch {
    // It is tried again.
  }
  if (mine !== stream) return; // another one is read meanwhile
  mine.abort();
  const lived = performance.now() - begun;
  begun = -Infinity;
  if (asksAgain || (lived > LIVES && lived < Infinity)) tries = 0;
  const pause = asksAgain ? ASKS_AGAIN : Math.max(told, PAUSES[Math.min(tries++, PAUSES.length - 1)]);
  if (asksAgain) setLost(false);
  else if (tries > 1 || told) setLost(true);
  nextTry = performance.now() + pause;
  retry = setTimeout(open, pause);
}

function again() {
  tries = Math.max(tries, 1);
  open();
}

const wanted = () => leads || !document.hidden;

/** Say each second how it is. */
function look() {
  if (!wanted()) return;
  const now = performance.now();
  if (now > nextTry && now - Math.max(heardAt, asked) > SILENT) {
    setLost(true);
    tries = Math.max(tries, 1);
    begun = -Infinity;
    open();
  }
  if (isLost && begun > -Infinity && now - begun > LIVES) {
    tries = 0;
    setLost(false);
  }
  if (!isLost) return;
  const gone = Math.floor((now - heardAt) / 1000);
  const triesNow = begun > -Infinity || nextTry < now;
  const left = Math.max(1, Math.ceil(((triesNow ? Math.max(heardAt, asked) + SILENT : nextTry) - now) / 1000));
  words.replaceChildren(made("b", `No connection since ${Math.floor(gone / 60)}:${String(gone % 60).padStart(2, "0")}.`), ` What you see may be old. Trying ${triesNow ? "now, for up to" : "again in"} ${left} s.`);
}

/** Listen to what happens, from when all modules have run: the first piece of news has all that later ones change. `heard` gets each, and so does who listens for the event `news`. */
export function listen(heard, session = "", cursor = "") {
  settings = { heard, session, cursor };
  document.addEventListener("ready", begin);
}

function begin() {
  if (wanted()) open();
  else channel?.postMessage({ missed: true }); // it is opened behind another tab, of many perhaps
  setInterval(look, 1_000);
  document.getElementById("try-now").addEventListener("click", again);
  addEventListener("online", again);
  let hidden = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    if (!document.hidden) {
      if (!stream || isLost) again();
      look();
    } else if (!leads) {
      // A browser has few connections for one address: a tab that nobody sees leaves the reading to another one.
      hidden = setTimeout(() => {
        if (leads) return;
        clearTimeout(retry);
        const old = stream;
        stream = null; // it ends because nobody sees it, and is not tried again
        old?.abort();
        leave = leave?.(); // another tab may have its place
        begun = -Infinity;
      }, 10_000);
    }
  });
  if (channel) {
    channel.onmessage = ({ data }) => {
      if (data.missed) leads && channel.postMessage(latest);
      else if (!wanted()) document.dispatchEvent(new CustomEvent("news", { detail: data }));
    };
  }
  navigator.locks?.request("treadle-line", () => {
    leads = true;
    leave = leave?.();
    if (!stream) open();
    return new Promise(() => {}); // as long as this tab is there
  });
}
