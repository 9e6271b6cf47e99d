// The page of a service for a browser that is not signed in, or whose page was started again.

import { enter, goIn, tokenOfAddress } from "./entering.js";

const said = document.getElementById("enter");
const form = document.getElementById("sign-in");
const again = document.getElementById("again");

async function come(token) {
  again.hidden = true;
  const trouble = await enter(token);
  if (trouble) {
    said.textContent = trouble;
    again.hidden = Boolean(form);
  } else if (!goIn()) location.reload();
}

form?.addEventListener("submit", (event) => (event.preventDefault(), come(document.getElementById("token").value.trim())));
again.addEventListener("click", () => come(""));
addEventListener("hashchange", () => come(tokenOfAddress()));

const token = tokenOfAddress();
if (token || "known" in document.getElementById("main").dataset) await come(token);
