// On another device the page covers what it shows once nobody has seen it for a while, until it is tapped.

const NAME = "treadle-cover"; // minutes; 0 for never
const minutes = () => Number(localStorage.getItem(NAME) ?? 1);
const cover = document.getElementById("cover");
let left = 0;
let timer = 0;

function look() {
  clearTimeout(timer);
  const most = minutes() * 60_000;
  if (!most) return;
  if (document.hidden) {
    left = Date.now();
    timer = setTimeout(() => cover.showModal(), most);
  } else if (left && Date.now() - left >= most && !cover.open) cover.showModal();
}
document.addEventListener("visibilitychange", look);
cover.querySelector("button").addEventListener("click", () => cover.close());
cover.addEventListener("cancel", (event) => event.preventDefault());

const choice = document.getElementById("cover-after");
if (choice) {
  choice.value = String(minutes());
  choice.addEventListener("change", () => localStorage.setItem(NAME, choice.value));
}
