// Markdown as HTML for the chat: what is not known as markup is text, and every piece of text is escaped. Pure.

export function escape(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

const LINK = /^(https?:\/\/|mailto:)/i;

/** Write a line's markup: code, strong, emphasis, strikethrough and links; addresses only of the web. */
export function inline(text: string): string {
  const kept: string[] = [];
  let out = text.replaceAll('\u0000', '');
  out = out.replace(/(`+)(.+?)\1(?!`)/g, (_, __, code) => keep(kept, `<code>${escape(code.trim() || code)}</code>`));
  out = out.replace(/!?\[([^\]\n]*)\]\(([^()\s\u0000]+(?:\([^()\s\u0000]*\))?)(?:\s+"[^"]*")?\)/g, (whole, label, target) =>
    LINK.test(target) ? keep(kept, `<a href="${escape(target)}">${emphasised(label) || escape(target)}</a>`) : whole,
  );
  out = out.replace(/https?:\/\/[^\s<>"')\]\u0000]+[^\s<>"')\].,;:!?\u0000]/g, (target) =>
    keep(kept, `<a href="${escape(target)}">${escape(target)}</a>`),
  );
  out = emphasised(out);
  // What was kept may hold other kept pieces: a link has a label.
  for (let depth = 0; depth < 3 && out.includes('\u0000'); depth++) {
    out = out.replace(/\u0000(\d+)\u0000/g, (_, number) => kept[Number(number)] ?? '');
  }
  return out;
}

/** Keep what is HTML already out of the way of further markup; what stands for it is no character of a text. */
function keep(kept: string[], html: string): string {
  return `\u0000${kept.push(html) - 1}\u0000`;
}

function emphasised(text: string): string {
  let out = escape(text);
  out = out.replace(/\*\*(?=\S)(.+?\S|\S)\*\*/g, '<strong>$1</strong>');
  out = out.replace(/(?<![\w*])\*(?=\S)([^*]*?\S|\S)\*(?![\w*])/g, '<em>$1</em>');
  out = out.replace(/(?<!\w)_(?=\S)([^_]*?\S|\S)_(?!\w)/g, '<em>$1</em>');
  return out.replace(/~~(?=\S)(.+?)~~/g, '<del>$1</del>');
}

const FENCE = /^\s*(`{3,}|~{3,})\s*([\w+#.-]*)/;
const ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;

const DEEPEST = 20;

/** Write a text as blocks, in each other to a `depth`. Headings begin at level 3: the chat has its own above. */
export function markdown(text: string, depth = 0): string {
  if (depth > DEEPEST) return escape(text);
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  const out: string[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (fence) {
      const body: string[] = [];
      for (at++; at < lines.length && !closes(lines[at]!, fence[1]!); at++) body.push(lines[at]!);
      at++;
      out.push(code(body.join('\n'), fence[2] ?? ''));
    } else if (!line.trim()) {
      at++;
    } else if (heading) {
      const level = Math.min(6, heading[1]!.length + 2);
      out.push(`<h${level}>${inline(heading[2]!)}</h${level}>`);
      at++;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      out.push('<hr>');
      at++;
    } else if (line.trimStart().startsWith('>')) {
      const body: string[] = [];
      for (; at < lines.length && lines[at]!.trimStart().startsWith('>'); at++) {
        body.push(lines[at]!.replace(/^\s*>\s?/, ''));
      }
      out.push(`<blockquote>${markdown(body.join('\n'), depth + 1)}</blockquote>`);
    } else if (ITEM.test(line)) {
      at = list(lines, at, out, depth);
    } else if (isTable(lines, at)) {
      at = table(lines, at, out);
    } else {
      const body: string[] = [];
      for (; at < lines.length && lines[at]!.trim() && !begins(lines, at); at++) body.push(inline(lines[at]!.trim()));
      out.push(`<p>${body.join('<br>')}</p>`);
    }
  }
  return out.join('\n');
}

function begins(lines: string[], at: number): boolean {
  const line = lines[at]!;
  return FENCE.test(line) || HEADING.test(line) || ITEM.test(line) || line.trimStart().startsWith('>') || isTable(lines, at);
}

function closes(line: string, fence: string): boolean {
  const found = line.trim();
  return found.length >= fence.length && found === fence[0]!.repeat(found.length);
}

function code(text: string, language: string): string {
  if (language !== 'diff') return `<pre tabindex="0"><code>${escape(text)}</code></pre>`;
  const rows = text.split('\n').map((line) => {
    const kind = line.startsWith('+') ? 'add' : line.startsWith('-') ? 'del' : '';
    return kind ? `<span class="${kind}">${escape(line)}</span>` : escape(line);
  });
  return `<pre tabindex="0"><code>${rows.join('\n')}</code></pre>`;
}

function list(lines: string[], first: number, out: string[], depth: number): number {
  const begun = ITEM.exec(lines[first]!)!;
  const indent = begun[1]!.length;
  const items: string[] = [];
  let at = first;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]!);
    if (!item || item[1]!.length < indent || (item[2] === undefined) !== (begun[2] === undefined)) break;
    const body = [item[3]!];
    for (at++; at < lines.length; at++) {
      const line = lines[at]!;
      const deeper = line.startsWith(' '.repeat(indent + 2)) || line.startsWith('\t');
      const next = ITEM.exec(line);
      if (!line.trim() || (next && next[1]!.length <= indent) || (!deeper && begins(lines, at))) break;
      body.push(line.replace(new RegExp(`^(\\t|\\s{1,${indent + 3}})`), ''));
    }
    const nested = body.length > 1 ? markdown(body.slice(1).join('\n'), depth + 1) : '';
    const box = /^\[([ xX])\]\s+/.exec(body[0]!);
    const text = box ? `${box[1] === ' ' ? '☐' : '☑'} ${inline(body[0]!.slice(box[0].length))}` : inline(body[0]!);
    items.push(`<li>${text}${nested}</li>`);
  }
  const start = begun[2] && begun[2] !== '1' ? ` start="${Number(begun[2])}"` : '';
  out.push(begun[2] === undefined ? `<ul>${items.join('')}</ul>` : `<ol${start}>${items.join('')}</ol>`);
  return at;
}

function isTable(lines: string[], at: number): boolean {
  return lines[at]!.includes('|') && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$/.test(lines[at + 1] ?? '');
}

function table(lines: string[], first: number, out: string[]): number {
  const cells = (line: string): string[] => line.trim().replace(/^\||\|$/g, '').split('|').map((cell) => inline(cell.trim()));
  const head = cells(lines[first]!).map((cell) => `<th scope="col">${cell}</th>`).join('');
  const rows: string[] = [];
  let at = first + 2;
  for (; at < lines.length && lines[at]!.includes('|') && lines[at]!.trim(); at++) {
    rows.push(`<tr>${cells(lines[at]!).map((cell) => `<td>${cell}</td>`).join('')}</tr>`);
  }
  out.push(`<table><thead><tr>${head}</tr></thead><tbody>${rows.join('')}</tbody></table>`);
  return at;
}
