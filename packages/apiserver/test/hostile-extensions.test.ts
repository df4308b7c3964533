/**
 * What servers behind this one tell of themselves may be anything: lists of resources, discovery,
 * OpenAPI. What is made of it for others is made, whatever stands where.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FUZZ_SECONDS, trials } from '@megaplane/base/trials.sim';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import {
  discoveredIn,
  listIn,
  RemotePublications,
  type RemoteSpec,
} from '../src/aggregator/remote-publications.ts';
import { aggregatedResources } from '../src/aggregator/remote-service.ts';
import { makeForm } from '../src/discovery/discovery-forms.ts';
import { version2Protobuf, version2Text, type Part } from '../src/openapi/openapi-pieces.ts';
import type { Fetched } from '../src/webhook/target.ts';

const timeout = FUZZ_SECONDS > 0 ? 36_000_000 : 110_000;
const SPEC: RemoteSpec = {
  ...{ name: 'v1.g.io', group: 'g.io', version: 'v1', namespace: 'n', service: 's', port: 443 },
  ...{ caBundle: '', isInsecure: true, groupPriority: 1, versionPriority: 1 },
};

const SUBRESOURCE = { subresource: 'status', responseKind: { kind: 'A' }, verbs: ['get'] };
const DISCOVERY = {
  kind: 'APIGroupDiscoveryList',
  apiVersion: 'apidiscovery.k8s.io/v2',
  items: [
    {
      metadata: { name: 'g.io' },
      versions: [
        {
          version: 'v1',
          resources: [
            {
              ...{ resource: 'as', responseKind: { group: 'g.io', version: 'v1', kind: 'A' } },
              ...{ scope: 'Namespaced', singularResource: 'a', verbs: ['get'] },
              ...{ shortNames: ['x'], categories: ['all'], subresources: [SUBRESOURCE] },
            },
          ],
        },
      ],
    },
  ],
};
const NAMED = { namespaced: true, kind: 'A', verbs: ['get'] };
const LIST = {
  ...{ kind: 'APIResourceList', groupVersion: 'g.io/v1' },
  resources: [
    { name: 'as', singularName: 'a', shortNames: ['x'], ...NAMED },
    { name: 'as/status', ...NAMED },
  ],
};
const VERSION3 = { paths: { 'apis/g.io/v1': { serverRelativeURL: '/openapi/v3/x?hash=AB' } } };
const VERSION2 = {
  swagger: '2.0',
  paths: {
    '/apis/g.io/v1/as': {
      get: {
        ...{ description: 'd', consumes: ['*/*'], operationId: 'x', tags: ['t'] },
        parameters: [{ name: 'p', in: 'query', type: 'string' }, { $ref: '#/parameters/x' }],
        responses: { 200: { description: 'OK', schema: { $ref: '#/definitions/A' } } },
      },
      parameters: [{ name: 'n', in: 'path', required: true, type: 'string' }],
    },
  },
  definitions: {
    A: {
      ...{ type: 'object', required: ['a'], 'x-kubernetes-group-version-kind': [{ kind: 'A' }] },
      properties: { a: { type: 'string', maxLength: 3, enum: ['a'], minimum: 1.5 } },
      additionalProperties: { type: 'array', items: { $ref: '#/definitions/B' } },
    },
    B: { type: 'object' },
  },
};

const odd: fc.Arbitrary<JsonValue> = fc.oneof(
  fc.constantFrom<JsonValue>(null, true, '', 'x', '__proto__', 0, -1, 1.5, 1e300, [], {}, [null]),
  fc.constantFrom<JsonValue>([[]], { $ref: 5 }, { $ref: '#/definitions/A' }, { constructor: 1 }),
  fc.json().map((text) => JSON.parse(text) as JsonValue),
);

/** Ways to all values in it. */
function waysIn(value: JsonValue, way: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [way];
  const members = Object.entries(value);
  return [way, ...members.flatMap(([name, one]) => waysIn(one ?? null, [...way, name]))];
}

/** With another value at the end of a way; undefined takes what is there away. */
function changed(
  value: JsonValue | undefined,
  [name, ...rest]: readonly string[],
  to: JsonValue | undefined,
): JsonValue | undefined {
  if (name === undefined) return to;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(
    ([own, one]) => [own, own === name ? changed(one, rest, to) : one] as const,
  );
  const kept = entries.filter(([, one]) => one !== undefined);
  if (Array.isArray(value)) return kept.map(([, one]) => one ?? null);
  return Object.fromEntries(kept);
}

function mutants(document: JsonObject): fc.Arbitrary<JsonValue> {
  const change = fc.tuple(
    fc.constantFrom(...waysIn(document)),
    fc.oneof(odd, odd, odd, fc.constant(undefined)),
  );
  return fc
    .array(change, { minLength: 1, maxLength: 3 })
    .map((changes) =>
      changes.reduce<JsonValue>((made, [way, to]) => changed(made, way, to) ?? null, document),
    );
}

function answer(document: JsonValue, type = 'application/json'): Fetched {
  const body = Buffer.from(JSON.stringify(document));
  return { status: 200, type, etag: '"1"', body };
}

let made = 0;

/** All that is made of resources for clients. */
function tellOf(resources: readonly JsonObject[] | null): void {
  if (resources === null) return;
  const group = { metadata: { name: 'g.io' }, versions: [{ version: 'v1', resources }] };
  const groups = [JSON.stringify(group)];
  const document = { contentType: '', bytes: Buffer.of(), etag: '""', groups };
  for (const encoding of ['yaml', 'protobuf'] as const) {
    for (const steps = makeForm(document, encoding); steps.next().done !== true;) made++;
  }
}

function tellOfVersion2(document: JsonValue): void {
  const publications = new RemotePublications();
  publications.takeVersion2(answer(document), SPEC);
  const part = publications.version2;
  if (part === null) return;
  const parts = (): Part[] => [{ paths: () => part.paths, schemas: () => part.definitions }];
  const pieces = [...version2Text(parts)].map((piece) => (typeof piece === 'string' ? piece : ''));
  JSON.parse(pieces.join(''));
  made += [...version2Protobuf(parts)].length;
}

const DISCOVERY_TYPE = 'application/json;as=APIGroupDiscoveryList';

for (const [name, document, take] of [
  [
    'aggregated discovery',
    DISCOVERY,
    (one) => tellOf(discoveredIn(answer(one, DISCOVERY_TYPE), SPEC)),
  ],
  ['lists of resources', LIST, (one) => tellOf(aggregatedResources(listIn(answer(one))))],
  [
    'the index of OpenAPI',
    VERSION3,
    (one) => (made += Number(new RemotePublications().takeIndex(answer(one), SPEC))),
  ],
  ['OpenAPI of version 2', VERSION2, tellOfVersion2],
] as const satisfies readonly (readonly [string, JsonObject, (one: JsonValue) => void])[]) {
  test(`others are told of an extension, whatever it says: ${name}`, { timeout }, () => {
    made = 0;
    take(document);
    assert(made > 0, 'nothing is made of what is as it should be');
    fc.assert(
      fc.property(mutants(document), (one) => void take(one)),
      trials(300),
    );
  });
}
