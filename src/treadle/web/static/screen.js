// The screen of a terminal: takes what a program prints, and shows it as rows of text in classes of the page.

import { made } from "./morph.js";

const MOST = 1_000; // rows above the screen that are kept
const WIDE = /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const MARK = /\p{Mn}|\u200d|\ufe0f/u;
const LINES = Object.fromEntries([..."jklmnqtuvwx"].map((one, at) => [one, "┘┐┌└┼─├┤┴┬│"[at]]));
const cell = (text = " ", look = "") => ({ text, look }); // never changed: blank rows share one
const BLANK = cell();

/** Begin a screen in an element; `answer` takes what the terminal says to the program. */
export function terminalScreen(place, answer) {
  let [columns, rows] = [80, 24];
  let [x, y, top, bottom] = [0, 0, 0, rows - 1];
  let look = { classes: new Set(), fg: "", bg: "" };
  let style = ""; // its classes of the page
  let saved = null;
  let lines = [];
  let above = []; // finished rows of the page, oldest first
  let other = null; // the usual screen, while a program has one of its own
  let cursorShown = true;
  let keysOfProgram = false;
  let pasteMarked = false;
  let drawsLines = false;
  let rest = "";
  let drawn = 0;
  const blank = () => Array(columns).fill(BLANK);
  lines = Array.from({ length: rows }, blank);

  function drawRow(row, cursor) {
    const [line, runs] = [made("div"), []];
    row.forEach((one, at) => {
      const kind = at === cursor ? `${one.look} cursor` : one.look;
      if (runs.at(-1)?.kind !== kind) runs.push({ kind, text: "" });
      runs.at(-1).text += one.text;
    });
    if (cursor === undefined && runs.at(-1)?.kind === "") runs.at(-1).text = runs.at(-1).text.trimEnd();
    line.append(...runs.map(({ kind, text }) => made("span", text, { className: kind })));
    return line;
  }

  const [history, shown] = [made("div"), made("div")];
  place.replaceChildren(history, shown);

  function draw() {
    drawn = 0;
    const follows = place.scrollTop + place.clientHeight >= place.scrollHeight - 30;
    history.append(...above.slice(-MOST).map((row) => drawRow(row)));
    above = [];
    while (history.children.length > MOST) history.firstChild.remove();
    shown.replaceChildren(...lines.map((row, at) => drawRow(row, cursorShown && at === y ? Math.min(x, columns - 1) : undefined)));
    if (follows) place.scrollTop = place.scrollHeight;
  }

  function leave(row) {
    if (!other && above.push(row) > 2 * MOST) above.splice(0, MOST); // a program can print more than anybody sees
  }

  function scroll(by) {
    for (let n = 0; n < Math.abs(by); n++) {
      if (by > 0) {
        const [gone] = lines.splice(top, 1);
        if (top === 0) leave(gone);
        lines.splice(bottom, 0, blank());
      } else {
        lines.splice(bottom, 1);
        lines.splice(top, 0, blank());
      }
    }
  }

  function down() {
    if (y === bottom) scroll(1);
    else if (y < rows - 1) y++;
  }

  function put(char) {
    const before = Math.max(0, x - 1);
    if (char > "~" && MARK.test(char)) return void (lines[y][before] = cell(lines[y][before].text + char, lines[y][before].look));
    const wide = char > "~" && WIDE.test(char);
    if (x + (wide ? 1 : 0) >= columns) {
      x = 0;
      down();
    }
    lines[y][x++] = cell(drawsLines ? (LINES[char] ?? char) : char, style);
    if (wide && x < columns) lines[y][x++] = cell("", style);
  }

  const at = (value, most) => Math.max(0, Math.min(most, value));
  const erase = (row, from, to) => {
    for (let n = from; n < to; n++) lines[row][n] = cell(" ", look.bg && `b${look.bg}`);
  };

  /** The nearest of the sixteen colours of a terminal. */
  function near(red, green, blue) {
    const bright = Math.max(red, green, blue) > 170 ? 8 : 0;
    const half = Math.max(red, green, blue) / 2;
    if (Math.max(red, green, blue) < 50) return "0";
    return String(bright + (red > half ? 1 : 0) + (green > half ? 2 : 0) + (blue > half ? 4 : 0));
  }

  function indexed(number) {
    if (number < 16) return String(number);
    if (number > 231) return near(...Array(3).fill((number - 232) * 10 + 8));
    const levels = [0, 95, 135, 175, 215, 255];
    const code = number - 16;
    return near(levels[Math.floor(code / 36)], levels[Math.floor(code / 6) % 6], levels[code % 6]);
  }

  const ON = { 1: "bold", 2: "faint", 3: "slanted", 4: "under", 7: "turned", 9: "struck" };
  const OFF = { 22: ["bold", "faint"], 23: ["slanted"], 24: ["under"], 27: ["turned"], 29: ["struck"] };

  function rendition(given) {
    const codes = given.length ? [...given] : [0];
    while (codes.length) {
      const code = codes.shift();
      if (code === 0) look = { classes: new Set(), fg: "", bg: "" };
      else if (ON[code]) look.classes.add(ON[code]);
      else if (OFF[code]) OFF[code].forEach((name) => look.classes.delete(name));
      else if (code === 38 || code === 48) {
        const found = codes.shift() === 5 ? indexed(codes.shift() ?? 0) : near(...codes.splice(0, 3));
        look[code === 38 ? "fg" : "bg"] = found;
      } else if (code === 39 || code === 49) look[code === 39 ? "fg" : "bg"] = "";
      else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) look.fg = String(code < 40 ? code - 30 : code - 82);
      else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) look.bg = String(code < 50 ? code - 40 : code - 92);
    }
    style = [...look.classes, look.fg && `f${look.fg}`, look.bg && `b${look.bg}`].filter(Boolean).join(" ");
  }

  function mode(number, on) {
    if (number === 25) cursorShown = on;
    else if (number === 1) keysOfProgram = on;
    else if (number === 2004) pasteMarked = on;
    else if ([47, 1047, 1049].includes(number) && on !== Boolean(other)) {
      if (on) {
        other = { lines, x, y };
        lines = Array.from({ length: rows }, blank);
      } else {
        ({ lines, x, y } = other);
        other = null;
        fit();
      }
      [top, bottom] = [0, rows - 1];
    }
  }

  function control(kind, codes, isPrivate) {
    const one = codes[0] || 1;
    if (isPrivate) {
      if (kind === "h" || kind === "l") codes.forEach((number) => mode(number, kind === "h"));
      return;
    }
    if ("ABe".includes(kind)) y = at(y + (kind === "A" ? -one : one), rows - 1);
    else if ("CaD".includes(kind)) x = at(Math.min(x, columns - 1) + (kind === "D" ? -one : one), columns - 1);
    else if (kind === "E" || kind === "F") [x, y] = [0, at(y + (kind === "E" ? one : -one), rows - 1)];
    else if (kind === "G" || kind === "`") x = at(one - 1, columns - 1);
    else if (kind === "d") y = at(one - 1, rows - 1);
    else if (kind === "H" || kind === "f") [y, x] = [at(one - 1, rows - 1), at((codes[1] || 1) - 1, columns - 1)];
    else if (kind === "K") erase(y, codes[0] ? 0 : x, codes[0] === 1 ? x + 1 : columns);
    else if (kind === "J") {
      if (codes[0] === 3) history.replaceChildren();
      if (!codes[0]) erase(y, x, columns);
      else if (codes[0] === 1) erase(y, 0, x + 1);
      const [from, to] = !codes[0] ? [y + 1, rows] : codes[0] === 1 ? [0, y] : [0, rows];
      for (let row = from; row < to; row++) erase(row, 0, columns);
    } else if (kind === "L" || kind === "M") {
      const before = top;
      if (y >= top && y <= bottom) {
        top = Math.max(1, y); // what is taken out here does not go above the screen
        if (y === 0) top = 0;
        const kept = other;
        other ??= {};
        scroll(kind === "M" ? one : -one);
        other = kept;
      }
      top = before;
    } else if (kind === "P") lines[y].splice(x, one, ...[]), (lines[y] = [...lines[y], ...blank()].slice(0, columns));
    else if (kind === "@") lines[y].splice(x, 0, ...blank().slice(0, one)), (lines[y] = lines[y].slice(0, columns));
    else if (kind === "X") erase(y, x, Math.min(columns, x + one));
    else if (kind === "S" || kind === "T") scroll(kind === "S" ? one : -one);
    else if (kind === "r") [top, bottom, x, y] = [at(one - 1, rows - 1), at((codes[1] || rows) - 1, rows - 1), 0, 0];
    else if (kind === "m") rendition(codes);
    else if (kind === "s") saved = { x, y };
    else if (kind === "u" && saved) ({ x, y } = saved);
    else if (kind === "n" && codes[0] === 6) answer(`\x1b[${y + 1};${Math.min(x, columns - 1) + 1}R`);
    else if (kind === "c" && !codes[0]) answer("\x1b[?6c");
  }

  // What a program prints is one of these: a sequence, which may be cut where the piece ends, or characters.
  const SEQUENCE = /^\x1b(?:\[([?>=!]?)([\d;:]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[()*+](.)|#.|([^[\]PX^_()*+#]))/s;

  function take(text) {
    rest += text;
    let from = 0;
    while (from < rest.length) {
      const char = String.fromCodePoint(rest.codePointAt(from));
      if (char === "\x1b") {
        const found = SEQUENCE.exec(rest.slice(from, from + 4_096));
        if (!found) {
          if (rest.length - from < 4_096) break;
          from += 1; // nothing that ends: it is passed over
          continue;
        }
        const [all, mark, numbers, kind, set, single] = found;
        if (kind) control(kind, numbers ? numbers.split(/[;:]/).map(Number) : [], mark === "?" || mark === ">" || mark === "=");
        else if (set) drawsLines = set === "0";
        else if (single === "7") saved = { x, y };
        else if (single === "8" && saved) ({ x, y } = saved);
        else if (single === "M") y === top ? scroll(-1) : (y = Math.max(0, y - 1));
        else if (single === "D") down();
        else if (single === "E") (x = 0), down();
        else if (single === "c") (lines = Array.from({ length: rows }, blank)), ([x, y, top, bottom] = [0, 0, 0, rows - 1]), rendition([]);
        from += all.length;
        continue;
      }
      if (char === "\n" || char === "\v" || char === "\f") down();
      else if (char === "\r") x = 0;
      else if (char === "\b") x = Math.max(0, Math.min(x, columns - 1) - 1);
      else if (char === "\t") x = Math.min(columns - 1, (Math.floor(x / 8) + 1) * 8);
      else if (char >= " " && char !== "\x7f") put(char);
      from += char.length;
    }
    rest = rest.slice(from);
    drawn ||= requestAnimationFrame(draw);
  }

  function fit() {
    lines = lines.map((row) => [...row, ...blank()].slice(0, columns));
    while (lines.length < rows) lines.push(blank());
    while (lines.length > rows) {
      if (y < rows - 1 || y < lines.length - 1) lines.pop();
      else leave(lines.shift()), y--;
    }
    [x, y] = [at(x, columns - 1), at(y, rows - 1)];
  }

  return {
    take,
    resize(wide, high) {
      [columns, rows] = [wide, high];
      [top, bottom] = [0, rows - 1];
      fit();
      draw();
    },
    arrows: () => (keysOfProgram ? "\x1bO" : "\x1b["),
    pasted: (text) => (pasteMarked ? `\x1b[200~${text}\x1b[201~` : text),
  };
}
