// data plane: nodes from their bytes
import type { Random } from '@megaplane/base/random';
import { parseJson } from '@megaplane/machinery/json-text';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { MemberCursor } from '@megaplane/machinery/scan';
import { ByteCache } from '../collections/byte-cache.ts';
import { factsOf, HOSTNAME_KEY, type NodeFacts } from './node-facts.ts';
import type { NodeObject } from '../api/objects.ts';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const HOSTNAME = encode(HOSTNAME_KEY);
/** What `factsOf` looks at, beside labels and name. */
const SPEC_MEMBERS: readonly Uint8Array[] = ['taints', 'unschedulable'].map(encode);
const STATUS_MEMBERS: readonly Uint8Array[] = ['allocatable', 'images', 'declaredFeatures'].map(
  encode,
);
/** Stands for the name of the node, and ends each part; neither is in a text of JSON. */
const OWN_NAME = 1;
const SEPARATOR = 2;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Likenesses that are remembered. */
const CACHE_ENTRIES_MAX = 4096;
/** A node that says more than this of itself (its images, mostly) is decoded each time. */
const KEY_BYTES_MAX = 8192;

/**
 * Reads nodes without decoding each: what a million nodes say is the same but for their names,
 * times and addresses. What of it may matter to placement is put together as a key, with a mark
 * where the node's own name stands as its host name; only a key that is new is decoded.
 */
export class NodeReader {
  readonly #facts: (NodeFacts | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #known: ByteCache;
  readonly #scan = new ObjectScan();
  readonly #cursor = new MemberCursor();
  readonly #key = Buffer.allocUnsafe(KEY_BYTES_MAX);
  #length = 0;

  constructor(random: Random) {
    this.#known = new ByteCache(random, CACHE_ENTRIES_MAX, (slot) => {
      this.#facts[slot] = undefined;
      this.#free.push(slot);
    });
  }

  /** The facts of the node that stands there in JSON. */
  read(bytes: Buffer, start: number, end: number): NodeFacts {
    const scan = this.#scan;
    const isPlain = scan.scan(bytes, start, end) && this.#makeKey(bytes);
    if (!isPlain) return factsOf(decoded(bytes, start, end));
    const slot = this.#known.find(this.#key, 0, this.#length);
    const alike = slot < 0 ? undefined : this.#facts[slot];
    if (alike !== undefined) {
      return { ...alike, name: bytes.utf8Slice(scan.nameStart, scan.nameEnd) };
    }
    const facts = factsOf(decoded(bytes, start, end));
    this.#keep(facts);
    return facts;
  }

  #keep(facts: NodeFacts): void {
    const { allocatable } = facts.object.status ?? {};
    const object: NodeObject = {
      metadata: { name: '' },
      ...(allocatable === undefined ? {} : { status: { allocatable } }),
    };
    // the cache may give up others first, and leave their slots
    const slot = this.#free.pop() ?? this.#facts.length;
    this.#facts[slot] = { ...facts, object };
    this.#known.add(this.#key, 0, this.#length, slot);
  }

  /** False where the node has to be decoded. */
  #makeKey(bytes: Buffer): boolean {
    const { nameStart, nameEnd, labelsStart, labelsEnd } = this.#scan;
    const { specStart, specEnd, statusStart, statusEnd } = this.#scan;
    this.#length = 0;
    if (!isPlainText(bytes, nameStart, nameEnd)) return false;
    return (
      this.#takeLabels(bytes, labelsStart, labelsEnd) &&
      this.#takeMembers(bytes, specStart, specEnd, SPEC_MEMBERS) &&
      this.#takeMembers(bytes, statusStart, statusEnd, STATUS_MEMBERS)
    );
  }

  #takeLabels(bytes: Buffer, start: number, end: number): boolean {
    if (start < 0) return this.#mark(SEPARATOR);
    const cursor = this.#cursor;
    const { nameStart, nameEnd } = this.#scan;
    let from = start;
    if (!cursor.open(bytes, start, end)) return false;
    while (cursor.next()) {
      if (!cursor.is(HOSTNAME)) continue;
      const first = cursor.valueStart + 1;
      const last = cursor.valueEnd - 1;
      const isOwn =
        bytes[cursor.valueStart] === QUOTE &&
        bytes.compare(bytes, nameStart, nameEnd, first, last) === 0;
      if (!isOwn) continue;
      if (!this.#take(bytes, from, first) || !this.#mark(OWN_NAME)) return false;
      from = last;
    }
    return cursor.isClosed && this.#take(bytes, from, end) && this.#mark(SEPARATOR);
  }

  /** Of the object there, the members that have one of the names, with these. */
  #takeMembers(bytes: Buffer, start: number, end: number, names: readonly Uint8Array[]): boolean {
    if (start < 0) return this.#mark(SEPARATOR);
    const cursor = this.#cursor;
    if (!cursor.open(bytes, start, end)) return false;
    while (cursor.next()) {
      if (!names.some((name) => cursor.is(name))) continue;
      const isTaken =
        this.#take(bytes, cursor.keyStart, cursor.keyEnd) &&
        this.#mark(SEPARATOR) &&
        this.#take(bytes, cursor.valueStart, cursor.valueEnd) &&
        this.#mark(SEPARATOR);
      if (!isTaken) return false;
    }
    return cursor.isClosed && this.#mark(SEPARATOR);
  }

  #take(bytes: Buffer, start: number, end: number): boolean {
    if (end - start > KEY_BYTES_MAX - this.#length) return false;
    this.#length += bytes.copy(this.#key, this.#length, start, end);
    return true;
  }

  #mark(byte: number): boolean {
    if (this.#length === KEY_BYTES_MAX) return false;
    this.#key[this.#length++] = byte;
    return true;
  }
}

/** Characters of ASCII that stand for themselves. */
function isPlainText(bytes: Uint8Array, start: number, end: number): boolean {
  if (start < 0) return false;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === BACKSLASH || byte >= 0x80) return false;
  }
  return true;
}

function decoded(bytes: Buffer, start: number, end: number): NodeObject {
  return parseJson(bytes.toString('utf8', start, end)) as unknown as NodeObject;
}
