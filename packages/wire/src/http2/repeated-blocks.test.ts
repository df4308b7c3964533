/**
 * Blocks that a connection has seen are not decoded again. Whatever comes before, evicts, resizes
 * or is repeated, both ends must make of each block what a plain decoder makes of it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ACK, FakeTransport, frame, HELLO } from '../../test/scripted-peer.ts';
import { BodyBudget } from '../transport/body-budget.ts';
import { prepareFields } from '../http/client.ts';
import { ERRORS, FRAMES } from './frames.ts';
import { HpackDecoder } from '../hpack/hpack-decoder.ts';
import { STATIC_BY_FIELD, STATIC_BY_NAME, STATIC_LENGTH } from '../hpack/hpack-table.ts';
import { Http2Client } from './http2-client.ts';
import { areTrailers, readRequestHead, readStatus } from './http2-head.ts';
import { Http2Server } from '../server/http2-server.ts';
import { huffmanEncode, huffmanLength } from '../hpack/huffman.ts';
import { CLIENT_LIMITS, SERVER_LIMITS } from '../limits.ts';

const TABLE_BYTES = 4096;
const HEAD_BYTES = 300;
const LONG = 'y'.repeat(120);

/** A literal that is indexed, not indexed, never indexed; or the index of an equal entry. */
type Form = 'indexing' | 'without' | 'never' | 'known';

interface Field {
  readonly name: string;
  readonly value: string;
  readonly form: Form;
  readonly isPacked: boolean;
}

/**
 * A block of fields; one before, with another value in its last field that varies; or one before,
 * by its octets, perhaps with one of them changed.
 */
type Step =
  | { readonly kind: 'fields'; readonly sizes: readonly number[]; readonly fields: Field[] }
  | { readonly kind: 'like'; readonly back: number; readonly value: string }
  | { readonly kind: 'again'; readonly back: number; readonly change: [number, number] | null };

function integer(first: number, bits: number, value: number): Buffer {
  const mask = (1 << bits) - 1;
  if (value < mask) return Buffer.from([first | value]);
  const octets = [first | mask];
  let left = value - mask;
  for (; left >= 128; left = Math.floor(left / 128)) octets.push((left & 127) | 128);
  return Buffer.from([...octets, left]);
}

function text(value: string, isPacked: boolean): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  if (!isPacked) return Buffer.concat([integer(0, 7, bytes.length), bytes]);
  const packed = Buffer.alloc(huffmanLength(bytes, 0, bytes.length));
  huffmanEncode(bytes, 0, bytes.length, packed, 0);
  return Buffer.concat([integer(0x80, 7, packed.length), packed]);
}

function indexOf({ table }: HpackDecoder, name: string, value: string | null): number {
  const fixed =
    value === null ? STATIC_BY_NAME.get(name) : STATIC_BY_FIELD.get(`${name}\0${value}`);
  if (fixed !== undefined) return fixed;
  for (let index = 1; index <= table.count; index++) {
    if (table.name(index) !== name) continue;
    if (value === null || table.value(index) === value) return STATIC_LENGTH + index;
  }
  return 0;
}

const HEADS = { indexing: [0x40, 6], known: [0x40, 6], without: [0, 4], never: [0x10, 4] } as const;

/** The octets of a field for a peer that has decoded all before it. */
function octetsOf(decoder: HpackDecoder, { name, value, form, isPacked }: Field): Buffer {
  const whole = form === 'known' ? indexOf(decoder, name, value) : 0;
  if (whole > 0) return integer(0x80, 7, whole);
  const [first, bits] = HEADS[form];
  const index = indexOf(decoder, name, null);
  const head = integer(first, bits, index);
  const called = index > 0 ? [head] : [head, text(name, isPacked)];
  return Buffer.concat([...called, text(value, isPacked)]);
}

/** Encodes steps as they come and decodes them plainly. */
class Plain {
  readonly decoder: HpackDecoder = new HpackDecoder(TABLE_BYTES, HEAD_BYTES);
  readonly #blocks: Buffer[] = [];
  readonly #lists: (readonly Field[])[] = [];
  readonly #varying: string;

  constructor(varying: string) {
    this.#varying = varying;
  }

  /** The next block; false if no peer can decode it. */
  next(step: Step): { readonly block: Buffer; readonly isRead: boolean } {
    const block = this.#block(step);
    this.#blocks.push(block);
    return { block, isRead: this.decoder.decode(block, 0, block.length) };
  }

  #block(step: Step): Buffer {
    if (step.kind === 'again') return this.#again(step);
    if (step.kind === 'fields') return this.#encode(step.sizes, step.fields);
    const found = before(this.#lists, step.back) ?? [];
    const last = found.findLastIndex(({ name }) => name === this.#varying);
    const { value } = step;
    return this.#encode(
      [],
      found.map((one, index) => (index === last ? { ...one, value } : one)),
    );
  }

  #encode(sizes: readonly number[], fields: readonly Field[]): Buffer {
    this.#lists.push(fields);
    // what one field does to the table the next one sees: a copy of the decoder tells
    const copy = new HpackDecoder(TABLE_BYTES, HEAD_BYTES);
    for (const block of this.#blocks) copy.decode(block, 0, block.length);
    const pieces = sizes.map((size) => integer(0x20, 5, size));
    for (const piece of pieces) copy.decode(piece, 0, piece.length);
    for (const field of fields) {
      const piece = octetsOf(copy, field);
      copy.decode(piece, 0, piece.length);
      pieces.push(piece);
    }
    return Buffer.concat(pieces);
  }

  #again({ back, change }: Extract<Step, { kind: 'again' }>): Buffer {
    const block = Buffer.from(before(this.#blocks, back) ?? Buffer.alloc(0));
    if (change !== null && block.length > 0) block[change[0] % block.length] = change[1];
    return block;
  }
}

function before<Item>(list: readonly Item[], back: number): Item | undefined {
  return list[list.length - 1 - (back % (list.length || 1))];
}

const form = fc.constantFrom<Form>('known', 'known', 'known', 'without', 'never', 'indexing');

function field(name: string, ...values: readonly string[]): fc.Arbitrary<Field> {
  return fc.record({
    name: fc.constant(name),
    value: fc.constantFrom(...values),
    form,
    isPacked: fc.boolean(),
  });
}

function steps(fields: fc.Arbitrary<readonly Field[]>): fc.Arbitrary<readonly Step[]> {
  const change = fc.tuple(fc.nat(80), fc.nat(255));
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('fields' as const),
        sizes: fc.oneof(
          { weight: 8, arbitrary: fc.constant([]) },
          fc.array(fc.constantFrom(0, 40, 80, 160, TABLE_BYTES), { maxLength: 2 }),
        ),
        fields: fields.map((list) => [...list]),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('like' as const),
        back: fc.nat(2),
        value: fc.constantFrom('/c', '/d', '/', '*', '/e ', `/${LONG}`),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('again' as const),
        back: fc.nat(5),
        change: fc.option(change, { freq: 2 }),
      }),
    },
  );
  return fc.array(step, { maxLength: 40, size: 'max' });
}

const extras = fc
  .subarray([
    field('user-agent', 'kubelet', 'kubectl', LONG),
    field('x-one', 'a', 'b', ' c', LONG),
    field('accept', '*/*', 'application/json'),
    field('connection', 'close'),
  ])
  .chain((list) => fc.tuple(...list));

const requests = fc
  .tuple(
    field(':method', 'GET', 'PUT', 'TRACE'),
    field(':scheme', 'https', 'http'),
    field(':path', '/', '/a', '/b', '/index.html', '*', 'c', '/\n', `/${LONG}`),
    extras,
    fc.option(field(':path', '/', '/twice'), { freq: 20 }),
  )
  .map(([method, scheme, path, more, twice]) => {
    const lead = twice === null ? [] : [twice];
    return [method, scheme, path, ...lead, ...more];
  });

test('a server reads each block as a plain decoder does', () => {
  fc.assert(
    fc.property(steps(requests), (all) => {
      const plain = new Plain(':path');
      const wanted: unknown[] = [];
      const seen: unknown[] = [];
      const peer = new FakeTransport();
      const server = new Http2Server(peer, {
        handler: (exchange) => {
          seen.push([exchange.method, exchange.path, exchange.authority, exchange.fields()]);
          exchange.respond(200, null, '');
        },
        streamsBody: () => false,
        limits: { ...SERVER_LIMITS, headBytesMax: HEAD_BYTES },
        onError: (error) => assert.fail(String(error)),
        grpc: null,
        bodies: new BodyBudget(Infinity),
      });
      peer.protocol = server;
      peer.send(Buffer.concat([HELLO, ACK]));
      const resets: string[] = [];
      for (const [index, step] of all.entries()) {
        const { block, isRead } = plain.next(step);
        peer.send(frame(FRAMES.headers, 5, 2 * index + 1, block));
        if (!isRead) {
          assert.equal(peer.goaway(), ERRORS.compression);
          break;
        }
        const { decoder } = plain;
        const head = decoder.malformed ? null : readRequestHead(decoder.fields);
        if (head === null) resets.push(`${2 * index + 1}:${ERRORS.protocol}`);
        else if (!decoder.overflow) {
          wanted.push([head.method, head.path, head.authority, head.fields]);
        }
        assert.deepEqual(seen, wanted);
        assert.deepEqual(peer.resets(), resets);
      }
    }),
    { numRuns: 200 },
  );
});

const answers = fc
  .tuple(
    field(':status', '200', '404', '100', '20'),
    fc.array(field('audit-id', 'one', 'two', 'three', ' four', LONG), { maxLength: 2 }),
    extras,
  )
  .map(([status, audits, more]) => [status, ...audits, ...more]);

/** The first of two names is an index from the second answer on. */
const AUDITS: readonly Step[] = [
  {
    kind: 'fields',
    sizes: [],
    fields: [
      { name: ':status', value: '200', form: 'known', isPacked: false },
      { name: 'audit-id', value: 'one', form: 'known', isPacked: false },
      { name: 'audit-id', value: 'two', form: 'without', isPacked: false },
    ],
  },
  ...Array.from({ length: 5 }, () => ({ kind: 'like', back: 0, value: '/c' }) as const),
];

/** A value that no target of a request could have. */
const ODD: readonly Step[] = [
  {
    kind: 'fields',
    sizes: [],
    fields: [
      { name: ':status', value: '200', form: 'known', isPacked: false },
      { name: 'audit-id', value: 'one', form: 'known', isPacked: false },
    ],
  },
  { kind: 'like', back: 0, value: '/c' },
  { kind: 'again', back: 0, change: [3, 1] },
];

test('a client reads each answer and its trailers as a plain decoder does', () => {
  fc.assert(
    fc.property(steps(fc.oneof({ weight: 3, arbitrary: answers }, extras)), (all) => {
      const plain = new Plain('audit-id');
      const peer = new FakeTransport();
      const limits = { ...CLIENT_LIMITS, headBytesMax: HEAD_BYTES };
      const client = new Http2Client(peer, { authority: 'test:1', limits });
      peer.protocol = client;
      peer.settle();
      peer.received = [];
      peer.send(Buffer.concat([frame(FRAMES.settings, 0, 0), ACK]));
      const none = prepareFields([]);
      let seen: unknown[] = [];
      let id = -1;
      let isHead = false;
      const ask = (): void => {
        id += 2;
        isHead = true;
        seen = [];
        client.request('GET', '/', none, null, {
          onHead: (_stream, status, fields) => void seen.push([status, [...fields]]),
          onData: () => assert.fail('no answer has a body'),
          onEnd: (_stream, failure, trailers) =>
            void seen.push(failure === null ? [...trailers] : 'failed'),
        });
      };
      ask();
      let wanted: unknown[] = [];
      for (const step of all) {
        const { block, isRead } = plain.next(step);
        peer.send(frame(FRAMES.headers, isHead ? 4 : 5, id, block));
        if (!isRead) return assert.equal(peer.goaway(), ERRORS.compression);
        const { fields, malformed, overflow } = plain.decoder;
        const isWrong = malformed || overflow;
        const status = isHead && !isWrong ? readStatus(fields) : -1;
        let isOver = true;
        if (isHead && status >= 100 && status < 200) isOver = false;
        else if (isHead && status >= 200) {
          wanted.push([status, fields.slice(2)]);
          isHead = false;
          isOver = false;
        } else if (!isHead && !isWrong && areTrailers(fields)) wanted.push([...fields]);
        else wanted.push('failed');
        assert.deepEqual(seen, wanted);
        if (!isOver) continue;
        wanted = [];
        ask();
      }
    }),
    { numRuns: 200, examples: [[AUDITS], [ODD]] },
  );
});
