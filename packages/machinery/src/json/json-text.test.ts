import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { infiniteNumber } from './json-reader.ts';
import { decodedText, parseJson, wholeNumber } from './json-text.ts';
import type { JsonObject, JsonValue } from './json-value.ts';
import { decodeJsonBody, refit } from '../codec/request-body.ts';
import { decodeProtobuf, encodeProtobuf } from '../serializer/protobuf.ts';
import { findType } from '../scheme/schema.ts';
import { unstructuredFault, withFittedIntegers } from '../patch/unstructured.ts';
import { parseWithLiterals } from './number-literals.ts';

/** What Go's decoders and encoders made of such texts; null where they refused. */
interface NumberVector {
  readonly text: string;
  readonly json: string | null;
  readonly int64: string | null;
  readonly int32: string | null;
  readonly quantity: string;
  readonly fitted64: string | null;
  readonly fitted32: string | null;
}

function vectors(name: string): unknown {
  return JSON.parse(readFileSync(join(import.meta.dirname, name), 'utf8'));
}

const NUMBERS = vectors('go-numbers.vectors') as readonly NumberVector[];
const STRINGS = vectors('go-strings.vectors') as readonly { hex: string; text: string }[];

test('a number of unknown type is written again as Go writes it', () => {
  for (const { text, json } of NUMBERS) {
    if (json === null) assert.equal(infiniteNumber(`{"a":${text}}`), text);
    // what Go keeps as -0 is 0 as soon as it has been stored
    else assert.equal(JSON.stringify(parseJson(text)), json === '-0' ? '0' : json, text);
  }
});

const POD = { apiVersion: 'v1', kind: 'Pod' };

/** A member of a decoded pod's spec as text; null where decoding was refused for the number. */
function decoded(name: string, text: string, shown: string): string | null {
  const bytes = Buffer.from(`{"spec":{"${name}":${text}}}`);
  const body = decodeJsonBody(bytes, 0, bytes.length, POD, true);
  if (body.ok) return JSON.stringify((body.object['spec'] as JsonObject)[name]);
  const where = `Go struct field PodSpec.spec.${name} of type ${shown}`;
  assert.equal(body.message.split('json: ')[1], `cannot unmarshal number ${text} into ${where}`);
  return null;
}

test('integer fields take the digits that fit, and name the others as they were sent', () => {
  for (const { text, int64, int32, quantity } of NUMBERS) {
    assert.equal(decoded('terminationGracePeriodSeconds', text, 'int64'), int64, text);
    assert.equal(decoded('priority', text, 'int32'), int32, text);
    const bytes = Buffer.from(`{"spec":{"overhead":{"cpu":${text}}}}`);
    const body = decodeJsonBody(bytes, 0, bytes.length, POD, true);
    assert.ok(body.ok, text);
    assert.equal(JSON.stringify(body.object['spec']).includes(`"cpu":"${quantity}"`), true, text);
  }
});

test('what was untyped before is fitted into integers as Go converts it', () => {
  const type = findType('core.v1.Pod');
  assert.ok(type !== undefined);
  for (const { text, json, fitted64, fitted32 } of NUMBERS) {
    if (json === null) continue;
    for (const [name, wanted] of [
      ['terminationGracePeriodSeconds', fitted64],
      ['priority', fitted32],
    ] as const) {
      const object = { ...POD, spec: { [name]: parseJson(text) } };
      assert.equal(unstructuredFault(type, object) === undefined, wanted !== null, text);
      if (wanted === null) continue;
      const form = refit(type, withFittedIntegers(type, object), false);
      assert.ok(form.ok, text);
      assert.equal(JSON.stringify((form.object['spec'] as JsonObject)[name]), wanted, text);
    }
  }
});

test('halves of characters and bytes that are no UTF-8 stand for U+FFFD, one for each byte', () => {
  for (const { hex, text } of STRINGS) {
    assert.equal(parseJson(decodedText(Buffer.from(hex, 'hex'))), text, hex);
    const sent = Buffer.concat([Buffer.from('{"metadata":{"name":'), Buffer.from(hex, 'hex')]);
    const body = decodeJsonBody(
      Buffer.concat([sent, Buffer.from('}}')]),
      0,
      sent.length + 2,
      POD,
      true,
    );
    assert.ok(body.ok);
    assert.equal((body.object['metadata'] as JsonObject)['name'], text, hex);
  }
});

/** Integers around the ends of what doubles, 53 and 64 bits hold, and doubles of all sizes. */
const integer = fc
  .tuple(
    fc.constantFrom(0n, 2n ** 53n, -(2n ** 53n), 2n ** 62n, 2n ** 63n - 9n, -(2n ** 63n) + 9n),
    fc.integer({ min: -9, max: 8 }),
  )
  .map(([near, by]) => wholeNumber(near + BigInt(by)));
const double = fc
  .double({ noNaN: true, noDefaultInfinity: true })
  .map((value) => (Object.is(value, -0) ? 0 : value));
const tree = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    integer,
    double.filter(
      (one) => !Number.isInteger(one) || Number.isSafeInteger(one) || Math.abs(one) >= 2 ** 63,
    ),
    fc.string({ unit: 'grapheme' }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(fc.string(), fc.constant('__proto__')), tie('value'), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  ),
})).value;

test('any value comes back from its text, by each way of reading it', () => {
  fc.assert(
    fc.property(tree, fc.constantFrom(0, 1), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      assert.deepEqual(parseJson(text), value);
      assert.deepEqual(parseWithLiterals(text).value, value);
      assert.equal(JSON.stringify(parseJson(text)), JSON.stringify(value));
    }),
    { seed: 25, numRuns: 500 },
  );
});

test('an integer of 64 bits comes back from protobuf', () => {
  fc.assert(
    fc.property(integer, (seconds) => {
      const object = { ...POD, spec: { containers: [], terminationGracePeriodSeconds: seconds } };
      const bytes = encodeProtobuf(object);
      assert.ok(bytes !== undefined);
      const read = decodeProtobuf(bytes, 0, bytes.length);
      assert.ok(read.ok);
      assert.equal((read.object['spec'] as JsonObject)['terminationGracePeriodSeconds'], seconds);
    }),
    { seed: 25 },
  );
});
