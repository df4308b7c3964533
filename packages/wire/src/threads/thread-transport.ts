// shell
/**
 * A connection whose socket belongs to another thread, as a `Transport`.
 *
 * All that HTTP decides is decided here, on the thread that serves, by the same protocols and under
 * the same limits as for a socket of its own. The other thread reads, decrypts, encrypts, writes.
 *
 * `write` copies into the ring and the memory is the caller's again. What the kernel has taken is
 * counted by the other thread in shared memory, so `pending` asks nobody.
 */
import { blame, endOfTurn, nextTurn } from '@megaplane/base/deferred';
import type { PeerCertificate, Rest } from '../http/exchange.ts';
import { countOutstanding } from '../transport/outstanding.ts';
import type { ReadRounds, RestingReader } from '../transport/read-rounds.ts';
import type { Protocol, Transport } from '../transport/transport.ts';
import { DESTROY, END, PIECE_BYTES, SEND, TAKEN, TAKEN_BYTES, type Opening } from './messages.ts';

const NOTHING: Buffer = Buffer.alloc(0);
const COUNT: Buffer = Buffer.alloc(4);
/** Those that asked for a turn have theirs for so long before anything else goes on. */
const TURNS_MS_MAX = 4;

let now: number = performance.now();
let flushes: ThreadTransport[] = [];
let turns: ThreadTransport[] = [];
let areTurnsPlanned = false;

/** What a connection asks of the thread that owns its socket. */
export interface ThreadPort {
  /** Bounds what is read of all connections at a time; null: nothing does. */
  readonly rounds: ReadRounds | null;
  send(kind: number, slot: number, bytes: Buffer, start: number, end: number): void;
  /** Octets of the slot that the kernel has taken, modulo 2^32. */
  writtenOf(slot: number): number;
  /** So many octets more wait here for the next round, or fewer. */
  countHeld(change: number): void;
  /** The first octets came and no protocol was chosen yet: choose one, or null to wait. */
  choose(transport: ThreadTransport, bytes: Buffer): Protocol | null;
}

export class ThreadTransport implements Transport, RestingReader {
  readonly id: number;
  readonly slot: number;
  readonly secure: boolean;
  readonly unix = false;
  readonly remoteAddress: string;
  protocol: Protocol | null = null;
  /** Octets received since somebody looked, as a measure of its load. */
  recentBytes = 0;
  loudRound = 0;
  readRound = 0;
  readBytes = 0;
  readMs = 0;
  readCycle = 0;
  isResting = false;
  readonly #port: ThreadPort;
  readonly #bornMs: number;
  readonly #certificate: PeerCertificate | null;
  #early: Buffer | null = null;
  /** Came while it was paused or at rest. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #isPaused = false;
  #hasPeerEnded = false;
  /** Of `#hasPeerEnded`, told to the protocol. */
  #isEndTold = false;
  #isOver = false;
  #isMoving = false;
  #sent = 0;
  #counted = 0;
  #untold = 0;
  #flushAsked = false;
  #turnAsked = false;

  constructor(id: number, slot: number, opening: Opening, port: ThreadPort) {
    now = performance.now();
    this.id = id;
    this.slot = slot;
    this.secure = opening.secure;
    this.remoteAddress = opening.remoteAddress;
    this.#certificate = opening.certificate;
    this.#port = port;
    this.#bornMs = now;
  }

  peerCertificate(): PeerCertificate | null {
    return this.#certificate;
  }

  write(bytes: Buffer, start: number, end: number): boolean {
    if (this.#isOver) return true;
    for (let at = start; at < end; at += PIECE_BYTES) {
      this.#port.send(SEND, this.slot, bytes, at, Math.min(end, at + PIECE_BYTES));
    }
    this.#sent = (this.#sent + end - start) >>> 0;
    this.#count(this.pending());
    return true;
  }

  #count(bytes: number): void {
    if (bytes === this.#counted) return;
    countOutstanding(bytes - this.#counted);
    this.#counted = bytes;
  }

  pending(): number {
    return this.#isOver ? 0 : (this.#sent - this.#port.writtenOf(this.slot)) >>> 0;
  }

  /** What is written meanwhile waits in the ring, and its memory is free at once. */
  writing(): boolean {
    return false;
  }

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    // waits for its peer, and not for us
    this.#port.countHeld(-this.#heldBytes);
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#port.countHeld(this.#heldBytes);
    if (this.#held.length > 0 || this.#hasPeerEnded) this.requestTurn();
  }

  /** Whether its client can be asked to come again, and has not been. */
  get isMovable(): boolean {
    return this.protocol?.protocol === 'h2' && !this.#isMoving;
  }

  /** Asks its client to come again: what is under way ends here. */
  move(): void {
    this.#isMoving = true;
    this.#act((protocol) => protocol.drain());
  }

  /** Serves what is under way, and nothing more. */
  leave(): void {
    if (this.protocol === null) this.destroy();
    else this.#act((protocol) => protocol.drain());
  }

  requestFlush(): void {
    if (this.#flushAsked) return;
    this.#flushAsked = true;
    if (flushes.push(this) === 1) endOfTurn(flushAll);
  }

  requestTurn(): void {
    if (this.#turnAsked) return;
    this.#turnAsked = true;
    turns.push(this);
    planTurns();
  }

  end(): void {
    this.resume();
    this.#tell(END);
  }

  destroy(): void {
    if (this.#isOver) return;
    this.#tell(DESTROY);
    this.#isOver = true;
    this.#dropHeld();
  }

  #hold(piece: Buffer): void {
    this.#held.push(piece);
    this.#countHeld(piece.length);
  }

  #countHeld(change: number): void {
    this.#heldBytes += change;
    if (!this.#isPaused) this.#port.countHeld(change);
  }

  #dropHeld(): void {
    this.#held = [];
    this.#countHeld(-this.#heldBytes);
  }

  #tell(kind: number): void {
    if (!this.#isOver) this.#port.send(kind, this.slot, NOTHING, 0, 0);
  }

  nowMs(): number {
    return now;
  }

  preciseMs(): number {
    return performance.now();
  }

  /** About once a second. */
  tick(nowMs: number, handshakeMsMax: number): void {
    now = nowMs;
    this.#count(this.pending());
    if (this.protocol !== null) this.#act((protocol) => protocol.tick(nowMs));
    else if (nowMs - this.#bornMs > handshakeMsMax) this.destroy();
  }

  /** The octets are lent for the call. */
  received(bytes: Buffer, start: number, end: number): void {
    if (this.#isOver) return;
    this.recentBytes += end - start;
    if (this.isResting || this.#isPaused || this.#held.length > 0) {
      this.#hold(Buffer.from(bytes.subarray(start, end)));
      return;
    }
    this.#take(bytes, start, end);
  }

  #take(bytes: Buffer, start: number, end: number): void {
    const { rounds } = this.#port;
    rounds?.begin();
    now = performance.now();
    try {
      if (this.protocol === null) this.#takeEarly(bytes, start, end);
      else {
        this.protocol.receive(bytes, start, end);
        this.protocol.flush();
      }
    } catch (error) {
      this.#broke(error);
    }
    this.#tellTaken(end - start);
    rounds?.goesOn(this, end - start);
  }

  #takeEarly(bytes: Buffer, start: number, end: number): void {
    const whole = Buffer.concat([this.#early ?? NOTHING, bytes.subarray(start, end)]);
    this.protocol = this.#port.choose(this, whole);
    this.#early = this.protocol === null ? whole : null;
    if (this.protocol === null) return;
    this.protocol.receive(whole, 0, whole.length);
    this.protocol.flush();
  }

  /** The other thread reads on when it knows that this one keeps up. */
  #tellTaken(count: number): void {
    this.#untold += count;
    if (this.#untold < TAKEN_BYTES || this.#isOver) return;
    COUNT.writeUInt32LE(this.#untold, 0);
    this.#untold = 0;
    this.#port.send(TAKEN, this.slot, COUNT, 0, COUNT.length);
  }

  restOf(): Rest {
    return this.protocol?.rest ?? 'late';
  }

  rest(): void {
    // What comes from now on is held.
  }

  wake(): void {
    if (this.#held.length > 0 || this.#hasPeerEnded) this.requestTurn();
  }

  /** One held piece; the next one has another turn. */
  #takeHeld(): void {
    if (this.isResting || this.#isPaused || this.#isOver) return;
    const next = this.#held.shift();
    if (next !== undefined) {
      this.#countHeld(-next.length);
      this.#take(next, 0, next.length);
    }
    if (this.#held.length > 0) {
      if (!this.isResting && !this.#isPaused) this.requestTurn();
    } else if (this.#hasPeerEnded) this.#tellEnd();
  }

  peerEnded(): void {
    this.#hasPeerEnded = true;
    if (this.#held.length === 0) this.#tellEnd();
  }

  #tellEnd(): void {
    if (this.#isEndTold || this.#isOver) return;
    this.#isEndTold = true;
    if (this.protocol === null) this.destroy();
    else this.#act((protocol) => protocol.ended());
  }

  drained(): void {
    now = performance.now();
    this.#count(this.pending());
    this.#drain();
  }

  #drain(): void {
    if (this.#isOver) return;
    try {
      this.protocol?.drained();
    } catch (error) {
      this.#broke(error);
    }
  }

  /** The socket is gone. */
  gone(): void {
    now = performance.now();
    this.#isOver = true;
    this.#dropHeld();
    this.#count(0);
    const { protocol } = this;
    this.protocol = null;
    try {
      protocol?.closed();
    } catch (error) {
      blame(error, null);
    }
  }

  #act(work: (protocol: Protocol) => void): void {
    try {
      if (this.protocol !== null) work(this.protocol);
      this.protocol?.flush();
    } catch (error) {
      this.#broke(error);
    }
  }

  /** An error in what handles this connection ends the connection, and nothing else. */
  #broke(error: unknown): void {
    this.destroy();
    blame(error, null);
  }

  flushAsked(): void {
    this.#flushAsked = false;
    try {
      this.protocol?.flush();
    } catch (error) {
      this.#broke(error);
    }
  }

  turnAsked(): void {
    this.#turnAsked = false;
    this.#drain();
    this.#takeHeld();
  }
}

function flushAll(): void {
  const asked = flushes;
  flushes = [];
  for (const transport of asked) transport.flushAsked();
}

function planTurns(): void {
  if (areTurnsPlanned) return;
  areTurnsPlanned = true;
  nextTurn(turnAll);
}

function turnAll(): void {
  areTurnsPlanned = false;
  now = performance.now();
  const endMs = now + TURNS_MS_MAX;
  const asked = turns;
  turns = [];
  for (const [index, transport] of asked.entries()) {
    transport.turnAsked();
    now = performance.now();
    if (now < endMs) continue;
    // others go on before the rest has its turn, which is ahead of who asked meanwhile
    turns = [...asked.slice(index + 1), ...turns];
    break;
  }
  if (turns.length > 0) planTurns();
}
