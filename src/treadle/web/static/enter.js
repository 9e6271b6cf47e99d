// The page of a browser that is not let in yet.

import { enter, tokenOfAddress } from "./entering.js";

async function come() {
  const token = tokenOfAddress();
  if (!token) return;
  const trouble = await enter(token);
  if (trouble) document.getElementById("enter").textContent = trouble;
  else location.reload();
}

addEventListener("hashchange", come);
await come();
