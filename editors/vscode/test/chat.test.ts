import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inline, markdown } from '../src/markdown.ts';
import { groupWords, Transcript, usageWords } from '../src/transcript.ts';

const say = (kind: string, text: string, messageId: string): any => ({ sessionUpdate: `${kind}_chunk`, content: { type: 'text', text }, messageId });
const call = (id: string, more: any = {}): any => ({ sessionUpdate: 'tool_call', toolCallId: id, title: id, kind: 'read', status: 'pending', ...more });

test('pieces of a message are one row, and calls that follow on each other one group', () => {
  const shown = new Transcript();
  for (const update of [say('agent_message', 'I ', '1'), say('agent_message', 'look.', '1'), call('a'), call('b'), say('agent_message', 'Done.', '2'), call('c')]) shown.take(update);
  shown.take({ sessionUpdate: 'tool_call_update', toolCallId: 'a', status: 'completed' });
  assert.deepEqual(
    shown.rows.map((row) => (row.kind === 'calls' ? row.calls.map((one) => `${one.id} ${one.status}`) : 'text' in row && row.text)),
    ['I look.', ['a completed', 'b pending'], 'Done.', ['c pending']],
  );
});

test('only rows that changed are shown again', () => {
  const shown = new Transcript();
  shown.take(say('agent_message', 'One.', '1'));
  shown.take(call('a'));
  assert.equal(shown.taken().length, 2);
  shown.take({ sessionUpdate: 'tool_call_update', toolCallId: 'a', status: 'completed' });
  assert.deepEqual(shown.taken().map((row) => row.id), ['c-a']);
  assert.deepEqual(shown.taken(), []);
});

test('a subagent is not a call of its parent, and what it does is replaced', () => {
  const shown = new Transcript();
  const text = (value: string): any => [{ type: 'content', content: { type: 'text', text: value } }];
  shown.take(call('child-1', { title: 'explore: look', status: 'in_progress', content: text('reads'), _meta: { treadle: { child: 'child-1', agent: 'explore' } } }));
  shown.take({ sessionUpdate: 'tool_call_update', toolCallId: 'child-1', status: 'completed', content: text('3 steps') });
  assert.deepEqual([...shown.children.values()].map((one) => `${one.id} ${one.title} ${one.status} ${one.text}`), ['child-1 explore: look completed 3 steps']);
  assert.deepEqual(shown.rows, []);
});

test('when the agent is gone, no call looks as if it went on', () => {
  const shown = new Transcript();
  shown.take(call('a', { status: 'in_progress' }));
  shown.take(call('b', { status: 'completed' }));
  shown.running = true;
  shown.stopped();
  const [row] = shown.rows;
  assert.deepEqual(row?.kind === 'calls' && row.calls.map((one) => one.status), ['stopped', 'completed']);
  assert.equal(shown.running, false);
});

test('figures are told as far as they are known', () => {
  assert.equal(usageWords(undefined), '');
  assert.equal(usageWords({ used: 999, size: 1000, estimated: false }), '99%');
  assert.equal(usageWords({ used: 500, size: 1000, estimated: false }), '50%');
  assert.equal(usageWords({ used: 1, size: 1000, cost: 0.0012, estimated: true }), '0% · ≈$0.0012');
  assert.equal(usageWords({ used: 1, size: 0, cost: 1.5, estimated: false }), '$1.50');
});

test('a group says what its calls did', () => {
  const of = (...kinds: string[]): any[] => kinds.map((kind) => ({ kind }));
  assert.equal(groupWords(of('read', 'read', 'execute')), 'Read 2 files, ran 1 command');
  assert.equal(groupWords(of('think')), 'Made 1 call');
});

test('no text becomes markup of its own', () => {
  const bad = [
    '<img src=x onerror=alert(1)>',
    '`<script>`',
    '```\n<script>alert(1)</script>\n```',
    '```"><b>\nx\n```',
    '[x](javascript:alert(1))',
    '[a"onclick="x](https://a.b/"onmouseover="y)',
    '![i](data:text/html,<b>)',
    '# <i>x',
    '| <a> | b |\n|---|---|\n| <c> | d |',
    '\u00000\u0000 `x`',
    'https://a.b/<script>',
    '[a](https://b.c/`d`e)',
    '[`<i>` and [b](https://c.d)](https://e.f)',
    '[a](command:workbench.action.quit) [b](vscode://c) [d](file:///e)',
    '>'.repeat(50_000),
    `${'> '.repeat(30)}<i>`,
    Array.from({ length: 300 }, (_, number) => `${'  '.repeat(number)}- <i>`).join('\n'),
  ];
  for (const text of bad) {
    const html = markdown(text);
    const tags = [...html.matchAll(/<\/?([a-z0-9]+)([^>]*)>/g)];
    for (const [, tag, more] of tags) {
      assert.match(tag!, /^(p|br|code|pre|a|strong|em|del|h[3-6]|ul|ol|li|hr|blockquote|table|thead|tbody|tr|th|td|span)$/, text);
      assert.match(more!, /^$|^ href="(https?:|mailto:)[^"]*"$|^ tabindex="0"$|^ scope="col"$|^ start="\d+"$|^ class="(add|del)"$/, text);
    }
    assert.equal(html.replace(/<\/?[a-z0-9]+[^>]*>/g, '').includes('<'), false, text);
  }
});

test('markup that models write is read', () => {
  assert.equal(inline('a **b** `c*d*` _e_ snake_case_name'), 'a <strong>b</strong> <code>c*d*</code> <em>e</em> snake_case_name');
  assert.equal(inline('[`a.py` and **b**](https://c.d)'), '<a href="https://c.d"><code>a.py</code> and <strong>b</strong></a>');
  assert.equal(markdown('- a\n  - b\n- c'), '<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>');
  assert.equal(markdown('1. a\n2. b'), '<ol><li>a</li><li>b</li></ol>');
  assert.equal(markdown('```py\nx < 1'), '<pre tabindex="0"><code>x &#60; 1</code></pre>');
  assert.equal(markdown('> q\n\ntext\nmore'), '<blockquote><p>q</p></blockquote>\n<p>text<br>more</p>');
});
