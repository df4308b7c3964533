/** Whatever changes about a definition, who watches or goes on with a list has what is read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { openStore } from '@megaplane/store/open';
import type { WebhookCaller } from '../../webhook/webhook-call.ts';
import { EmbeddedStorage } from '../../storage/embedded/embedded-storage.ts';
import type { ExchangeModel } from '../../testing/exchange-model.sim.ts';
import {
  define,
  DEFINITIONS,
  definitionOf,
  MERGE,
  startRig,
  versionOf,
} from '../../testing/definitions.sim.ts';

type Json = Record<string, unknown>;

interface Widget {
  readonly apiVersion: string;
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly spec?: Json;
}

interface List {
  readonly code?: number;
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly Widget[];
}

const VERSIONS = ['v1', 'v2'] as const;
type Version = (typeof VERSIONS)[number];
const NAMES = 12;
const STEPS = 60;

/** v1 has `spec.size`, v2 has `spec.width`. */
const CONVERTER: WebhookCaller = {
  call(_, body, __, then) {
    const { request } = JSON.parse(body.toString()) as {
      request: { uid: string; desiredAPIVersion: string; objects: Widget[] };
    };
    const [from, to] = request.desiredAPIVersion.endsWith('v2')
      ? ['size', 'width']
      : ['width', 'size'];
    const convertedObjects = request.objects.map((one) => {
      const { [from]: moved, ...rest } = one.spec ?? {};
      const spec = moved === undefined ? rest : { ...rest, [to]: moved };
      return { ...one, apiVersion: request.desiredAPIVersion, spec };
    });
    const response = { uid: request.uid, result: { status: 'Success' }, convertedObjects };
    const review = { kind: 'ConversionReview', apiVersion: 'apiextensions.k8s.io/v1', response };
    const text = Buffer.from(JSON.stringify(review));
    setImmediate(() =>
      then({ ok: true, status: 200, contentType: 'application/json', body: text }),
    );
  },
};

const WEBHOOK: Json = {
  strategy: 'Webhook',
  webhook: {
    clientConfig: { url: 'https://converter/convert' },
    conversionReviewVersions: ['v1'],
  },
};

/** What may be changed about a definition while its objects are watched. */
interface Definition {
  storage: Version;
  isConverting: boolean;
  isPruning: boolean;
  hasDefault: boolean;
  isSelectable: boolean;
  isOldServed: boolean;
  columns: number;
}

type Change = (now: Definition) => void;

const CHANGES: readonly Change[] = [
  (now) => (now.storage = now.storage === 'v1' ? 'v2' : 'v1'),
  (now) => (now.isConverting = !now.isConverting),
  (now) => (now.isPruning = !now.isPruning),
  (now) => (now.hasDefault = !now.hasDefault),
  (now) => (now.isSelectable = !now.isSelectable),
  (now) => (now.isOldServed = !now.isOldServed),
  (now) => now.columns++,
];

function specOf(now: Definition): Json {
  const color: Json = { type: 'string', ...(now.hasDefault ? { default: 'red' } : {}) };
  const number = { type: 'integer' };
  const properties = { size: number, width: number, color };
  const open = now.isPruning ? {} : { 'x-kubernetes-preserve-unknown-fields': true };
  const spec = { type: 'object', default: {}, properties, ...open };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
  const columns = Array.from({ length: now.columns % 3 }, (_, at) => {
    return { name: `C${at}`, type: 'string', jsonPath: '.spec.color' };
  });
  const versions = VERSIONS.map((name) => ({
    ...versionOf(name, {
      schema,
      additionalPrinterColumns: columns,
      selectableFields: now.isSelectable ? [{ jsonPath: '.spec.color' }] : [],
    }),
    served: name === 'v2' || now.isOldServed,
    storage: name === now.storage,
  }));
  return { versions, conversion: now.isConverting ? WEBHOOK : { strategy: 'None', webhook: null } };
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

class World {
  readonly #opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  readonly #rig = startRig(
    { webhooks: CONVERTER },
    new EmbeddedStorage(this.#opened.store, () => this.#opened.close()),
  );
  readonly definition: Definition = {
    storage: 'v1',
    isConverting: false,
    isPruning: false,
    hasDefault: false,
    isSelectable: false,
    isOldServed: true,
    columns: 0,
  };

  async start(): Promise<void> {
    await this.quiet();
    const { versions } = specOf(this.definition);
    define(this.#rig, definitionOf('widgets', [], { versions }));
    await this.quiet();
  }

  /** Lets everything that was begun come to its end. */
  async quiet(): Promise<void> {
    for (let turns = 0; turns < 25; turns++) {
      this.#rig.settle();
      await turn();
    }
  }

  async ask(method: string, path: string, body?: object, headers?: Record<string, string>) {
    const exchange = this.#rig.ask(method, path, body, headers);
    for (let turns = 0; turns < 200 && !exchange.isEnded; turns++) {
      this.#rig.settle();
      await turn();
    }
    assert(exchange.isEnded, `${method} ${path} is not answered`);
    return exchange;
  }

  watch(path: string): ExchangeModel {
    return this.#rig.ask('GET', path);
  }

  async change(change: Change): Promise<void> {
    change(this.definition);
    const path = `${DEFINITIONS}/widgets.example.com`;
    const { text, status } = await this.ask(
      'PATCH',
      path,
      { spec: specOf(this.definition) },
      MERGE,
    );
    assert.equal(status, 200, text);
  }

  async end(): Promise<void> {
    await this.ask('DELETE', `${DEFINITIONS}/widgets.example.com`);
    await this.quiet();
    await this.#opened.close();
  }
}

function pathOf(version: Version): string {
  return `/apis/example.com/${version}/namespaces/default/widgets`;
}

/** What an informer does: lists, watches from there, lists anew when it is told to. */
class Informer {
  readonly #world: World;
  readonly version: Version;
  readonly known = new Map<string, Widget>();
  #watch: ExchangeModel | null = null;
  #read = 0;
  #revision = '';

  constructor(world: World, version: Version) {
    this.#world = world;
    this.version = version;
  }

  async #list(): Promise<void> {
    this.known.clear();
    const answer = await this.#world.ask('GET', pathOf(this.version));
    if (answer.status === 404) return;
    assert.equal(answer.status, 200, answer.text);
    const { items, metadata } = JSON.parse(answer.text) as List;
    for (const one of items) this.known.set(one.metadata.name, one);
    this.#open(metadata.resourceVersion);
  }

  #open(revision: string): void {
    this.#revision = revision;
    this.#read = 0;
    this.#watch = this.#world.watch(`${pathOf(this.version)}?watch=1&resourceVersion=${revision}`);
  }

  /** Takes what has come; goes on where the watch has ended. */
  async follow(): Promise<void> {
    for (let tries = 0; tries < 4; tries++) {
      if (this.#watch === null) await this.#list();
      const watch = this.#watch;
      if (watch === null) return;
      const isExpired = this.#take(watch);
      if (!watch.isEnded) return;
      this.#watch = null;
      if (!isExpired && watch.status === 200) this.#open(this.#revision);
      await this.#world.quiet();
    }
  }

  #take(watch: ExchangeModel): boolean {
    if (watch.status !== 200) return true;
    const lines = watch.text.split('\n').slice(0, -1);
    for (const line of lines.slice(this.#read)) {
      const { type, object } = JSON.parse(line) as { type: string; object: Widget };
      if (type === 'ERROR') return true;
      this.#revision = object.metadata.resourceVersion;
      if (type === 'DELETED') this.known.delete(object.metadata.name);
      else this.known.set(object.metadata.name, object);
    }
    this.#read = lines.length;
    return false;
  }

  get specs(): string[] {
    return specsOf(this.known.values());
  }
}

function specsOf(widgets: Iterable<Widget>): string[] {
  const line = ({ apiVersion, metadata, spec }: Widget): string =>
    `${metadata.name} ${metadata.resourceVersion} ${apiVersion} ${JSON.stringify(spec)}`;
  return Array.from(widgets, line).sort();
}

async function listed(world: World, path: string): Promise<List | null> {
  const answer = await world.ask('GET', path);
  if (answer.status === 404 || answer.status === 410) return null;
  assert.equal(answer.status, 200, answer.text);
  return JSON.parse(answer.text) as List;
}

async function write(world: World, random: Random, step: number): Promise<void> {
  const { isOldServed } = world.definition;
  const version = isOldServed && random.below(2) === 0 ? 'v1' : 'v2';
  const name = `w${random.below(NAMES)}`;
  const field = version === 'v1' ? 'size' : 'width';
  const spec = { [field]: step, extra: step };
  const body = { apiVersion: `example.com/${version}`, kind: 'Widget', metadata: { name }, spec };
  const path = pathOf(version);
  if (random.below(5) === 0) await world.ask('DELETE', `${path}/${name}`);
  else if ((await world.ask('POST', path, body)).status === 409) {
    const patched = await world.ask('PATCH', `${path}/${name}`, { spec }, MERGE);
    assert.equal(patched.status, 200, patched.text);
  }
}

/** A list whose first page was read before something changed. */
interface Begun {
  readonly version: Version;
  readonly first: List;
}

/** The rest of it is what a list of that revision has behind the first page, or it is forgotten. */
async function goOn(world: World, { version, first }: Begun): Promise<'whole' | 'forgotten'> {
  const { resourceVersion, continue: token = '' } = first.metadata;
  const path = pathOf(version);
  const rest = await listed(world, `${path}?limit=100&continue=${token}`);
  const exact = `resourceVersion=${resourceVersion}&resourceVersionMatch=Exact`;
  const whole = await listed(world, `${path}?${exact}`);
  if (rest === null) return 'forgotten';
  assert(whole !== null);
  assert.equal(rest.metadata.resourceVersion, resourceVersion);
  assert.deepEqual(specsOf(rest.items), specsOf(whole.items.slice(first.items.length)));
  return 'whole';
}

for (const seed of [1, 2, 3, 4, 5, 6]) {
  test(`watches and lists outlive changes of their definition, seed ${seed}`, async () => {
    const random = new Random(seed);
    const world = new World();
    await world.start();
    const informers = VERSIONS.map((version) => new Informer(world, version));
    let whole = 0;
    for (let step = 0; step < STEPS; step++) {
      await write(world, random, step);
      if (random.below(4) > 0) continue;
      for (const informer of informers) await informer.follow();
      const version = world.definition.isOldServed && random.below(2) === 0 ? 'v1' : 'v2';
      const first = await listed(world, `${pathOf(version)}?limit=2`);
      const change = CHANGES[random.below(CHANGES.length)];
      assert(change !== undefined && first !== null);
      await world.change(change);
      await write(world, random, step + 0.5);
      await world.quiet();
      for (const informer of informers) {
        await informer.follow();
        const now = await listed(world, pathOf(informer.version));
        assert.deepEqual(informer.specs, specsOf(now?.items ?? []), `${informer.version}, ${step}`);
      }
      if ((first.metadata.continue ?? '') === '') continue;
      if ((await goOn(world, { version, first })) === 'whole') whole++;
    }
    assert(whole > 0, 'lists go on');
    await world.end();
  });
}
