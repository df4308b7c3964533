/** What API servers behind this one tell of themselves, and what clients are told of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startRig, type Rig } from '../testing/definitions.sim.ts';
import { aggregatedResources } from './remote-service.ts';
import { KUBELET_PORT, type Fetched, type Relay, type Target } from '../webhook/target.ts';

const SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices';
const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const PLACE = '/apis/shop.example.com/v1/';
const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const ref = (name: string): object => ({ $ref: `#/definitions/${name}` });

/** An API server of one group, whose documents speak of others, too. */
class Shop implements Relay {
  readonly kubelets = { addressTypes: [], port: KUBELET_PORT };
  isGone = false;

  pass(): void {}

  fetch({ path, fields = [] }: Target, _: number, done: (answer: Fetched) => void): void {
    if (this.isGone) done({ why: 'connect: connection refused' });
    else done(this.#answer(path, fields.includes(ACCEPTED)));
  }

  #answer(path: string, isAggregated: boolean): Fetched {
    const body = (object: object): Buffer => Buffer.from(JSON.stringify(object));
    const as = { status: 200, type: 'application/json', etag: '' };
    if (path === '/apis' && isAggregated) return { ...as, type: AGGREGATED, body: body(FOUND) };
    if (path === '/openapi/v3') return { ...as, body: body(INDEX) };
    if (path === '/openapi/v2') return { ...as, etag: '"1"', body: body(VERSION_2) };
    return { ...as, body: body({ kind: 'APIResourceList', resources: [] }) };
  }
}

const ACCEPTED = `${AGGREGATED},${AGGREGATED.replace('v=v2', 'v=v2beta1')}`;
const CART = { resource: 'carts', scope: 'Namespaced', verbs: ['get'] };
const FOUND = {
  items: [
    { metadata: { name: 'other.example.com' }, versions: [{ version: 'v1', resources: [] }] },
    {
      metadata: { name: 'shop.example.com' },
      versions: [{ version: 'v1', resources: [{ ...CART, subresources: [{ subresource: 's' }] }] }],
    },
  ],
};
const url = (name: string): object => ({ serverRelativeURL: `/openapi/v3/${name}?hash=AB` });
const INDEX = {
  paths: {
    apis: url('apis'),
    'apis/shop.example.com': url('apis/shop.example.com'),
    'apis/shop.example.com/v1': url('apis/shop.example.com/v1'),
  },
};
const VERSION_2 = {
  paths: {
    [`${PLACE}carts`]: { get: { responses: { 200: { schema: ref('shop.Cart') } } } },
    '/apis/other.example.com/v1/x': { get: {} },
  },
  definitions: {
    'shop.Cart': { properties: { item: ref('shop.Item'), meta: ref(OBJECT_META) } },
    'shop.Item': { type: 'object', properties: { cart: ref('shop.Cart') } },
    'shop.Unused': { type: 'object' },
    [OBJECT_META]: { description: 'theirs' },
  },
};

function started(): { rig: Rig; shop: Shop } {
  const shop = new Shop();
  const rig = startRig({ relay: shop });
  const expect = (path: string, body: object): void => {
    const { status, text } = rig.ask('POST', path, body);
    assert.equal(status, 201, text);
  };
  expect('/api/v1/namespaces/default/services', {
    metadata: { name: 'shop' },
    spec: { type: 'ExternalName', externalName: 'shop.example' },
  });
  expect(SERVICES, {
    metadata: { name: 'v1.shop.example.com' },
    spec: {
      ...{ group: 'shop.example.com', version: 'v1', insecureSkipTLSVerify: true },
      ...{ groupPriorityMinimum: 1000, versionPriority: 1 },
      service: { name: 'shop', namespace: 'default' },
    },
  });
  rig.settle();
  return { rig, shop };
}

function json(rig: Rig, path: string, accept = 'application/json'): Record<string, unknown> {
  const exchange = rig.ask('GET', path, undefined, { accept });
  rig.settle();
  assert.equal(exchange.status, 200, exchange.text);
  return JSON.parse(exchange.text) as Record<string, unknown>;
}

function versionsOf(rig: Rig): object[] {
  const { items } = json(rig, '/apis', AGGREGATED) as {
    items: { metadata: { name: string }; versions: object[] }[];
  };
  return items.find(({ metadata }) => metadata.name === 'shop.example.com')?.versions ?? [];
}

test('aggregated discovery of another server is taken as it is, and without it when gone', () => {
  const { rig, shop } = started();
  const responseKind = { group: '', version: '', kind: '' };
  const resource = { ...CART, responseKind, subresources: [{ subresource: 's', responseKind }] };
  assert.deepEqual(versionsOf(rig), [
    { version: 'v1', resources: [resource], freshness: 'Current' },
  ]);
  shop.isGone = true;
  // a change of the spec has it looked at again at once
  const patch = { 'content-type': 'application/merge-patch+json' };
  rig.ask('PATCH', `${SERVICES}/v1.shop.example.com`, { spec: { versionPriority: 9 } }, patch);
  rig.settle();
  assert.deepEqual(versionsOf(rig), [{ version: 'v1', freshness: 'Stale' }]);
});

test('the documents of another server are part of those of this one', () => {
  const { rig } = started();
  const { paths } = json(rig, '/openapi/v3') as { paths: Record<string, unknown> };
  const own = Object.keys(paths).filter((name) => name.includes('shop'));
  assert.deepEqual(own.toSorted(), ['apis/shop.example.com', 'apis/shop.example.com/v1']);
  const version2 = json(rig, '/openapi/v2') as {
    paths: Record<string, object>;
    definitions: Record<string, { description?: string }>;
  };
  assert.deepEqual(version2.paths[`${PLACE}carts`], VERSION_2.paths[`${PLACE}carts`]);
  assert.equal('/apis/other.example.com/v1/x' in version2.paths, false);
  const names = Object.keys(version2.definitions).filter((name) => name.startsWith('shop.'));
  assert.deepEqual(names, ['shop.Cart', 'shop.Item'], 'what paths mention, and no more');
  assert.notEqual(version2.definitions[OBJECT_META]?.description, 'theirs');
});

test('resources become those of aggregated discovery as upstream makes them', () => {
  const entry = (name: string, more: object = {}): object => ({ name, verbs: ['get'], ...more });
  const made = (...resources: object[]): unknown =>
    aggregatedResources(JSON.parse(JSON.stringify({ kind: 'APIResourceList', resources })));
  const bare = { group: '', version: '', kind: '' };
  const scope = 'Cluster';
  const carts = { resource: 'carts', scope, singularResource: '' };
  const scale = { kind: 'Scale', group: 'autoscaling', version: 'v1' };
  assert.deepEqual(made(entry('carts/scale', scale), entry('carts', { kind: 'Cart' })), [
    {
      ...carts,
      responseKind: { ...bare, kind: 'Cart' },
      verbs: ['get'],
      subresources: [{ subresource: 'scale', responseKind: scale, verbs: ['get'] }],
    },
  ]);
  // a part without a whole
  assert.deepEqual(made(entry('carts/a/b')), [
    {
      ...carts,
      responseKind: bare,
      verbs: null,
      subresources: [{ subresource: 'a/b', responseKind: bare, verbs: ['get'] }],
    },
  ]);
  const mixed = made(entry('carts', { namespaced: true }), entry('carts/status'));
  assert.equal(mixed, null, 'of different scopes');
  assert.equal(aggregatedResources(null), null);
});
