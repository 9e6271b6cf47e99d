// Bringing an element to what fresh HTML says while what is the same stays: scrolled, opened and selected as it was.

import { files } from "./entering.js";

const policy = window.trustedTypes?.createPolicy("treadle", { createHTML: (html) => html });

/** Make elements of HTML from the server: no other place of the page makes any. */
export function fragment(html) {
  const holder = document.createElement("template");
  holder.innerHTML = policy?.createHTML(html) ?? html;
  return zoned(holder.content);
}

/** Write the times of a part, which the server gives in the zone of its computer, in that of the browser. */
function zoned(part) {
  for (const one of part.querySelectorAll("[data-clock]")) {
    const at = Math.floor(Number(one.dataset.clock));
    const own = new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().replace("T", " ");
    const here = (words) => words.replace(/(\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)?/, (_, day, seconds) => own.slice(day ? 0 : 11, seconds ? 19 : 16));
    one.textContent = here(one.textContent);
    if (one.title) one.title = here(one.title);
  }
  return part;
}
zoned(document);

/** Put a figure wherever it stands. */
export const count = (name, figure) => document.querySelectorAll(`[data-count="${name}"]`).forEach((one) => put(one, figure));

/** Make one element. */
export const parsed = (html) => fragment(html).firstElementChild;

/** Make an icon of the sprite. */
export const icon = (name) => parsed(`<svg class="ic" viewBox="0 0 16 16" aria-hidden="true"><use href="${files}/icons.svg#i-${name}"/></svg>`);

/** Make an element with a text. */
export function made(tag, text = "", properties = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  return Object.assign(element, properties);
}

/** Make a button that does something. */
export function pressed(label, does, properties = {}) {
  const button = made("button", label, { type: "button", ...properties });
  button.addEventListener("click", does);
  return button;
}

/** Put words into a field where it is written, as if they were typed. */
export function typeInto(field, words) {
  field.setRangeText(words, field.selectionStart, field.selectionEnd, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
}

/** Ask in a dialog; gives what was typed where a `value` is changed, else "", and null where nobody agreed. */
export function ask(title, about, yes, value = null) {
  const dialog = parsed(`<dialog id="ask" aria-labelledby="ask-title"><form method="dialog"><h2 id="ask-title"></h2><p></p><input aria-labelledby="ask-title" autocomplete="off" maxlength="200">
<div class="answers"><button value="no">Cancel</button><button value="yes" id="ask-yes" class="fill"></button></div></form></dialog>`);
  const [heading, words, input, button] = dialog.querySelectorAll("h2, p, input, #ask-yes");
  [heading.textContent, words.textContent, button.textContent] = [title, about, yes];
  [input.hidden, input.value, words.hidden] = [value === null, value ?? "", !about];
  // Enter in the field means yes; else the first button of the form, which is no, would be taken.
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    dialog.close("yes");
  });
  document.body.append(dialog);
  dialog.showModal();
  if (value !== null) input.select();
  return new Promise((done) => {
    dialog.addEventListener("close", () => (dialog.remove(), done(dialog.returnValue === "yes" ? input.value : null)));
  });
}

/** Put a text in an element, if there is one and it says something else. */
export const put = (element, text) => element && element.textContent !== text && (element.textContent = text);

/** Make an element like a fresh one. A `details` that the person opened or closed stays as it is. */
export function morph(old, fresh) {
  if (old.nodeName !== fresh.nodeName || old.getAttribute("id") !== fresh.getAttribute("id")) return void old.replaceWith(fresh);
  const keepsOpen = old.dataset.touched === "1";
  for (const { name } of [...old.attributes]) {
    if (name === "data-touched" || (keepsOpen && name === "open")) continue;
    if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (keepsOpen && name === "open") continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  // Of nothing else is the height asked: that lays the page out.
  const scrolls = old.nodeName === "PRE";
  const scrolled = scrolls && old.scrollHeight > old.clientHeight;
  const atEnd = scrolled && old.scrollTop + old.clientHeight >= old.scrollHeight - 8;
  children(old, fresh);
  if (atEnd || (scrolls && !scrolled && old.classList.contains("output"))) old.scrollTop = old.scrollHeight;
}

function children(old, fresh) {
  let at = old.firstChild;
  for (let next = fresh.firstChild; next; ) {
    const following = next.nextSibling;
    if (!at) old.append(next);
    else {
      const after = at.nextSibling;
      if (at.nodeType !== next.nodeType) at.replaceWith(next);
      else if (at.nodeType === Node.ELEMENT_NODE) morph(at, next);
      else text(at, next);
      at = after;
    }
    next = following;
  }
  while (at) {
    const after = at.nextSibling;
    at.remove();
    at = after;
  }
}

function text(old, fresh) {
  if (old.data === fresh.data) return;
  // What only grows is added to, so that a selection in it stays.
  if (old.appendData && fresh.data.startsWith(old.data)) old.appendData(fresh.data.slice(old.data.length));
  else old.data = fresh.data;
}
