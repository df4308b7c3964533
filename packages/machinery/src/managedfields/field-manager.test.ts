import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isObject, type JsonObject } from '../json/json-value.ts';
import { builtinSchema } from './builtin-schema.ts';
import { trackApply, trackUpdate, type FieldScope } from './field-manager.ts';
import { packManaged, packNew, shownManaged, unpackManaged } from './field-templates.ts';
import { FieldSet } from './field-set.ts';
import {
  capUpdaters,
  decodeManaged,
  emptyManaged,
  entriesOf,
  managerId,
} from './managed-fields.ts';
import type { Versions } from './ownership.ts';

/** What upstream's field manager (apimachinery 0.36.1) made of random writes: a line per object. */
const VECTORS = join(import.meta.dirname, 'upstream.vectors');

interface Step {
  readonly op: 'apply' | 'update';
  readonly manager: string;
  readonly force: boolean;
  readonly object: JsonObject;
  readonly error: string;
  readonly live: JsonObject;
  readonly managed: readonly (readonly [string, string, 0 | 1, JsonObject])[];
}

interface Story {
  readonly apiVersion: string;
  readonly kind: string;
  readonly steps: readonly Step[];
}

function versionsOf(apiVersion: string, kind: string): Versions {
  const schema = builtinSchema(apiVersion, kind);
  assert(schema !== undefined);
  return {
    apiVersion,
    schema,
    schemaOf: (version) => (version === apiVersion ? schema : null),
    convert: () => null,
    convertBack: (value) => value,
    ignored: new FieldSet(),
    ignoredElsewhere: new FieldSet(),
  };
}

/** Lines in any order: upstream walks its maps in none. */
function lines(text: string): string[] {
  return text.split('\n').sort();
}

test('writes own, conflict and fail as they do upstream', () => {
  for (const line of readFileSync(VECTORS, 'utf8').trim().split('\n')) {
    const { apiVersion, kind, steps } = JSON.parse(line) as Story;
    const versions = versionsOf(apiVersion, kind);
    let live: JsonObject = { apiVersion, kind };
    let packed: ReturnType<typeof packManaged> = undefined;
    for (const [at, step] of steps.entries()) {
      const operation = step.op === 'apply' ? 'Apply' : 'Update';
      const manager = { name: step.manager, operation, apiVersion, subresource: '' } as const;
      const scope: FieldScope = {
        versions,
        manager,
        nowSeconds: at + 1,
        empty: live,
        formedSince: -1,
      };
      const object = { apiVersion, kind, ...step.object };
      let managed = unpackManaged(packed);
      let error = '';
      if (step.op === 'apply') {
        const bare = { ...scope, empty: { apiVersion, kind } };
        const result = trackApply(bare, live, object, managed, kind, step.force);
        if (result.ok) {
          managed = result.value.managed;
          live = result.value.object ?? live;
        } else error = result.status.message ?? '';
      } else {
        managed = trackUpdate(scope, null, object, managed);
        live = object;
      }
      packed = packManaged(managed);
      assert.deepEqual(lines(error), lines(step.error), line);
      assert.deepEqual(live, { apiVersion, kind, ...step.live }, line);
      const found = shownManaged(packed).map((entry) => {
        assert(isObject(entry));
        const time = entry['time'] === undefined ? 0 : 1;
        return [entry['manager'], entry['operation'], time, entry['fieldsV1']];
      });
      const byName = (list: readonly unknown[]): string[] =>
        list.map((one) => JSON.stringify(sorted(one))).sort();
      assert.deepEqual(byName(found), byName(step.managed), line);
    }
  }
});

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, inner]) => [name, sorted(inner)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

test('entries are kept by reference and shown as they were', () => {
  const list = [
    {
      manager: 'kubelet "é" <&>',
      operation: 'Update',
      apiVersion: 'v1',
      time: '2026-01-02T03:04:05Z',
      fieldsType: 'FieldsV1',
      fieldsV1: {
        'f:metadata': { 'f:finalizers': { 'v:"a;b,c %é"': {} } },
        'f:status': { 'f:podIPs': { '.': {}, 'k:{"ip":"fd00::1"}': { '.': {}, 'f:ip': {} } } },
      },
      subresource: 'status',
    },
  ];
  const packed = packManaged(unpackManaged(list));
  assert(typeof packed === 'string');
  assert.match(packed, /^[A-Za-z0-9_-]{12};[0-9a-z]{6};a%3Bb%2Cc%20%25%C3%A9;fd00%3A%3A1$/);
  assert.deepEqual(shownManaged(packed), list);
  assert.deepEqual(packManaged(unpackManaged(packed)), packed);
  // nobody's address is in the template
  const other = packManaged(unpackManaged(JSON.parse(JSON.stringify(list).replace('::1', '::2'))));
  assert(typeof other === 'string');
  assert.equal(other.slice(0, 12), packed.slice(0, 12));
});

test('a new object is packed as any other', () => {
  const manager = { name: 'm', operation: 'Update', apiVersion: 'v1', subresource: '' } as const;
  const packed = packNew(manager, { text: '{"f:data":{}}', fills: [] }, 7);
  const owners = new Map([
    [managerId(manager), { apiVersion: 'v1', isApplied: false, fields: FieldSet.of(['f:data']) }],
  ]);
  assert.equal(packed, packManaged({ owners, times: new Map([[managerId(manager), 7]]) }));
});

test('entries that say nothing usable are refused in upstream’s words', () => {
  const entry = { manager: 'm', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1' };
  const words: readonly (readonly [JsonObject, string])[] = [
    [{ ...entry, operation: 'Patch' }, 'operation must be `Apply` or `Update`'],
    [{ ...entry, apiVersion: '' }, 'apiVersion must not be empty'],
    [{ ...entry, fieldsType: '' }, 'missing fieldsType in managed fields entry 0'],
    [{ ...entry, fieldsType: 'V2' }, 'invalid fieldsType "V2" in managed fields entry 0'],
  ];
  for (const [bad, text] of words) assert.equal(decodeManaged([bad]), text);
  assert.equal(unpackManaged([{ ...entry, apiVersion: '' }]).owners.size, 0);
  assert.equal(unpackManaged('no such template;1').owners.size, 0);
});

test('of more than ten updaters the oldest become ancient changes', () => {
  const managed = emptyManaged();
  for (let n = 0; n < 13; n++) {
    const version = n % 2 === 0 ? 'v1' : 'v2';
    const id = managerId({
      name: `m${n}`,
      operation: 'Update',
      apiVersion: version,
      subresource: '',
    });
    managed.owners.set(id, {
      apiVersion: version,
      isApplied: false,
      fields: FieldSet.of([`f:${n}`]),
    });
    managed.times.set(id, n);
  }
  capUpdaters(managed);
  const entries = entriesOf(managed).map(({ manager, seconds, set }) => {
    return `${manager.name} ${manager.apiVersion} ${seconds} ${set.paths().join(' ')}`;
  });
  assert.deepEqual(entries.slice(0, 3), [
    'ancient-changes v2 3 f:1 f:3',
    'ancient-changes v1 4 f:0 f:2 f:4',
    'm5 v2 5 f:5',
  ]);
  assert.equal(entries.length, 10);
});
