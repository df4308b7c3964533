import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { isObject, type JsonObject } from './json-value.ts';
import { parseJson } from './json-text.ts';
import { escapedJson } from './quoting.ts';
import { keepRawText, keepRawTexts, rawJson } from './raw-text.ts';

interface Vector {
  readonly sent: string;
  /** As `data` of a ControllerRevision, written as JSON by apimachinery's serializer. */
  readonly raw: string;
  /** As `data` of an `unstructured.Unstructured`; null where its decoder refuses it. */
  readonly free: string | null;
}

/*
 * Made by k8s.io/apimachinery v0.36.1 with Go 1.26: each `sent` is put into
 * `{"kind":K,"apiVersion":V,"metadata":{"name":"a"},"data":SENT}`, decoded and encoded again, once
 * by the strict JSON serializer of a scheme with apps/v1 (which finds no fault in any of them), and
 * once by `unstructured.UnstructuredJSONScheme`.
 */
const VECTORS = JSON.parse(
  readFileSync(new URL('raw-text.vectors', import.meta.url), 'utf8'),
) as readonly Vector[];

const KIND = 'ControllerRevision';

function sorted(text: string): string {
  return escapedJson(parseJson(text), 0).split('').toSorted().join('');
}

test('raw parts are written as they were sent, free ones as Go reads their values', () => {
  assert(VECTORS.length > 15);
  for (const { sent, raw, free } of VECTORS) {
    const text = `{"metadata":{"name":"a"},"spec":[{"x":" \\" "},{"data" : ${sent}}], "z":1.0}`;
    const object = parseJson(text) as JsonObject;
    keepRawTexts(text, object, KIND);
    const whole = `{"metadata":{"name":"a"},"spec":[{"x":" \\" "},{"data":${raw}}],"z":1}`;
    assert.equal(rawJson(object), whole);
    // names in Go's order and -0.0, which is 0 once it is read from the store, are not told apart
    if (free !== null) assert.equal(sorted(sent), sorted(free.replaceAll('-0', '0')), sent);
  }
});

test('a part that was changed or copied is written by its value', () => {
  const text = '{"data":{"a":1.0,"a":2.0}}';
  const object = parseJson(text) as JsonObject;
  keepRawTexts(text, object, KIND);
  assert.equal(rawJson(object), text);
  const { data } = object;
  assert(isObject(data));
  assert.equal(rawJson({ data: { ...data } }), '{"data":{"a":2}}');
  data['b'] = 1;
  assert.equal(rawJson(object), '{"data":{"a":2,"b":1}}');
});

test('any JSON with any spaces comes back compact, and equal', () => {
  fc.assert(
    fc.property(fc.json(), fc.constantFrom('', ' ', '\n\t'), (json, space) => {
      const value = { a: parseJson(json) };
      const spaced = JSON.stringify(value, null, space);
      keepRawText(spaced, value);
      assert.equal(rawJson(value), escapedJson(parseJson(spaced)));
      const whole = `{"parameters":${spaced},"b":[${spaced},{"data":${spaced}}]}`;
      const object = parseJson(whole);
      keepRawTexts(whole, object, KIND);
      assert.equal(rawJson(object), escapedJson(object));
    }),
  );
});
