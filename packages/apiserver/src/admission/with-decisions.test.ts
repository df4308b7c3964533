import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forbidden, type Status } from '@megaplane/machinery/status';
import type { Attributes, Decision } from '../authorization/authorization.ts';
import type { Admitted } from '../registry/rest/admitted.ts';
import { withDecisions } from './with-decisions.ts';

const DENIAL = forbidden({ group: '', name: 'pods' }, 'p', 'no');

/** An authorizer that asks a webhook about each name, and what it was asked. */
function asked(allowed: ReadonlySet<string>) {
  const known = new Set<string>();
  const waiting: (() => void)[] = [];
  const decide = (_: unknown, { name }: Attributes): Decision => {
    if (known.has(name)) return { allowed: allowed.has(name), reason: '' };
    return {
      allowed: false,
      reason: '',
      pending: (then) =>
        waiting.push(() => {
          known.add(name);
          then();
        }),
    };
  };
  const write = { services: { decide }, call: { identity: null } } as unknown as Admitted;
  const answer = (): void => waiting.shift()?.();
  return { write, waiting, answer };
}

function question(name: string): Attributes {
  const what = { group: '', version: 'v1', resource: 'pods', subresource: '' };
  return { verb: 'update', isResource: true, path: '', namespace: '', name, ...what };
}

function judged(names: readonly string[], allowed: readonly string[]) {
  const model = asked(new Set(allowed));
  const verdict = withDecisions(model.write, (decide) =>
    names.every((name) => decide(question(name)).allowed) ? null : DENIAL,
  );
  const told: (Status | null)[] = [];
  assert.equal(typeof verdict, 'function', 'nothing is decided before the webhook was asked');
  if (typeof verdict === 'function') verdict((status) => told.push(status));
  return { ...model, told };
}

test('a write waits for each answer that it needs, and is then allowed', () => {
  const { answer, told } = judged(['a', 'b'], ['a', 'b']);
  answer();
  assert.deepEqual(told, [], 'the second question is still open');
  answer();
  assert.deepEqual(told, [null]);
});

test('what the webhook denies is denied, without further questions', () => {
  const { answer, told, waiting } = judged(['a', 'b'], ['b']);
  answer();
  assert.deepEqual(told, [DENIAL]);
  assert.equal(waiting.length, 0);
});

test('an authorizer that never settles is denied after some attempts', () => {
  const names = Array.from({ length: 20 }, (_, i) => `n${i}`);
  const { answer, told } = judged(names, names);
  for (let i = 0; i < 20 && told.length === 0; i++) answer();
  assert.deepEqual(told, [DENIAL]);
});
