// Hands the token of the address to the server, which gives a cookie and a key for it; the address loses the token.

const KEY = "treadle-key";
const BASE = "treadle-base";
const OWN_PATH = /^\/~[^/]+/; // below it is the page: its cookie is sent for nothing else

/** The path below which this page is; every request of it begins with that. */
export const at = OWN_PATH.exec(location.pathname)?.[0] ?? "";

/** The path below which the fixed files are. */
export const files = import.meta.url.slice(0, import.meta.url.lastIndexOf("/"));

/** The session that the page is about; empty where it is about none. */
export const shownSession = /\/s\/([^/]+)/.exec(location.pathname)?.[1] ?? "";

/** Go to where this page is for a browser that was let in; gives whether it goes there. */
export function goIn() {
  const base = localStorage.getItem(BASE) ?? "";
  if (!base || base === at) return false;
  location.replace(base + (location.pathname.replace(OWN_PATH, "") || "/") + location.search);
  return true;
}

/** Whether this browser was let in before, by the server that runs now. */
export async function isIn() {
  const base = localStorage.getItem(BASE);
  if (!base || !key()) return false;
  const answer = await fetch(`${base}/inbox/cards`).catch(() => null);
  return Boolean(answer?.ok);
}

/** Give the key that requests name; other servers on this computer are sent the cookie, but never learn the key. */
export const key = () => localStorage.getItem(KEY) ?? "";

/** Take the token out of the address; empty where there is none. */
export function tokenOfAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
  if (token) history.replaceState(null, "", location.pathname + location.search);
  return token;
}

const later = (pause) => new Promise((done) => setTimeout(done, pause));

/** Enter with a token; gives what went wrong, empty if nothing did. `waits` is told that somebody has to say yes, with a code. */
export async function enter(token, waits = () => {}) {
  for (let body = { token }; ; ) {
    let answer;
    try {
      answer = await fetch("/login", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    } catch {
      return "Treadle cannot be reached.";
    }
    const said = await answer.json().catch(() => ({ what: `The server answered ${answer.status}.` }));
    if (!answer.ok) return said.what;
    if (answer.status === 202) {
      if (said.knock) {
        body = { knock: said.knock };
        waits(said.code);
      }
      await later(1_000);
      continue;
    }
    localStorage.setItem(KEY, said.key);
    localStorage.setItem(BASE, said.base);
    return "";
  }
}

// ---- how the page looks: kept by the browser, and sent along so that the server draws it so at once

const LOOK = "treadle-look";
const LOOKS = { light: "light", dark: "dark", folded: "folded-column", enter: "enter-breaks", projects: "by-project" };

/** Keep which classes of the look the page has. */
export function keepLook() {
  const { classList } = document.documentElement;
  const chosen = (word) => classList.contains(LOOKS[word]) && !(word === "folded" && classList.contains("by-itself"));
  const words = Object.keys(LOOKS).filter(chosen).join(".");
  localStorage.setItem(LOOK, words);
  document.cookie = `${LOOK}=${words}; path=${at || "/"}; max-age=31536000; samesite=strict`;
  document.dispatchEvent(new Event("look"));
}

/** Take the look that was kept, where the server did not know it: it was started again. */
export function takeLook() {
  const known = localStorage.getItem(LOOK);
  if (!at || !known || document.cookie.includes(`${LOOK}=`)) return;
  for (const word of known.split(".")) if (LOOKS[word]) document.documentElement.classList.add(LOOKS[word]);
  keepLook();
}
