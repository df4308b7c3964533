import { test } from 'node:test';
import assert from 'node:assert/strict';
import { declaredType } from '../cel/declarations.ts';
import { compileRules } from '../cel/validation-rules.ts';
import { SchemaGraph } from '../structural/schema/schema-graph.ts';

const text = { type: 'string', maxLength: 20 };
const pairs = {
  type: 'object',
  required: ['k'],
  properties: {
    k: text,
    v: { type: 'integer' },
    w: { type: 'array', maxItems: 3, items: text },
  },
};
const SCHEMA = {
  type: 'object',
  properties: {
    s: text,
    t: { type: 'string' },
    l: { type: 'array', maxItems: 10, items: text },
    o: { type: 'array', maxItems: 6, items: pairs },
  },
};

/** Rules, and what cel-go with the libraries of Kubernetes v1.36 estimates for them at most. */
const ESTIMATES: readonly (readonly [rule: string, cost: number])[] = [
  ['self.l.all(y, y != self.s)', 143],
  ["self.o.all(x, x.w.all(y, y != 'a'))", 129],
  ['self.o.all(x, x.w.all(y, y != x.k))', 6759],
  ['self.o.all(x, x.w.all(y, x.v > 1))', 39],
  ['self.o.map(x, x.k).exists(z, true)', 122],
  ['self.l.sort().size() > 1', 225],
  ['self.l.distinct().size() > 1', 215],
  ['self.l.slice(0, 1).size() > 1', 16],
  ['self.l.reverse().size() > 1', 25],
  ["quantity(self.s).isGreaterThan(quantity('1Gi'))", 12],
  ['quantity(self.t).isInteger()', 314_576],
  ['isIP(self.t)', 314_575],
  ['cidr(self.s).masked() == cidr(self.t)', 314_587],
  ["cidr(self.s).ip() == ip('1.2.3.4')", 13],
  ["self.s.split(',', 2).sort().size() > 1", 40],
  ["semver(self.t).isLessThan(semver('1.2.3'))", 314_577],
];

test('rules are estimated at what upstream estimates them at', () => {
  const type = declaredType(new SchemaGraph().add(SCHEMA), 'selfType');
  assert.ok(type !== null);
  const { rules, faults } = compileRules(
    type,
    ESTIMATES.map(([rule]) => ({ rule })),
  );
  assert.deepEqual(faults, []);
  assert.deepEqual(
    rules.map(({ program }) => [program.source, program.estimate().max]),
    ESTIMATES,
  );
});
