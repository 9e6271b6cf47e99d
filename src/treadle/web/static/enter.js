// The page of a browser that is not let in yet.

import { enter, goIn, isIn, tokenOfAddress } from "./entering.js";

async function come() {
  const token = tokenOfAddress();
  if (!token || (await isIn())) return void goIn();
  const trouble = await enter(token, (code) => {
    document.getElementById("enter").textContent = `Say yes on the computer that runs Treadle. It shows the code ${code}, too.`;
  });
  if (trouble) document.getElementById("enter").textContent = trouble;
  else if (!goIn()) location.reload();
}

addEventListener("hashchange", come);
await come();
