import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeBase64 } from '@megaplane/base/base64';
import { trials } from '@megaplane/base/trials.sim';
import { openStore } from '@megaplane/store/open';
import type { GrpcCallFactory, GrpcMethods, InPlaceHandler } from '@megaplane/wire/grpc';
import { makeAuth } from '../auth/service/auth.ts';
import { EtcdContext } from '../call/context.ts';
import { encodeJson } from './json-request.ts';
import { showJson } from './json-response.ts';
import { JsonDocuments, JsonError, JsonPieces } from './json-text.ts';
import { GATEWAY_ROUTES } from '../codec/schema.ts';
import { registerLease } from '../lease/lease.ts';
import { registerMembers } from '../maintenance/members.ts';
import { encode } from '../testing/peer.sim.ts';
import { deleteHandler, putHandler } from '../kv/put.ts';
import { rangeHandler } from '../kv/range.ts';
import { SimulatedCall, SimulatedConnection, runUnary } from '../testing/network.sim.ts';
import { txnHandler } from '../kv/txn.ts';
import { WatchService } from '../watch/watch.ts';

const isLong = process.env['MEGAPLANE_LONG'] !== undefined;
const numRuns = isLong ? 1_000_000 : 3000;
const JSON_PIECES = '{ } [ ] " , : \\ u 0 1 9 e - . true null a'.split(' ');
const LIMITS = { txnOpsMax: 128, requestBytesMax: 1_572_864, quotaBytes: 0 };

/** Messages that look like requests: fields of all kinds, cut, flipped, nested, or plain noise. */
const leaf = fc.oneof(
  fc.tuple(fc.integer({ min: 1, max: 15 }), fc.integer({ min: -3, max: 300 })),
  fc.tuple(fc.integer({ min: 1, max: 15 }), fc.constantFrom('', 'a', 'b', '\0', 'key')),
);
const tree = fc.letrec<{
  message: (readonly [number, unknown])[];
  field: readonly [number, unknown];
}>((tie) => ({
  field: fc.oneof(
    { depthSize: 'small' },
    leaf,
    fc.tuple(fc.integer({ min: 1, max: 4 }), tie('message')),
  ),
  message: fc.array(tie('field'), { maxLength: 4 }),
})).message;
const shaped = tree.map((fields) => encode(fields as never));
const damaged = fc
  .tuple(shaped, fc.nat(), fc.nat(), fc.integer({ min: 0, max: 255 }))
  .map(([bytes, at, cut, value]) => {
    const copy = Buffer.from(bytes);
    if (copy.length > 0) copy[at % copy.length] = value;
    return copy.subarray(0, copy.length - (cut % (copy.length + 1)) / 4);
  });
const noise = fc.uint8Array({ maxLength: 64, size: 'max' }).map((bytes) => Buffer.from(bytes));
const message = fc.oneof(shaped, damaged, noise);

test('no request, whatever its bytes, throws or leaves a half-done effect', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const context = new EtcdContext(opened.store, LIMITS, opened, () => 1);
  const handlers = new Map<string, InPlaceHandler>();
  const factories = new Map<string, GrpcCallFactory>();
  const methods: GrpcMethods = {
    unary: (path, handler) => handlers.set(path, handler),
    call: (path, factory) => factories.set(path, factory),
  };
  const auth = makeAuth(context, { bcryptCost: 4 });
  const watches = new WatchService(context, auth.guard);
  auth.register(methods);
  let drawn = 0;
  registerLease(methods, context, () => ({ high: 1, low: ++drawn }));
  registerMembers(methods, context, { name: 'x', clientUrls: [], peerUrls: [] });
  methods.unary('/KV/Range', rangeHandler(context));
  methods.unary('/KV/Put', putHandler(context));
  methods.unary('/KV/DeleteRange', deleteHandler(context));
  methods.unary('/KV/Txn', txnHandler(context));
  methods.call('/Watch/Watch', watches.factory);
  const connection = new SimulatedConnection();
  try {
    fc.assert(
      fc.property(fc.constantFrom(...handlers.keys()), message, (path, bytes) => {
        const handler = handlers.get(path);
        assert(handler !== undefined);
        const before = opened.store.appliedRevision;
        const outcome = runUnary(connection, handler, bytes);
        assert(!opened.store.hasUncommitted, path);
        if (outcome.kind === 'failed') assert.equal(opened.store.appliedRevision, before, path);
        auth.guard.refuse(`/etcdserverpb${path}`, bytes, 0, bytes.length, {
          connection,
          metadata: () => undefined,
        });
      }),
      trials(numRuns),
    );
    fc.assert(
      fc.property(fc.constantFrom(...factories.keys()), fc.array(message), (path, messages) => {
        const call = new SimulatedCall(connection, () => {});
        const factory = factories.get(path);
        assert(factory !== undefined);
        call.accept(factory(call));
        for (const bytes of messages) call.request(bytes);
        call.cancel('cancelled');
        while (connection.pending > 0) connection.deliver();
      }),
      trials(numRuns / 10),
    );
    assert.equal(opened.store.hub.size, 0);
  } finally {
    await opened.close();
  }
});

test('the gateway reads any text, and what it writes reads back the same', () => {
  const names = [...GATEWAY_ROUTES.values()].flatMap(({ request, response }) => [
    request,
    response,
  ]);
  const json = fc.oneof(
    fc.json({ maxDepth: 4 }),
    fc.string({ maxLength: 40, size: 'max' }),
    fc.string({ maxLength: 40, size: 'max', unit: fc.constantFrom(...JSON_PIECES) }),
  );
  fc.assert(
    fc.property(json, fc.constantFrom(...names), (text, name) => {
      try {
        const documents = new JsonDocuments(text);
        for (let document = documents.next(); document !== null; document = documents.next()) {
          encodeJson(document, name);
        }
      } catch (error) {
        assert(error instanceof JsonError, String(error));
      }
    }),
    trials(numRuns),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40, size: 'max' }), (bytes) => {
      const text = Buffer.from(bytes).toString('base64');
      const found = decodeBase64(text);
      assert(typeof found !== 'number' && found.equals(bytes));
      assert.equal(typeof decodeBase64(`${text}*`), 'number');
    }),
    trials(numRuns / 10),
  );
});

test('pieces of JSON tell where a document may end, and nowhere inside a long one', () => {
  const pieces = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });
  fc.assert(
    fc.property(fc.array(fc.json({ maxDepth: 2 }), { minLength: 1 }), pieces, (texts, sizes) => {
      const text = texts.join(' ');
      const cuts = new JsonPieces();
      let known = 0;
      for (let at = 0, turn = 0; at < text.length; turn++) {
        const to = at + sizes[turn % sizes.length]!;
        const mayEnd = cuts.mayEnd(text.slice(at, to));
        const documents = new JsonDocuments(text.slice(0, to));
        let whole = 0;
        try {
          while (documents.next() !== null) whole++;
        } catch (error) {
          if (!(error instanceof JsonError)) throw error;
        }
        assert(mayEnd || whole <= known, `${text} at ${to}`);
        known = whole;
        at = to;
      }
    }),
    trials(numRuns / 30),
  );
  const long = new JsonPieces();
  const told = ['{"a":["}', String.raw`\"]}`, String.raw`{\\`, '"', ',{}]', '}'];
  const mayEnd = told.map((piece) => long.mayEnd(piece));
  assert.deepEqual(mayEnd, [false, false, false, false, false, true]);
});

test('valid messages pass through the gateway and back unharmed', () => {
  const key = fc.uint8Array({ minLength: 1, maxLength: 6 });
  const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
  fc.assert(
    fc.property(key, key, int64, fc.boolean(), (first, second, lease, flag) => {
      const members = {
        ...{ key: Buffer.from(first).toString('base64') },
        ...{ value: Buffer.from(second).toString('base64') },
        ...(lease === 0n ? {} : { lease: `${lease}` }),
        ...(flag ? { prev_kv: true } : {}),
      };
      const text = JSON.stringify(members);
      const document = new JsonDocuments(text).next();
      assert(document !== null);
      const bytes = encodeJson(document, 'PutRequest');
      assert.equal(showJson(bytes, 0, bytes.length, 'PutRequest').toString(), text);
    }),
    trials(numRuns / 10),
  );
});

test('bytes of any length become the base64 that they are as a whole', () => {
  for (const size of [0, 1, 196_606, 196_607, 196_608, 196_609, 600_001]) {
    const value = Buffer.alloc(size, 'xyz\xff');
    const members = { key: 'aw==', ...(size === 0 ? {} : { value: value.toString('base64') }) };
    const document = new JsonDocuments(JSON.stringify(members)).next();
    assert(document !== null);
    const bytes = encodeJson(document, 'PutRequest');
    assert.equal(
      showJson(bytes, 0, bytes.length, 'PutRequest').toString(),
      JSON.stringify(members),
    );
  }
});
