// Notifications of this browser: off until they are wanted, only while no tab of it is seen, each opens what it is about.

import { at, files } from "./entering.js";
import { reads } from "./line.js";
import { fragment, made, pressed } from "./morph.js";
import { keep, kept } from "./pages.js";

const NAME = "treadle-notify";
const SEEN = "treadle-seen"; // the lock that each tab holds as long as somebody sees it
const LONG = 30_000; // milliseconds of work after which its end is told
const MANY = 3; // sessions in BURST; the news of more of them become one
const BURST = 10_000;

const can = () => "Notification" in window && window.isSecureContext;

/** What is wanted: whether at all, of which kinds, with details, with a sound. */
const wanted = () => ({ on: false, waiting: true, done: true, failed: true, batch: true, details: true, sound: false, ...kept(NAME, {}) });

/** Say to the styles whether it is on: the buttons that switch it on go. */
const note = () => document.documentElement.classList.toggle("notifies", wanted().on);
note();

/** Keep what is wanted; asks the browser the first time. Gives what keeps it from being told, empty if nothing does. */
async function want(changed) {
  if (changed.on && !can()) return "This browser shows notifications only over HTTPS or on this computer. A hook can call you elsewhere.";
  if (changed.on && (await Notification.requestPermission()) !== "granted") return "Your browser does not allow this page to notify you. Allow it in the settings of the browser for this address.";
  localStorage.setItem(NAME, JSON.stringify({ ...wanted(), ...changed }));
  note();
  return "";
}

// ---- whether somebody sees a tab of this browser

let release = null;
let asks = false; // the lock comes later than it is asked for: who saw the tab may be gone by then
function look() {
  if (document.hidden) {
    release?.();
    release = null;
  } else if (!release && !asks) {
    asks = true;
    navigator.locks?.request(SEEN, { mode: "shared" }, () => {
      asks = false;
      return document.hidden ? undefined : new Promise((done) => (release = done));
    });
  }
}
look();
document.addEventListener("visibilitychange", look);

async function seen() {
  if (!document.hidden) return true;
  const held = (await navigator.locks?.query())?.held ?? [];
  return held.some((one) => one.name === SEEN);
}

// ---- what is told

const shown = new Map(); // the notification of each session
const told = new Map(); // when each session was told of last
let clicked = 0; // when the last sound was

function click() {
  if (!wanted().sound || performance.now() - clicked < 10_000) return;
  clicked = performance.now();
  const audio = new AudioContext();
  const [tone, loud] = [audio.createOscillator(), audio.createGain()];
  tone.frequency.value = 880;
  loud.gain.setValueAtTime(0.08, audio.currentTime);
  loud.gain.exponentialRampToValueAtTime(0.0001, audio.currentTime + 0.08);
  tone.connect(loud).connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + 0.1);
  tone.onended = () => audio.close();
}

const named = (session) => {
  const row = document.getElementById(`r-${session}`);
  return { title: row?.querySelector(".t")?.firstChild.data ?? "A session", project: row?.querySelector(".two .g")?.textContent.split(" · ")[0] || "Treadle" };
};

function show(session, head, body, place = `/s/${session}#questions`) {
  const now = performance.now();
  told.set(session, now);
  for (const [one, when] of told) if (now - when >= BURST) told.delete(one);
  const many = told.size > MANY;
  shown.get(session)?.close(); // before the next one: the same tag could name both
  try {
    const made = new Notification(many ? `${told.size} sessions have news` : head, {
      body: many || !wanted().details ? "" : body,
      tag: many ? "treadle-many" : session,
      icon: `${files}/icon.svg`,
    });
    made.onclick = () => {
      window.focus();
      made.close();
      location.assign(at + (many ? "/inbox" : place));
    };
    shown.set(session, made);
  } catch {
    // Some phones show notifications of installed pages only.
  }
}

/** Say of a session that it waits, and for what, by the cards of the inbox: its row in the column may be drawn only later. */
function question(session, cards) {
  const row = cards.querySelector(`.ilist [data-card^="c-${CSS.escape(session)}-"]`);
  const texts = (selector) => [...(row?.querySelectorAll(selector) ?? [])].map((one) => one.textContent);
  show(session, `${texts(".g:not(.mono)").at(-1)?.split(" · ")[0] ?? named(session).project} needs you`, texts(".t, .g.mono").join(" "));
}

let asked = null;
let before = {};
const began = new Map(); // since when each session works

async function waits(sessions) {
  click();
  if (await seen()) return;
  const answer = await fetch(`${at}/inbox/cards`).catch(() => null);
  const cards = fragment(answer?.ok ? await answer.text() : "");
  for (const session of sessions) question(session, cards);
}

// ---- offered once, where a long turn ended while nobody saw it

const [OFFERED, LONGER] = ["treadle-offered", 60_000];
let offers = false;

async function mayOffer() {
  offers = can() && Notification.permission === "default" && !wanted().on && !kept(OFFERED, false) && !(await seen());
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden || !offers || kept(OFFERED, false)) return;
  keep(OFFERED, true);
  const line = made("p", "A turn ended while you were elsewhere.");
  const button = made("button", "Notify me in this browser", { type: "button" });
  button.dataset.notify = "";
  line.append(button, pressed("Close", () => line.remove()));
  document.getElementById("messages").append(line);
});

async function ended(session, state) {
  const kind = state.sign === "failed" ? "failed" : "done";
  if (!wanted()[kind] || (await seen())) return;
  show(session, `${named(session).project}: ${state.words}`, [named(session).title, state.why].filter(Boolean).join(": "));
}

let batches = null; // those that are known to have ended
async function batchesEnded(ended) {
  const fresh = Object.entries(ended).filter(([run]) => batches && !batches[run]);
  batches = ended;
  if (!fresh.length || !wanted().on || !wanted().batch || !reads() || (await seen())) return;
  for (const [run, { title, body }] of fresh) show(`batch-${run}`, title, body, `/fleet/${run}`);
}

document.addEventListener("news", ({ detail: news }) => {
  if (news.batches) batchesEnded(news.batches);
  if (news.asked) {
    const fresh = Object.keys(news.asked).filter((one) => news.asked[one].some((id) => !asked?.[one]?.includes(id)));
    for (const [session, made] of shown) if (asked?.[session] && !news.asked[session]) made.close();
    const known = asked !== null;
    asked = news.asked;
    if (known && fresh.length && wanted().on && wanted().waiting && reads()) waits(fresh);
  }
  if (!news.states) return;
  for (const [session, state] of Object.entries(news.states)) {
    if (["working", "waiting", "until"].includes(state.sign)) began.set(session, began.get(session) ?? Date.now());
    else if (["working", "waiting", "until"].includes(before[session]?.sign)) {
      const worked = Date.now() - began.get(session);
      const long = worked > LONG;
      began.delete(session);
      if (worked > LONGER) mayOffer();
      if (wanted().on && reads() && (long || state.sign === "failed")) ended(session, state);
    }
  }
  before = news.states;
});

// ---- where it is switched on: a button, or the settings

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-notify]");
  if (!button) return;
  const trouble = await want({ on: true });
  button.replaceWith(made("p", trouble || "This browser calls you now. What it tells is in the settings.", { role: "status" }));
});

const form = document.getElementById("notify");
if (form) {
  const draw = () => {
    for (const box of form.elements) if (box.name) box.checked = wanted()[box.name];
    for (const box of form.elements) box.disabled = box.name !== "on" && !wanted().on;
  };
  form.addEventListener("change", async ({ target }) => {
    document.getElementById("notify-said").textContent = (await want({ [target.name]: target.checked })) || "Saved.";
    draw();
  });
  draw();
}
