import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { encodeOpenApiV3 } from './openapi-protobuf-3.ts';
import { encodeOpenApiV2 } from './openapi-protobuf.ts';

/** Reads any message as a list of [field, value]; nested messages stay bytes. */
function fields(bytes: Buffer): [number, number | Buffer][] {
  const found: [number, number | Buffer][] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    if ((tag & 7) === 0) {
      found.push([tag >>> 3, varint()]);
    } else {
      const length = varint();
      found.push([tag >>> 3, bytes.subarray(at, (at += length))]);
    }
  }
  return found;
}

function child(bytes: Buffer, ...path: readonly number[]): Buffer {
  let here = bytes;
  for (const field of path) {
    const found = fields(here).find(([number]) => number === field)?.[1];
    assert(Buffer.isBuffer(found), `field ${field}`);
    here = found;
  }
  return here;
}

test('definitions, merge keys and dryRun parameters stand where kubectl looks for them', () => {
  const document = encodeOpenApiV2({
    swagger: '2.0',
    info: { title: 'T', version: 'v1' },
    paths: {
      '/api/v1/pods/{name}': {
        patch: {
          parameters: [
            { name: 'body', in: 'body', required: true },
            { name: 'dryRun', in: 'query', type: 'string' },
            { $ref: '#/parameters/pretty' },
          ],
          'x-kubernetes-group-version-kind': { group: '', kind: 'Pod', version: 'v1' },
        },
      },
    },
    definitions: {
      Pod: {
        type: 'object',
        required: ['spec'],
        properties: {
          list: {
            type: 'array',
            items: { $ref: '#/definitions/Item' },
            'x-kubernetes-patch-merge-key': 'name',
          },
          labels: { type: 'object', additionalProperties: { type: 'string' } },
        },
      },
    },
  });
  assert.equal(child(document, 1).toString(), '2.0');
  const path = child(document, 8, 2);
  assert.equal(child(path, 1).toString(), '/api/v1/pods/{name}');
  const patch = child(path, 2, 8);
  const [body, dryRun, pretty] = fields(patch).filter(([field]) => field === 8);
  assert(
    Buffer.isBuffer(body?.[1]) && Buffer.isBuffer(dryRun?.[1]) && Buffer.isBuffer(pretty?.[1]),
  );
  assert.equal(child(body[1], 1, 1, 2).toString(), 'body');
  assert.equal(child(dryRun[1], 1, 2, 3, 4).toString(), 'dryRun');
  assert.equal(child(pretty[1], 2, 1).toString(), '#/parameters/pretty');
  assert.equal(child(patch, 13, 1).toString(), 'x-kubernetes-group-version-kind');
  assert.deepEqual(JSON.parse(child(patch, 13, 2, 2).toString()).kind, 'Pod');
  const pod = child(document, 9, 1);
  assert.equal(child(pod, 1).toString(), 'Pod');
  assert.equal(child(pod, 2, 22, 1).toString(), 'object');
  assert.equal(child(pod, 2, 19).toString(), 'spec');
  const list = child(pod, 2, 25, 1, 2);
  assert.equal(child(list, 23, 1, 1).toString(), '#/definitions/Item');
  assert.equal(child(list, 31, 2, 2).toString(), '"name"');
  const [, labels] = fields(child(pod, 2, 25)).filter(([field]) => field === 1);
  assert(Buffer.isBuffer(labels?.[1]));
  assert.equal(child(labels[1], 2, 21, 1, 22, 1).toString(), 'string');
});

test('a document whose extensions swell as text within text still fits', () => {
  const quotes = '"'.repeat(10_000);
  const document = encodeOpenApiV2({ definitions: { A: { 'x-note': [quotes] } } });
  const text = child(document, 9, 1, 2, 31, 2, 2).toString();
  assert.deepEqual(JSON.parse(text), [quotes]);
});

test('version 3 tells schemas from references, and keeps defaults that are zero', () => {
  const document = encodeOpenApiV3({
    openapi: '3.0.0',
    paths: {
      '/a': { get: { responses: { '200': { description: 'OK' } } } },
    },
    components: {
      schemas: {
        A: {
          type: 'object',
          properties: {
            no: { type: 'boolean', default: false },
            none: { type: 'object', default: {} },
            other: { allOf: [{ $ref: '#/components/schemas/B' }] },
          },
          additionalProperties: { $ref: '#/components/schemas/B' },
        },
      },
    },
  });
  assert.equal(child(document, 1).toString(), '3.0.0');
  const answer = child(document, 4, 1, 2, 4, 8, 2);
  assert.equal(child(answer, 1).toString(), '200');
  assert.equal(child(answer, 2, 1, 1).toString(), 'OK');
  const schema = child(document, 5, 1, 1, 2, 1);
  const [no, none, other] = fields(child(schema, 31)).map(([, value]) => value);
  assert(Buffer.isBuffer(no) && Buffer.isBuffer(none) && Buffer.isBuffer(other));
  assert.deepEqual(fields(child(no, 2, 1, 33)), [[2, 0]]);
  assert.deepEqual(fields(child(none, 2, 1, 33)), []);
  assert.equal(child(other, 2, 1, 26, 2, 1).toString(), '#/components/schemas/B');
  assert.equal(child(schema, 32, 1, 2, 1).toString(), '#/components/schemas/B');
});

test('whole numbers keep their digits, and what is none is left out', () => {
  const schema = (text: string): Buffer => {
    const document = parseJson(`{"definitions":{"A":{"maxLength":${text}}}}`) as JsonObject;
    return child(encodeOpenApiV2(document), 9, 1, 2);
  };
  const hex = (text: string): string => schema(text).toString('hex');
  assert.equal(hex('3'), '5803');
  assert.equal(hex('9007199254740993'), '588180808080808010');
  assert.equal(hex('9223372036854775807'), '58ffffffffffffffff7f');
  assert.equal(hex('-9223372036854775808'), '5880808080808080808001');
  for (const none of ['0', '1.5', '1e300', '9223372036854775808', '"3"', 'null', '[3]']) {
    assert.equal(hex(none), '', none);
  }
});
