import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { HpackDecoder } from './hpack-decoder.ts';
import { HpackEncoder, writeField, writeInteger, writeStatus } from './hpack-encoder.ts';
import { huffmanDecode, huffmanEncode, huffmanLength } from './huffman.ts';

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(/\s/g, ''), 'hex');
}

function decoded(decoder: HpackDecoder, text: string): string[] {
  const bytes = hex(text);
  assert(decoder.decode(bytes, 0, bytes.length));
  return decoder.fields;
}

function table(decoder: HpackDecoder): string[] {
  const rows: string[] = [];
  for (let i = 1; i <= decoder.table.count; i++) {
    rows.push(`${decoder.table.name(i)}: ${decoder.table.value(i)}`);
  }
  return rows;
}

const FIRST = [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'www.example.com'];
const THIRD = ':method|GET|:scheme|https|:path|/index.html'.split('|');
THIRD.push(':authority', 'www.example.com', 'custom-key', 'custom-value');

test('single fields of RFC 7541 C.2 decode', () => {
  const decoder = new HpackDecoder(4096, 65536);
  assert.deepEqual(decoded(decoder, '400a637573746f6d2d6b65790d637573746f6d2d686561646572'), [
    'custom-key',
    'custom-header',
  ]);
  assert.equal(decoder.table.size, 55);
  assert.deepEqual(decoded(decoder, '040c2f73616d706c652f70617468'), [':path', '/sample/path']);
  assert.deepEqual(decoded(decoder, '100870617373776f726406736563726574'), ['password', 'secret']);
  assert.deepEqual(decoded(decoder, '82'), [':method', 'GET']);
});

for (const [name, blocks] of [
  [
    'RFC 7541 C.3',
    [
      '828684410f7777772e6578616d706c652e636f6d',
      '828684be58086e6f2d6361636865',
      '828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565',
    ],
  ],
  [
    'RFC 7541 C.4',
    [
      '828684418cf1e3c2e5f23a6ba0ab90f4ff',
      '828684be5886a8eb10649cbf',
      '828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf',
    ],
  ],
] as const) {
  test(`the requests of ${name} decode and fill the table`, () => {
    const decoder = new HpackDecoder(4096, 65536);
    assert.deepEqual(decoded(decoder, blocks[0]), FIRST);
    assert.equal(decoder.table.size, 57);
    assert.deepEqual(decoded(decoder, blocks[1]), [...FIRST, 'cache-control', 'no-cache']);
    assert.equal(decoder.table.size, 110);
    assert.deepEqual(decoded(decoder, blocks[2]), THIRD);
    assert.equal(decoder.table.size, 164);
    assert.deepEqual(table(decoder), [
      'custom-key: custom-value',
      'cache-control: no-cache',
      ':authority: www.example.com',
    ]);
  });
}

for (const [name, blocks] of [
  [
    'RFC 7541 C.5',
    [
      `4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d54
       6e1768747470733a2f2f7777772e6578616d706c652e636f6d`,
      '4803333037c1c0bf',
      `88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f
       3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b20
       76657273696f6e3d31`,
    ],
  ],
  [
    'RFC 7541 C.6',
    [
      `488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f
       0b97c8e9ae82ae43d3`,
      '4883640effc1c0bf',
      `88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335df
       dfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007`,
    ],
  ],
] as const) {
  test(`the responses of ${name} decode with evictions`, () => {
    const decoder = new HpackDecoder(256, 65536);
    decoded(decoder, blocks[0]);
    assert.equal(decoder.table.size, 222);
    assert.equal(decoded(decoder, blocks[1])[1], '307');
    assert.equal(decoder.table.size, 222);
    const cookie = 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1';
    const fields = ':status|200|cache-control|private|date|Mon, 21 Oct 2013 20:13:22 GMT'.split(
      '|',
    );
    fields.push('location', 'https://www.example.com', 'content-encoding', 'gzip');
    assert.deepEqual(decoded(decoder, blocks[2]), [...fields, 'set-cookie', cookie]);
    assert.equal(decoder.table.size, 215);
    assert.deepEqual(table(decoder), [
      `set-cookie: ${cookie}`,
      'content-encoding: gzip',
      'date: Mon, 21 Oct 2013 20:13:22 GMT',
    ]);
  });
}

test('integers of RFC 7541 C.1 encode', () => {
  const out = Buffer.alloc(8);
  assert.equal(out.toString('hex', 0, writeInteger(out, 0, 0, 5, 10)), '0a');
  assert.equal(out.toString('hex', 0, writeInteger(out, 0, 0, 5, 1337)), '1f9a0a');
  assert.equal(out.toString('hex', 0, writeInteger(out, 0, 0, 8, 42)), '2a');
});

test('any bytes survive Huffman coding, and the length is foretold', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300, size: 'max' }), (bytes) => {
      const coded = Buffer.alloc(bytes.length * 4 + 8);
      const end = huffmanEncode(bytes, 0, bytes.length, coded, 0);
      assert.equal(end, huffmanLength(bytes, 0, bytes.length));
      const out = Buffer.alloc(bytes.length + 8);
      assert.equal(huffmanDecode(coded, 0, end, out, 0), bytes.length);
      assert.deepEqual(out.subarray(0, bytes.length), Buffer.from(bytes));
    }),
    { numRuns: 500 },
  );
});

test('Huffman padding must be short and all ones, and EOS is refused', () => {
  const out = Buffer.alloc(64);
  const decode = (text: string) => huffmanDecode(hex(text), 0, hex(text).length, out, 0);
  assert.equal(decode('1f'), 1); // 'a' and three ones
  assert.equal(decode('18'), -1); // 'a' and zeros
  assert.equal(decode('1fff'), -1); // 11 bits of padding
  assert.equal(decode('ff'), -1); // 8 bits of padding
  assert.equal(decode('fffffffc'), -1); // EOS
  assert.equal(decode('1fffffffff'), -1); // EOS later
});

const field = fc.tuple(
  fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/),
  fc.stringMatching(/^([!-~]([ -~]{0,60}[!-~])?)?$/),
);

test('what the encoder writes the decoder reads, whatever the table sizes', () => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('block'),
      fields: fc.array(field, { maxLength: 12, size: 'max' }),
    }),
    fc.record({ kind: fc.constant('size'), bytes: fc.integer({ min: 0, max: 5000 }) }),
  );
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 30, size: 'max' }),
      fc.array(field, { maxLength: 5 }),
      (steps, usual) => {
        const encoder = new HpackEncoder(8192);
        const decoder = new HpackDecoder(4096, 1e6);
        const out = Buffer.alloc(65536);
        for (const one of steps) {
          if (!('fields' in one)) {
            decoder.acknowledgeTableSize(one.bytes);
            encoder.setPeerMax(one.bytes);
            continue;
          }
          let at = encoder.begin(out, 0);
          const fields = [...usual, ...one.fields];
          for (const [name, value] of fields) at = encoder.write(out, at, name, value);
          at = encoder.writeOnce(out, at, ':path', '/x', true);
          at = writeField(out, at, 'plain', 'text');
          assert(decoder.decode(out, 0, at));
          assert.equal(decoder.malformed, false);
          assert.deepEqual(decoder.fields, [...fields.flat(), ':path', '/x', 'plain', 'text']);
          assert.equal(decoder.table.size, encoder.table.size);
        }
      },
    ),
    { numRuns: 200 },
  );
});

test('random blocks never throw and stay within the limits', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 120, size: 'max' }), { maxLength: 10, size: 'max' }),
      (blocks) => {
        const decoder = new HpackDecoder(512, 1024);
        for (const block of blocks) {
          if (!decoder.decode(Buffer.from(block), 0, block.length)) return;
          assert(decoder.table.size <= 512);
          assert(decoder.overflow || decoder.size <= 1024);
        }
      },
    ),
    { numRuns: 1000 },
  );
});

test('statuses are written short or long', () => {
  const out = Buffer.alloc(16);
  for (const status of [200, 204, 304, 400, 404, 500, 101, 409, 422, 504]) {
    const decoder = new HpackDecoder(4096, 1e6);
    assert(decoder.decode(out, 0, writeStatus(out, 0, status)));
    assert.deepEqual(decoder.fields, [':status', String(status)]);
  }
});

test('upper case, empty and control characters taint the message, also from the table', () => {
  const decoder = new HpackDecoder(4096, 1e6);
  for (const [name, value] of [
    ['Upper', 'x'],
    ['', 'x'],
    ['a b', 'x'],
    ['a:b', 'x'],
    ['ok', 'a\nb'],
    ['ok', ' lead'],
    ['ok', 'trail\t'],
  ] as const) {
    const out = Buffer.alloc(64);
    let at = 1;
    out[0] = 0x40;
    for (const text of [name, value]) {
      out[at++] = text.length;
      at += out.write(text, at, 'latin1');
    }
    assert(decoder.decode(out, 0, at));
    assert(decoder.malformed, `${name}: ${value}`);
    assert(decoder.decode(hex('be'), 0, 1));
    assert(decoder.malformed, `${name}: ${value} by index`);
  }
});

test('a header bomb is decoded to the end but not kept', () => {
  const decoder = new HpackDecoder(4096, 16384);
  const out = Buffer.alloc(8192, 0xbe);
  out[0] = 0x40;
  out[1] = 1;
  out[2] = 97;
  let at = writeInteger(out, 3, 0, 7, 4000);
  out.fill(98, at, at + 4000);
  at += 4000;
  assert(decoder.decode(out, 0, out.length));
  assert(decoder.overflow);
  assert(decoder.fields.length < 12);
});
