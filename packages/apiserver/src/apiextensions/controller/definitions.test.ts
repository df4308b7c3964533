/** The life of definitions: names, conditions, versions, their end, and a restart. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openStore } from '@megaplane/store/open';
import { EmbeddedStorage } from '../../storage/embedded/embedded-storage.ts';
import type { ExchangeModel } from '../../testing/exchange-model.sim.ts';
import { StorageModel } from '../../storage/storage-model.sim.ts';
import {
  define,
  DEFINITIONS,
  definitionOf,
  MERGE,
  startRig,
  versionOf,
} from '../../testing/definitions.sim.ts';

const WIDGETS = '/apis/example.com/v1/namespaces/default/widgets';
const WIDGET = {
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name: 'w' },
  spec: { color: 'red' },
};

interface Definition {
  readonly metadata: { readonly uid: string; readonly deletionTimestamp?: string };
  readonly status: {
    readonly conditions: readonly Condition[];
    readonly acceptedNames: { readonly kind: string; readonly shortNames?: string[] };
    readonly storedVersions: readonly string[];
  };
}
interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

function read(exchange: ExchangeModel): Definition {
  assert.equal(exchange.status, 200, exchange.text);
  return JSON.parse(exchange.text) as Definition;
}

function condition({ status }: Definition, type: string): string {
  const found = status.conditions.find((one) => one.type === type);
  return `${found?.status} ${found?.reason}: ${found?.message}`;
}

function events(watch: ExchangeModel): string[] {
  const lines = watch.text.trim().split('\n').filter(Boolean);
  return lines.map((line) => (JSON.parse(line) as { type: string }).type);
}

test('a definition is made without conditions, and established by the write after that', () => {
  const rig = startRig();
  const watch = rig.ask('GET', `${DEFINITIONS}?watch=1&allowWatchBookmarks=false`);
  const made = rig.ask('POST', DEFINITIONS, definitionOf('widgets', [versionOf('v1')]));
  assert.equal(made.status, 201, made.text);
  const { status } = JSON.parse(made.text) as { status: object };
  const acceptedNames = { plural: '', kind: '' };
  assert.deepEqual(status, { conditions: null, acceptedNames, storedVersions: ['v1'] });
  rig.settle();
  assert.deepEqual(events(watch), ['ADDED', 'MODIFIED']);
  const definition = read(rig.ask('GET', `${DEFINITIONS}/widgets.example.com`));
  assert.equal(condition(definition, 'NamesAccepted'), 'True NoConflicts: no conflicts found');
  const accepted = 'True InitialNamesAccepted: the initial names have been accepted';
  assert.equal(condition(definition, 'Established'), accepted);
  assert.deepEqual(definition.status.storedVersions, ['v1']);
  assert.equal(rig.ask('POST', WIDGETS, WIDGET).status, 201);
});

test('definitions that come at once wait for their turn, and who left is not served', () => {
  const rig = startRig({}, new StorageModel(), true);
  const [first, second, third] = ['widgets', 'gadgets', 'gizmos'].map((plural) =>
    rig.ask('POST', DEFINITIONS, definitionOf(plural, [versionOf('v1')])),
  );
  assert.deepEqual([first?.status, second?.status, third?.status], [0, 0, 0]);
  assert.equal(rig.ask('GET', DEFINITIONS).status, 200, 'reads wait for nobody');
  second?.reset();
  rig.settle();
  assert.deepEqual([first?.status, third?.status], [201, 201]);
  const list = JSON.parse(rig.ask('GET', DEFINITIONS).text) as { items: Definition[] };
  const settled = list.items.map((one) => condition(one, 'Established').split(' ')[0]);
  assert.deepEqual(settled, ['True', 'True']);
});

test('large schemas, many rules and patterns are read in many turns, with the same outcome', () => {
  const field = (index: number, rule: string): object => ({
    type: 'string',
    maxLength: 9,
    pattern: `^a{0,${index}}$`,
    'x-kubernetes-validations': [{ rule }],
  });
  const crdOf = (plural: string, last: string): object => {
    const fields = Array.from({ length: 300 }, (_, index) => {
      const rule = index === 299 ? last : `self != '${index}'`;
      return [`f${index}`, field(index, rule)] as const;
    });
    const spec = { type: 'object', properties: Object.fromEntries(fields) };
    const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
    return definitionOf(plural, [versionOf('v1', { schema })]);
  };
  const outcomes = [false, true].map((isCrowded) => {
    const rig = startRig({}, new StorageModel(), isCrowded);
    const inTurns = (exchange: ExchangeModel): readonly unknown[] => {
      const turns = rig.settle();
      assert.ok(isCrowded ? turns > 300 : turns < 5, `${turns} turns`);
      return [exchange.status, (JSON.parse(exchange.text) as { message?: string }).message];
    };
    const path = `${DEFINITIONS}/widgets.example.com`;
    return [
      inTurns(rig.ask('POST', DEFINITIONS, crdOf('gadgets', 'self.nope'))),
      inTurns(rig.ask('POST', DEFINITIONS, crdOf('widgets', "self != '299'"))),
      inTurns(rig.ask('PATCH', path, { metadata: { labels: { a: 'b' } } }, MERGE)),
      inTurns(rig.ask('PATCH', path, crdOf('widgets', 'self.nope'), MERGE)),
      inTurns(rig.ask('POST', WIDGETS, { ...WIDGET, spec: { f5: '5' } })),
    ];
  });
  assert.deepEqual(outcomes[1], outcomes[0]);
  const [plain = []] = outcomes;
  const statuses = plain.map(([status]) => status);
  assert.deepEqual(statuses, [422, 201, 200, 422, 422]);
  assert.match(String(plain[0]?.[1]), /type 'string' does not support field selection/);
  assert.match(String(plain[4]?.[1]), /spec\.f5 in body should match/);
});

test('definitions lie packed, and are read as they were written', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const rig = startRig({}, new EmbeddedStorage(opened.store, () => opened.close()));
  const description = 'what every field of a schema says at length. '.repeat(400);
  const spec = { type: 'object', description, 'x-kubernetes-preserve-unknown-fields': true };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
  define(rig, definitionOf('widgets', [{ ...versionOf('v1'), schema }]));
  const key = Buffer.from(
    '/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com',
  );
  const ref = opened.store.get(key, 0, key.length);
  assert.ok(opened.store.valueTo(ref) - opened.store.valueAt(ref) < description.length / 8);
  const { text } = rig.ask('GET', `${DEFINITIONS}/widgets.example.com`);
  assert.ok(text.includes(description));
  const listed = rig.ask('GET', DEFINITIONS).text;
  assert.ok(listed.includes(description));
  const watch = rig.ask('GET', `${DEFINITIONS}?watch=1&allowWatchBookmarks=false`);
  rig.ask(
    'PATCH',
    `${DEFINITIONS}/widgets.example.com`,
    { metadata: { labels: { a: 'b' } } },
    MERGE,
  );
  await turns(2);
  rig.settle();
  assert.deepEqual(events(watch), ['ADDED', 'MODIFIED', 'MODIFIED']);
  assert.equal(rig.ask('POST', WIDGETS, WIDGET).status, 201);
});

test('definitions that kube-apiserver left in its etcd, in v1beta1, are those of v1', () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const storage = new EmbeddedStorage(opened.store, () => opened.close());
  const column = { name: 'Color', type: 'string', JSONPath: '.spec.color' };
  storeAsUpstream(storage, 'widgets', {
    validation: { openAPIV3Schema: { type: 'object', properties: { spec: BETA_SPEC } } },
    additionalPrinterColumns: [column],
    preserveUnknownFields: false,
  });
  storeAsUpstream(storage, 'relics', { preserveUnknownFields: true });
  const rig = startRig({}, storage);
  const found = read(rig.ask('GET', `${DEFINITIONS}/widgets.example.com`)) as unknown as Stored;
  assert.equal(found.apiVersion, 'apiextensions.k8s.io/v1');
  assert.deepEqual(Object.keys(found.spec), ['group', 'names', 'scope', 'versions', 'conversion']);
  assert.equal(found.spec.versions[0]?.additionalPrinterColumns[0]?.jsonPath, '.spec.color');
  const spec = { size: 3, nope: true };
  const made = rig.ask('POST', WIDGETS, { ...WIDGET, spec });
  assert.deepEqual((JSON.parse(made.text) as Stored).spec, { color: 'red', size: 3 });
  assert.equal(rig.ask('POST', WIDGETS, { ...WIDGET, spec: { size: 0 } }).status, 422);
  const relic = rig.ask('POST', WIDGETS.replace('widgets', 'relics'), {
    ...WIDGET,
    kind: 'Relic',
    spec,
  });
  assert.deepEqual((JSON.parse(relic.text) as Stored).spec, spec);
});

test('discovery tells that upstream stores definitions in v1beta1', () => {
  const { ask } = startRig();
  const [first] = (
    JSON.parse(ask('GET', '/apis/apiextensions.k8s.io/v1').text) as {
      resources: { name: string; storageVersionHash: string }[];
    }
  ).resources;
  assert.equal(first?.name, 'customresourcedefinitions');
  assert.equal(first?.storageVersionHash, 'jfWCUB31mvA=');
});

interface Stored {
  readonly apiVersion: string;
  readonly spec: {
    readonly versions: { readonly additionalPrinterColumns: { readonly jsonPath: string }[] }[];
  };
}

const BETA_SPEC = {
  type: 'object',
  properties: {
    size: { type: 'integer', minimum: 1 },
    color: { type: 'string', default: 'red' },
  },
};

function storeAsUpstream(storage: EmbeddedStorage, plural: string, more: object): void {
  const kind = plural === 'widgets' ? 'Widget' : 'Relic';
  const names = { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` };
  const conditions = ['NamesAccepted', 'Established'].map((type) => ({ type, status: 'True' }));
  const versions = [{ name: 'v1', served: true, storage: true }];
  const definition = {
    kind: 'CustomResourceDefinition',
    apiVersion: 'apiextensions.k8s.io/v1beta1',
    metadata: { name: `${plural}.example.com`, uid: plural, generation: 1 },
    spec: { group: 'example.com', version: 'v1', names, scope: 'Namespaced', versions, ...more },
    status: { conditions, acceptedNames: names, storedVersions: ['v1'] },
  };
  const key = `/registry/apiextensions.k8s.io/customresourcedefinitions/${plural}.example.com`;
  storage.put(Buffer.from(key), Buffer.from(`${JSON.stringify(definition)}\n`), 0, () => {});
}

test('of definitions that are read at once only one gets a name that both want', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const rig = startRig({}, new EmbeddedStorage(opened.store, () => opened.close()));
  const names = { plural: 'gadgets', singular: 'gadget', kind: 'Widget', listKind: 'WidgetList' };
  rig.ask('POST', DEFINITIONS, definitionOf('widgets', [versionOf('v1')]));
  rig.ask('POST', DEFINITIONS, definitionOf('gadgets', [versionOf('v1')], { names }));
  await turns(3);
  rig.settle();
  const accepted = ['widgets', 'gadgets'].map((plural) => {
    const found = read(rig.ask('GET', `${DEFINITIONS}/${plural}.example.com`));
    return condition(found, 'NamesAccepted').split(' ')[0];
  });
  assert.deepEqual(accepted, ['True', 'False']);
});

test('names that another definition of the group has are refused until it goes', () => {
  const rig = startRig();
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  const names = { plural: 'gadgets', singular: 'gadget', kind: 'Widget', listKind: 'WidgetList' };
  define(rig, definitionOf('gadgets', [versionOf('v1')], { names }));
  const path = `${DEFINITIONS}/gadgets.example.com`;
  const refused = read(rig.ask('GET', path));
  assert.equal(condition(refused, 'NamesAccepted').split(':')[0], 'False ListKindConflict');
  assert.match(condition(refused, 'NamesAccepted'), /"WidgetList" is already in use$/);
  assert.match(
    condition(refused, 'Established'),
    /^False NotAccepted: not all names are accepted$/,
  );
  const gadgets = '/apis/example.com/v1/namespaces/default/gadgets';
  assert.equal(rig.ask('GET', gadgets).status, 404);
  rig.ask('DELETE', `${DEFINITIONS}/widgets.example.com`);
  rig.settle();
  assert.match(condition(read(rig.ask('GET', path)), 'NamesAccepted'), /^True NoConflicts/);
  assert.equal(rig.ask('GET', gadgets).status, 200);
});

test('definitions that wait for a name are looked at when one comes free, and only then', () => {
  const storage = new StorageModel();
  const asked: string[] = [];
  const get = storage.get.bind(storage);
  storage.get = (key, row) => {
    asked.push(key.toString().split('/').at(-1) ?? '');
    return get(key, row);
  };
  const rig = startRig({}, storage);
  const sameKind = { plural: 'wodgets', kind: 'Widget', singular: 'wodget', listKind: 'Wodgets' };
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  define(rig, definitionOf('wodgets', [versionOf('v1')], { names: sameKind }));
  asked.length = 0;
  define(rig, definitionOf('gadgets', [versionOf('v1')]));
  assert.ok(!asked.includes('wodgets.example.com'), asked.join(' '));
  rig.ask('DELETE', `${DEFINITIONS}/widgets.example.com`);
  rig.settle();
  const waiting = read(rig.ask('GET', `${DEFINITIONS}/wodgets.example.com`));
  assert.match(condition(waiting, 'NamesAccepted'), /^True/);
});

test('the end of a definition deletes its objects and waits for their finalizers', () => {
  const rig = startRig();
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  const held = { ...WIDGET, metadata: { name: 'held', finalizers: ['example.com/hold'] } };
  assert.equal(rig.ask('POST', WIDGETS, held).status, 201);
  assert.equal(rig.ask('POST', WIDGETS, WIDGET).status, 201);
  const watch = rig.ask('GET', `${WIDGETS}?watch=1`);
  const path = `${DEFINITIONS}/widgets.example.com`;
  rig.ask('DELETE', path);
  rig.settle();
  const ending = read(rig.ask('GET', path));
  assert.match(condition(ending, 'Terminating'), /^True InstanceDeletionInProgress/);
  const again = JSON.parse(rig.ask('DELETE', path).text) as { metadata: Record<string, unknown> };
  assert.equal(again.metadata['deletionGracePeriodSeconds'], 0);
  assert.equal(rig.ask('GET', `${WIDGETS}/w`).status, 404);
  const created = rig.ask('POST', WIDGETS, WIDGET);
  const applied = rig.ask('PATCH', `${WIDGETS}/w?fieldManager=m`, WIDGET, {
    'content-type': 'application/apply-patch+yaml',
  });
  for (const { status, text } of [created, applied]) {
    assert.equal(status, 403);
    const why = 'create not allowed while custom resource definition is terminating';
    assert.ok(text.includes(`widgets.example.com \\"w\\" is forbidden: ${why}`), text);
  }
  const labelled = rig.ask('PATCH', path, { metadata: { labels: { a: 'b' } } }, MERGE);
  assert.equal(labelled.status, 200, labelled.text);
  const freed = rig.ask('PATCH', `${WIDGETS}/held`, { metadata: { finalizers: null } }, MERGE);
  assert.equal(freed.status, 200, freed.text);
  rig.settle();
  assert.equal(rig.ask('GET', path).status, 404);
  assert.equal(rig.ask('GET', WIDGETS).status, 404);
  assert.ok(watch.isEnded, 'watches end with the kind');
  assert.deepEqual(events(watch), ['ADDED', 'ADDED', 'MODIFIED', 'DELETED', 'DELETED']);
});

test('a version that was stored stays until it is said to be migrated', () => {
  const rig = startRig();
  define(rig, definitionOf('widgets', [versionOf('v1'), versionOf('v2')]));
  assert.equal(rig.ask('POST', WIDGETS, WIDGET).status, 201);
  const path = `${DEFINITIONS}/widgets.example.com`;
  const [v1, v2] = [versionOf('v1'), versionOf('v2')];
  const both = [v1, { ...v2, storage: true }];
  read(rig.ask('PATCH', path, { spec: { versions: both } }, MERGE));
  rig.settle();
  assert.deepEqual(read(rig.ask('GET', path)).status.storedVersions, ['v1', 'v2']);
  const without = rig.ask('PATCH', path, { spec: { versions: [{ ...v2, storage: true }] } }, MERGE);
  assert.equal(without.status, 422);
  assert.match(without.text, /must remain in spec.versions until a storage migration/);
  read(rig.ask('PATCH', `${path}/status`, { status: { storedVersions: ['v2'] } }, MERGE));
  read(rig.ask('PATCH', path, { spec: { versions: [{ ...v2, storage: true }] } }, MERGE));
  rig.settle();
  assert.equal(rig.ask('GET', WIDGETS).status, 404);
  const moved = rig.ask('GET', '/apis/example.com/v2/namespaces/default/widgets/w');
  assert.equal((JSON.parse(moved.text) as { apiVersion: string }).apiVersion, 'example.com/v2');
});

test('a server that starts anew serves the kinds and objects that are there', () => {
  const rig = startRig();
  const columns = [{ name: 'Color', type: 'string', jsonPath: '.spec.color' }];
  const version = versionOf('v1', {
    additionalPrinterColumns: columns,
    deprecated: true,
    selectableFields: [{ jsonPath: '.spec.color' }],
    schema: {
      openAPIV3Schema: {
        type: 'object',
        properties: { spec: { type: 'object', properties: { color: { type: 'string' } } } },
      },
    },
  });
  define(rig, definitionOf('widgets', [version]));
  const made = rig.ask('POST', WIDGETS, WIDGET);
  assert.equal(made.status, 201, made.text);
  const again = startRig({}, rig.storage);
  assert.deepEqual(again.ask('GET', `${WIDGETS}/w`).text, made.text);
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const table = again.ask('GET', WIDGETS, undefined, { accept });
  const { rows } = JSON.parse(table.text) as { rows: { cells: unknown[] }[] };
  assert.deepEqual(rows[0]?.cells, ['w', 'red']);
  assert.ok(table.headers.includes('299 - "example.com/v1 Widget is deprecated"'));
  const count = (selector: string): number => {
    const { text } = again.ask('GET', `${WIDGETS}?fieldSelector=${selector}`);
    return (JSON.parse(text) as { items: unknown[] }).items.length;
  };
  assert.deepEqual([count('spec.color%3Dred'), count('spec.color%3Dblue')], [1, 0]);
});

test('a change of the schema counts for what is stored, from the next read on', () => {
  const rig = startRig();
  const withColor = (more: object) =>
    versionOf('v1', {
      schema: {
        openAPIV3Schema: {
          type: 'object',
          properties: {
            spec: { type: 'object', properties: { color: { type: 'string', ...more } } },
          },
        },
      },
    });
  define(rig, definitionOf('widgets', [withColor({}), versionOf('v2')]));
  rig.ask('POST', WIDGETS, { ...WIDGET, spec: {} });
  const path = `${DEFINITIONS}/widgets.example.com`;
  const versions = [{ ...withColor({ default: 'blue', enum: ['blue'] }), storage: true }];
  read(rig.ask('PATCH', path, { spec: { versions: [...versions, versionOf('v2')] } }, MERGE));
  rig.settle();
  const shown = JSON.parse(rig.ask('GET', `${WIDGETS}/w`).text) as { spec: object };
  assert.deepEqual(shown.spec, { color: 'blue' });
  assert.equal(rig.ask('POST', WIDGETS, { ...WIDGET, metadata: { name: 'x' } }).status, 422);
});

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

test('a hundred definitions made and deleted in a loop leave nothing behind', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const rig = startRig({}, new EmbeddedStorage(opened.store, () => opened.close()));
  const all = Array.from({ length: 100 }, (_, index) => `kind${index}s`);
  const { kinds, hubs } = rig.api.parts.world;
  const definitions = rig.ask('GET', `${DEFINITIONS}?watch=1&resourceVersion=1`);
  const watches: ExchangeModel[] = [];
  for (let round = 0; round < 3; round++) {
    for (const plural of all) {
      rig.ask('POST', DEFINITIONS, definitionOf(plural, [versionOf('v1')]));
    }
    await turns(2);
    for (const plural of all) {
      const path = `/apis/example.com/v1/namespaces/default/${plural}`;
      const kind = plural.charAt(0).toUpperCase() + plural.slice(1, -1);
      const made = rig.ask('POST', path, { ...WIDGET, kind });
      assert.equal(made.status, 201, `${plural} in round ${round}: ${made.text}`);
      watches.push(rig.ask('GET', `${path}?watch=1`));
    }
    await turns(2);
    for (const plural of all) rig.ask('DELETE', `${DEFINITIONS}/${plural}.example.com`);
    for (let turn = 0; turn < 2000 && kinds.size > 0; turn++) {
      await turns(1);
      rig.settle();
    }
    assert.equal(kinds.size, 0, `round ${round}`);
  }
  assert.equal(rig.ask('GET', '/apis/example.com').status, 404);
  for (const watch of watches) {
    assert.ok(watch.isEnded);
    assert.deepEqual(events(watch), ['ADDED', 'DELETED']);
  }
  const seen = events(definitions);
  assert.equal(seen.filter((type) => type === 'ADDED').length, 300);
  assert.equal(seen.filter((type) => type === 'DELETED').length, 300);
  const left = [...hubs.keys()].filter((key) => key.includes('example.com'));
  assert.deepEqual(left, []);
  await opened.close();
});

test('who has all its names gets no conditions back that were taken away', () => {
  const rig = startRig();
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  const path = `${DEFINITIONS}/widgets.example.com`;
  const mine = [{ type: 'Mine', status: 'True' }];
  rig.ask('PATCH', `${path}/status`, { status: { conditions: mine } }, MERGE);
  rig.settle();
  const types = (): string[] =>
    read(rig.ask('GET', path)).status.conditions.map(({ type }) => type);
  assert.deepEqual(types(), ['Mine']);
  rig.ask('PATCH', path, { spec: { names: { shortNames: ['w'] } } }, MERGE);
  rig.settle();
  assert.deepEqual(types(), ['Mine', 'NamesAccepted', 'Established']);
});

test('a definition whose webhook has a bundle of no certificates is not established', () => {
  const rig = startRig();
  const clientConfig = { url: 'https://a.example.com', caBundle: 'YWJj' };
  const webhook = { clientConfig, conversionReviewVersions: ['v1'] };
  const conversion = { strategy: 'Webhook', webhook };
  define(rig, definitionOf('widgets', [versionOf('v1')], { conversion }));
  const path = `${DEFINITIONS}/widgets.example.com`;
  const why = 'The conversion webhook CABundle is invalid';
  assert.equal(
    condition(read(rig.ask('GET', path)), 'Established'),
    `False InvalidCABundle: ${why}`,
  );
  const mended = { spec: { conversion: { webhook: { clientConfig: { caBundle: null } } } } };
  rig.ask('PATCH', path, mended, MERGE);
  rig.settle();
  assert.match(condition(read(rig.ask('GET', path)), 'Established'), /^True/);
});

test('names are accepted until the end', () => {
  const rig = startRig();
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  const held = { ...WIDGET, metadata: { name: 'held', finalizers: ['example.com/hold'] } };
  assert.equal(rig.ask('POST', WIDGETS, held).status, 201);
  const path = `${DEFINITIONS}/widgets.example.com`;
  rig.ask('DELETE', path);
  rig.settle();
  rig.ask('PATCH', path, { spec: { names: { shortNames: ['w'] } } }, MERGE);
  rig.settle();
  assert.deepEqual(read(rig.ask('GET', path)).status.acceptedNames.shortNames, ['w']);
});

test('kinds in a group of built-ins are told of, and not served', () => {
  const rig = startRig();
  const group = 'networking.k8s.io';
  const annotations = { 'api-approved.kubernetes.io': 'unapproved' };
  const definition = definitionOf('widgets', [versionOf('v9')], { group });
  define(rig, { ...definition, metadata: { name: `widgets.${group}`, annotations } });
  const read = (path: string): ExchangeModel => rig.ask('GET', `/apis/${group}${path}`);
  assert.match(read('').text, /"preferredVersion":\{"groupVersion":"networking.k8s.io\/v9"/);
  for (const path of ['/v9', '/v9/widgets']) {
    assert.equal(read(path).status, 404);
    assert.match(read(path).text, /could not find the requested resource/);
  }
  assert.equal(read('/v1/ingresses').status, 200);
});
