import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ShardHash } from '@megaplane/machinery/sharding/hash';
import {
  parseShardSelector,
  selectsHash,
  shardOf,
  type ShardSelector,
} from '@megaplane/machinery/sharding/selector';
import fc from 'fast-check';
import { ExchangeModel } from '../testing/exchange-model.sim.ts';
import { eventsOf, Rig } from '../testing/rig.sim.ts';
import { INDEX_IDLE_MS, INDEX_ITEMS_MIN } from './object-index.ts';

const PODS: number = INDEX_ITEMS_MIN + 200;
const RUNS = process.env['MEGAPLANE_LONG'] === '1' ? 40 : 2;

interface Pod {
  readonly uid: string;
  readonly node: string;
  readonly app: string;
}

interface List {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string };
  }[];
}

/** A server with more pods than are looked at one by one, and what a plain map knows of them. */
class World {
  readonly rig = new Rig();
  readonly pods = new Map<string, Pod>();
  #uids = 0;

  constructor(pods: number = PODS) {
    this.fill(0, pods);
  }

  fill(from: number, to: number): void {
    for (let index = from; index < to; index++) this.make(index, index % 40, index % 50);
    this.rig.settle();
  }

  static keyOf(index: number): string {
    return `${index % 3 === 0 ? 'b' : 'a'}/p-${String(index).padStart(4, '0')}`;
  }

  make(index: number, node: number, app: number): void {
    const key = World.keyOf(index);
    const present = this.pods.get(key);
    const mixed = Math.imul(++this.#uids, 0x9e3779b1) >>> 0;
    const uid = present?.uid ?? `${mixed.toString(16)}-${this.#uids}`;
    const bound = present !== undefined && present.node !== '' ? present.node : nodeOf(node);
    this.pods.set(key, { uid, node: bound, app: `app-${app}` });
    this.#write(key);
  }

  delete(index: number): void {
    const key = World.keyOf(index);
    if (!this.pods.delete(key)) return;
    const bytes = Buffer.from(`/registry/pods/${key}`);
    this.rig.store.deleteIf(bytes, 0, bytes.length, -1);
  }

  #write(path: string): void {
    const [namespace, name] = path.split('/');
    const { uid, node, app } = this.pods.get(path) ?? { uid: '', node: '', app: '' };
    const metadata = { name, namespace, uid, labels: { tier: 'web', app } };
    const spec = node === '' ? {} : { nodeName: node };
    const text = JSON.stringify({ kind: 'Pod', apiVersion: 'v1', metadata, spec });
    const key = Buffer.from(`/registry/pods/${path}`);
    const value = Buffer.from(text);
    this.rig.store.putIf(key, 0, key.length, -1, value, 0, value.length, 0);
  }

  list(path: string): List {
    const answer = this.rig.ask('GET', path);
    assert.equal(answer.status, 200, answer.text);
    return JSON.parse(answer.text) as List;
  }
}

/** One in eight pods is not bound. */
function nodeOf(node: number): string {
  return node % 8 === 7 ? '' : `n-${node}`;
}

function holds(selector: ShardSelector, text: string): boolean {
  const hash = new ShardHash();
  const bytes = Buffer.from(text);
  hash.of(bytes, 0, bytes.length);
  return selectsHash(selector, hash.high, hash.low);
}

/** What to ask for, and which pods that is. */
interface Asked {
  readonly query: string;
  readonly matches: (pod: Pod) => boolean;
}

const NODE: fc.Arbitrary<Asked> = fc.nat(39).map((node) => ({
  query: `fieldSelector=spec.nodeName%3D${nodeOf(node)}`,
  matches: (pod) => pod.node === nodeOf(node),
}));
const LABEL: fc.Arbitrary<Asked> = fc.tuple(fc.nat(49), fc.nat(49)).map(([one, other]) => ({
  query: `labelSelector=${encodeURIComponent(`tier,app in (app-${one},app-${other})`)}`,
  matches: (pod) => pod.app === `app-${one}` || pod.app === `app-${other}`,
}));
const SHARD: fc.Arbitrary<Asked> = fc
  .tuple(fc.constantFrom(4, 8, 11, 64, 300), fc.nat(299))
  .map(([count, index]) => {
    const text = shardOf(index % count, count);
    const parsed = parseShardSelector(text);
    assert(parsed.ok);
    return {
      query: `shardSelector=${encodeURIComponent(text)}`,
      matches: (pod) => holds(parsed.selector, pod.uid),
    };
  });
const ASKED = fc.oneof(NODE, LABEL, SHARD);
const PLACE = fc.constantFrom(
  { path: '/api/v1/pods', prefix: '' },
  { path: '/api/v1/namespaces/a/pods', prefix: 'a/' },
);
const STEP = fc.oneof(
  fc.record({ kind: fc.constant('make' as const), index: fc.nat(PODS + 50), value: fc.nat(49) }),
  fc.record({ kind: fc.constant('delete' as const), index: fc.nat(PODS) }),
  fc.record({ kind: fc.constant('list' as const), asked: ASKED, place: PLACE }),
  fc.record({ kind: fc.constant('watch' as const), asked: ASKED, place: PLACE }),
  fc.record({ kind: fc.constant('pages' as const), asked: ASKED, place: PLACE }),
  fc.record({ kind: fc.constant('pass' as const), seconds: fc.constantFrom(1, 700) }),
);
type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;
type Place = typeof PLACE extends fc.Arbitrary<infer T> ? T : never;

function expected(pods: ReadonlyMap<string, Pod>, asked: Asked, place: Place): string[] {
  const found = [...pods].filter(
    ([key, pod]) => key.startsWith(place.prefix) && asked.matches(pod),
  );
  return found.map(([key]) => key).sort();
}

function keysOf(list: List): string[] {
  return list.items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
}

/** Pages show the state of the first one, whatever changes in between. */
function readPages(world: World, asked: Asked, place: Place): void {
  const wanted = expected(world.pods, asked, place);
  const got: string[] = [];
  let token = '';
  for (let page = 0; page < 200; page++) {
    const more = token === '' ? '' : `&continue=${token}`;
    const list = world.list(`${place.path}?limit=7&${asked.query}${more}`);
    got.push(...keysOf(list));
    token = list.metadata.continue ?? '';
    if (token === '') break;
    world.delete(page * 31);
    world.make(page * 17, page % 40, page % 50);
    world.rig.settle();
  }
  assert.deepEqual(got, wanted, `pages of ${place.path}?${asked.query}`);
}

function play(world: World, step: Step): void {
  switch (step.kind) {
    case 'make':
      world.make(step.index, step.value, step.value);
      return;
    case 'delete':
      world.delete(step.index);
      return;
    case 'list': {
      const { asked, place } = step;
      const found = keysOf(world.list(`${place.path}?${asked.query}`));
      assert.deepEqual(found, expected(world.pods, asked, place), `${place.path}?${asked.query}`);
      return;
    }
    case 'watch': {
      const { asked, place } = step;
      const path = `${place.path}?watch=1&allowWatchBookmarks=1&${asked.query}`;
      const watch = world.rig.ask('GET', path);
      const names = eventsOf(watch).map(({ object: { metadata } }) => {
        return metadata.name === undefined ? '' : `${metadata.namespace}/${metadata.name}`;
      });
      assert.deepEqual(names, [...expected(world.pods, asked, place), ''], path);
      watch.cancel();
      return;
    }
    case 'pages':
      readPages(world, step.asked, step.place);
      return;
    case 'pass':
      world.rig.nowMs += step.seconds * 1000;
      world.rig.pass(1);
  }
}

test('lists, pages and initial states by an index are those of looking at everything', () => {
  fc.assert(
    fc.property(fc.array(STEP, { minLength: 40, maxLength: 80 }), (steps) => {
      const world = new World();
      for (const step of steps) play(world, step);
    }),
    { numRuns: RUNS },
  );
});

test('an index that nobody wants is dropped, and made again', () => {
  const world = new World();
  const path = '/api/v1/pods?fieldSelector=spec.nodeName%3Dn-1';
  assert.equal(world.list(path).items.length, PODS / 40);
  world.rig.nowMs += INDEX_IDLE_MS + 1;
  world.rig.pass(2);
  world.delete(1);
  world.rig.settle();
  assert.equal(world.list(path).items.length, PODS / 40 - 1);
  world.make(1, 1, 1);
  world.rig.settle();
  assert.equal(world.list(path).items.length, PODS / 40);
});

test('who asked for a node when there were few pods does not wait when there are many', () => {
  const answered = (isAskedBefore: boolean): boolean => {
    const world = new World(100);
    const path = '/api/v1/pods?fieldSelector=spec.nodeName%3Dn-1';
    if (isAskedBefore) assert.equal(world.list(path).items.length, 3);
    world.fill(100, PODS);
    const exchange = new ExchangeModel('GET', path);
    world.rig.api.handle(exchange);
    const isAtOnce = exchange.isEnded;
    world.rig.settle();
    assert.equal((JSON.parse(exchange.text) as List).items.length, PODS / 40);
    return isAtOnce;
  };
  assert.deepEqual([answered(false), answered(true)], [false, true]);
});

test('the index of nodes stays while a node watches', () => {
  const { rig } = new World();
  const path = '/api/v1/pods?fieldSelector=spec.nodeName%3Dn-1';
  const watch = rig.ask('GET', `${path}&watch=1&timeoutSeconds=100000`);
  rig.nowMs += INDEX_IDLE_MS - 1000;
  rig.pass(5);
  const exchange = new ExchangeModel('GET', path);
  rig.api.handle(exchange);
  assert.equal(exchange.isEnded, true);
  watch.cancel();
});

test('who goes away while an index is made is forgotten', () => {
  const { rig } = new World();
  const path = '/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn-1';
  const gone = new ExchangeModel('GET', path);
  rig.api.handle(gone);
  assert.equal(gone.status, 200, 'the head is sent at once');
  gone.cancel();
  rig.settle();
  const hub = rig.api.parts.world.hubs.get('/registry/pods/');
  assert.equal(hub?.size, 0);
});
