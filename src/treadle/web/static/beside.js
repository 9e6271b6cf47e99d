// What stands beside a conversation: the to-do list, messages that wait, jobs, the mode, the model and the context.

import { get, send } from "./app.js";
import { at } from "./entering.js";

const id = (name) => document.getElementById(name);

function list(name, rows, fill) {
  const section = id(name);
  section.hidden = rows.length === 0;
  section.querySelector("ul").replaceChildren(
    ...rows.map((row) => {
      const made = document.createElement("li");
      fill(made, row);
      return made;
    }),
  );
}

function button(label, about, does) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "small";
  made.textContent = label;
  made.setAttribute("aria-label", `${label}: ${about.slice(0, 80)}`);
  made.addEventListener("click", does);
  return made;
}

const put = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

/** Show it; gives what brings it up to date. */
export function beside(session) {
  const path = `/s/${session}`;
  let known = "";
  let queued = "";
  let todo = "";

  function show(status) {
    const mode = id("mode");
    known = status.mode;
    for (const one of mode.options) one.hidden = one.disabled = !status.modes.includes(one.value);
    if (document.activeElement !== mode) mode.value = known;
    put(id("model"), status.model);
    put(id("context"), status.context);
    const share = id("share");
    share.hidden = !status.window;
    if (status.window) share.value = Math.min(100, (100 * status.tokens) / status.window);
    put(id("cost"), status.cost);
    put(id("changes").firstElementChild, `+${status.added}`);
    put(id("changes").lastElementChild, `-${status.removed}`);
    showTodo(status.todo);
    showQueue(status.queue);
  }

  function showTodo(rows) {
    if (JSON.stringify(rows) === todo) return;
    todo = JSON.stringify(rows);
    put(id("todo-count"), `${rows.filter((one) => one.done).length} of ${rows.length}`);
    const next = rows.findIndex((one) => !one.done);
    list("todo", rows, (row, one) => {
      row.className = `${one.done ? "done" : ""} depth-${Math.min(3, one.depth)}`;
      row.textContent = `${one.done ? "✓" : rows.indexOf(one) === next ? "●" : "○"} ${one.text}`;
    });
  }

  function showQueue(rows) {
    // Redrawn only when it changed, so that a change being written in it is not lost.
    if (JSON.stringify(rows) === queued) return;
    queued = JSON.stringify(rows);
    list("queue", rows, (row, one) => {
      const text = document.createElement("span");
      text.textContent = one.more ? `${one.text}\n+ ${one.more} ${one.more === 1 ? "image" : "images"}` : one.text;
      row.append(
        text,
        button("Change", one.text, () => edit(row, one)),
        button("Send at the next step", one.text, () => send(`${path}/queue`, { id: one.id, steer: true })),
        button("Remove", one.text, () => send(`${path}/queue`, { id: one.id, text: "" })),
      );
    });
  }

  function edit(row, one) {
    const field = document.createElement("textarea");
    field.value = one.text;
    field.rows = 3;
    field.setAttribute("aria-label", "Queued message");
    const save = button("Save", one.text, async () => {
      if (await send(`${path}/queue`, { id: one.id, text: field.value })) save.disabled = true;
    });
    const leave = button("Cancel", one.text, () => {
      queued = "";
      row.replaceChildren(one.text);
    });
    row.replaceChildren(field, save, leave);
    field.focus();
  }

  // ---- jobs and ports: read when a call may have begun or ended one, and while there is one

  const jobs = id("jobs");
  let reading = false;
  let later = 0;

  async function readJobs() {
    if (reading || document.hidden) return;
    reading = true;
    try {
      const answer = await fetch(`${at}${path}/jobs`);
      if (!answer.ok) return;
      const list = jobs.querySelector("ul");
      const { job, port } = list.contains(document.activeElement) ? document.activeElement.dataset : {};
      list.innerHTML = await answer.text();
      if (job || port) list.querySelector(job ? `[data-job="${job}"]` : `[data-port="${port}"]`)?.focus();
      jobs.hidden = jobs.querySelector("li") === null;
      if (jobs.querySelector(".running")) mayHaveJobs(2_000);
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

  jobs.addEventListener("click", async (event) => {
    const one = event.target.closest("button[data-job], button[data-port]");
    if (!one) return;
    one.disabled = true;
    const { job, port, act } = one.dataset;
    await (job ? send(`${path}/jobs/stop`, { id: job }) : send(`${path}/ports/${act}`, { port: Number(port) }));
    readJobs();
  });
  readJobs();

  // ---- mode, model, context, and closing

  id("mode").addEventListener("change", async (event) => {
    const mode = event.target.value;
    event.target.blur();
    const sure = mode !== "full" || window.confirm("In mode full everything runs without asking. Switch to it?");
    if (!sure || !(await send(`${path}/change`, { mode }))) event.target.value = known;
  });

  id("parts").addEventListener("toggle", async (event) => {
    if (!event.target.open) return;
    const place = event.target.querySelector("div");
    const answer = await get(`${path}/context/shares`);
    if (answer) place.innerHTML = await answer.text();
    else place.textContent = "This cannot be loaded.";
  });

  id("close")?.addEventListener("click", () => {
    if (!document.body.classList.contains("working") || window.confirm("The session is working. Stop and close it?")) send(`${path}/close`);
  });

  const toggle = id("show-side");
  toggle.addEventListener("click", () => {
    const open = document.body.classList.toggle("with-side");
    toggle.setAttribute("aria-expanded", String(open));
    if (open) id("side").scrollIntoView({ block: "nearest" });
  });

  models(path);
  return { show, mayHaveJobs };
}

function models(path) {
  const dialog = id("models");
  const find = id("find-model");
  const effort = id("effort");
  const rows = id("model-list");
  let known = [];
  let now = "";

  id("choose-model")?.addEventListener("click", async () => {
    dialog.showModal();
    rows.replaceChildren("Loading the models …");
    const answer = await get(`${path}/models`);
    if (!answer) {
      rows.replaceChildren("The models cannot be loaded.");
      return;
    }
    const found = await answer.json();
    ({ models: known, now } = found);
    effort.replaceChildren(new Option("default", ""), ...found.efforts.map((one) => new Option(one, one)));
    find.value = "";
    draw();
    find.focus();
  });

  /** Whether a text has these characters in this order. */
  function fits(one, wanted) {
    let at = 0;
    for (const char of `${one.ref} ${one.about}`.toLowerCase()) if (char === wanted[at]) at++;
    return at >= wanted.length;
  }

  function draw() {
    const wanted = find.value.toLowerCase().replaceAll(" ", "");
    const found = known.filter((one) => fits(one, wanted)).sort((a, b) => rank(b, wanted) - rank(a, wanted));
    rows.replaceChildren(
      ...found.slice(0, 80).map((one) => {
        const line = document.createElement("li");
        const choose = document.createElement("button");
        const about = document.createElement("small");
        choose.type = "button";
        choose.textContent = one.ref;
        about.textContent = one.about;
        if (one.ref === now) choose.setAttribute("aria-current", "true");
        if (!one.usable) line.className = "unusable";
        choose.addEventListener("click", async () => {
          const said = { model: one.ref };
          if (effort.value && one.thinks) said.effort = effort.value;
          if (await send(`${path}/change`, said)) dialog.close();
        });
        line.append(choose, about);
        return line;
      }),
    );
    if (!found.length) rows.replaceChildren("No model matches.");
  }

  const rank = (one, wanted) => (one.ref.toLowerCase().includes(wanted) ? 2 : 0) + (one.usable ? 1 : 0);

  find.addEventListener("input", draw);
  find.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "Enter") return;
    event.preventDefault();
    rows.querySelector("button")?.focus();
  });
  rows.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const all = [...rows.querySelectorAll("button")];
    const at = all.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
    (all[at] ?? find).focus();
  });
  id("close-models").addEventListener("click", () => dialog.close());
}
