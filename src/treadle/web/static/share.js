// A file of a session to give away: what is hidden in it, before it is downloaded.

import { get } from "./app.js";
import { at } from "./entering.js";
import { made } from "./morph.js";
import "./reports.js";

const link = document.getElementById("download");
const said = document.getElementById("file");

const answer = await get(link.getAttribute("href").replace(at, "").replace("/share/file?", "/share/hidden?"));
if (answer) {
  const found = await answer.json();
  const size = found.bytes < 100_000 ? `${found.bytes.toLocaleString()} bytes` : `${(found.bytes / 1e6).toFixed(1)} MB`;
  const none = "No secret was found in it.";
  said.textContent = `${found.name}, ${size}. ${found.hidden.length ? "Hidden in it:" : none}`;
  document.getElementById("hidden").replaceChildren(...found.hidden.map((one) => made("li", `${one.name}: ${one.times}`)));
} else {
  said.textContent = "What is hidden in it is not known. Load the page again.";
  link.remove();
}
