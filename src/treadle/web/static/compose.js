// Writing a message: its draft, what completes it, the files that go along, and sending it so that it arrives once.

import { newId, send, tell } from "./app.js";
import { at } from "./entering.js";
import { keys } from "./keys.js";
import { lost } from "./line.js";
import { icon, made, pressed } from "./morph.js";
import { draftOf, keepDraft } from "./pages.js";

const askTrust = async (...said) => (await import("./trust.js")).askTrust(...said);

const text = document.getElementById("text");
const menu = document.getElementById("menu");
const [hint, half] = ["hint", "half"].map((id) => document.getElementById(id));
const shown = document.getElementById("shown");
const pasted = document.getElementById("images");
const chooser = document.getElementById("files");

const LEAST_ROWS = text.rows;
const MOST_FILES = 10;
const MOST_BYTES = 10_000_000;
const WIDEST = 2_000; // pixels of a picture that is sent
const GONE = "This browser has not kept the files of your draft. Attach them again.";
const fromFinger = matchMedia("(pointer: coarse)");

/**
 * Make the field work: of a session, or without one of the form that starts it, which says `more`, and `where` it is.
 * `isActive` says whether the session works, `stopped` whether a person stopped it, `followed` is told what came of something that was sent.
 */
export function composer(session, { isActive, stopped = () => false, followed, more: own = () => ({}), where = () => ({}) }) {
  let draft = { text: "", id: newId(), sending: false, out: [] };
  let files = [];
  let brought = Promise.resolve(true); // the files of the message are there
  let sent = Promise.resolve(); // those before it have arrived, or came back

  // ---- the draft is kept over a reload; of what is on its way (`out`) nobody knows then whether it arrived, so it is sent again

  function keep(changes, was = draft.id) {
    draft = { ...draft, ...changes };
    document.body.classList.toggle("sends-files", draft.out.some((one) => one.held)); // they are in this page alone
    keepDraft(session, { ...draft, chosen: own() }, was);
  }

  function typed() {
    if (text.value !== draft.text) keep({ text: text.value, id: newId(), sending: false });
    grow();
  }

  function grow() {
    text.rows = Math.min(12, Math.max(LEAST_ROWS, text.value.split("\n").length));
    text.form.classList.toggle("written", text.value !== "");
  }

  const put = (words) => ((text.value = words), typed());

  grow();
  let leaving = false;
  for (const name of ["beforeunload", "pagehide", "pageshow"]) window.addEventListener(name, () => (leaving = name !== "pageshow"));

  // ---- sending

  async function say(steer, more = {}) {
    await brought;
    const [one, along] = [{ text: text.value.trim(), id: draft.id, steer }, files];
    if ((!one.text && along.length === 0) || text.readOnly) return;
    closeMenu();
    if (lost()) {
      keep({ text: text.value, sending: true, steer });
      pending = { steer, more };
      return void showPending();
    }
    text.readOnly = !session; // the page of the new session follows; in a session one types on
    const out = { ...one, files: draft.files, held: along.length > 0 && pasted.dataset.kept !== "yes" };
    if (session) {
      keep({ text: "", id: newId(), sending: false, files: null, out: [...draft.out, out] });
      [text.value, files] = ["", []];
      showFiles();
      grow();
    } else keep({ text: text.value, sending: false, steer });
    next(() => deliver(out, along, more));
  }

  const next = (does) => (sent = sent.then(does, does)); // one that goes wrong holds up no other

  async function deliver(one, along, more) {
    const said = { text: one.text, id: one.id, steer: one.steer, files: along.map(({ name, data }) => ({ name, data })), ...own(), ...more };
    hint.textContent = said.copy ? "Copying the folder …" : "";
    const refused = (status, why) => status === 422 && (hint.textContent = why.what);
    const answer = await send(session ? `/s/${session}/say` : "/sessions", said, refused, true);
    if (leaving) return; // it was cut off: the page that follows asks whether it arrived, by sending it again
    text.readOnly = false;
    if (said.copy && answer) hint.textContent = "";
    const isBack = !answer || answer.trust;
    keep({ sending: false, out: draft.out.filter(({ id }) => id !== one.id) });
    if (session) await giveBack(one, isBack, isBack || answer.kept ? along : []);
    if (!answer) return;
    if (answer.trust) return void askTrust(document.getElementById("trust"), answer.trust, (said) => say(one.steer, said));
    if (!session) put("");
    if (!session && !answer.kept && files.splice(0).length) await keepFiles();
    followed(answer);
    showAnswer(answer.shown);
  }

  /** Bring a message that was not taken back to the field, before what was typed since, with its files; alone it is the same one still. */
  async function giveBack({ text: words, id, files: kept, held }, isBack, along) {
    const since = text.value;
    if (isBack) put([words, since].filter(Boolean).join("\n"));
    if (!files.length && along.length) {
      files = along;
      showFiles();
      keep({ files: kept });
      pasted.dataset.kept = held ? "" : "yes";
    } else {
      if (along.length) files.unshift(...along), await keepFiles();
      await forget(kept);
    }
    if (isBack && !since) keep({ id });
  }

  /** Send again what was on its way when the page was left; it comes back where its files are gone. */
  async function again(one) {
    const along = one.files && !one.held ? await filesOf(one.files) : [];
    if (!one.held && along.length === (one.files?.count ?? 0)) return void (await deliver(one, along, {}));
    keep({ out: draft.out.filter(({ id }) => id !== one.id) });
    tell(GONE);
    await giveBack(one, true, []);
  }

  // ---- without a connection: it is sent when there is one again, and can be taken back until then

  let pending = null;

  function showPending() {
    text.readOnly = pending !== null;
    hint.replaceChildren(pending ? "Sends when the connection is back. It arrives once. " : "");
    if (!pending) return;
    const back = () => {
      pending = null;
      keep({ sending: false });
      showPending();
      text.focus();
    };
    hint.append(pressed("Take it back", back, { className: "plain" }));
  }

  document.addEventListener("line", ({ detail }) => {
    invite();
    const held = pending;
    if (detail.lost || !held) return;
    pending = null;
    showPending();
    say(held.steer, held.more);
  });

  let waits = false;
  const dropAgain = () => (half.textContent = "");

  /** Say in the empty field what comes of a message. */
  function invite(asks = waits) {
    waits = asks;
    if (!isActive()) dropAgain();
    if (document.body.dataset.opened === undefined) return;
    text.placeholder = lost()
      ? "Sends when the connection is back"
      : !isActive()
        ? stopped() ? "Stopped. What should be done instead?" : `Describe the next task${innerWidth < 480 ? "" : ", / for commands, @ for files"}`
        : waits && !fromFinger.matches
          ? "Type to queue a message. The question above waits for you."
          : "Type to queue a message";
  }

  for (const button of document.querySelectorAll("[data-put]")) {
    button.addEventListener("click", () => {
      const before = text.value.slice(0, text.selectionStart);
      const gap = button.dataset.put === "@" && before && !/\s$/.test(before) ? " " : "";
      text.focus();
      if (button.dataset.put === "/" && text.value) return;
      text.setRangeText(gap + button.dataset.put, text.selectionStart, text.selectionEnd, "end");
      typed();
      complete();
    });
  }

  function showAnswer(words) {
    if (!shown) return;
    shown.hidden = !words;
    shown.querySelector("pre").textContent = words ?? "";
    if (words) shown.scrollIntoView({ block: "nearest" });
  }
  document.getElementById("hide-shown")?.addEventListener("click", () => (showAnswer(""), text.focus()));

  text.form.addEventListener("submit", (event) => (event.preventDefault(), say(false)));
  document.getElementById("steer")?.addEventListener("click", () => say(true));
  document.getElementById("continue")?.addEventListener("click", () => resume({}));

  async function resume(said) {
    const answer = await send(`/s/${session}/open`, said);
    if (answer?.trust) askTrust(document.getElementById("trust"), answer.trust, resume);
  }

  // ---- stopping: with the button, or with Esc twice

  async function stop() {
    dropAgain();
    if ((await send(`/s/${session}/interrupt`)) && !fromFinger.matches) text.focus();
  }

  document.addEventListener("half-key", ({ detail: { name, within } }) => {
    if (name !== "Esc") return;
    half.textContent = "Esc again stops.";
    setTimeout(dropAgain, within);
  });

  // ---- completing

  let rows = [];
  let chosen = 0;
  let asked = 0;
  let waiting = 0;

  function closeMenu() {
    asked++;
    clearTimeout(waiting);
    rows = [];
    menu.hidden = true;
    text.removeAttribute("aria-activedescendant");
  }

  const before = () => text.value.slice(0, text.selectionStart);

  const completes = (words) => (words.startsWith("/") && !words.includes("\n")) || /(^|\s)@(\S*|"[^"\n]*)$/.test(words);

  function complete() {
    clearTimeout(waiting);
    const words = before();
    if (!completes(words)) return void closeMenu();
    const mine = ++asked;
    waiting = setTimeout(async () => {
      const asks = new URLSearchParams({ text: words.slice(-1_000), ...where() });
      const answer = await fetch(`${at}${session ? `/s/${session}` : ""}/complete?${asks}`).catch(() => null);
      if (!answer?.ok || mine !== asked) return;
      const found = await answer.json();
      if (mine === asked && before() === words) showMenu(found, words);
    }, 80);
  }

  function showMenu(found, words) {
    rows = found.rows.map((row) => ({ ...row, begin: words.length - found.replaces, end: words.length }));
    rows = rows.filter((row) => row.text.trim() !== words.slice(row.begin).trim() || row.text.endsWith("/"));
    chosen = found.free ? -1 : 0;
    menu.replaceChildren(
      ...rows.map((row, at) => {
        const line = made("li", "", { id: `m${at}`, role: "option" });
        line.append(made("code", row.name), " ", made("small", row.about));
        line.addEventListener("pointerdown", (event) => (event.preventDefault(), take(at)));
        return line;
      }),
    );
    menu.hidden = rows.length === 0;
    mark();
  }

  function mark() {
    [...menu.children].forEach((line, at) => line.setAttribute("aria-selected", String(at === chosen)));
    menu.children[chosen]?.scrollIntoView({ block: "nearest" });
    if (rows[chosen]) text.setAttribute("aria-activedescendant", `m${chosen}`);
  }

  function take(at) {
    const row = rows[at];
    closeMenu();
    text.setRangeText(row.text, row.begin, row.end, "end");
    typed();
    text.focus();
    if (row.text.endsWith("/") || (row.text.startsWith("/") && row.text.endsWith(" "))) complete();
  }

  text.form.addEventListener("change", () => keep({}));
  text.addEventListener("input", () => (typed(), complete()));
  text.addEventListener("blur", closeMenu);
  text.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const open = !menu.hidden;
    if (open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      chosen = (event.key === "ArrowDown" ? chosen + 1 : Math.max(chosen, 0) + rows.length - 1) % rows.length;
      mark();
    } else if (open && event.key === "Escape") {
      event.preventDefault();
      closeMenu();
    } else if (open && (event.key === "Tab" || (event.key === "Enter" && chosen >= 0)) && !event.shiftKey && !event.ctrlKey) {
      event.preventDefault();
      take(Math.max(chosen, 0));
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      say(isActive());
    } else if (event.key === "ArrowUp" && !text.value) {
      document.querySelector("#queue li:last-child .ico")?.click(); // to change the last one that waits
    } else if (event.key === "Enter" && !event.shiftKey && !fromFinger.matches && !document.documentElement.classList.contains("enter-breaks")) {
      event.preventDefault();
      text.form.requestSubmit();
    }
  });

  // ---- images and texts

  let coming = ""; // the file that is being read
  const nameOf = (file) => file.name || "pasted image";
  const add = (list) => void (brought = brought.then(() => attach(list)));

  async function attach(list) {
    for (const one of list) {
      coming = nameOf(one);
      showFiles();
      const file = await smaller(one);
      const size = files.reduce((sum, one) => sum + one.data.length, 0) + (file.size * 4) / 3;
      if (files.length >= MOST_FILES) tell(`A message can have at most ${MOST_FILES} files.`);
      else if (size > MOST_BYTES) tell(`${coming} is too large: the files of a message can have ${MOST_BYTES / 1_000_000} MB in all.`);
      else files.push({ ...(await looked(await read(file))), note: file === one ? "" : ", made smaller" });
    }
    coming = "";
    if (list.length) keepFiles();
  }

  /** Keep the files as the draft is kept, which says how many there are, and under which name. */
  async function keepFiles() {
    showFiles();
    const [old, form] = [draft.files, new FormData()];
    for (const { name, file } of files) form.append("files", file, name);
    const now = files.length ? { at: `/draft/${newId()}`, count: files.length } : null;
    keep({ id: newId(), sending: false, files: now });
    if (now) await (await drafts())?.put(now.at, new Response(form)).then(() => (pasted.dataset.kept = draft.files === now ? "yes" : ""), () => {});
    await forget(old);
  }

  const drafts = async () => globalThis.caches?.open("drafts").catch(() => null); // none over plain HTTP
  const forget = async (old) => old && (await drafts())?.delete(old.at);

  /** Read what is kept of the files of a message. */
  async function filesOf(wanted) {
    const form = await globalThis.caches?.match(wanted.at).then((one) => one?.formData()).catch(() => null);
    return Promise.all((form?.getAll("files") ?? []).map(async (file) => looked(await read(file))));
  }

  /** Bring back the files of a draft; gives whether all are there. */
  async function bringFiles(wanted) {
    files.push(...(await filesOf(wanted)));
    showFiles();
    if (files.length >= wanted.count) return (pasted.dataset.kept = "yes");
    tell(GONE);
    return void keep({ sending: false, files: null });
  }

  /** Have Treadle look at a file: what cannot go along is `wrong`. */
  const looked = async (one) => ({ ...one, ...(await send("/attached", { name: one.name, data: one.data })) });

  function read(file) {
    const reader = new FileReader();
    reader.readAsDataURL(file);
    return new Promise((done) => (reader.onload = () => done({ name: nameOf(file), data: String(reader.result).split(",", 2)[1] ?? "", file })));
  }

  /** Make a picture as small as models read it; what is no picture that the browser knows stays as it is. */
  async function smaller(file) {
    const picture = file.type.startsWith("image/") && (await createImageBitmap(file).catch(() => null));
    const by = picture ? WIDEST / Math.max(picture.width, picture.height) : 1;
    if (by >= 1) return file;
    const canvas = new OffscreenCanvas(Math.round(picture.width * by), Math.round(picture.height * by));
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    picture.close();
    const type = file.type === "image/png" ? file.type : "image/jpeg";
    return new File([await canvas.convertToBlob({ type, quality: 0.9 })], nameOf(file), { type });
  }

  function showFiles() {
    [pasted.hidden, pasted.dataset.kept] = [!files.length && !coming, ""];
    pasted.replaceChildren(
      ...[...files, ...(coming ? [{ name: coming }] : [])].map((one) => {
        const line = made("li");
        line.append(one.file ? sign(one.file) : made("span", "", { className: "spin" }), made("span", one.name, { className: "cut" }));
        if (!one.file) return line;
        const drop = pressed("", () => {
          files = files.filter((other) => other !== one);
          keepFiles();
          text.focus();
        }, { className: "bare ico", ariaLabel: `Remove ${one.name}` });
        drop.append(icon("x"));
        line.append(made("small", `${Math.ceil((one.data.length * 3) / 4_000).toLocaleString()} kB${one.note ?? ""}`), drop);
        if (one.wrong) line.append(made("span", one.wrong, { className: "no", role: "alert" }));
        return line;
      }),
    );
  }

  /** Draw a picture as small as a sign; what is none has the sign of a file. */
  function sign(file) {
    const canvas = made("canvas", "", { width: 20, height: 20 });
    createImageBitmap(file, { resizeHeight: 20 }).then((picture) => canvas.getContext("2d").drawImage(picture, 0, 0), () => canvas.replaceWith(icon("file")));
    return canvas;
  }

  for (const [place, name] of [[text, "paste"], [document, "dragover"], [document, "drop"]]) {
    place.addEventListener(name, (event) => {
      const brings = event.clipboardData ?? event.dataTransfer;
      if (!brings?.types.includes("Files")) return;
      event.preventDefault();
      add([...brings.files]); // none yet while they are dragged
    });
  }
  document.getElementById("attach").addEventListener("click", () => chooser.click());
  chooser.addEventListener("change", () => (add([...chooser.files]), (chooser.value = "")));

  showAnswer(sessionStorage.getItem(`shown:${session}`));
  sessionStorage.removeItem(`shown:${session}`);
  // Last, because what was on its way is sent.
  const kept = draftOf(session);
  const early = text.value; // typed before this ran, or brought back by the browser
  if (kept) draft = { out: [], ...kept };
  put(!early || kept?.sending ? draft.text : early.startsWith(draft.text) ? early : `${draft.text}\n${early}`);
  if (draft.files) [brought, text.readOnly] = [bringFiles(draft.files), draft.sending];
  for (const one of draft.out) next(() => again(one));
  brought.then((whole) => ((text.readOnly = false), whole && draft.sending && say(draft.steer)));
  add([...chooser.files]); // chosen before this ran
  if (document.activeElement === text) complete();
  const sends = session ? "send the message; Ctrl-↵ at the next step, Shift-↵ begins a line" : "start the session; Shift-↵ begins a line";
  keys([["↵", sends, null, () => !document.documentElement.classList.contains("enter-breaks")]]);

  return { text, stop, put, invite };
}
