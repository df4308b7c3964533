import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { AUTOSCALER_RULES } from '../framework/autoscaler-rules.ts';
import { countReplicas, type PodUse, type Question } from './replica-count.ts';
import { scaleSelectorOf } from './scale-selector.ts';
import { toleranceOf } from './scaling-rules.ts';

const QUESTION: Question = {
  resource: 'memory',
  container: '',
  current: 2,
  tolerance: { up: 0.1, down: 0.1 },
  rules: AUTOSCALER_RULES,
  target: { utilization: 50 },
  nowMs: 0,
};

const asks = (requests: JsonObject): JsonObject => ({ resources: { requests } });

function podOf(name: string, spec: JsonObject): JsonObject {
  return { metadata: { name }, spec, status: { phase: 'Running' } };
}

/** Each pod uses 100 Mi. */
function count(question: Partial<Question>, ...pods: JsonObject[]): number | string {
  const use: PodUse = { value: 100 * 2 ** 20 * 1000, atMs: 0, windowMs: 0 };
  const uses = new Map(pods.map((_, i) => [`p${i}`, use]));
  const counted = countReplicas({ ...QUESTION, ...question }, pods, uses);
  return counted.ok ? counted.replicas : counted.text;
}

test('what a pod asks for as a whole counts, and its containers where it says nothing', () => {
  const whole = { containers: [{ name: 'c' }], ...asks({ memory: '100Mi' }) };
  assert.equal(count({}, podOf('p0', whole), podOf('p1', whole)), 4);
  const mixed = { containers: [{ name: 'c', ...asks({ memory: '50Mi' }) }], ...asks({ cpu: '1' }) };
  assert.equal(count({}, podOf('p0', mixed), podOf('p1', mixed)), 8);
  const none = { containers: [{ name: 'c' }], ...asks({ cpu: '1' }) };
  assert.equal(count({}, podOf('p0', none)), 'missing pod-level request for memory in Pod p0');
});

test('a container that is named must be in every pod, whatever the pod asks for', () => {
  const own = { containers: [{ name: 'c', ...asks({ memory: '100Mi' }) }], ...asks({ cpu: '1' }) };
  const other = { containers: [{ name: 'd' }] };
  assert.equal(count({ container: 'c' }, podOf('p0', own), podOf('p1', own)), 4);
  const said = 'container c not found in Pod p1';
  assert.equal(count({ container: 'c' }, podOf('p0', own), podOf('p1', other)), said);
});

test('a tolerance is any quantity', () => {
  const of = (tolerance: string): number =>
    toleranceOf({ spec: { behavior: { scaleUp: { tolerance } } } }, 0.1).up;
  assert.deepEqual(['100u', '50m', '0', '2', '1k'].map(of), [100 * 1e-6, 0.05, 0, 2, 1000]);
});

test('the selector of a scale is what a LabelSelector can say', () => {
  const said = (text: string): string => {
    const found = scaleSelectorOf(text);
    return 'error' in found ? found.error.replace(/^.* selector: /, '') : found.value;
  };
  assert.equal(said('b==1,a in (y,x),!c'), 'a in (x,y),b=1,!c');
  assert.equal(said('a=1,x!=y'), '"!=" is not a valid label selector operator');
  assert.equal(said('a>1'), '"gt" isn\'t supported in label selectors');
  assert.match(said('a=('), /^couldn't parse the selector string "a=\("/);
});
