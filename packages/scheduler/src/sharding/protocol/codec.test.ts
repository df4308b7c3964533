import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeDown, decodeUp, encodeDown, encodeUp } from './frames.ts';
import { decodeReply, decodeRound, encodeReply, encodeRound } from './round-codec.ts';
import { EMPTY_REPLY, merged, type Reply, type Round } from './rounds.ts';
import { decodeState, encodeState, type StateChange } from './state.ts';
import { OBJECTIONS_MAX, verdictKey, type Summary } from './summary.ts';

/** With the prototype that literals have. */
const record = <Model extends object>(model: {
  [Name in keyof Model]: fc.Arbitrary<Model[Name]>;
}): fc.Arbitrary<Model> => fc.record<Model>(model, { noNullPrototype: true });

const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
const number = fc.maxSafeNat();
const signed = fc.maxSafeInteger();
const real = fc.double({ noNaN: true });
const mapOf = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Map<string, Value>> =>
  fc
    .uniqueArray(fc.tuple(text, value), { maxLength: 4, selector: ([key]) => key })
    .map((entries) => new Map(entries));
const tallies = mapOf(mapOf(signed));
const ranges = mapOf(record({ min: real, max: real }));
const verdict = record({
  plugin: text,
  code: fc.constantFrom('unschedulable' as const, 'unresolvable' as const, 'error' as const),
  reasons: fc.array(text, { maxLength: 3 }),
});

const round: fc.Arbitrary<Round> = fc.oneof(
  record({
    kind: fc.constant('prepare' as const),
    pod: bytes,
    profile: text,
    nowMs: number,
    nominated: fc.array(bytes, { maxLength: 3 }),
  }),
  record({
    kind: fc.constant('filter' as const),
    tallies,
    only: fc.option(text),
  }),
  record({
    kind: fc.constant('prescore' as const),
    among: fc.option(fc.array(text, { maxLength: 3 })),
  }),
  record({ kind: fc.constant('range' as const), tallies }),
  record({ kind: fc.constant('totals' as const), ranges }),
  record({
    kind: fc.constant('dryRun' as const),
    tallies,
    isForAll: fc.boolean(),
    wanted: number,
  }),
  record({
    kind: fc.constant('begin' as const),
    ...{ pod: bytes, profile: text, nowMs: number, nominated: fc.array(bytes, { maxLength: 3 }) },
    ...{ epoch: number, seed: number, nodes: number },
  }),
  record({ kind: fc.constantFrom('survey' as const, 'rank' as const), tallies }),
  record({ kind: fc.constant('best' as const), ranges }),
  record({ kind: fc.constant('sync' as const) }),
);

const summary: fc.Arbitrary<Summary> = record({
  ...{ shards: fc.nat(), stage: fc.nat({ max: 3 }), nodes: fc.nat(), passed: fc.nat({ max: 3 }) },
  first: text,
  objections: fc.array(record({ verdict, nodes: fc.nat() }), { maxLength: 3 }),
  isAgreed: fc.boolean(),
  best: fc.option(
    record({ total: fc.integer(), nodes: fc.nat(), name: text, mark: fc.nat({ max: 9 }) }),
  ),
});

const reply: fc.Arbitrary<Reply> = record({
  trouble: text,
  tallies,
  verdicts: fc.array(
    record({
      member: text,
      table: fc.array(verdict, { maxLength: 3 }),
      codes: fc.array(fc.nat({ max: 70_000 }), { maxLength: 10 }),
      findings: fc.array(record({ plugin: text, node: text, text }), { maxLength: 3 }),
    }),
    { maxLength: 3 },
  ),
  ranges,
  fault: fc.option(verdict),
  totals: fc.array(record({ node: text, total: real, plugins: mapOf(real) }), { maxLength: 3 }),
  dryRuns: fc.array(
    record({
      node: text,
      victims: fc.option(fc.array(text, { maxLength: 3 })),
      violations: number,
      refusal: fc.option(verdict),
    }),
    { maxLength: 3 },
  ),
  summary: fc.option(summary),
  scoreTallies: tallies,
});

const state: fc.Arbitrary<StateChange> = fc.oneof(
  record({ kind: fc.constant('apply' as const), object: bytes }),
  record({ kind: fc.constant('delete' as const), objectKind: text, key: text }),
  record({
    kind: fc.constant('images' as const),
    node: text,
    images: mapOf(record({ sizeBytes: number, nodes: number })),
  }),
  record({ kind: fc.constant('order' as const), nodes: fc.array(text, { maxLength: 5 }) }),
  record({
    kind: fc.constant('node' as const),
    ...{ id: number, object: bytes, imageNames: fc.array(text, { maxLength: 3 }) },
  }),
  record({ kind: fc.constant('nodeGone' as const), id: number }),
  record({
    kind: fc.constant('pod' as const),
    ...{ row: number, node: number, object: bytes, spec: bytes, sums: bytes },
  }),
  record({ kind: fc.constant('podGone' as const), row: number }),
  record({ kind: fc.constant('image' as const), name: text, sizeBytes: number, nodes: number }),
  record({
    kind: fc.constant('object' as const),
    ...{ objectKind: text, key: text, object: bytes },
  }),
  record({ kind: fc.constant('epoch' as const), number }),
);

test('rounds, replies and changes come out as they went in', () => {
  fc.assert(fc.property(round, (one) => assert.deepEqual(decodeRound(encodeRound(one)), one)));
  fc.assert(fc.property(reply, (one) => assert.deepEqual(decodeReply(encodeReply(one)), one)));
  fc.assert(fc.property(state, (one) => assert.deepEqual(decodeState(encodeState(one)), one)));
});

test('frames come out as they went in', () => {
  const down = record({
    to: text,
    state: fc.option(bytes),
    round: fc.option(bytes),
    number: fc.constant(7),
  });
  fc.assert(
    fc.property(down, (frame) => {
      const number = frame.round === null ? 0 : frame.number;
      assert.deepEqual(decodeDown(encodeDown(frame)), { ...frame, number });
    }),
  );
  const hello = { version: '1', configHash: 'h', members: ['a', 'b'] };
  const up = { hello, number: 0, reply: null };
  assert.deepEqual(decodeUp(encodeUp(up)), up);
  const answer = { hello: null, number: 9, reply: Buffer.from('x') };
  assert.deepEqual(decodeUp(encodeUp(answer)), answer);
});

test('bytes that are no message are refused with an error, or read as something', () => {
  for (const decode of [decodeRound, decodeReply, decodeState, decodeDown, decodeUp]) {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (garbage) => {
        try {
          decode(garbage);
        } catch (error) {
          assert.match((error as Error).message, /^malformed message|members$/);
        }
      }),
    );
  }
});

/** What a verdict says of so many nodes is said once. */
function plainSummary(one: Summary | null): object | null {
  if (one === null || one.objections.length > OBJECTIONS_MAX) return null;
  const sums = new Map<string, number>();
  for (const { verdict: said, nodes } of one.objections) {
    sums.set(verdictKey(said), (sums.get(verdictKey(said)) ?? 0) + nodes);
  }
  return { ...one, objections: sums };
}

test('answers are the same in whatever order relays add them up', () => {
  // shards have ranges of the nodes that passed
  const plain = reply.map((one) => {
    const rest = { ...one, trouble: '', fault: null };
    return (one.summary?.passed ?? 0) > 0 ? rest : { ...rest, ranges: new Map() };
  });
  // maps are equal whatever the order of their entries
  const sums = ({ tallies: all }: Reply): object => all;
  fc.assert(
    fc.property(plain, plain, plain, (one, two, three) => {
      const left = merged(merged(one, two), three);
      const right = merged(one, merged(two, three));
      assert.deepEqual(sums(left), sums(right));
      assert.deepEqual(left.verdicts, right.verdicts);
      assert.deepEqual(left.ranges, right.ranges);
      assert.deepEqual(plainSummary(left.summary), plainSummary(right.summary));
      assert.deepEqual(merged(EMPTY_REPLY, one).totals, one.totals);
    }),
  );
});
