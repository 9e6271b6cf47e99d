// Before anything is painted the column is narrowed where changes need the room. What is clicked or sent before the modules of the page have run, which answer it, is done once they have.

if (location.pathname.endsWith("/review") && innerWidth > 820 && innerWidth < 1600) document.documentElement.classList.add("folded-column", "by-itself");
{
  let first = null;
  const note = (event) => {
    const button = event.target.closest("button");
    if (event.type === "click" && (!button || button.type === "submit")) return; // a form is sent by its own event
    event.preventDefault();
    event.stopImmediatePropagation();
    const form = event.target;
    first ??= event.type === "click" ? () => button.click() : () => form.requestSubmit(event.submitter);
  };
  const broken = () => {
    const line = document.createElement("p");
    const again = Object.assign(document.createElement("a"), { href: location.href, textContent: "Reload" });
    again.addEventListener("click", () => location.reload());
    line.id = "broken";
    line.append("A part of this page did not load, so some of it does nothing. ", again);
    (document.getElementById("messages") ?? document.body).append(line);
    for (const name of events) document.removeEventListener(name, note, true);
  };
  addEventListener("error", ({ target }) => target.src?.startsWith?.(location.origin) && target.tagName === "SCRIPT" && !document.getElementById("broken") && broken(), true);
  const events = ["click", "submit"];
  for (const name of events) document.addEventListener(name, note, true);
  document.addEventListener(
    "ready",
    () => {
      for (const name of events) document.removeEventListener(name, note, true);
      first?.();
    },
    { once: true },
  );
}
