// What stands beside a conversation: the to-do list, messages that wait, jobs, the mode, the model and the context.

import { get, send, tell } from "./app.js";
import { at } from "./entering.js";
import { count, fragment, icon, made, morph, pressed, put } from "./morph.js";
import { intoMessage, keep, kept } from "./pages.js";

const palette = () => import("./palette.js"); // without it the rest works

const id = (name) => document.getElementById(name);
const FULL = 90; // percent of the context from which it needs a look
const MOVES = "pre, table, .diff, input, textarea, [role=tablist]"; // what a finger moves itself

function button(label, about, does, sign = "") {
  const one = pressed(sign ? "" : label, does, { className: sign ? "bare ico" : "small", title: sign ? label : "" });
  if (sign) one.append(icon(sign));
  one.setAttribute("aria-label", `${label}: ${about.slice(0, 80)}`);
  return one;
}

/** Show it; gives what brings it up to date. */
export function beside(session) {
  const path = `/s/${session}`;
  let modes = [];
  let [queued, waits] = ["", []];
  let plan = "";
  let changed = "";

  function show(status) {
    ({ modes } = status);
    put(id("mode"), modes.find(({ now }) => now)?.title ?? status.mode);
    put(id("effort"), status.effort);
    if (id("model")) {
      put(id("model"), status.model.split("/").at(-1));
      id("model").title = status.model;
      id("choose-model").setAttribute("aria-label", `Model: ${status.model}`);
    }
    put(id("context"), status.context);
    showShare(status);
    put(id("goal"), status.goal);
    id("goal").title = status.goal_about;
    id("goal").hidden = !status.goal;
    const figures = `${status.counted} ${status.added} ${status.removed}`; // others of the same size are others
    if (figures !== changed) {
      changed = figures;
      readChanges();
    }
    showPlan(status);
    showQueue(status.queue);
  }

  function showShare({ share: part }) {
    const [share, known] = [id("share"), part !== null];
    share.toggleAttribute("hidden", !known);
    id("show-context").hidden = !known;
    if (!known) return;
    share.ariaValueNow = String(part);
    share.lastElementChild.setAttribute("width", `${part}%`);
    id("ring").setAttribute("stroke-dasharray", `${(part * 37.7) / 100} 40`);
    put(id("share-words"), `${part}%`);
    count("context", `${part}%`);
    id("tab-context").classList.toggle("needs", part >= FULL);
    id("show-context").setAttribute("aria-label", `Context: ${part}%`);
  }

  // ---- the panel: its tabs, kept for this session, and the changes with the diff of one file

  const TAB = `tab:${session}`;
  let [path_, scope] = ["", ""];
  let wanted = 0;

  function tab(name, by = true) {
    for (const button of document.querySelectorAll("[data-tab]")) {
      const on = button.dataset.tab === name;
      button.setAttribute("aria-selected", String(on));
      id(`p-${button.dataset.tab}`).hidden = !on;
    }
    id("foot-changes").hidden = name !== "changes";
    id("foot-context").hidden = name !== "context";
    if (!by) return;
    sessionStorage.setItem(TAB, name);
    history.replaceState(null, "", name === "changes" && path_ ? `#changes=${encodeURIComponent(path_).replaceAll("%2F", "/")}` : `#${name}`);
  }

  let left = Infinity; // where the conversation was left; its end moves on meanwhile

  function view(name, by = true) {
    const before = document.body.dataset.view;
    history.scrollRestoration = name === "conversation" ? "auto" : "manual"; // its place is kept here meanwhile
    if (before === "conversation") left = innerHeight + scrollY < document.documentElement.scrollHeight - 60 ? scrollY : Infinity;
    document.body.dataset.view = name;
    for (const button of document.querySelectorAll("[data-show]")) button.setAttribute("aria-selected", String(button.dataset.show === name));
    if (name !== "conversation") tab(name, false);
    window.scrollTo({ top: name === "conversation" ? Math.min(left, document.documentElement.scrollHeight) : 0, behavior: "instant" });
    if (!by || name === before) return;
    if (name === "conversation" && history.state) history.back(); // which brought it here
    else if (before === "conversation") history.pushState(true, "", `#${name}`);
    else history.replaceState(history.state, "", name === "conversation" ? location.pathname + location.search : `#${name}`);
  }

  /** Show what the address names, on a phone. */
  function viewNamed() {
    const [name] = location.hash.slice(1).split("=");
    const one = document.querySelector(`[data-show="${name === "file" ? "files" : CSS.escape(name)}"]`);
    if (document.querySelector(".vtabs").offsetParent) view(one?.dataset.show ?? "conversation", false);
  }
  window.addEventListener("popstate", viewNamed);

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-tab], [data-show]");
    if (button?.dataset.tab) tab(button.dataset.tab);
    if (button?.dataset.show) view(button.dataset.show);
    const file = event.target.closest(".flist a[data-path]");
    if (file && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      path_ = file.dataset.path;
      tab("changes");
      readChanges();
    }
  });

  // ---- a finger: across to the next view, or down to put a question away

  const FAR = 56; // pixels
  let touch = null;
  document.addEventListener(
    "touchstart",
    ({ touches: [one, another], target }) => (touch = another || target.closest(MOVES) ? null : { x: one.clientX, y: one.clientY, target }),
    { passive: true },
  );
  document.addEventListener("touchend", ({ changedTouches: [to] }) => {
    if (!touch) return;
    const [{ target }, right, down] = [touch, to.clientX - touch.x, to.clientY - touch.y];
    touch = null;
    const card = target.closest(".question");
    if (card) {
      if (down > Math.max(FAR, 2 * Math.abs(right)) && target.closest(".handle, header")) card.querySelector("[data-away]")?.click();
    } else if (Math.abs(right) > Math.max(FAR, 2 * Math.abs(down)) && target.closest(".app > :not(.side)") && getSelection().isCollapsed) {
      const all = [...document.querySelectorAll(".vtabs [data-show]")].filter((one) => one.offsetParent);
      all[all.findIndex((one) => one.ariaSelected === "true") - Math.sign(right)]?.click();
    }
  });
  for (const list of document.querySelectorAll("[role=tablist]")) {
    list.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      const all = [...list.children];
      all[(all.indexOf(document.activeElement) + by + all.length) % all.length]?.focus();
    });
  }
  const [[named, file] = [""]] = new URLSearchParams(location.hash.slice(1));
  const before = sessionStorage.getItem(TAB);
  path_ = file ?? "";
  if (document.querySelector(`[data-tab="${CSS.escape(named)}"]`)) tab(named);
  else if (before) tab(before, false);
  if (named) viewNamed();

  const toggle = id("show-panel");
  const isOver = () => document.body.classList.contains("with-panel");
  function panel(open) {
    document.body.classList.toggle("with-panel", open);
    toggle.setAttribute("aria-expanded", String(open));
    if (open) id("panel").focus({ preventScroll: true });
  }
  toggle.addEventListener("click", () => panel(!isOver()));
  id("show-context").addEventListener("click", () => {
    panel(true);
    tab("context");
  });
  // Where it lies over the conversation, Esc and a click beside it put it away.
  document.addEventListener("click", ({ target }) => isOver() && !target.closest("#panel, #show-panel, #show-context, dialog") && panel(false));
  id("panel").addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isOver() || event.defaultPrevented) return;
    event.preventDefault();
    panel(false);
    toggle.focus();
  });

  // ---- its width: dragged, or with the arrow keys, and kept by this browser

  const [edge, WIDTH] = [id("edge"), "panel:width"];

  function widen(pixels) {
    edge.ariaValueNow = String(Math.round(pixels));
    document.documentElement.style.setProperty("--panel-w", `${edge.ariaValueNow}px`); // its bounds are in the styles
    keep(WIDTH, pixels);
  }
  if (kept(WIDTH, 0)) widen(kept(WIDTH, 0));
  edge.addEventListener("pointerdown", ({ pointerId }) => edge.setPointerCapture(pointerId));
  edge.addEventListener("pointermove", ({ pointerId, clientX }) => edge.hasPointerCapture(pointerId) && widen(innerWidth - clientX));
  edge.addEventListener("keydown", ({ key }) => {
    const by = { ArrowLeft: 16, ArrowRight: -16 }[key];
    if (by) widen(id("panel").offsetWidth + by);
  });

  async function readChanges() {
    const mine = ++wanted;
    const answer = await fetch(`${at}${path}/review/panel?${new URLSearchParams({ path: path_, scope })}`).catch(() => null);
    if (!answer?.ok || mine !== wanted) return;
    const place = id("p-changes");
    const fresh = place.cloneNode(false);
    fresh.append(fragment(await answer.text()));
    const { own } = fresh.firstElementChild.dataset;
    morph(place, fresh);
    count("changes", Number(own) || "");
    put(id("review-words"), own === "0" ? "Review" : `Review ${own} ${own === "1" ? "file" : "files"}`);
  }
  id("p-changes").addEventListener("change", ({ target }) => {
    scope = target.value;
    readChanges();
  });
  readChanges();

  function showPlan({ plan: html, planned, planned_words }) {
    if (html === plan) return;
    plan = html;
    id("todo").hidden = !html;
    id("todo").querySelector("ul").replaceChildren(fragment(html));
    put(id("todo-count"), planned_words);
    count("plan", planned);
    plain();
  }

  const plain = () => (id("no-plan").hidden = !(id("todo").hidden && id("jobs").hidden));

  const EDITED = `edited:${session}`;
  const fields = new Map(); // messages that wait and are changed here, by their ids
  let edited = kept(EDITED, {}); // what is written in these, and what it was

  const note = (one, words, was) => keep(EDITED, (edited = { ...edited, [one]: words === undefined ? words : { words, was } }));

  function showQueue(rows, again = false) {
    waits = rows;
    if (JSON.stringify(rows) === queued && !again) return;
    queued = JSON.stringify(rows);
    const focused = document.activeElement;
    const lines = rows.map(() => made("li"));
    id("queue").hidden = rows.length === 0;
    id("queue").querySelector("ul").replaceChildren(...lines);
    rows.forEach((one, at) => (edited[one.id] ? edit(lines[at], one) : offer(lines[at], one, at, rows[at - 1]?.steer)));
    (focused.isConnected ? focused : id("text")).focus({ preventScroll: true }); // a field keeps its place while others come and go
    if (document.body.dataset.opened !== undefined) for (const one of Object.keys(edited)) if (edited[one] && !rows.some(({ id }) => id === one)) giveBack(one);
  }

  /** Say of a message when it goes, which a click on that changes, and what else can be done with it. */
  function offer(row, { id: one, text, more: files, held, steer }, at, above) {
    const goes = (label, sign, said) => button(label, text, () => send(`${path}/queue`, { id: one, ...said }), sign);
    const when = held ? made("span", "held") : goes(steer ? "next step" : "after this turn", "", steer ? {} : { send: "steer" });
    when.classList.add("when");
    when.title = held ? "" : steer ? "Send after this turn" : "Send at the next step";
    row.append(
      when,
      made("span", files ? `${text}\n+ ${files} ${files === 1 ? "image" : "images"}` : text, { className: "words", title: text }),
      button("Change", text, () => edit(row, { id: one, text }).focus(), "pencil"),
      ...(above === steer && !held ? [goes("Send before the one above", "up", { send: steer ? "steer" : "queue", place: at - 1 })] : []),
      ...(held ? [goes("Send now", "", {})] : []),
      goes("Remove", "x", { text: "" }),
    );
  }

  /** Bring what was written in a message that does not wait any more into the message field. */
  function giveBack(one) {
    const { words, was } = edited[one];
    note(one);
    if (!words.trim() || words === was) return;
    intoMessage(session, words);
    tell("The message that you were changing does not wait any more. What you wrote is in the message field.");
  }

  function edit(row, one) {
    const field = fields.get(one.id) ?? made("textarea", "", { value: edited[one.id]?.words ?? one.text, rows: 3, ariaLabel: "Queued message" });
    fields.set(one.id, field);
    (field.oninput = () => note(one.id, field.value, one.text))();
    const leave = () => {
      fields.delete(one.id);
      note(one.id);
      showQueue(waits, true);
    };
    const save = async () => (await send(`${path}/queue`, { id: one.id, text: field.value })) && leave();
    row.replaceChildren(field, button("Save", one.text, save), button("Cancel", one.text, leave));
    return field;
  }

  // ---- jobs and ports: read when a call may have begun or ended one, and while there is one

  const jobs = id("jobs");
  const ports = id("ports");
  let reading = false;
  let later = 0;

  async function readJobs() {
    if (reading || document.hidden) return;
    reading = true;
    try {
      const answer = await fetch(`${at}${path}/jobs`);
      if (!answer.ok) return;
      const list = jobs.querySelector("ul");
      const { job, port, act } = document.activeElement.dataset;
      list.replaceChildren(fragment(await answer.text()));
      const found = list.querySelectorAll(".port");
      ports.querySelector("ul").replaceChildren(...found);
      if (job || port) document.querySelector(job ? `[data-job="${job}"]` : `[data-port="${port}"][data-act="${act}"]`)?.focus();
      jobs.hidden = jobs.querySelector("li") === null;
      ports.hidden = found.length === 0;
      count("terminal", found.length || "");
      count("jobs", list.querySelectorAll(".running").length || "");
      plain();
      if (document.querySelector("#jobs .running, #ports .running")) mayHaveJobs(2_000);
    } catch {
      // The stream says that the server cannot be reached.
    } finally {
      reading = false;
    }
  }

  function mayHaveJobs(after = 1_000) {
    if (later) return;
    later = setTimeout(() => {
      later = 0;
      readJobs();
    }, after);
  }

  async function doJob(event) {
    const one = event.target.closest("button[data-job], button[data-port], button[data-preview], button[data-printed]");
    if (!one) return;
    const { job, port, act, preview, printed } = one.dataset;
    if (preview) {
      // A page of the session's own program, in a window of its own beside this one: no frame of this page holds it.
      return void window.open(preview, `preview-${session}`, `popup,noopener,noreferrer,width=480,height=${window.outerHeight},left=${window.screenX + window.outerWidth - 480},top=${window.screenY}`);
    }
    if (printed) {
      const answer = await get(`${path}/jobs/output?${new URLSearchParams({ id: printed })}`);
      if (!answer) return;
      id("printed").replaceChildren(fragment(await answer.text()));
      id("printed").querySelector("pre").focus();
      return;
    }
    one.disabled = true;
    await (job ? send(`${path}/jobs/stop`, { id: job }) : send(`${path}/ports/${act}`, { port: Number(port) }));
    readJobs();
  }
  for (const one of [jobs, ports, id("items")]) one.addEventListener("click", doJob);
  readJobs();

  // ---- mode, model and context

  id("choose-mode")?.addEventListener("click", async () => {
    const rows = modes.map(({ mode, ...one }) => ({ kind: "For this session", ...one, does: () => send(`${path}/change`, { mode }) }));
    (await palette()).pickMode(rows);
  });

  id("parts").addEventListener("toggle", async (event) => {
    if (!event.target.open) return;
    const place = event.target.querySelector("div");
    const answer = await get(`${path}/context/shares`);
    if (answer) place.replaceChildren(fragment(await answer.text()));
    else place.textContent = "This cannot be loaded.";
  });

  models(path);
  return { show, mayHaveJobs };
}

function models(path) {
  id("choose-model")?.addEventListener("click", async () => {
    const answer = await get(`${path}/models`);
    if (!answer) return;
    const { now, models: known, efforts } = await answer.json();
    const change = (said) => () => send(`${path}/change`, said);
    const rows = known.map((one) => ({ kind: one.usable ? "Models" : "Without a key", title: one.ref, about: one.about, now: one.ref === now, does: change({ model: one.ref }) }));
    const thinks = known.find((one) => one.ref === now)?.thinks;
    (await palette()).pick("Choose a model", [...rows, ...(thinks ? efforts : []).map((one) => ({ kind: "Thinking", title: `Think ${one}`, about: now, does: change({ model: now, effort: one }) }))]);
  });
}
