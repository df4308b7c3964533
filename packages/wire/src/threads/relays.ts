// shell
/** All connections of one connection thread, and its two rings. */
import { assert } from '@megaplane/base/assert';
import { blame } from '@megaplane/base/deferred';
import { RingPost } from '@megaplane/base/ring-post';
import { RingReader } from '@megaplane/base/shared-ring';
import type { Protocol, Transport } from '../transport/transport.ts';
import { DESTROY, END, FORGET, PIECE_BYTES, SEND, TAKEN, writeOpening } from './messages.ts';
import { Relay, type RelayHost } from './relay.ts';

/** Messages that are handled before sockets have their turn. */
const MESSAGES_MAX = 1024;

/** Connections that are read again in one turn, after none was. */
const READ_ON_MAX = 256;

/** Memory that a connection thread shares with the thread that serves. */
export interface ThreadMemory {
  readonly up: SharedArrayBuffer;
  readonly down: SharedArrayBuffer;
  /** An Int32 for each slot. */
  readonly written: SharedArrayBuffer;
  /** An Int32 that counts up while the thread's event loop turns. */
  readonly pulse: SharedArrayBuffer;
}

export class Relays implements RelayHost {
  readonly post: RingPost;
  readonly written: Int32Array;
  readonly #down: RingReader;
  readonly #ringBell: () => void;
  readonly #soon: (work: () => void) => void;
  readonly #bySlot: (Relay | null)[] = [];
  readonly #free: number[] = [];
  /** Those that are not read until the ring has room, the longest waiting first. */
  readonly #waiting = new Set<Relay>();
  #isTurnPlanned = false;

  /** `soon` runs work in a later turn, after sockets had theirs. */
  constructor(memory: ThreadMemory, ringBell: () => void, soon: (work: () => void) => void) {
    this.post = new RingPost(memory.up, ringBell);
    this.written = new Int32Array(memory.written);
    this.#down = new RingReader(memory.down);
    this.#ringBell = ringBell;
    this.#soon = soon;
    this.post.onRoom = () => this.#plan();
  }

  /** A new connection; null where there are more than slots, or its certificate is too long. */
  take(transport: Transport, isHttp2: boolean): Protocol | null {
    const slot = this.#free.pop() ?? this.#bySlot.push(null) - 1;
    if (slot >= this.written.length) {
      this.#bySlot.pop();
      return null;
    }
    const { secure, remoteAddress } = transport;
    const certificate = transport.peerCertificate();
    const opening = writeOpening({ secure, isHttp2, remoteAddress, certificate });
    if (opening.length > PIECE_BYTES) {
      this.#free.push(slot);
      return null;
    }
    const relay = new Relay(transport, slot, opening, this);
    this.#bySlot[slot] = relay;
    return relay;
  }

  pauseAll(): void {
    for (const relay of this.#bySlot) {
      if (relay === null || relay.isClosed || this.#waiting.has(relay)) continue;
      this.#waiting.add(relay);
      relay.waitForRoom();
    }
  }

  #readOn(): void {
    let count = 0;
    for (const relay of this.#waiting) {
      if (++count > READ_ON_MAX || this.post.isBehind) break;
      this.#waiting.delete(relay);
      relay.hasRoom();
    }
  }

  /** The other side rang. */
  woken(): void {
    if (this.#isTurnPlanned) return;
    this.#down.wakes();
    this.#turn();
  }

  readonly #turn = (): void => {
    this.#isTurnPlanned = false;
    this.post.pump();
    if (this.#waiting.size > 0) this.#readOn();
    let count = 0;
    for (; count < MESSAGES_MAX && this.#down.next(); count++) {
      try {
        this.#handle();
      } catch (error) {
        blame(error, null);
      }
      this.#down.done();
    }
    if (this.#down.mustRing()) this.#ringBell();
    // one more look after work costs less than a bell
    const isBusy = count > 0 || (this.#waiting.size > 0 && !this.post.isBehind);
    if (isBusy || !this.#down.sleeps()) this.#plan();
  };

  #plan(): void {
    if (this.#isTurnPlanned) return;
    this.#isTurnPlanned = true;
    this.#soon(this.#turn);
  }

  #handle(): void {
    const { kind, slot, bytes, start, end } = this.#down;
    const relay = this.#bySlot[slot] ?? null;
    assert(relay !== null, 'a message is for a connection that there is');
    if (kind === SEND) relay.send(bytes, start, end);
    else if (kind === TAKEN) relay.taken(bytes.readUInt32LE(start));
    else if (kind === END) relay.end();
    else if (kind === DESTROY) relay.destroy();
    else if (kind === FORGET) {
      assert(relay.isClosed, 'what is forgotten has closed');
      this.#bySlot[slot] = null;
      this.#free.push(slot);
    }
  }
}
