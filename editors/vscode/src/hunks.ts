// A change to a text as places of lines: found, put together from a part of them, and read from the agent. Pure.

/** Lines `start` to `end` of the old text become `newStart` to `newEnd` of the new one; from 0, ends not included. */
export interface Hunk {
  start: number;
  end: number;
  newStart: number;
  newEnd: number;
}

/** A changed place as the agent sends it: the texts of the place, and the numbers of their first lines, from 1. */
export interface Place {
  path: string;
  oldText?: string | null;
  newText: string;
  oldLine: number;
  newLine: number;
}

const MOST_COMPARED = 4_000_000;

/** Split into lines, each with its end. */
export function linesOf(text: string): string[] {
  const lines = text.split('\n');
  const last = lines.pop() ?? '';
  return [...lines.map((line) => line + '\n'), ...(last ? [last] : [])];
}

/** Find what differs, in order; no two places touch. */
export function hunksOf(oldText: string, newText: string): Hunk[] {
  const [a, b] = [linesOf(oldText), linesOf(newText)];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const [n, m] = [a.length - head - tail, b.length - head - tail];
  if (!n && !m) return [];
  if (!n || !m || n * m > MOST_COMPARED) return [{ start: head, end: head + n, newStart: head, newEnd: head + m }];
  return fromTable(a, b, head, n, m);
}

/** The longest common subsequence of the middle parts, walked from their beginning. */
function fromTable(a: string[], b: string[], head: number, n: number, m: number): Hunk[] {
  const width = m + 1;
  const table = new Uint32Array((n + 1) * width);
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      const longest = Math.max(table[(i + 1) * width + j]!, table[i * width + j + 1]!);
      table[i * width + j] = a[head + i] === b[head + j] ? table[(i + 1) * width + j + 1]! + 1 : longest;
    }
  }
  const found: Hunk[] = [];
  let [i, j] = [0, 0];
  while (i < n || j < m) {
    if (i < n && j < m && a[head + i] === b[head + j]) {
      i++, j++;
      continue;
    }
    const [start, newStart] = [i, j];
    while ((i < n || j < m) && !(i < n && j < m && a[head + i] === b[head + j])) {
      if (j >= m || (i < n && table[(i + 1) * width + j]! >= table[i * width + j + 1]!)) i++;
      else j++;
    }
    found.push({ start: head + start, end: head + i, newStart: head + newStart, newEnd: head + j });
  }
  return found;
}

/** Put the text together in which only the `kept` hunks are made. */
export function compose(oldText: string, newText: string, hunks: readonly Hunk[], kept: readonly boolean[]): string {
  const [a, b] = [linesOf(oldText), linesOf(newText)];
  const out: string[] = [];
  let at = 0;
  hunks.forEach((hunk, number) => {
    out.push(...a.slice(at, hunk.start));
    out.push(...(kept[number] ? b.slice(hunk.newStart, hunk.newEnd) : a.slice(hunk.start, hunk.end)));
    at = hunk.end;
  });
  return [...out, ...a.slice(at)].join('');
}

/** Make the places of one file in its text; null where the text is not the one that they were found in. */
export function applyPlaces(text: string, places: readonly Place[]): string | null {
  const crlf = text.includes('\r\n');
  const lines = linesOf(crlf ? text.replaceAll('\r\n', '\n') : text);
  const out: string[] = [];
  let at = 0;
  for (const place of [...places].sort((one, other) => one.oldLine - other.oldLine)) {
    const old = linesOf((place.oldText ?? '').replaceAll('\r\n', '\n'));
    const first = place.oldLine - 1;
    if (first < at || old.some((line, number) => lines[first + number] !== line)) return null;
    out.push(...lines.slice(at, first), ...linesOf(place.newText.replaceAll('\r\n', '\n')));
    at = first + old.length;
  }
  const made = [...out, ...lines.slice(at)].join('');
  return crlf ? made.replaceAll('\n', '\r\n') : made;
}

/** The smallest range of `oldText` that has to be replaced to get `newText`, in characters. */
export function smallestChange(oldText: string, newText: string): { start: number; end: number; text: string } {
  const most = Math.min(oldText.length, newText.length);
  let start = 0;
  while (start < most && oldText[start] === newText[start]) start++;
  let end = 0;
  while (end < most - start && oldText[oldText.length - 1 - end] === newText[newText.length - 1 - end]) end++;
  return { start, end: oldText.length - end, text: newText.slice(start, newText.length - end) };
}
