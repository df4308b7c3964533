/**
 * Running a write without writing: the same code on other bytes, with a storage that keeps what it
 * is given to itself, and an edge that draws what it is told to.
 */
import type { Connection, Exchange, UpgradedStream } from '@megaplane/wire/exchange';
import { JSON_TYPE } from '../request/negotiation.ts';
import type { Row, Storage } from '../storage/storage.ts';
import type { Edge } from '../lister/world.ts';
import { isQuotaKey } from './independent-kinds.ts';
import type { Drawn } from './template.ts';
import type { FieldList } from '@megaplane/wire/fields';

const SUFFIX_LENGTH = 5;
const SUFFIX_LETTERS = 'bcdfghjklmnpqrstvwxz2456789';

/** What one run of a write did. */
export interface Taken {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly drawn: Drawn;
}

/** Watches one run: its writes, and what it drew. */
export class Run {
  readonly #puts: { readonly key: Buffer; readonly value: Buffer }[] = [];
  readonly #uuids: string[] = [];
  readonly #letters: number[] = [];
  #isOdd = false;

  notePut(key: Buffer, value: Buffer): void {
    this.#puts.push({ key: Buffer.from(key), value: Buffer.from(value) });
  }

  noteUuid(uuid: string): void {
    this.#uuids.push(uuid);
  }

  noteDraw(n: number, value: number): void {
    if (n !== SUFFIX_LETTERS.length) this.noteOdd();
    this.#letters.push(value);
  }

  /** Something happened that a template cannot say. */
  noteOdd(): void {
    this.#isOdd = true;
  }

  /** What was taken down; null unless it was exactly one write. */
  get taken(): Taken | null {
    const [put] = this.#puts;
    const isWhole = this.#letters.length % SUFFIX_LENGTH === 0;
    if (put === undefined || this.#puts.length > 1 || this.#isOdd || !isWhole) return null;
    const suffixes: string[] = [];
    for (let at = 0; at < this.#letters.length; at += SUFFIX_LENGTH) {
      const letters = this.#letters.slice(at, at + SUFFIX_LENGTH);
      suffixes.push(letters.map((letter) => SUFFIX_LETTERS[letter] ?? '').join(''));
    }
    return { ...put, drawn: { uuids: this.#uuids, suffixes } };
  }
}

/** Draws for one more write of a template: as many values as `like` has. */
export function drawAgain(edge: Edge, like: Drawn): Drawn {
  const suffixes = like.suffixes.map(() => {
    let text = '';
    for (let at = 0; at < SUFFIX_LENGTH; at++) {
      text += SUFFIX_LETTERS[edge.below(SUFFIX_LETTERS.length)] ?? '';
    }
    return text;
  });
  return { uuids: like.uuids.map(() => edge.uuid()), suffixes };
}

/** `real` with some of its members replaced. Slow: for runs that are looked at, not for traffic. */
function overlaid<T extends object>(real: T, over: Partial<T>): T {
  return new Proxy(real, {
    get(target, name) {
      const own: unknown = Reflect.get(over, name);
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** The storage and edge of a real run that is watched. */
export function watched(storage: Storage, edge: Edge, run: Run): { storage: Storage; edge: Edge } {
  return {
    storage: overlaid(storage, {
      put: (key, value, expected, done) => {
        // each use of a template is charged by itself
        if (!isQuotaKey(key)) run.notePut(key, value);
        storage.put(key, value, expected, done);
      },
      delete: (key, expected, done) => {
        run.noteOdd();
        storage.delete(key, expected, done);
      },
    }),
    edge: {
      nowMs: () => edge.nowMs(),
      below: (n) => {
        const value = edge.below(n);
        run.noteDraw(n, value);
        return value;
      },
      uuid: () => {
        const uuid = edge.uuid();
        run.noteUuid(uuid);
        return uuid;
      },
      defer: (work) => edge.defer(work),
      deferPiece: (work) => edge.deferPiece(work),
    },
  };
}

/** What a rehearsal is played with. */
export interface Scene {
  readonly storage: Storage;
  readonly nowMs: number;
  readonly drawn: Drawn;
  /** The object that is changed, and where reads find it; null where it is created. */
  readonly stored: {
    readonly key: Buffer;
    readonly bytes: Buffer;
    readonly revision: number;
  } | null;
}

/** The storage and edge of a rehearsal: nothing of it is written. */
export function rehearsed(scene: Scene, run: Run): { storage: Storage; edge: Edge } {
  const { stored, drawn, storage } = scene;
  let uuids = 0;
  let letters = 0;
  return {
    storage: overlaid(storage, {
      get: (key, row) => {
        if (stored === null || !stored.key.equals(key)) return storage.get(key, row);
        fill(row, stored.key, stored.bytes, stored.revision);
        return true;
      },
      put: (key, value) => run.notePut(key, value),
      delete: () => run.noteOdd(),
    }),
    edge: {
      nowMs: () => scene.nowMs,
      below: (n) => {
        const suffix = drawn.suffixes[Math.floor(letters / SUFFIX_LENGTH)] ?? '';
        const value = SUFFIX_LETTERS.indexOf(suffix[letters % SUFFIX_LENGTH] ?? '');
        letters++;
        run.noteDraw(n, value);
        if (value >= 0) return value;
        run.noteOdd();
        return 0;
      },
      uuid: () => {
        const uuid = drawn.uuids[uuids++];
        run.noteUuid(uuid ?? '');
        if (uuid === undefined) run.noteOdd();
        return uuid ?? '';
      },
      defer: () => run.noteOdd(),
      deferPiece: () => run.noteOdd(),
    },
  };
}

function fill(row: Row, key: Buffer, bytes: Buffer, revision: number): void {
  row.key = key;
  row.keyStart = 0;
  row.keyEnd = key.length;
  row.bytes = bytes;
  row.start = 0;
  row.end = bytes.length;
  row.modRevision = revision;
  row.createRevision = 1;
}

/** A request that nobody sent: the head of a real one with another body. Its answer is lost. */
export class RehearsedExchange implements Exchange {
  readonly connection: Connection;
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  readonly body: Buffer;
  readonly closed: boolean = false;
  readonly upgradeProtocol: undefined = undefined;
  onBody: Exchange['onBody'] = null;
  onBodyEnd: Exchange['onBodyEnd'] = null;
  onWritable: Exchange['onWritable'] = null;
  onClose: Exchange['onClose'] = null;
  onHalfClose: Exchange['onHalfClose'] = null;
  readonly #real: Exchange;
  readonly #isText: boolean;

  /** `isText`: the body is JSON, whatever the real one was. */
  constructor(real: Exchange, body: Buffer, isText: boolean) {
    this.#real = real;
    this.#isText = isText;
    this.connection = real.connection;
    this.method = real.method;
    this.path = real.path;
    this.authority = real.authority;
    this.body = body;
  }

  header(name: string): string | undefined {
    return this.#isText && name === 'content-type' ? JSON_TYPE : this.#real.header(name);
  }

  fields(): FieldList {
    return this.#real.fields();
  }

  keepBody(): Buffer {
    return this.body;
  }

  writable(): number {
    return 0;
  }

  upgrade(): UpgradedStream {
    throw new Error('a rehearsal cannot be upgraded');
  }

  pauseBody(): void {
    // the body is there as a whole
  }

  resumeBody(): void {
    // the body is there as a whole
  }

  respond(): void {
    // nobody asked
  }

  respondCopy(): void {
    // nobody asked
  }

  open(): void {
    // nobody asked
  }

  write(): void {
    // nobody asked
  }

  end(): void {
    // nobody asked
  }

  reset(): void {
    // nobody asked
  }
}
