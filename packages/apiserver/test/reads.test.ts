import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExchangeModel } from '../src/testing/exchange-model.sim.ts';
import { eventsOf, Rig, storyOf } from '../src/testing/rig.sim.ts';

const MAPS = '/api/v1/namespaces/a/configmaps';

function filled(): Rig {
  const rig = new Rig();
  for (const name of ['m', 'n', 'o']) rig.ask('POST', MAPS, { metadata: { name } });
  return rig;
}

function said({ status, text }: ExchangeModel): string {
  const { message = '' } = JSON.parse(text) as { message?: string };
  return `${status} ${message}`;
}

function namesOf({ text }: ExchangeModel): string[] {
  const { items } = JSON.parse(text) as { items: { metadata: { name: string } }[] };
  return items.map(({ metadata }) => metadata.name);
}

test('what cannot be asked for is refused with upstream’s code and words', () => {
  const rig = filled();
  const number = 'strconv.ParseUint: parsing "x": invalid syntax';
  const large = '99999999999999999999';
  const refusals: readonly (readonly [string, string])[] = [
    [
      'resourceVersion=x',
      `400 invalid resource version: resourceVersion: Invalid value: "x": ${number}`,
    ],
    ['watch=1&resourceVersion=x', `500 resourceVersion: Invalid value: "x": ${number}`],
    [
      `watch=1&resourceVersion=${large}`,
      `500 resourceVersion: Invalid value: "${large}": ` +
        `strconv.ParseUint: parsing "${large}": value out of range`,
    ],
    ['limit=x', '400 strconv.ParseInt: parsing "x": invalid syntax'],
    ['watch=1&timeoutSeconds=x', '400 strconv.ParseInt: parsing "x": invalid syntax'],
    [
      'continue=***',
      '400 invalid continue token: continue key is not valid: ' +
        'illegal base64 data at input byte 0',
    ],
    [
      'watch=1&shardSelector=%20',
      '500 invalid shard selector: empty shard selector is not allowed; ' +
        'omit the parameter for unfiltered lists',
    ],
    ['labelSelector=a%20in', "400 unable to parse requirement: found '' expected: '('"],
  ];
  for (const [query, answer] of refusals) {
    assert.equal(said(rig.ask('GET', `${MAPS}?${query}`)), answer, query);
  }
});

test('a revision that has not happened is waited for, for three seconds', () => {
  const rig = filled();
  const now = rig.store.publishedRevision;
  const list = rig.ask('GET', `${MAPS}?resourceVersion=${now + 1}`);
  const object = rig.ask('GET', `${MAPS}/m?resourceVersion=${now + 9}`);
  assert.equal(list.status, 0);
  rig.ask('POST', MAPS, { metadata: { name: 'p' } });
  assert.deepEqual(namesOf(list), ['m', 'n', 'o', 'p']);
  rig.pass(4);
  assert.equal(
    said(object),
    `504 Timeout: Too large resource version: ${now + 9}, current: ${now + 1}`,
  );
});

test('reads that a cache answers are told when to ask again, those of events are not', () => {
  const rig = filled();
  const later = `resourceVersion=${rig.store.publishedRevision + 9}`;
  const cached = rig.ask('GET', `${MAPS}?${later}`);
  const exact = rig.ask('GET', `${MAPS}?${later}&limit=1`);
  const events = rig.ask('GET', `/api/v1/events?${later}&limit=1`);
  rig.pass(4);
  assert.deepEqual([cached.status, exact.status, events.status], [504, 504, 504]);
  assert.match(cached.text, /"retryAfterSeconds":1/);
  assert.match(exact.text, /"retryAfterSeconds":1/);
  assert.ok(!events.text.includes('retryAfterSeconds'));
});

test('exact lists show their revision, and what is forgotten is 410', () => {
  const rig = filled();
  const before = rig.store.publishedRevision;
  rig.ask('DELETE', `${MAPS}/n`);
  const exact = `resourceVersion=${before}&resourceVersionMatch=Exact`;
  assert.deepEqual(namesOf(rig.ask('GET', `${MAPS}?${exact}`)), ['m', 'n', 'o']);
  assert.deepEqual(namesOf(rig.ask('GET', `${MAPS}?resourceVersion=${before}&limit=9`)), [
    'm',
    'n',
    'o',
  ]);
  assert.deepEqual(namesOf(rig.ask('GET', `${MAPS}?resourceVersion=${before}`)), ['m', 'o']);
  assert.deepEqual(namesOf(rig.ask('GET', `${MAPS}?resourceVersion=0&limit=1`)), ['m', 'o']);
  rig.store.compact(rig.store.publishedRevision);
  assert.equal(
    said(rig.ask('GET', `${MAPS}?${exact}`)),
    '410 The resourceVersion for the provided list is too old.',
  );
  const watch = rig.ask('GET', `${MAPS}?watch=1&resourceVersion=${before}`);
  assert.equal(watch.status, 200);
  assert.deepEqual(
    eventsOf(watch).map(({ type, object }) => `${type} ${object.code}`),
    ['ERROR 410'],
  );
  assert.equal(watch.isEnded, true);
});

test('pages go on after their revision was forgotten, with the token that 410 brings', () => {
  const rig = filled();
  const first = rig.ask('GET', `${MAPS}?limit=1`);
  const { metadata } = JSON.parse(first.text) as { metadata: { continue: string } };
  rig.ask('POST', MAPS, { metadata: { name: 'mm' } });
  rig.store.compact(rig.store.publishedRevision);
  const gone = rig.ask('GET', `${MAPS}?limit=9&continue=${metadata.continue}`);
  assert.equal(gone.status, 410);
  const fresh = (JSON.parse(gone.text) as { metadata: { continue: string } }).metadata.continue;
  const token = Buffer.from(fresh, 'base64url').toString();
  assert.equal(token, '{"v":"meta.k8s.io/v1","rv":-1,"start":"m\\u0000"}');
  const rest = rig.ask('GET', `${MAPS}?limit=9&continue=${fresh}`);
  assert.deepEqual(namesOf(rest), ['mm', 'n', 'o']);
});

test('a page that is full is the last one only where no object follows at all', () => {
  const rig = filled();
  rig.ask(
    'PATCH',
    `${MAPS}/m`,
    { metadata: { labels: { x: '1' } } },
    {
      'content-type': 'application/merge-patch+json',
    },
  );
  const page = rig.ask('GET', `${MAPS}?limit=1&labelSelector=x%3D1`);
  const { metadata } = JSON.parse(page.text) as {
    metadata: { continue: string; remainingItemCount?: number };
  };
  assert.equal(typeof metadata.continue, 'string');
  assert.equal(metadata.remainingItemCount, undefined);
  const last = rig.ask('GET', `${MAPS}?limit=1&labelSelector=x%3D1&continue=${metadata.continue}`);
  assert.deepEqual(namesOf(last), []);
});

test('the deprecated paths of watches still watch: everything, a namespace, one object', () => {
  const rig = filled();
  const story = (path: string): string[] => storyOf(rig.ask('GET', path));
  const all = ['ADDED a/m', 'ADDED a/n', 'ADDED a/o'];
  assert.deepEqual(story('/api/v1/watch/configmaps'), all);
  assert.deepEqual(story('/api/v1/watch/namespaces/a/configmaps'), all);
  assert.deepEqual(story('/api/v1/watch/namespaces/a/configmaps/n'), ['ADDED a/n']);
  const other = '/api/v1/watch/namespaces/a/configmaps/n?fieldSelector=metadata.name%3Dm';
  assert.equal(
    said(rig.ask('GET', other)),
    "400 fieldSelector metadata.name doesn't match requested name",
  );
});

test('a watch without a timeout, or with one of zero, lasts half an hour at least', () => {
  const rig = filled();
  const watches = ['', '&timeoutSeconds=0', '&timeoutSeconds=7'].map((query) =>
    rig.ask('GET', `${MAPS}?watch=1${query}`),
  );
  rig.pass(8);
  assert.deepEqual(
    watches.map(({ isEnded }) => isEnded),
    [false, false, true],
  );
  rig.nowMs += 1790 * 1000;
  rig.pass(1);
  assert.equal(watches[0]?.isEnded, false);
  rig.pass(5);
  assert.equal(watches[0]?.isEnded, true);
});

test('a watch with a timeout of less than nothing, or more than Go can hold, ends at once', () => {
  const rig = filled();
  for (const seconds of ['-1', '9223372037', '9223372036854775807']) {
    const watch = rig.ask('GET', `${MAPS}?watch=1&resourceVersion=0&timeoutSeconds=${seconds}`);
    assert.deepEqual([watch.status, watch.isEnded, watch.text], [200, true, ''], seconds);
  }
});

test('pages of a revision that has not happened are refused at once', () => {
  const rig = filled();
  const now = rig.store.publishedRevision;
  const text = `{"v":"meta.k8s.io/v1","rv":${now + 1},"start":"m\\u0000"}`;
  const token = Buffer.from(text).toString('base64url');
  const answer = `504 Timeout: Too large resource version: ${now + 1}, current: ${now}`;
  for (const query of [`continue=${token}`, `limit=1&continue=${token}`]) {
    assert.equal(said(rig.ask('GET', `${MAPS}?${query}`)), answer);
  }
});

test('a collection is deleted as it was at a revision, or not at all', () => {
  const rig = filled();
  const now = rig.store.publishedRevision;
  const far = rig.ask('DELETE', `${MAPS}?resourceVersion=${now + 9}`);
  assert.equal(said(far), `504 Timeout: Too large resource version: ${now + 9}, current: ${now}`);
  const page = rig.ask('DELETE', `${MAPS}?limit=1`);
  assert.deepEqual(namesOf(page), ['m']);
  rig.store.compact(rig.store.publishedRevision);
  const old = rig.ask('DELETE', `${MAPS}?resourceVersion=1`);
  assert.equal(said(old), '410 The resourceVersion for the provided list is too old.');
  assert.deepEqual(namesOf(rig.ask('GET', MAPS)), ['n', 'o']);
});

test('a state that has not happened is waited for, and then given up in the watch', () => {
  const rig = filled();
  const later = rig.store.publishedRevision + 1;
  const initial = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
  const next = rig.ask('GET', `${MAPS}?${initial}&resourceVersion=${later}`);
  const far = rig.ask('GET', `${MAPS}?${initial}&resourceVersion=${later + 8}`);
  assert.deepEqual([next.status, next.text, far.text], [200, '', '']);
  rig.ask('POST', MAPS, { metadata: { name: 'p' } });
  rig.pass(4);
  assert.equal(eventsOf(next).length, 4);
  assert.match(far.text, /^\{"type":"ERROR",.*Too large resource version: \d+, current: \d+/);
  assert.ok(far.isEnded);
});
