import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ringMemory, RingReader } from '@megaplane/base/shared-ring';
import { FakeTransport } from '../../test/fake-transport.ts';
import type { PeerCertificate } from '../http/exchange.ts';
import { CLOSED, OPENED, PIECE_BYTES, readOpening } from './messages.ts';
import { Relays, type ThreadMemory } from './relays.ts';

function memoryOf(slots: number): ThreadMemory {
  return {
    up: ringMemory(1024 * 1024),
    down: ringMemory(64),
    written: new SharedArrayBuffer(4 * slots),
    pulse: new SharedArrayBuffer(4),
  };
}

function certificate(commonName: string): PeerCertificate {
  return {
    raw: Buffer.from([1, 2, 3]),
    commonName,
    organizations: ['a', 'b'],
    uids: [],
    trusted: false,
    failure: 'CERT_HAS_EXPIRED',
    issuers: () => [Buffer.from([4]), Buffer.from([5, 6])],
    validFromMs: 1,
    validToMs: 2,
  };
}

class Certified extends FakeTransport {
  shown: PeerCertificate | null = null;

  override peerCertificate(): null {
    return this.shown as null;
  }
}

test('a certificate comes across as it is, one of absurd length is nobody', () => {
  const memory = memoryOf(4);
  const relays = new Relays(
    memory,
    () => undefined,
    () => undefined,
  );
  const reader = new RingReader(memory.up);
  const transport = new Certified();
  // each of these is six characters in JSON
  transport.shown = certificate('\u0001'.repeat(PIECE_BYTES / 5));
  assert.equal(relays.take(transport, true), null);
  assert.equal(reader.next(), false);
  const shown = certificate('jane');
  transport.shown = shown;
  assert(relays.take(transport, true) !== null);
  assert(reader.next());
  assert.deepEqual([reader.kind, reader.slot], [OPENED, 0]);
  const opening = readOpening(reader.bytes.subarray(reader.start, reader.end));
  const { issuers, ...rest } = opening.certificate ?? certificate('');
  const { issuers: expectedIssuers, ...expected } = shown;
  assert.deepEqual(rest, expected);
  assert.deepEqual(issuers?.(), expectedIssuers?.());
  assert.deepEqual(
    [opening.isHttp2, opening.secure, opening.remoteAddress],
    [true, false, '127.0.0.1'],
  );
});

test('there are as many connections as slots, and a slot waits until it is forgotten', () => {
  const memory = memoryOf(2);
  const relays = new Relays(
    memory,
    () => undefined,
    () => undefined,
  );
  const [first, second] = [new FakeTransport(), new FakeTransport()].map((transport) =>
    relays.take(transport, false),
  );
  assert(first !== null && second !== null);
  assert.equal(relays.take(new FakeTransport(), false), null);
  first?.closed();
  // the other thread has not said its last word of it
  assert.equal(relays.take(new FakeTransport(), false), null);
  const reader = new RingReader(memory.up);
  const kinds: number[] = [];
  for (; reader.next(); reader.done()) kinds.push(reader.kind);
  assert.deepEqual(kinds, [OPENED, OPENED, CLOSED]);
});
