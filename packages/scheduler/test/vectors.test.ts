// Decisions recorded from real kube-schedulers: `testdata/scheduler-vectors`, and beside this
// file those about generated clusters that had come out otherwise here once, or are rare.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { corpus } from '@megaplane/base/corpus.sim';
import { explainScenario, explainSharded } from '../src/explain/explain.ts';
import type { Scenario, StepAnswer } from '../src/explain/explain.ts';
import { COMPATIBILITY, EXACT, type Compatibility } from '../src/framework/compatibility.ts';

const VECTORS = corpus('scheduler-vectors');
const IS_LONG = process.env['MEGAPLANE_LONG'] !== undefined;

type Recorded = {
  readonly feasible?: readonly string[];
  readonly scores?: StepAnswer['scores'];
  readonly bestNodes?: readonly string[];
  readonly chosen?: string;
  readonly gated?: true;
  readonly failed?: {
    readonly message: string;
    readonly nominated: string | null;
    readonly victims: readonly string[];
  };
};

const sorted = (list: readonly string[] | undefined): string[] => [...(list ?? [])].toSorted();

/** Both in the same words, so that a difference reads as one. */
function shape(answer: Recorded | StepAnswer): object {
  if (answer.gated === true) return { gated: true };
  const { failed } = answer;
  if (failed !== undefined && failed !== null) {
    const { message, nominated, victims } = failed;
    return { message, nominated, victims: sorted(victims) };
  }
  const scores = Object.entries(answer.scores ?? {}).map(([node, byPlugin]) => [node, byPlugin]);
  return {
    feasible: sorted(answer.feasible),
    scores: Object.fromEntries(scores),
    bestNodes: sorted(answer.bestNodes),
  };
}

function check(file: string, compatibility: Compatibility): void {
  const { scenarios } = JSON.parse(readFileSync(file, 'utf8')) as { scenarios: Scenario[] };
  const wrong: string[] = [];
  for (const scenario of scenarios) {
    const { steps } = explainScenario(scenario, compatibility);
    for (const [index, step] of scenario.steps.entries()) {
      const want = shape(step.result as Recorded);
      const got = shape(steps[index] ?? { failed: null });
      try {
        assert.deepEqual(got, want);
      } catch (error) {
        wrong.push(`${scenario.name} step ${index}: ${String(error)}`);
        break;
      }
    }
  }
  assert.equal(wrong.length, 0, `${wrong.length} of ${scenarios.length}:\n${wrong.join('\n')}`);
}

/** Shards and levels of relays, in turn: each scenario is tried with one of them. */
const TREES = [1, 2, 3, 5, 17].flatMap((shards) =>
  [0, 1, 2].map((relayLevels) => ({ shards, relayLevels, fanOut: 2 })),
);

async function checkSharded(file: string, isSelected: (place: number) => boolean): Promise<void> {
  const { scenarios } = JSON.parse(readFileSync(file, 'utf8')) as { scenarios: Scenario[] };
  for (const [place, scenario] of scenarios.entries()) {
    if (!isSelected(place)) continue;
    const tree = TREES[place % TREES.length] ?? { shards: 3, relayLevels: 0, fanOut: 2 };
    const alone = explainScenario(scenario, NEWER);
    const sharded = await explainSharded(scenario, NEWER, tree);
    assert.deepEqual(sharded, alone, `${scenario.name} with ${JSON.stringify(tree)}`);
  }
}

const RECORDED: Compatibility = { ...EXACT, keepsNamespaceSelector: true };

for (const name of readdirSync(VECTORS)) {
  if (!name.endsWith('.json')) continue;
  const area = name.slice(0, -'.json'.length);
  test(`recorded decisions of ${area} are reproduced`, () => {
    check(join(VECTORS, name), RECORDED);
  });
}

/** As 1.36 decides. */
const NEWER: Compatibility = { ...COMPATIBILITY['1.36'], keepsNamespaceSelector: true };

for (const name of readdirSync(VECTORS)) {
  if (!name.endsWith('.json')) continue;
  const area = name.slice(0, -'.json'.length);
  test(`shards and relays decide about ${area} as one process does`, async () => {
    await checkSharded(join(VECTORS, name), (place) => IS_LONG || place % 3 === 0);
  });
}

test('shards and relays decide about generated clusters as one process does', async () => {
  await checkSharded(join(import.meta.dirname, 'recorded-decisions.json'), () => true);
});

test('decisions of kube-scheduler 1.36 about generated clusters are reproduced', () => {
  check(join(import.meta.dirname, 'recorded-decisions.json'), NEWER);
});

for (const name of ['fit-score.json', 'mixed.json']) {
  test(`decisions of 1.36 in ${name} are reproduced`, () => {
    check(join(VECTORS, 'v1.36', name), NEWER);
  });
}
