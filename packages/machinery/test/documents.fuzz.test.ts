/** Arbitrary documents: bodies, patches, applies, schemas and the objects that they judge. */
import { join } from 'node:path';
import { test } from 'node:test';
import { fuzz } from '@megaplane/base/fuzz.sim';
import { readCorpus } from '@megaplane/base/mutation.sim';
import { FUZZ_SECONDS } from '@megaplane/base/trials.sim';
import { validateDefinition } from '../src/apiextensions/definition.ts';
import { decodeJsonBody, decodeProtobufBody, type Body } from '../src/codec/request-body.ts';
import { parseJson } from '../src/json/json-text.ts';
import { stringAt } from '../src/json/json.ts';
import { isObject, type JsonObject } from '../src/json/json-value.ts';
import { builtinSchema } from '../src/managedfields/builtin-schema.ts';
import { trackApply, trackUpdate, type FieldScope } from '../src/managedfields/field-manager.ts';
import { packManaged, shownManaged } from '../src/managedfields/field-templates.ts';
import { FieldSet } from '../src/managedfields/field-set.ts';
import { emptyManaged } from '../src/managedfields/managed-fields.ts';
import { applyPatch, parsePatch } from '../src/patch/patch.ts';
import { findTypeOfKind } from '../src/scheme/schema.ts';
import { encodeCanonical } from '../src/serializer/canonical.ts';
import { encodeProtobuf } from '../src/serializer/protobuf.ts';
import { compileSchema } from '../src/structural/compiled-schema.ts';

/** As requests have it. */
const BODY_BYTES_MAX: number = 3 * 1024 * 1024;
const KINDS = [
  { apiVersion: 'v1', kind: 'Pod' },
  { apiVersion: 'v1', kind: 'Service' },
  { apiVersion: 'v1', kind: 'ConfigMap' },
  { apiVersion: 'apps/v1', kind: 'Deployment' },
] as const;
const timeout = FUZZ_SECONDS > 0 ? 36_000_000 : 110_000;

function corpus(name: string): readonly Buffer[] {
  return readCorpus(join(import.meta.dirname, 'corpus', `${name}.jsonl`));
}

function kindIn(bytes: Buffer): (typeof KINDS)[number] {
  const [first, ...others] = KINDS;
  return others.find(({ kind }) => bytes.includes(`"${kind}"`)) ?? first;
}

/** What is done with an object that was read. */
function store(body: Body): void {
  if (!body.ok) return;
  encodeCanonical(body.object);
  encodeProtobuf(body.object);
}

function parsed(bytes: Buffer): JsonObject | null {
  try {
    const value = parseJson(bytes.toString('utf8'));
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

test('bodies in JSON', { timeout }, () =>
  fuzz({
    corpus: corpus('json'),
    bytesMax: BODY_BYTES_MAX,
    trials: 60,
    read(input) {
      const kind = kindIn(input);
      store(decodeJsonBody(input, 0, input.length, kind, true));
    },
  }),
);

test('bodies in protobuf', { timeout }, () => {
  const bodies = corpus('json').flatMap((bytes) => {
    const kind = kindIn(bytes);
    const body = decodeJsonBody(bytes, 0, bytes.length, kind, false);
    const made = body.ok ? encodeProtobuf(body.object) : undefined;
    return made === undefined ? [] : [made];
  });
  return fuzz({
    corpus: bodies,
    bytesMax: BODY_BYTES_MAX,
    trials: 60,
    read(input) {
      for (const kind of KINDS) store(decodeProtobufBody(input, 0, input.length, kind));
    },
    turnsMax: KINDS.length,
  });
});

const LIVE = corpus('apply')
  .map(parsed)
  .filter((one) => one !== null);

for (const kind of ['json', 'merge', 'strategic'] as const) {
  test(`patches: ${kind}`, { timeout }, () =>
    fuzz({
      corpus: corpus('patches'),
      bytesMax: BODY_BYTES_MAX,
      trials: 60,
      read(input) {
        const patch = parsePatch(kind, input.toString('utf8'));
        if (!patch.ok) return;
        const live = LIVE[input.length % LIVE.length] ?? {};
        const type = findTypeOfKind(stringAt(live, 'apiVersion'), stringAt(live, 'kind'));
        const first = applyPatch(patch.value, live, type);
        // once more on what it has made of it
        if (first.ok) applyPatch(patch.value, first.value, type);
      },
    }),
  );
}

function scopeOf(apiVersion: string, kind: string, name: string): FieldScope | null {
  const schema = builtinSchema(apiVersion, kind);
  if (schema === undefined) return null;
  return {
    versions: {
      apiVersion,
      schema,
      schemaOf: (version) => (version === apiVersion ? schema : null),
      convert: () => null,
      convertBack: (value) => value,
      ignored: new FieldSet(),
      ignoredElsewhere: new FieldSet(),
    },
    manager: { name, operation: 'Apply', apiVersion, subresource: '' },
    nowSeconds: 1,
    empty: { apiVersion, kind },
    formedSince: -1,
  };
}

test('applies', { timeout }, () =>
  fuzz({
    corpus: corpus('apply'),
    bytesMax: BODY_BYTES_MAX,
    trials: 60,
    turnsMax: 4,
    read(input) {
      const config = parsed(input);
      const { apiVersion, kind } = kindIn(input);
      const live = LIVE.find((one) => one['kind'] === kind) ?? null;
      const [mine, others] = [scopeOf(apiVersion, kind, 'm'), scopeOf(apiVersion, kind, 'o')];
      if (config === null || live === null || mine === null || others === null) return;
      const before = trackUpdate(others, null, live, emptyManaged());
      const applied = trackApply(mine, live, config, before, kind, input.length % 2 === 0);
      if (!applied.ok) return;
      const object = applied.value.object ?? live;
      shownManaged(packManaged(applied.value.managed));
      const again = trackApply(
        mine,
        object,
        { apiVersion, kind },
        applied.value.managed,
        kind,
        true,
      );
      if (again.ok) trackUpdate(others, object, live, again.value.managed);
    },
  }),
);

/** Two documents in an input, a line end between them. */
function pairs(left: readonly Buffer[], right: readonly Buffer[]): Buffer[] {
  const end = Buffer.from('\n');
  return left.flatMap((one) => right.map((other) => Buffer.concat([one, end, other])));
}

function definitionOf(schema: JsonObject): JsonObject {
  const names = { plural: 'ks', kind: 'K', singular: 'k', listKind: 'KList' };
  const versions = [
    { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } },
  ];
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'ks.g.io' },
    spec: { group: 'g.io', scope: 'Namespaced', names, versions },
    status: { storedVersions: ['v1'] },
  };
}

test('schemas, and objects that they judge', { timeout }, () =>
  fuzz({
    corpus: pairs(corpus('schemas'), corpus('objects')),
    bytesMax: BODY_BYTES_MAX,
    trials: 60,
    turnsMax: 4,
    read(input) {
      const end = input.indexOf('\n');
      const schema = parsed(input.subarray(0, Math.max(0, end)));
      const object = parsed(input.subarray(end + 1));
      if (schema === null) return;
      if (validateDefinition(definitionOf(schema), null).length > 0 || object === null) return;
      const compiled = compileSchema(schema);
      const scope = { part: 'object', scale: null, found: [] } as const;
      compiled.decode(object, { isTracked: true, isStored: false });
      compiled.applyDefaults(object);
      compiled.validate(object, null, scope);
      compiled.validate(object, structuredClone(object), scope);
    },
  }),
);
