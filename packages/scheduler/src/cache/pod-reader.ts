// data plane: pods from their bytes
import type { Random } from '@megaplane/base/random';
import { parseJson } from '@megaplane/machinery/json-text';
import { MemberCursor, skipSpace, stringValue } from '@megaplane/machinery/scan';
import { ByteCache } from '../collections/byte-cache.ts';
import type { Interner } from '../collections/interner.ts';
import type { Identities } from './identities.ts';
import type { NodeTable } from './node-table.ts';
import type { Labels, OwnerReference, PodObject } from '../api/objects.ts';
import { templateOf } from './pod-class.ts';
import type { PodFacts } from './pod-facts.ts';
import { EVICTED } from './pod-table.ts';
import { SpecKey } from './spec-key.ts';
import { podRequests, podRequestsNonZero } from '../api/resources.ts';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const METADATA = encode('metadata');
const SPEC = encode('spec');
const STATUS = encode('status');
const NAMESPACE = encode('namespace');
const UID = encode('uid');
const LABELS = encode('labels');
const OWNERS = encode('ownerReferences');
const GENERATION = encode('generation');
const VERSION = encode('resourceVersion');
const DELETION = encode('deletionTimestamp');
const CLAIM_STATUSES = encode('resourceClaimStatuses');
const NOMINATED = encode('nominatedNodeName');
const START_TIME = encode('startTime');
const CONTAINER_STATUSES = encode('containerStatuses');
const INIT_STATUSES = encode('initContainerStatuses');
const RESOURCES = encode('resources');

/** Specs, label sets and so on that are known by their bytes; each a few hundred bytes. */
const CACHE_ENTRIES_MAX = 16_384;
const EMPTY = Buffer.alloc(0);

/**
 * Reads pods without decoding them: a spec that was met before is known by its bytes (without the
 * node's name), and so are labels and owners. Only what is new is parsed.
 */
export class PodReader {
  readonly facts: PodFacts = {
    podClass: 0,
    labels: 0,
    namespace: 0,
    owner: 0,
    usage: 0,
    node: -1,
    isTerminating: 0,
    startMs: 0,
    specGeneration: 0,
    version: 0,
    nominated: '',
    claims: '',
    uid: new Uint32Array(4),
  };
  readonly #identities: Identities;
  readonly #nodes: NodeTable;
  readonly #specs: ByteCache;
  readonly #labels: ByteCache;
  readonly #namespaces: ByteCache;
  readonly #owners: ByteCache;
  readonly #top = new MemberCursor();
  readonly #inner = new MemberCursor();
  readonly #specKey = new SpecKey();
  #hasResizes = false;

  constructor(identities: Identities, nodes: NodeTable, random: Random) {
    this.#identities = identities;
    this.#nodes = nodes;
    const cache = <T>(held: Interner<T>): ByteCache =>
      new ByteCache(
        random,
        CACHE_ENTRIES_MAX,
        (id) => held.unhold(id),
        (id) => held.isUsed(id),
      );
    this.#specs = cache(identities.classes);
    this.#labels = cache(identities.labels);
    this.#namespaces = cache(identities.namespaces);
    this.#owners = cache(identities.owners);
  }

  /** Fills `facts` from the JSON of a pod; false where that is none. */
  read(bytes: Buffer, start: number, end: number): boolean {
    const { facts } = this;
    facts.node = -1;
    facts.isTerminating = 0;
    facts.startMs = 0;
    facts.specGeneration = 0;
    facts.version = 0;
    facts.nominated = '';
    facts.claims = '';
    facts.uid.fill(0);
    facts.podClass = -1;
    facts.labels = -1;
    facts.namespace = -1;
    facts.owner = -1;
    this.#hasResizes = false;
    const top = this.#top;
    if (!top.open(bytes, skipSpace(bytes, start, end), end)) return false;
    while (top.next()) {
      const { valueStart, valueEnd } = top;
      if (top.is(METADATA)) this.#readMetadata(bytes, valueStart, valueEnd);
      else if (top.is(SPEC)) this.#readSpec(bytes, valueStart, valueEnd);
      else if (top.is(STATUS)) this.#readStatus(bytes, valueStart, valueEnd);
    }
    if (facts.podClass < 0) return this.#giveUp();
    if (facts.labels < 0) facts.labels = this.#labelsOf(EMPTY, 0, 0);
    if (facts.namespace < 0) facts.namespace = this.#identities.acquireNamespace('default');
    if (facts.owner < 0) facts.owner = this.#identities.acquireOwner(undefined);
    if (facts.isTerminating !== 0) this.#readEviction(bytes, start, end);
    facts.usage = this.#usageOf(bytes, start, end);
    return true;
  }

  #giveUp(): boolean {
    const { labels, namespace, owner } = this.facts;
    if (labels >= 0) this.#identities.labels.release(labels);
    if (namespace >= 0) this.#identities.namespaces.release(namespace);
    if (owner >= 0) this.#identities.owners.release(owner);
    return false;
  }

  #readMetadata(bytes: Buffer, start: number, end: number): void {
    const cursor = this.#inner;
    const { facts } = this;
    cursor.open(bytes, start, end);
    while (cursor.next()) {
      const { valueStart, valueEnd } = cursor;
      if (cursor.is(NAMESPACE)) facts.namespace = this.#namespaceOf(bytes, valueStart, valueEnd);
      else if (cursor.is(LABELS)) facts.labels = this.#labelsOf(bytes, valueStart, valueEnd);
      else if (cursor.is(OWNERS)) facts.owner = this.#ownerOf(bytes, valueStart, valueEnd);
      else if (cursor.is(UID)) readUid(bytes, valueStart + 1, valueEnd - 1, facts.uid);
      else if (cursor.is(DELETION)) facts.isTerminating = 1;
      else if (cursor.is(GENERATION)) {
        facts.specGeneration = wholeNumber(bytes, valueStart, valueEnd);
      } else if (cursor.is(VERSION)) {
        facts.version = wholeNumber(bytes, valueStart + 1, valueEnd - 1);
      }
    }
  }

  /** What matters of the spec is what pods of a class share; the node's name is looked up. */
  #readSpec(bytes: Buffer, start: number, end: number): void {
    const key = this.#specKey;
    key.make(bytes, start, end);
    if (key.nodeNameEnd > key.nodeNameStart) {
      this.facts.node = this.#nodes.idOfBytes(bytes, key.nodeNameStart, key.nodeNameEnd);
    }
    const { classes } = this.#identities;
    const known = this.#specs.find(key.bytes, 0, key.length);
    if (known >= 0) {
      classes.retain(known);
      this.facts.podClass = known;
      return;
    }
    const spec = parseJson(bytes.toString('utf8', start, end)) as PodObject['spec'];
    const made = this.#identities.acquireClass(templateOf({ metadata: { name: '' }, spec }));
    classes.hold(made);
    this.#specs.add(key.bytes, 0, key.length, made);
    this.facts.podClass = made;
  }

  #readStatus(bytes: Buffer, start: number, end: number): void {
    const cursor = this.#inner;
    cursor.open(bytes, start, end);
    while (cursor.next()) {
      const { valueStart, valueEnd } = cursor;
      if (cursor.is(START_TIME)) {
        this.facts.startMs = Date.parse(stringValue(bytes, valueStart, valueEnd));
      } else if (cursor.is(NOMINATED)) {
        this.facts.nominated = stringValue(bytes, valueStart, valueEnd);
      } else if (cursor.is(CLAIM_STATUSES)) {
        this.facts.claims = bytes.toString('utf8', valueStart, valueEnd);
      } else if (cursor.is(RESOURCES)) {
        this.#hasResizes = true;
      } else if (cursor.is(CONTAINER_STATUSES) || cursor.is(INIT_STATUSES)) {
        const at = bytes.indexOf('"resources"', valueStart);
        if (at >= 0 && at < valueEnd) this.#hasResizes = true;
      }
    }
  }

  /** Only pods that leave are asked why; they are few. */
  #readEviction(bytes: Buffer, start: number, end: number): void {
    const pod = parseJson(bytes.toString('utf8', start, end)) as unknown as PodObject;
    const isEvicted = pod.status?.conditions?.some(
      ({ type, status, reason }) =>
        type === 'DisruptionTarget' && status === 'True' && reason === 'PreemptionByScheduler',
    );
    if (isEvicted === true) this.facts.isTerminating = EVICTED;
  }

  /** Pods that report resources of their containers may be in the middle of a resize. */
  #usageOf(bytes: Buffer, start: number, end: number): number {
    const { usages } = this.#nodes;
    if (this.#hasResizes) {
      const pod = parseJson(bytes.toString('utf8', start, end)) as unknown as PodObject;
      return usages.acquire(podRequests(pod), podRequestsNonZero(pod));
    }
    const podClass = this.#identities.classes.get(this.facts.podClass);
    if (podClass.usage < 0) {
      podClass.usage = usages.acquire(podClass.requests, podClass.requestsNonZero);
    }
    usages.retain(podClass.usage);
    return podClass.usage;
  }

  #namespaceOf(bytes: Buffer, start: number, end: number): number {
    const { namespaces } = this.#identities;
    const known = this.#namespaces.find(bytes, start, end);
    if (known >= 0) {
      namespaces.retain(known);
      return known;
    }
    const id = this.#identities.acquireNamespace(stringValue(bytes, start, end));
    namespaces.hold(id);
    this.#namespaces.add(bytes, start, end, id);
    return id;
  }

  #labelsOf(bytes: Buffer, start: number, end: number): number {
    const { labels } = this.#identities;
    const known = this.#labels.find(bytes, start, end);
    if (known >= 0) {
      labels.retain(known);
      return known;
    }
    const value = start === end ? {} : (parseJson(bytes.toString('utf8', start, end)) as Labels);
    const id = this.#identities.acquireLabels(value);
    labels.hold(id);
    this.#labels.add(bytes, start, end, id);
    return id;
  }

  #ownerOf(bytes: Buffer, start: number, end: number): number {
    const { owners } = this.#identities;
    const known = this.#owners.find(bytes, start, end);
    if (known >= 0) {
      owners.retain(known);
      return known;
    }
    const value = parseJson(bytes.toString('utf8', start, end)) as unknown as OwnerReference[];
    const id = this.#identities.acquireOwner(value);
    owners.hold(id);
    this.#owners.add(bytes, start, end, id);
    return id;
  }
}

/** The four words of `8-4-4-4-12` hexadecimal digits; zeros for anything else. */
function readUid(bytes: Uint8Array, start: number, end: number, words: Uint32Array): void {
  words.fill(0);
  if (end - start !== 36) return;
  let digits = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === 0x2d) continue;
    const digit = byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57;
    if (digit < 0 || digit > 15) return void words.fill(0);
    words[digits >>> 3] = (words[digits >>> 3]! << 4) | digit;
    digits++;
  }
}

/** Digits as a number; anything else ends it. */
function wholeNumber(bytes: Uint8Array, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = bytes[at]! - 0x30;
    if (digit < 0 || digit > 9) break;
    value = value * 10 + digit;
  }
  return value;
}
