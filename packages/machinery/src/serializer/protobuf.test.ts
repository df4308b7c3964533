// shell
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../json/json-value.ts';
import { decodeProtobuf, encodeItem, encodeList, encodeProtobuf } from './protobuf.ts';
import { encodeWatchFrame } from './protobuf.ts';

const GOLDEN = join(homedir(), 'go/pkg/mod/k8s.io/api@v0.36.1/testdata/HEAD');
const NO_GOLDEN = existsSync(GOLDEN)
  ? false
  : 'needs the vectors of k8s.io/api: go mod download k8s.io/api@v0.36.1';

const LEASE_HEX =
  '6b3873000a1f0a16636f6f7264696e6174696f6e2e6b38732e696f2f763112054c6561736512340a190a066e6f' +
  '64652d311a0f6b7562652d6e6f64652d6c6561736512170a066e6f64652d311028220b08a5ebdcca06108094ef' +
  '3a1a002200';

function decoded(bytes: Buffer): JsonObject {
  const result = decodeProtobuf(bytes, 0, bytes.length);
  assert(result.ok, result.ok ? '' : result.message);
  return result.object;
}

test('a lease as a node sends it reads as its JSON', () => {
  assert.deepEqual(decoded(Buffer.from(LEASE_HEX, 'hex')), {
    kind: 'Lease',
    apiVersion: 'coordination.k8s.io/v1',
    metadata: { name: 'node-1', namespace: 'kube-node-lease' },
    spec: {
      holderIdentity: 'node-1',
      leaseDurationSeconds: 40,
      renewTime: '2026-01-02T03:04:05.123456Z',
    },
  });
});

test(
  'every golden object reads as its JSON and is written as its bytes',
  { skip: NO_GOLDEN },
  () => {
    let compared = 0;
    for (const file of readdirSync(GOLDEN).filter((name) => name.endsWith('.pb'))) {
      const bytes = readFileSync(join(GOLDEN, file));
      const json = readFileSync(join(GOLDEN, file.replace(/pb$/, 'json')), 'utf8');
      const result = decodeProtobuf(bytes, 0, bytes.length);
      if (!result.ok) {
        assert.match(result.message, /^no kind "/, file);
        continue;
      }
      const object = JSON.parse(json) as JsonObject;
      assert.equal(JSON.stringify(result.object), JSON.stringify(object), file);
      assert.deepEqual(encodeProtobuf(object), bytes, file);
      compared++;
    }
    assert.ok(compared > 100, `only ${compared} kinds compared`);
  },
);

test('fields that Go holds by value are written as zero, pointers are left out', () => {
  const pod = { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'p' }, spec: { containers: [] } };
  assert.deepEqual(decoded(encodeProtobuf(pod) ?? Buffer.alloc(0)), {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { name: 'p' },
    spec: { containers: null },
    status: {},
  });
  const scale = { kind: 'Deployment', apiVersion: 'apps/v1', spec: { replicas: 0, paused: false } };
  const spec = decoded(encodeProtobuf(scale) ?? Buffer.alloc(0))['spec'] as JsonObject;
  assert.equal(spec['replicas'], 0);
  assert.equal('paused' in spec, false);
});

test('negative and large numbers, signs and zones of times survive', () => {
  const pod: JsonObject = {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { generation: 2 ** 53 - 1, creationTimestamp: '1969-12-31T23:59:59Z' },
    spec: { priority: -2147483648, containers: null, terminationGracePeriodSeconds: -5 },
    status: {},
  };
  assert.deepEqual(decoded(encodeProtobuf(pod) ?? Buffer.alloc(0)), pod);
});

test('quantities are read as those in JSON are: brought to one form, or refused', () => {
  const bytesWith = (cpu: string) => {
    const resources = { requests: { cpu: 'xxxxxx'.slice(0, cpu.length) } };
    const spec = { containers: [{ name: 'c', resources }] };
    const bytes = encodeProtobuf({ kind: 'Pod', apiVersion: 'v1', metadata: {}, spec });
    assert(bytes !== undefined);
    // encoders write the one form alone
    bytes.write(cpu, bytes.lastIndexOf('x') + 1 - cpu.length);
    return bytes;
  };
  for (const [sent, read] of [
    ['1.50', '1500m'],
    ['0.1', '100m'],
    ['1024Mi', '1Gi'],
    ['2e3', '2e3'],
  ] as const) {
    assert.match(JSON.stringify(decoded(bytesWith(sent))), new RegExp(`"cpu":"${read}"`));
  }
  for (const wrong of [' 1', '1x', 'abc']) {
    const bytes = bytesWith(wrong);
    const refused = decodeProtobuf(bytes, 0, bytes.length);
    assert.match(refused.ok ? '' : refused.message, /^quantities must match the regular expr/);
  }
});

test('a map may hold any key, __proto__ too', () => {
  const data = JSON.parse('{"__proto__":"x","ü":"ß"}') as JsonObject;
  const map = { kind: 'ConfigMap', apiVersion: 'v1', metadata: {}, data };
  const copy = decoded(encodeProtobuf(map) ?? Buffer.alloc(0));
  assert.equal(JSON.stringify(copy['data']), '{"__proto__":"x","ü":"ß"}');
});

test('a list is assembled from items that were encoded before', () => {
  const items = ['a', 'b'].map((name) =>
    encodeItem('v1', 'ConfigMap', { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name } }),
  );
  const present = items.filter((item) => item !== undefined);
  const list = encodeList('v1', 'ConfigMapList', { resourceVersion: '7' }, present);
  assert.deepEqual(decoded(list), {
    kind: 'ConfigMapList',
    apiVersion: 'v1',
    metadata: { resourceVersion: '7' },
    items: [{ metadata: { name: 'a' } }, { metadata: { name: 'b' } }],
  });
});

test('a large list outgrows the scratch buffer unharmed', () => {
  const text = 'x'.repeat(100_000);
  const item = encodeItem('v1', 'ConfigMap', { metadata: {}, data: { k: text } });
  assert(item !== undefined);
  const items = Array.from({ length: 30 }, () => item);
  const object = decoded(encodeList('v1', 'ConfigMapList', {}, items));
  assert.equal((object['items'] as JsonObject[]).length, 30);
});

test('a watch frame is a length and an event', () => {
  const envelope = Buffer.from(LEASE_HEX, 'hex');
  const frame = encodeWatchFrame('ADDED', envelope);
  assert.equal(frame.readUInt32BE(0), frame.length - 4);
  assert.deepEqual(frame.subarray(4, 11), Buffer.from('\n\u0005ADDED'));
  assert.deepEqual(frame.subarray(-envelope.length), envelope);
});

test('bytes that are no object are refused with the words of upstream', () => {
  const refusal = (bytes: Buffer): string => {
    const result = decodeProtobuf(bytes, 0, bytes.length);
    return result.ok ? 'accepted' : result.message;
  };
  assert.equal(refusal(Buffer.alloc(0)), 'empty data');
  assert.equal(refusal(Buffer.from('k8s\0')), 'empty body');
  assert.match(refusal(Buffer.from('{}')), /expected prefix \[107 56 115 0\]$/);
  assert.equal(refusal(Buffer.from('6b3873000aff', 'hex')), 'unexpected EOF');
  const unknown = Buffer.from('6b3873000a0a0a02763112044e6f7065', 'hex');
  assert.match(refusal(unknown), /^no kind "Nope" is registered for version "v1" in scheme/);
  const wrongType = Buffer.from('6b3873000a0d0a0276311207436f6e6669674d6170120208ff', 'hex');
  assert.notEqual(refusal(wrongType), 'accepted');
});

test('damaged bytes never throw and never hang', () => {
  const lease = Buffer.from(LEASE_HEX, 'hex');
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(lease.length - 1), fc.nat(255)), { maxLength: 8 }),
      fc.nat(lease.length),
      (edits, end) => {
        const bytes = Buffer.from(lease);
        for (const [at, byte] of edits) bytes[at] = byte;
        decodeProtobuf(bytes, 0, end);
      },
    ),
    { numRuns: 2000 },
  );
});

test('a schema nested ten thousand times is refused', () => {
  let bytes: Buffer = Buffer.alloc(0);
  for (let depth = 0; depth < 10_000; depth++) bytes = chunk(28, bytes);
  const raw = chunk(2, chunk(7, chunk(4, chunk(1, bytes))));
  const type = Buffer.concat([
    chunk(1, Buffer.from('apiextensions.k8s.io/v1')),
    chunk(2, Buffer.from('CustomResourceDefinition')),
  ]);
  const body = Buffer.concat([Buffer.from('k8s\0'), chunk(1, type), chunk(2, raw)]);
  const result = decodeProtobuf(body, 0, body.length);
  assert.deepEqual(result.ok ? '' : result.message, 'exceeded max depth');
});

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

function chunk(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

test('lists of metadata hold their items, in the older form under turned numbers', () => {
  const metadata = { name: 'm', uid: 'u' };
  for (const [version, itemsTag, metaTag] of [
    ['v1', 0x12, 0x0a],
    ['v1beta1', 0x0a, 0x12],
  ] as const) {
    const apiVersion = `meta.k8s.io/${version}`;
    const object = { kind: 'PartialObjectMetadata', apiVersion, metadata };
    const item = encodeItem(apiVersion, 'PartialObjectMetadata', object);
    assert.ok(item !== undefined && item.includes('m') && item.includes('u'));
    assert.ok(encodeProtobuf(object)?.includes(item));
    const list = encodeList(apiVersion, 'PartialObjectMetadataList', {}, [item]);
    assert.ok(list.includes(Buffer.concat([Buffer.from([itemsTag, item.length]), item])));
    const empty = encodeList(apiVersion, 'PartialObjectMetadataList', {}, []);
    const raw = empty.indexOf(0x12, empty.indexOf('List') + 4);
    assert.equal(empty[raw + 2], metaTag);
  }
});

/** The envelope of an object: its type, its parts one after the other, and what else. */
function enveloped(apiVersion: string, kind: string, raw: Buffer, more = Buffer.alloc(0)): Buffer {
  const field = (number: number, bytes: Buffer): Buffer => {
    assert(bytes.length < 128);
    return Buffer.concat([Buffer.of((number << 3) | 2, bytes.length), bytes]);
  };
  const type = [field(1, Buffer.from(apiVersion)), field(2, Buffer.from(kind))];
  const message = [field(1, Buffer.concat(type)), field(2, raw), more];
  return Buffer.concat([Buffer.from('k8s\0'), ...message]);
}

test('parts of one message add up, whatever was said first stays', () => {
  const raw = Buffer.from('0a060a016d1a016e0a085a060a01611201620a031a016f', 'hex');
  assert.deepEqual(decoded(enveloped('v1', 'ConfigMap', raw))['metadata'], {
    name: 'm',
    namespace: 'o',
    labels: { a: 'b' },
  });
  const none = Buffer.from('0a060a016d1a016e0a00', 'hex');
  const metadata = { name: 'm', namespace: 'n' };
  assert.deepEqual(decoded(enveloped('v1', 'ConfigMap', none))['metadata'], metadata);
});

test('the version may be left out where the group is told; an odd envelope is none', () => {
  const expected = { apiVersion: 'apps/v1', kind: 'Deployment' };
  const read = (bytes: Buffer) => decodeProtobuf(bytes, 0, bytes.length, expected);
  const raw = Buffer.from('0a030a016d', 'hex');
  const found = read(enveloped('apps/', 'Deployment', raw));
  assert.equal(found.ok && found.object['apiVersion'], 'apps/v1');
  assert.equal(read(enveloped('batch/', 'Deployment', raw)).ok, false);
  const odd = Buffer.from('1800', 'hex');
  assert.equal(read(enveloped('apps/v1', 'Deployment', raw, odd)).ok, false);
  const unknown = Buffer.from('2800', 'hex');
  assert.equal(read(enveloped('apps/v1', 'Deployment', raw, unknown)).ok, true);
});

test('small messages are judged as large ones: no field 0, no field of another wire type', () => {
  const pod = (limit: string): boolean => {
    const entry = `0a03637075${limit}`;
    const list = (tag: string, inner: string): string => {
      return `${tag}${(inner.length / 2).toString(16).padStart(2, '0')}${inner}`;
    };
    // spec.containers[0].resources.limits
    const raw = list('12', list('12', `0a0163${list('42', list('0a', entry))}`));
    const bytes = enveloped('v1', 'Pod', Buffer.from(raw, 'hex'));
    return decodeProtobuf(bytes, 0, bytes.length).ok;
  };
  assert.equal(pod('12030a0131'), true);
  assert.equal(pod('1203020131'), false);
  assert.equal(pod('12020801'), false);
  assert.equal(pod('120510010a0131'), true);
});
