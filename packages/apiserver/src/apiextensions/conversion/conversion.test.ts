import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type WebhookCaller,
  type WebhookResponse,
  type WebhookTarget,
} from '../../webhook/webhook-call.ts';
import { httpFailure } from '../../webhook/client-failure.ts';
import type { ExchangeModel } from '../../testing/exchange-model.sim.ts';
import { StorageModel } from '../../storage/storage-model.sim.ts';
import { EXPECT_ABSENT } from '../../storage/storage.ts';
import { readConversion } from './conversion-review.ts';
import {
  define,
  DEFINITIONS,
  definitionOf,
  MERGE,
  startRig,
  versionOf,
} from '../../testing/definitions.sim.ts';

interface Widget {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels?: Record<string, string>; resourceVersion?: string };
  spec: Record<string, unknown>;
}
interface Review {
  readonly request: { uid: string; desiredAPIVersion: string; objects: Widget[] };
}
type Answer = (review: Review) => unknown;

/** v1 has `spec.size`, v2 has `spec.width`. */
function renamed(object: Widget, desired: string): Widget {
  // what somebody gave up may have been all of it
  if (!('spec' in object)) return { ...(object as Widget), apiVersion: desired };
  const { size, width, ...rest } = object.spec;
  const value = size ?? width;
  const spec = { ...rest, [desired.endsWith('/v2') ? 'width' : 'size']: value };
  return { ...object, apiVersion: desired, spec };
}

class Converter implements WebhookCaller {
  readonly sizes: number[] = [];
  answer: Answer = ({ request: { uid, desiredAPIVersion, objects } }) => ({
    uid,
    result: { status: 'Success' },
    convertedObjects: objects.map((object) => renamed(object, desiredAPIVersion)),
  });
  failure = '';

  call(target: WebhookTarget, body: Buffer, _: number, then: (r: WebhookResponse) => void): void {
    assert.equal(target.path, '/convert?timeout=30s');
    const review = JSON.parse(body.toString()) as Review;
    this.sizes.push(review.request.objects.length);
    if (this.failure !== '') {
      setImmediate(() => then({ ok: false, why: this.failure }));
      return;
    }
    const response = this.answer(review);
    const kind = { kind: 'ConversionReview', apiVersion: 'apiextensions.k8s.io/v1' };
    const text = Buffer.from(JSON.stringify({ ...kind, response }));
    setImmediate(() =>
      then({ ok: true, status: 200, contentType: 'application/json', body: text }),
    );
  }
}

const CONVERSION = {
  conversion: {
    strategy: 'Webhook',
    webhook: {
      clientConfig: { url: 'https://converter/convert' },
      conversionReviewVersions: ['v1'],
    },
  },
};
const V1 = '/apis/example.com/v1/namespaces/default/widgets';
const V2 = '/apis/example.com/v2/namespaces/default/widgets';

async function answered(exchange: ExchangeModel, code = 200): Promise<string> {
  for (let turn = 0; turn < 500 && exchange.status === 0; turn++) await settled();
  assert.equal(exchange.status, code, exchange.text);
  return exchange.text;
}

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function started(storage = new StorageModel()) {
  const webhooks = new Converter();
  const rig = startRig({ webhooks }, storage);
  define(rig, definitionOf('widgets', [versionOf('v1'), versionOf('v2')], CONVERSION));
  const end = async (): Promise<void> => {
    rig.ask('DELETE', `${DEFINITIONS}/widgets.example.com`);
    rig.settle();
    await settled();
  };
  return { ...rig, webhooks, end };
}

function widget(version: string, name: string, spec: object): object {
  const kind = { kind: 'Widget', apiVersion: `example.com/${version}` };
  return { ...kind, metadata: { name, namespace: 'default' }, spec };
}

test('defaults are of the version that is stored, and a webhook sees them', async () => {
  const webhooks = new Converter();
  const rig = startRig({ webhooks });
  const schemaOf = (color: string): Record<string, unknown> => {
    const properties = { color: { type: 'string', default: color } };
    const spec = { type: 'object', properties, 'x-kubernetes-preserve-unknown-fields': true };
    return { schema: { openAPIV3Schema: { type: 'object', properties: { spec } } } };
  };
  const versions = [versionOf('v1', schemaOf('red')), versionOf('v2', schemaOf('blue'))];
  define(rig, definitionOf('widgets', versions, CONVERSION));
  const key = Buffer.from('/registry/example.com/widgets/default/old');
  const old = JSON.stringify(widget('v1', 'old', { size: 1 }));
  rig.storage.put(key, Buffer.from(old), 0, () => {});
  const seen: string[] = [];
  webhooks.answer = ({ request: { uid, desiredAPIVersion, objects } }) => {
    seen.push(...objects.map((one) => JSON.stringify(one['spec'])));
    const convertedObjects = objects.map((object) => {
      return { ...object, apiVersion: desiredAPIVersion, spec: { width: 1 } };
    });
    return { uid, result: { status: 'Success' }, convertedObjects };
  };
  const shown = JSON.parse(await answered(rig.ask('GET', `${V2}/old`))) as { spec: object };
  assert.deepEqual(shown.spec, { width: 1 });
  assert.deepEqual(seen, ['{"size":1,"color":"red"}']);
  rig.ask('DELETE', `${DEFINITIONS}/widgets.example.com`);
  rig.settle();
  await settled();
});

test('calls of conversion webhooks are counted, and why they failed', async () => {
  const { ask, webhooks, end } = started();
  await answered(ask('POST', V1, widget('v1', 'a', { size: 1 })), 201);
  await answered(ask('GET', `${V2}/a`));
  const { answer } = webhooks;
  const others: Answer[] = [
    () => ({}),
    ({ request: { uid } }) => ({ uid, result: { status: 'Success' }, convertedObjects: [] }),
    ({ request: { uid, objects } }) => ({
      ...{ uid, result: { status: 'Success' } },
      convertedObjects: objects,
    }),
  ];
  for (const other of others) {
    webhooks.answer = other;
    await answered(ask('POST', V2, widget('v2', 'b', {})), 500);
  }
  webhooks.answer = answer;
  const calls = 'apiserver_conversion_webhook_request_total';
  const lines = ask('GET', '/metrics').text.split('\n');
  const counted = lines.filter((line) => line.startsWith(`${calls}{`)).toSorted();
  const failed = (type: string): string =>
    `${calls}{failure_type="conversion_webhook_${type}_failure",result="failure"} 1`;
  assert.deepEqual(counted, [
    `${calls}{failure_type="",result="success"} 1`,
    failed('invalid_converted_object'),
    failed('malformed_response'),
    failed('partial_response'),
  ]);
  const kinds = 'apiserver_crd_conversion_webhook_duration_seconds_count';
  const of = (from: string, to: string, succeeded: boolean): string =>
    `crd_name="widgets.example.com",from_version="${from}",succeeded="${succeeded}",` +
    `to_version="${to}"`;
  const found = lines.filter((line) => line.startsWith(kinds)).toSorted();
  const wanted = [`{${of('v1', 'v2', true)}} 1`, `{${of('v2', 'v1', false)}} 3`];
  assert.deepEqual(
    found,
    wanted.map((one) => `${kinds}${one}`),
  );
  await end();
});

test('objects are written, read and watched in a version that a webhook makes', async () => {
  const { ask, webhooks, end } = started();
  await answered(ask('POST', V1, widget('v1', 'a', { size: 1 })), 201);
  assert.deepEqual(webhooks.sizes, [], 'the stored version needs no webhook');
  const read = JSON.parse(await answered(ask('GET', `${V2}/a`))) as Widget;
  assert.deepEqual([read.apiVersion, read.spec], ['example.com/v2', { width: 1 }]);
  const watch = ask('GET', `${V2}?watch=1&resourceVersion=${read.metadata.resourceVersion ?? ''}`);
  const made = await answered(ask('POST', V2, widget('v2', 'b', { width: 2 })), 201);
  assert.deepEqual((JSON.parse(made) as Widget).spec, { width: 2 });
  const kept = JSON.parse(ask('GET', `${V1}/b`).text) as Widget;
  assert.deepEqual([kept.apiVersion, kept.spec], ['example.com/v1', { size: 2 }]);
  await answered(ask('PATCH', `${V2}/b`, { spec: { width: 3 } }, MERGE));
  ask('PATCH', `${V1}/a`, { spec: { size: 9 } }, MERGE);
  const list = JSON.parse(await answered(ask('GET', V2))) as { items: Widget[] };
  assert.deepEqual(
    list.items.map(({ metadata, spec }) => [metadata.name, spec]),
    [
      ['a', { width: 9 }],
      ['b', { width: 3 }],
    ],
  );
  await answered(ask('DELETE', `${V2}/a`));
  assert.equal(ask('GET', `${V1}/a`).status, 404);
  await settled();
  const events = watch.text.trim().split('\n');
  assert.deepEqual(
    events.map((line) => {
      const { type, object } = JSON.parse(line) as { type: string; object: Widget };
      return [type, object.metadata.name, object.spec['width']];
    }),
    [
      ['ADDED', 'b', 2],
      ['MODIFIED', 'b', 3],
      ['MODIFIED', 'a', 9],
      ['DELETED', 'a', 9],
    ],
  );
  await end();
  for (let turn = 0; turn < 20 && !watch.isEnded; turn++) await settled();
  assert.ok(watch.isEnded, 'the watch ends with the definition');
});

test('objects of an older stored version are converted when the new one is read', async () => {
  const { ask, webhooks, settle, end } = started();
  await answered(ask('POST', V1, widget('v1', 'a', { size: 1 })), 201);
  const versions = [versionOf('v2'), versionOf('v1')];
  const patched = ask(
    'PATCH',
    `${DEFINITIONS}/widgets.example.com`,
    { spec: { versions: versions.map((one, index) => ({ ...one, storage: index === 0 })) } },
    MERGE,
  );
  assert.equal(patched.status, 200, patched.text);
  settle();
  const read = JSON.parse(await answered(ask('GET', `${V2}/a`))) as Widget;
  assert.deepEqual(read.spec, { width: 1 });
  assert.deepEqual(webhooks.sizes, [1]);
  await end();
});

test('many objects are brought over in few calls', async () => {
  const storage = new StorageModel();
  for (let index = 0; index < 600; index++) {
    const name = `w-${String(index).padStart(4, '0')}`;
    const key = Buffer.from(`/registry/example.com/widgets/default/${name}`);
    const object = widget('v1', name, { size: index });
    storage.put(key, Buffer.from(JSON.stringify(object)), EXPECT_ABSENT, () => {});
  }
  const { ask, webhooks, end } = started(storage);
  const list = JSON.parse(await answered(ask('GET', `${V2}?limit=10`))) as { items: Widget[] };
  assert.equal(list.items.length, 10);
  assert.deepEqual(webhooks.sizes, [500, 100]);
  await end();
});

const BROKEN: readonly (readonly [string, Answer, RegExp])[] = [
  ['another uid', () => ({ uid: 'x' }), /failed: expected response\.uid="[^"]+", got "x"$/],
  [
    'a failure of its own',
    ({ request }) => ({ uid: request.uid, result: { status: 'Failure', message: 'no way' } }),
    /^conversion webhook for example\.com\/v1, Kind=Widget failed: no way$/,
  ],
  [
    'a failure without words',
    ({ request }) => ({ uid: request.uid, result: { status: 'Odd' } }),
    /failed: response\.result\.status was 'Odd', not 'Success'$/,
  ],
  [
    'too few objects',
    ({ request }) => ({ uid: request.uid, result: { status: 'Success' }, convertedObjects: [] }),
    /Kind=Widget returned 0 objects, expected 1$/,
  ],
  [
    'a list that is none',
    ({ request }) => ({ uid: request.uid, result: { status: 'Success' }, convertedObjects: {} }),
    /response\.convertedObjects of type \[\]runtime\.RawExtension$/,
  ],
  [
    'nothing in the place of an object',
    ({ request }) => ({
      uid: request.uid,
      result: { status: 'Success' },
      convertedObjects: [null],
    }),
    /^unexpected end of JSON input$/,
  ],
  [
    'labels that are none',
    ({ request: { uid, desiredAPIVersion: apiVersion, objects } }) => ({
      uid,
      result: { status: 'Success' },
      convertedObjects: objects.map((object) => ({
        ...object,
        apiVersion,
        metadata: { ...object.metadata, labels: { 'a b': 'x' } },
      })),
    }),
    /returned invalid metadata: metadata\.labels: Invalid value: "a b": name/,
  ],
  [
    'an object of another kind',
    ({ request }) => ({
      uid: request.uid,
      result: { status: 'Success' },
      convertedObjects: [{ apiVersion: request.desiredAPIVersion, kind: 'Other' }],
    }),
    /returned invalid object at index 0: invalid kind \(expected Widget, received Other\)$/,
  ],
  [
    'an object without metadata',
    ({ request }) => ({
      uid: request.uid,
      result: { status: 'Success' },
      convertedObjects: [{ apiVersion: request.desiredAPIVersion, kind: 'Widget' }],
    }),
    /returned invalid object: must have the same name: a != $/,
  ],
  ['no response', () => undefined, /failed: no response provided$/],
];

for (const [what, answer, wanted] of BROKEN) {
  test(`an answer with ${what} fails the request, and the next one may succeed`, async () => {
    const { ask, webhooks, end } = started();
    ask('POST', V1, widget('v1', 'a', { size: 1 }));
    const works = webhooks.answer;
    webhooks.answer = answer;
    const { message } = JSON.parse(await answered(ask('GET', `${V2}/a`), 500)) as {
      message: string;
    };
    assert.match(message, wanted);
    webhooks.answer = works;
    await answered(ask('GET', `${V2}/a`));
    await end();
  });
}

test('an object that cannot be converted is in the way of lists and of itself alone', async () => {
  const { ask, webhooks, end } = started();
  for (const name of ['a', 'b', 'c']) {
    await answered(ask('POST', V1, widget('v1', name, { size: 1 })), 201);
  }
  const works = webhooks.answer;
  webhooks.answer = (review) => {
    const isSpoilt = review.request.objects.some(({ metadata: { name } }) => name === 'b');
    return isSpoilt ? { uid: review.request.uid, result: { message: 'not b' } } : works(review);
  };
  const why = 'conversion webhook for example.com/v1, Kind=Widget failed: not b';
  assert.ok((await answered(ask('GET', V2), 500)).includes(why));
  assert.ok((await answered(ask('GET', `${V2}/b`), 500)).includes(why));
  const read = JSON.parse(await answered(ask('GET', `${V2}/c`))) as Widget;
  assert.deepEqual([read.apiVersion, read.spec], ['example.com/v2', { width: 1 }]);
  await answered(ask('GET', `${V2}/d`), 404);
  await answered(ask('POST', V2, widget('v2', 'd', { width: 4 })), 201);
  await answered(ask('POST', V2, widget('v2', 'b', { width: 4 })), 409);
  await answered(ask('PATCH', `${V2}/a`, { spec: { width: 5 } }, MERGE));
  const kept = JSON.parse(ask('GET', `${V1}/a`).text) as Widget;
  assert.deepEqual(kept.spec, { size: 5 });
  await answered(ask('DELETE', `${V2}/nobody`), 404);
  await answered(ask('DELETE', `${V2}/c`));
  webhooks.answer = works;
  const list = JSON.parse(await answered(ask('GET', V2))) as { items: Widget[] };
  assert.deepEqual(
    list.items.map(({ metadata, spec }) => [metadata.name, spec]),
    [
      ['a', { width: 5 }],
      ['b', { width: 1 }],
      ['d', { width: 4 }],
    ],
  );
  await end();
});

test('a write is answered with what is read of it, in dry runs too', async () => {
  const { ask, webhooks, end } = started();
  const works = webhooks.answer;
  webhooks.answer = (review) => works(capped(review));
  const made = JSON.parse(await answered(ask('POST', V2, widget('v2', 'a', { width: 12 })), 201));
  assert.deepEqual((made as Widget).spec, { width: 9 });
  const dry = ask('POST', `${V2}?dryRun=All`, widget('v2', 'b', { width: 11 }));
  assert.deepEqual((JSON.parse(await answered(dry, 201)) as Widget).spec, { width: 9 });
  webhooks.answer = (review) =>
    review.request.desiredAPIVersion.endsWith('v2') ? undefined : works(review);
  const spoilt = await answered(ask('POST', V2, widget('v2', 'c', { width: 1 })), 500);
  assert.match(spoilt, /example\.com\/v1, Kind=Widget failed: no response provided/);
  await end();
});

/** No size above 9 comes through. */
function capped({ request }: Review): Review {
  const objects = request.objects.map((object) => {
    const spec = Object.entries(object.spec).map(([key, value]) => [
      key,
      Math.min(9, Number(value)),
    ]);
    return { ...object, spec: Object.fromEntries(spec) as Record<string, unknown> };
  });
  return { request: { ...request, objects } };
}

test('a view is not waited for longer than the writes of other kinds take', async () => {
  const storage = new StorageModel();
  const { ask, settle, end } = started(storage);
  await answered(ask('POST', V1, widget('v1', 'a', { size: 1 })), 201);
  await answered(ask('GET', V2));
  storage.isHolding = true;
  ask('POST', '/api/v1/namespaces', { metadata: { name: 'other' } });
  const list = ask('GET', V2);
  storage.isHolding = false;
  storage.publish();
  settle();
  await answered(list);
  await end();
});

test('a webhook may change labels and annotations, and no other metadata', async () => {
  const { ask, webhooks, end } = started();
  ask('POST', V1, widget('v1', 'a', { size: 1 }));
  const tamper = (change: (object: Widget) => unknown): Answer => {
    return ({ request: { uid, desiredAPIVersion, objects } }) => ({
      uid,
      result: { status: 'Success' },
      convertedObjects: objects.map((object) => change(renamed(object, desiredAPIVersion))),
    });
  };
  const refused: readonly (readonly [(object: Widget) => unknown, RegExp])[] = [
    [(o) => ({ ...o, metadata: { ...o.metadata, name: 'z' } }), /must have the same name: a != z$/],
    [(o) => ({ ...o, kind: 'Gadget' }), /invalid kind \(expected Widget, received Gadget\)$/],
    [(o) => ({ ...o, apiVersion: 'x/v1' }), /\(expected example.com\/v2, received x\/v1\)$/],
    [
      (o) => ({ ...o, metadata: { ...o.metadata, labels: { a: 1 } } }),
      /metadata\.labels\[a\] must/,
    ],
    [(o) => ({ ...o, metadata: undefined }), /invalid object: must have the same name: a != $/],
  ];
  for (const [change, wanted] of refused) {
    webhooks.answer = tamper(change);
    const { message } = JSON.parse(await answered(ask('GET', `${V2}/a`), 500)) as {
      message: string;
    };
    assert.match(message, wanted);
  }
  webhooks.answer = tamper((o) => ({
    ...o,
    metadata: { ...o.metadata, labels: { new: 'yes' }, generation: 77 },
  }));
  const read = JSON.parse(await answered(ask('GET', `${V2}/a`))) as {
    metadata: { labels: object; generation: number };
  };
  assert.deepEqual([read.metadata.labels, read.metadata.generation], [{ new: 'yes' }, 1]);
  await end();
});

const APPLY = { 'content-type': 'application/apply-patch+yaml' };

/** Managers and what they own of the spec. */
function ownersIn(text: string): string[] {
  const { managedFields = [] } = (
    JSON.parse(text) as {
      metadata: { managedFields?: { manager: string; fieldsV1: { 'f:spec'?: object } }[] };
    }
  ).metadata;
  const owners = managedFields.map(({ manager, fieldsV1 }) => {
    return `${manager} ${Object.keys(fieldsV1['f:spec'] ?? {}).join()}`;
  });
  return owners.sort();
}

test('who owns a field is looked up in the version that its owner wrote in', async () => {
  const { ask, webhooks, end } = started();
  const apply = (version: string, manager: string, spec: object, more = '') => {
    const url = `${version === 'v1' ? V1 : V2}/a?fieldManager=${manager}${more}`;
    return ask('PATCH', url, widget(version, 'a', spec), APPLY);
  };
  await answered(apply('v1', 'one', { size: 1 }), 201);
  const refused = await answered(apply('v2', 'two', { width: 2 }), 409);
  assert.match(refused, /conflict with \\"one\\": \.spec\.size/);
  const shared = await answered(apply('v2', 'two', { width: 1 }));
  assert.deepEqual(ownersIn(shared), ['one f:size', 'two f:width']);
  const forced = await answered(apply('v2', 'two', { width: 2 }, '&force=true'));
  assert.deepEqual(ownersIn(forced), ['two f:width']);
  // what was applied in one version is given up in another
  const given = await answered(apply('v1', 'two', {}));
  assert.deepEqual((JSON.parse(given) as Widget).spec, {});
  const again = await answered(apply('v1', 'one', { size: 5 }));
  assert.deepEqual(ownersIn(again), ['one f:size', 'two ']);
  const updated = ask('PATCH', `${V2}/a?fieldManager=three`, { spec: { width: 6 } }, MERGE);
  assert.deepEqual(ownersIn(await answered(updated)), ['three f:width', 'two ']);
  const works = webhooks.answer;
  webhooks.answer = (review) => {
    const isBack = review.request.desiredAPIVersion.endsWith('v2');
    return isBack ? undefined : works(review);
  };
  const spoilt = await answered(apply('v1', 'one', { size: 5 }), 500);
  assert.match(spoilt, /"message":"conversion webhook for .* failed: no response provided"/);
  const untracked = ask('PATCH', `${V1}/a?fieldManager=one`, { spec: { size: 7 } }, MERGE);
  assert.deepEqual(ownersIn(await answered(untracked)), []);
  await end();
});

test('metadata inside of an object that a webhook spoils are told', async () => {
  const webhooks = new Converter();
  const rig = startRig({ webhooks });
  const part = { type: 'object', 'x-kubernetes-embedded-resource': true };
  const pod = { ...part, 'x-kubernetes-preserve-unknown-fields': true };
  const spec = { type: 'object', properties: { pod, size: { type: 'integer' } } };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
  const versions = ['v1', 'v2'].map((name) => versionOf(name, { schema }));
  define(rig, definitionOf('widgets', versions, CONVERSION));
  rig.ask('POST', V1, widget('v1', 'a', { size: 1 }));
  webhooks.answer = ({ request: { uid, desiredAPIVersion, objects } }) => ({
    uid,
    result: { status: 'Success' },
    convertedObjects: objects.map((object) => ({
      ...object,
      apiVersion: desiredAPIVersion,
      spec: { pod: { apiVersion: 'v1', kind: 'Pod', metadata: { labels: 5 } } },
    })),
  });
  for (const path of [`${V2}/a`, V2]) {
    const text = await answered(rig.ask('GET', path), 500);
    assert.match(text, /"spec\.pod\.metadata: Invalid value: .*: json: cannot unmarshal number/);
  }
  const written = rig.ask('POST', V2, widget('v2', 'b', {}));
  assert.match(await answered(written, 500), /spec\.pod\.metadata: Invalid value/);
  rig.ask('DELETE', `${DEFINITIONS}/widgets.example.com`);
  rig.settle();
  await settled();
});

test('a webhook that cannot be reached fails writes and reads with its reason', async () => {
  const { ask, webhooks, end } = started();
  webhooks.failure = 'context deadline exceeded';
  const text = await answered(ask('POST', V2, widget('v2', 'a', { width: 1 })), 500);
  const url = 'Post \\"https://converter/convert?timeout=30s\\"';
  assert.ok(text.includes(`Kind=Widget failed: ${url}: context deadline exceeded`), text);
  webhooks.failure = '';
  assert.equal(ask('GET', `${V1}/a`).status, 404);
  await end();
});

test('answers that are no reviews are told as what Go’s decoder takes them for', () => {
  const scope = { uid: 'u', desired: 'example.com/v2', reviewVersion: 'v1' };
  const why = (text: string): string => {
    const read = readConversion(Buffer.from(text), scope, [], 'it');
    return read.ok ? '' : read.why;
  };
  assert.match(why('garbage'), /json parse error: json: cannot unmarshal string into Go value of/);
  assert.match(why('[]'), /json: cannot unmarshal array into Go value of type struct \{/);
  const group = 'apiextensions.k8s.io';
  const wanted = `${group}/v1, Kind=ConversionReview`;
  assert.equal(why('{"a":1}'), `it failed: expected webhook response of ${wanted}, got /, Kind=`);
  assert.equal(
    why(`{"apiVersion":"${group}/v1","kind":"X"}`),
    `it failed: no kind "X" is registered for version "${group}/v1" in scheme ` +
      '"pkg/runtime/scheme.go:111"',
  );
  assert.equal(
    why(`{"apiVersion":"${group}/v1beta1","kind":"ConversionReview"}`),
    'it failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion',
  );
  const status = { kind: 'Status', status: 'Failure', message: 'not now' };
  assert.equal(httpFailure(403, Buffer.from(JSON.stringify(status)), ''), 'not now');
  assert.equal(httpFailure(403, Buffer.from('{"kind":'), 'text/plain'), '{"kind":');
});
