// The person's own shell in the panel: begun when its tab is looked at, typed into, and shown to the model only by a click.

import { send, sendFor, tell } from "./app.js";
import { parsed, typeInto } from "./morph.js";
import { terminalScreen } from "./screen.js";

const place = document.getElementById("p-terminal");
const view = document.getElementById("shell");
const path = `/s/${document.body.dataset.session}/shell`;
let screen = null;
let size = "";
let typed = Promise.resolve();

/** Type in the order of the keys, what comes meanwhile together. */
let waits = "";
function type(text) {
  const alone = waits === "";
  waits += text;
  if (!alone) return;
  typed = typed.then(async () => {
    const all = waits;
    waits = "";
    await send(`${path}/type`, { text: all });
  });
}

/** Let the screen have as many cells as there is room for; gives them where that is another number than before. */
function fit() {
  const probe = parsed('<span class="probe">MMMMMMMMMMMMMMMMMMMM</span>');
  view.append(probe);
  const { width, height } = probe.getBoundingClientRect();
  probe.remove();
  const [columns, rows] = [Math.max(20, Math.floor((view.clientWidth - 18) / (width / 20))), Math.max(6, Math.floor((view.clientHeight - 10) / height))];
  if (size === `${columns} ${rows}`) return null;
  size = `${columns} ${rows}`;
  screen.resize(columns, rows);
  return { columns, rows };
}

async function begin() {
  if (screen || !view || view.hidden || place.hidden) return;
  screen = terminalScreen(view.querySelector(".cells"), type);
  size = "";
  const asked = sendFor(path, fit());
  typed = asked; // what is typed before the shell is there waits for it
  const answer = await asked;
  if (!answer) return void (screen = null);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      screen.take(value);
      if (value.length > 4_096) await new Promise((go) => setTimeout(go)); // a key, or a frame, comes in between
    }
    screen.take("\r\n[ended: press Enter for another one]");
  } catch {
    screen.take("\r\n[no connection: press Enter to try again]");
  }
  screen = null;
}

const KEYS = { Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b", Delete: "\x1b[3~", PageUp: "\x1b[5~", PageDown: "\x1b[6~", Insert: "\x1b[2~" };
const MOVES = { ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", Home: "H", End: "F" };

if (view) {
  const field = view.querySelector("textarea");
  field.addEventListener("keydown", (event) => {
    if (event.isComposing || event.metaKey || (event.key === "Tab" && event.shiftKey)) return;
    if (!screen) return void (event.key === "Enter" && begin());
    const { key } = event;
    let text = "";
    if (event.ctrlKey && !event.altKey && /^[a-z@[\\\]^_ ]$/i.test(key)) {
      if (key.toLowerCase() === "c" && !getSelection().isCollapsed) return; // it is copied
      if (key.toLowerCase() === "v") return;
      text = String.fromCharCode(key === " " ? 0 : key.toUpperCase().charCodeAt(0) & 31);
    } else if (event.altKey && key.length === 1 && !event.ctrlKey) text = `\x1b${key}`;
    else if (MOVES[key]) text = `${screen.arrows()}${MOVES[key]}`;
    else text = KEYS[key] ?? "";
    if (!text) return;
    event.preventDefault();
    type(text);
  });
  const put = (event) => {
    if (event.isComposing || !screen) return;
    type(field.value);
    field.value = "";
  };
  for (const name of ["input", "compositionend"]) field.addEventListener(name, put);
  field.addEventListener("paste", (event) => {
    event.preventDefault();
    if (screen) type(screen.pasted(event.clipboardData.getData("text").replaceAll(/\r?\n/g, "\r")));
  });
  view.addEventListener("mouseup", () => getSelection().isCollapsed && field.focus({ preventScroll: true }));
  const fits = () => {
    begin();
    const cells = screen && !place.hidden && !view.hidden && fit();
    if (cells) send(`${path}/size`, cells);
  };
  new ResizeObserver(fits).observe(view);
  // Where it is typed the screen fits: another window of this session may have had another size.
  for (const [one, name] of [[window, "focus"], [field, "focus"]]) one.addEventListener(name, () => ((size = ""), fits()));
}

place?.addEventListener("click", async ({ target }) => {
  const button = target.closest("button");
  if (button?.dataset.shells && (await send("/shells", { on: button.dataset.shells === "on" }))) {
    for (const one of place.querySelectorAll("[data-when]")) one.hidden = one.dataset.when !== button.dataset.shells;
    if (button.dataset.shells === "on") view.querySelector("textarea").focus();
  } else if (button?.dataset.told !== undefined) {
    const chosen = String(getSelection()).trimEnd();
    if (!chosen || !view.contains(getSelection().anchorNode)) tell("Select some of the terminal first.");
    else typeInto(document.getElementById("text"), `\`\`\`\n${chosen}\n\`\`\`\n`);
  }
});
