import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyPlaces, compose, hunksOf, linesOf, smallestChange } from '../src/hunks.ts';

/** A small generator of numbers that is the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => (state = (state * 1103515245 + 12345) % 2147483648) % below;
}

function texts(next: (below: number) => number): [string, string] {
  const words = ['a', 'b', '', '}', '  x'];
  const old = Array.from({ length: next(30) }, () => words[next(5)]!);
  const made = [...old];
  for (let change = next(4); change >= 0; change--) {
    const at = next(made.length + 1);
    if (next(2)) made.splice(at, 0, `new ${next(3)}`);
    else made.splice(at, next(3));
  }
  const text = (lines: string[]): string => lines.join('\n') + (next(4) ? '\n' : '');
  return [text(old), text(made)];
}

test('all hunks of a change make the new text, and none of them the old one', () => {
  const next = numbers(7);
  for (let run = 0; run < 500; run++) {
    const [old, made] = texts(next);
    const hunks = hunksOf(old, made);
    assert.equal(compose(old, made, hunks, hunks.map(() => true)), made);
    assert.equal(compose(old, made, hunks, hunks.map(() => false)), old);
  }
});

test('what is kept of a change is found again in the text that it makes', () => {
  const next = numbers(11);
  for (let run = 0; run < 300; run++) {
    const [old, made] = texts(next);
    const hunks = hunksOf(old, made);
    const kept = hunks.map(() => next(2) === 1);
    const text = compose(old, made, hunks, kept);
    const now = hunksOf(old, text);
    const read = hunks.map((hunk) => now.some((one) => one.start === hunk.start && one.end === hunk.end));
    // The same text may come about in two ways, but never is another text taken for it.
    if (compose(old, made, hunks, read) === text) continue;
    assert.notDeepEqual(read, kept);
  }
});

test('places are made where they were found, with the line ends of the file', () => {
  const text = 'one\r\ntwo\r\nthree\r\nfour\r\n';
  const places = [
    { path: 'a', oldText: 'three\n', newText: '3\n', oldLine: 3, newLine: 3 },
    { path: 'a', oldText: 'one\n', newText: '1\n1b\n', oldLine: 1, newLine: 1 },
  ];
  assert.equal(applyPlaces(text, places), '1\r\n1b\r\ntwo\r\n3\r\nfour\r\n');
});

test('places are not made in another text than the one that they were found in', () => {
  assert.equal(applyPlaces('one\nTWO\n', [{ path: 'a', oldText: 'two\n', newText: '2\n', oldLine: 2, newLine: 2 }]), null);
  assert.equal(applyPlaces('', [{ path: 'a', oldText: null, newText: 'new\n', oldLine: 1, newLine: 1 }]), 'new\n');
});

test('the smallest change makes the text, and touches nothing else', () => {
  const next = numbers(3);
  for (let run = 0; run < 300; run++) {
    const [old, made] = texts(next);
    const change = smallestChange(old, made);
    assert.equal(old.slice(0, change.start) + change.text + old.slice(change.end), made);
  }
  assert.deepEqual(smallestChange('same\n', 'same\n'), { start: 5, end: 5, text: '' });
});

test('a large file with two changes far apart is compared within its bounds', () => {
  const lines = Array.from({ length: 20_000 }, (_, number) => `line ${number}\n`);
  const made = lines.with(10, 'first\n').with(19_990, 'last\n');
  const hunks = hunksOf(lines.join(''), made.join(''));
  assert.equal(compose(lines.join(''), made.join(''), hunks, hunks.map(() => true)), made.join(''));
  assert.equal(linesOf(made.join('')).length, 20_000);
});
