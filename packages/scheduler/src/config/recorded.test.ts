// Configurations given to the real kube-scheduler v1.36.1, and what it said or made of them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import {
  pointsOfPlugins,
  pointsOfProfile,
  type PluginEntry,
} from '../framework/runtime/profile.ts';
import { textAt } from './schema/members.ts';
import { errorText, parseConfiguration } from './configuration.ts';

interface Recorded {
  readonly name: string;
  readonly given: JsonValue;
  readonly error?: string;
  /** Where not as by default. */
  readonly points?: Readonly<Record<string, Readonly<Record<string, JsonValue>>>>;
  readonly complete?: JsonObject;
}

const FILE = join(import.meta.dirname, 'recorded-configurations.json');
const RECORDED = JSON.parse(readFileSync(FILE, 'utf8')) as Recorded[];
const DEFAULTS = RECORDED.find(({ name }) => name === 'empty')?.points?.['default-scheduler'] ?? {};

/** Members in order, absent where they are as good as absent. */
function canonical(value: JsonValue | undefined): JsonValue {
  if (Array.isArray(value)) return value.map(canonical);
  if (!isObject(value)) return value ?? null;
  const members = Object.entries(value)
    .map(([name, inner]): [string, JsonValue] => [name, canonical(inner)])
    .filter(
      ([, inner]) => !(inner === null || (isObject(inner) && Object.keys(inner).length === 0)),
    )
    .toSorted(([left], [right]) => (left < right ? -1 : 1));
  const object: JsonObject = Object.fromEntries(members);
  const configs = object['pluginConfig'];
  if (Array.isArray(configs)) {
    const nameOf = (one: JsonValue): string => textAt(one, 'name');
    object['pluginConfig'] = configs.toSorted((left, right) =>
      nameOf(left) < nameOf(right) ? -1 : 1,
    );
  }
  return object;
}

/** Upstream shows weights where there are scores only. */
const shown = (point: string, entries: readonly PluginEntry[]): JsonValue =>
  entries.map(({ name, weight = 1 }) => (point === 'score' ? [name, weight] : [name]));

for (const { name, given, error, points, complete } of RECORDED) {
  test(`the configuration "${name}" is taken or refused as by kube-scheduler`, () => {
    const parsed = parseConfiguration(given);
    if (!parsed.ok || error !== undefined) {
      assert.equal(parsed.ok ? 'it was taken' : errorText(parsed.errors), error);
      return;
    }
    const { configuration } = parsed;
    for (const profile of configuration.profiles) {
      const wanted = { ...DEFAULTS, ...points?.[profile.schedulerName ?? ''] };
      const found = pointsOfProfile(profile, pointsOfPlugins([]));
      const named = Object.entries(found).map(([point, entries]) => [point, shown(point, entries)]);
      assert.deepEqual(Object.fromEntries(named), wanted);
    }
    if (complete !== undefined) {
      assert.deepEqual(canonical(configuration.complete), canonical(complete));
    }
  });
}
