// Decisions recorded from real kube-schedulers: `../shared/data/scheduler-vectors`, and beside this
// file those about generated clusters that had come out otherwise here once, or are rare.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { explainScenario, type Scenario, type StepAnswer } from '../src/explain/explain.ts';
import { COMPATIBILITY, EXACT, type Compatibility } from '../src/framework/compatibility.ts';

const VECTORS = join(import.meta.dirname, '../../../../shared/data/scheduler-vectors');
const isPresent = existsSync(VECTORS);
const skip = isPresent ? false : 'recorded decisions are not beside this repository';

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

const RECORDED: Compatibility = { ...EXACT, keepsNamespaceSelector: true };

for (const name of isPresent ? readdirSync(VECTORS) : []) {
  if (!name.endsWith('.json')) continue;
  const area = name.slice(0, -'.json'.length);
  test(`recorded decisions of ${area} are reproduced`, { skip }, () => {
    check(join(VECTORS, name), RECORDED);
  });
}

/** As 1.36 decides. */
const NEWER: Compatibility = { ...COMPATIBILITY['1.36'], keepsNamespaceSelector: true };

test('decisions of kube-scheduler 1.36 about generated clusters are reproduced', () => {
  check(join(import.meta.dirname, 'recorded-decisions.json'), NEWER);
});

for (const name of ['fit-score.json', 'mixed.json']) {
  test(`decisions of 1.36 in ${name} are reproduced`, { skip }, () => {
    check(join(VECTORS, 'v1.36', name), NEWER);
  });
}
