import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { corpus } from '@megaplane/base/corpus.sim';
import { brotliDecompressSync } from 'node:zlib';
import { explainLine } from '@megaplane/fleet/explain';
import { normalCycle } from './decide-results.ts';

const SHARED = corpus('fleet-vectors');
const RECORDED = join(import.meta.dirname, 'decide.jsonl.br');

interface Scenario {
  readonly kind: string;
  readonly name: string;
  readonly about: string;
  readonly profiles: Readonly<Record<string, unknown>>;
  readonly cycles: readonly (Readonly<Record<string, unknown>> & {
    readonly result: Readonly<Record<string, unknown>>;
  })[];
}

/** Asks what was asked of the reference, and compares with what it answered. */
function play(scenario: Scenario): void {
  const cycles = scenario.cycles.map((cycle) => ({ ...cycle, result: undefined }));
  const answer = JSON.parse(explainLine(JSON.stringify({ ...scenario, cycles }))) as {
    readonly error?: string;
    readonly cycles?: readonly Readonly<Record<string, unknown>>[];
  };
  assert.equal(answer.error, undefined, scenario.name);
  assert.equal(answer.cycles?.length, cycles.length, scenario.name);
  for (const [index, { result }] of scenario.cycles.entries()) {
    const withInventory = result['inventory'] !== undefined;
    const found = normalCycle(answer.cycles?.[index] ?? {}, scenario.profiles, withInventory);
    const wanted = normalCycle(result, scenario.profiles, withInventory);
    assert.deepEqual(found, wanted, `${scenario.name}, cycle ${index}: ${scenario.about}`);
  }
}

test('recorded decisions are the ones that strict mode makes', () => {
  const text = brotliDecompressSync(readFileSync(RECORDED)).toString();
  const scenarios = text.trimEnd().split('\n');
  assert(scenarios.length > 500);
  for (const scenario of scenarios) play(JSON.parse(scenario) as Scenario);
});

test('the same with all recordings', () => {
  const paths = globSync('*/*.json', { cwd: SHARED });
  const scenarios = paths.map((path) => {
    return JSON.parse(readFileSync(join(SHARED, path), 'utf8')) as Scenario;
  });
  for (const scenario of scenarios) if (scenario.kind === 'decide') play(scenario);
});
