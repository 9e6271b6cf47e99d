// Hands the token of the address to the server, which gives a cookie for it, and forgets the token.

const said = document.getElementById("enter");
const token = new URLSearchParams(location.hash.slice(1)).get("token");

if (token) {
  history.replaceState(null, "", location.pathname + location.search);
  const answer = await fetch("/login", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token }),
  });
  if (answer.ok) location.reload();
  else said.textContent = (await answer.json()).what;
}
