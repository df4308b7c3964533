/** Long documents are read beside the event loop, with the same results. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  define,
  definitionOf,
  startRig,
  versionOf,
  type Rig,
} from '../../testing/definitions.sim.ts';
import { readYaml } from './yaml-body.ts';
import { WAITING_BYTES_MAX, YamlThread, type YamlOutcome } from './yaml-thread.ts';

const WIDGETS = '/apis/example.com/v1/namespaces/default/widgets';
const SENDER = { name: 'jane', isGone: () => false };
const YAML = { 'content-type': 'application/yaml' };
const APPLY = { 'content-type': 'application/apply-patch+yaml' };

/** A server whose long documents are read when the test says so. */
function startReading(): Rig & { readonly readOne: (isInTime?: boolean) => void } {
  const rig = startRig();
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  const waiting: (() => void)[] = [];
  let isInTime = true;
  rig.api.parts.world.edge.readYaml = (body, _sender, done) => {
    waiting.push(() => done(isInTime ? readYaml(Buffer.from(body).toString('utf8')) : null));
  };
  const readOne = (wanted = true): void => {
    isInTime = wanted;
    const work = waiting.shift();
    assert.ok(work !== undefined, 'a document waits to be read');
    work();
    rig.settle();
  };
  return { ...rig, readOne };
}

function widget(name: string, rest: string): string {
  const data = `  data: ${'x'.repeat(20_000)}\n${rest}`;
  return `apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: ${name}}\nspec:\n${data}`;
}

test('a long document is waited for, and told of as a short one is', () => {
  const { ask, readOne } = startReading();
  const made = ask('POST', WIDGETS, Buffer.from(widget('a', '  b: 1\n  b: 2\n')), YAML);
  assert.equal(made.status, 0);
  readOne();
  assert.equal(made.status, 201, made.text);
  assert.match(String(made.headers), /line 7: key \\"b\\" already set in map/);
  const strict = ask(
    'POST',
    `${WIDGETS}?fieldValidation=Strict`,
    Buffer.from(widget('b', '  b: 1\n  b: 2\n')),
    YAML,
  );
  readOne();
  assert.equal(strict.status, 400);
  assert.match(strict.text, /strict decoding error: yaml: unmarshal errors/);
  const broken = ask('POST', WIDGETS, Buffer.from(widget('c', '  b: [\n')), YAML);
  readOne();
  assert.equal(broken.status, 400);
});

test('applied documents in YAML are waited for, those in JSON are not', () => {
  const { ask, readOne, settle } = startReading();
  const path = (name: string): string => `${WIDGETS}/${name}?fieldManager=me`;
  const yaml = ask('PATCH', path('a'), Buffer.from(widget('a', '')), APPLY);
  assert.equal(yaml.status, 0);
  readOne();
  assert.equal(yaml.status, 201, yaml.text);
  const object = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'b' } };
  const spec = { data: 'x'.repeat(20_000) };
  const json = ask('PATCH', path('b'), { ...object, spec }, APPLY);
  settle();
  assert.equal(json.status, 201, json.text);
  const doubled = JSON.stringify({ ...object, spec }).replace('"spec"', '"spec":{},"spec"');
  const twice = ask('PATCH', path('b'), Buffer.from(doubled), APPLY);
  readOne();
  assert.equal(twice.status, 200, twice.text);
  assert.match(String(twice.headers), /already set in map/);
});

test('who left meanwhile is not served, and a document that takes too long is given up', () => {
  const { ask, readOne } = startReading();
  const left = ask('POST', WIDGETS, Buffer.from(widget('a', '')), YAML);
  left.reset();
  readOne();
  assert.equal(ask('GET', `${WIDGETS}/a`).status, 404);
  const late = ask('POST', WIDGETS, Buffer.from(widget('b', '')), YAML);
  readOne(false);
  assert.equal(late.status, 504, late.text);
});

test('the thread reads what the server would, one after the other, and begins anew', async () => {
  const thread = new YamlThread();
  const read = (text: string): Promise<YamlOutcome> =>
    new Promise((done) => thread.read(Buffer.from(text), SENDER, done));
  const texts = ['a: 1\na: 2', 'a: [', 'b: {c: 0o17}', `a: ${'['.repeat(9000)}`];
  const readings = await Promise.all(texts.map(read));
  for (const [index, reading] of readings.entries()) {
    assert.equal(shown(reading), shown(readYaml(texts[index] ?? '')));
  }
  const pending = read('a: 1');
  thread.close();
  assert.equal(await pending, null);
  assert.equal(shown(await read('a: 1')), '{"json":"{\\"a\\":1}","doubles":[]}');
  thread.close();
});

test('a document that the thread cannot end in time does not hold up the next', async () => {
  const thread = new YamlThread(1);
  const long = 'a: [{b: c}]\n'.repeat(20_000);
  const reading = await new Promise((done) => thread.read(Buffer.from(long), SENDER, done));
  assert.equal(reading, null);
  thread.close();
});

function shown(reading: YamlOutcome): string {
  if (reading === null || reading === 'crowded' || 'error' in reading)
    return JSON.stringify(reading);
  return JSON.stringify({ ...reading, json: Buffer.from(reading.json).toString('utf8') });
}

test('what is applied too deep is refused, in JSON and in YAML', () => {
  const rig = startRig();
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  const head = '"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}';
  for (const levels of [300, 1100, 2000, 5000, 100_000]) {
    // between the two, the library’s own stack decides
    const deep = '{"a":'.repeat(levels) + '1' + '}'.repeat(levels);
    for (const text of [`{${head},"spec":${deep}}`, `---\n{${head},"spec":${deep}}`]) {
      const applied = rig.ask('PATCH', `${WIDGETS}/a?fieldManager=me`, Buffer.from(text), APPLY);
      rig.settle();
      if (levels < 1000) assert.ok(applied.status < 300, applied.text.slice(0, 300));
      else assert.match(applied.text, /error decoding YAML: .*values are nested too deeply/);
    }
  }
});

test('senders have their turns one after the other, and those who left none', async () => {
  const thread = new YamlThread();
  const told: string[] = [];
  let isGone = false;
  const read = (name: string, text: string): Promise<void> =>
    new Promise((resolve) => {
      const sender = { name, isGone: () => name === 'gone' && isGone };
      thread.read(Buffer.from(text), sender, (outcome: YamlOutcome) => {
        told.push(outcome === null ? `${name} ${text} not read` : `${name} ${text}`);
        resolve();
      });
    });
  const first = read('many', 'a: 0');
  const all = [read('gone', 'a: 0'), read('gone', 'a: 1')];
  for (let index = 1; index < 4; index++) all.push(read('many', `a: ${index}`));
  all.push(read('one', 'b: 1'));
  isGone = true;
  await Promise.all([first, ...all]);
  const read1 = told.filter((line) => !line.endsWith('not read'));
  assert.deepEqual(read1, ['many a: 0', 'many a: 1', 'one b: 1', 'many a: 2', 'many a: 3']);
  assert.equal(told.length, 7);
  thread.close();
});

test('nobody has more than half of what may wait to be read', async () => {
  const thread = new YamlThread();
  const body = Buffer.alloc(WAITING_BYTES_MAX / 16, 'x');
  const outcomes: YamlOutcome[] = [];
  const read = (name: string): void =>
    thread.read(body, { name, isGone: () => false }, (outcome) => outcomes.push(outcome));
  // the first is being read, and waits no more
  for (let count = 0; count < 12; count++) read('many');
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(outcomes, ['crowded', 'crowded', 'crowded']);
  read('one');
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(outcomes.length, 3);
  thread.close();
  assert.equal(outcomes.length, 13);
});
