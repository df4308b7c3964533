/**
 * Follows the CustomResourceDefinitions of a server: what they say is served, what they should say
 * of themselves is written into their status, and what they leave behind is cleared away.
 *
 * All news come by the storage's watch, whoever wrote them: this server, another one on the same
 * etcd, a restored backup. Definitions cost nothing between changes: there is one cursor for all.
 */
import { isDeepStrictEqual } from 'node:util';
import type { WebhookCaller } from '../../webhook/webhook-call.ts';
import { decodeRow, isCanonical } from '../../serializer/encoder.ts';
import {
  findServed,
  keyAfter,
  rangeOf,
  type Served,
  DEFINITIONS_PREFIX,
} from '../../storage/served.ts';
import { trackOwnStatus } from '../../fieldmanager/tracking.ts';
import { emptyEvent, emptyRow, type Row, type StorageWatch } from '../../storage/storage.ts';
import type { World } from '../../lister/world.ts';
import { clearInstances, encodeStored, type Stored } from './clearing.ts';
import { ConvertedViews } from '../conversion/converted-views.ts';
import { CustomKind } from '../schema/custom-kind.ts';
import { CustomSchemas } from '../schema/custom-schemas.ts';
import {
  readFacts,
  readWithoutSchemas,
  type DefinitionFacts,
} from '../definition/definition-facts.ts';
import { DefinitionReading } from './definition-reading.ts';
import { claimNames, statusOf } from './definition-rules.ts';
import { schemaSpans } from '../definition/schema-spans.ts';

const event = emptyEvent();
const row = emptyRow();

export class CustomDefinitions {
  readonly #world: World;
  readonly #served: Served;
  readonly #schemas: CustomSchemas;
  readonly #views: ConvertedViews;
  #watch: StorageWatch | null = null;
  /** Definitions whose objects are being removed. */
  readonly #clearing = new Set<string>();
  /** Definitions that wait for somebody else's names. */
  readonly #refused = new Set<string>();
  /** Learned while others were still to be read: their names are judged after that. */
  #unsettled: Set<string> | null = null;

  constructor(world: World, caller: WebhookCaller | null) {
    this.#world = world;
    this.#views = new ConvertedViews(world, caller);
    const served = findServed('apiextensions.k8s.io', 'v1', 'customresourcedefinitions');
    if (served === undefined) throw new Error('the tables have no CustomResourceDefinitions');
    this.#served = served;
    this.#schemas = new CustomSchemas(() => this.#home);
  }

  get #home(): World['storage'] {
    return this.#world.at(this.#served).storage;
  }

  /** Reads what there is, in slices, and follows it from then on. */
  start(): void {
    const { kinds, edge } = this.#world;
    this.#open().begin((work) => edge.deferPiece(work));
    kinds.catchUp = () => this.#drain();
    kinds.written = (name) => this.#catchUp(name);
    kinds.viewOf = (served) => this.#views.of(served);
    kinds.convertTo = (target, object, then) => this.#views.convertTo(target, object, then);
  }

  /** What conversions take. */
  print(lines: string[]): void {
    this.#views.metrics.print(lines);
  }

  #open(): DefinitionReading {
    const { kinds } = this.#world;
    const { start, end } = rangeOf(this.#served, '');
    const storage = this.#home;
    const known = new Set(Array.from(kinds.custom(), (kind) => kind.facts.name));
    const unsettled = new Set<string>();
    this.#watch?.close();
    this.#watch = storage.watch(start, end, storage.publishedRevision, () => this.#drain());
    const learn = (one: Row): void => {
      const { name, isSettled, isEnding } = this.#learn(one, null);
      known.delete(name);
      if (!isSettled || isEnding) unsettled.add(name);
    };
    const done = (): void => {
      this.#unsettled = null;
      kinds.unread = null;
      for (const name of known) this.#forget(name);
      for (const name of unsettled) this.#settle(name);
    };
    this.#unsettled = unsettled;
    const reading = new DefinitionReading({ storage, start, end, learn, done });
    kinds.unread = reading;
    return reading;
  }

  #drain(): void {
    for (;;) {
      const outcome = this.#watch?.next(event) ?? 'gone';
      if (outcome === 'idle' || outcome === 'lagging') return;
      if (outcome === 'gone') {
        this.#open().rest();
        return;
      }
      const key = event.value.key.toString('utf8', event.value.keyStart, event.value.keyEnd);
      const name = key.slice(DEFINITIONS_PREFIX.length);
      if (event.isDelete) {
        this.#forget(name);
        continue;
      }
      // a definition that was read since is newer than what is told of it here
      const { revision = 0 } = this.#world.kinds.byName(name) ?? {};
      if (revision > event.revision) continue;
      this.#learn(event.value, event.isCreate ? null : event.previous);
      this.#settle(name);
    }
  }

  /** Takes over what a stored definition says. */
  #learn(value: Row, previous: Row | null): DefinitionFacts {
    const { kinds } = this.#world;
    const facts = readFacts(value.bytes, value.start, value.end);
    const before = kinds.byName(facts.name);
    if (before?.revision === value.modRevision) return facts;
    const isSame = before?.facts.uid === facts.uid;
    const since =
      isSame && previous !== null ? unchangedSince(before, facts, value, previous) : null;
    const { modRevision } = value;
    const isReadOn = before !== undefined && isReadAlike(before.facts, facts);
    const isBeside = this.#world.storageOf(prefixOf(facts)) === this.#home;
    const readSince = isReadOn ? before.readSince : isBeside ? modRevision : 0;
    kinds.set(new CustomKind(facts, modRevision, this.#schemas, readSince, since));
    if (before !== undefined && !isReadOn) {
      this.#world.dropHub(before.prefix, isBeside ? modRevision - 1 : undefined);
    }
    if (before !== undefined) this.#leave(before, facts, isReadOn);
    return facts;
  }

  /**
   * A definition was written here: from this turn on its objects are read as it says, not only when
   * the write is told of. So no revision has two forms of them.
   */
  #catchUp(name: string): void {
    const { kinds } = this.#world;
    const before = kinds.byName(name);
    const key = Buffer.from(DEFINITIONS_PREFIX + name);
    if (before === undefined || !this.#home.get(key, row)) return;
    if (row.modRevision === before.revision) return;
    const value = { ...row, bytes: Buffer.from(row.bytes.subarray(row.start, row.end)) };
    Object.assign(value, { start: 0, end: value.bytes.length });
    let previous: Row | null = null;
    this.#home.page(key, keyAfter(key), before.revision, (one) => {
      previous = one;
      return false;
    });
    this.#learn(value, previous);
  }

  /** Views end with what they are made by; names that are given up come to others. */
  #leave(before: CustomKind, facts: DefinitionFacts, isReadOn: boolean): void {
    if (!isReadOn || before.facts.isMixed !== facts.isMixed) this.#views.drop(before);
    const hadNames = before.facts.names.plural !== '';
    if (hadNames && !isDeepStrictEqual(before.facts.names, facts.names)) {
      this.#retryRefused(facts.group);
    }
  }

  #forget(name: string): void {
    const kind = this.#world.kinds.remove(name);
    this.#refused.delete(name);
    if (kind === undefined) return;
    for (const { custom } of kind.all()) if (custom !== null) this.#schemas.drop(custom);
    this.#views.drop(kind);
    this.#world.dropHub(kind.prefix);
    this.#retryRefused(kind.facts.group);
  }

  /** Names became free: who was refused may have them now. */
  #retryRefused(group: string): void {
    for (const name of [...this.#refused]) if (name.endsWith(`.${group}`)) this.#settle(name);
  }

  /** Brings the status of a definition up to date, and goes on with its end. */
  #settle(name: string): void {
    if (this.#unsettled !== null) {
      this.#unsettled.add(name);
      return;
    }
    const kind = this.#world.kinds.byName(name);
    if (kind === undefined) return;
    const key = Buffer.from(DEFINITIONS_PREFIX + name);
    const { isEnding, isSettled } = kind.facts;
    if (isSettled) {
      if (isEnding) this.#clear(kind, key);
      return;
    }
    const { edge } = this.#world;
    const settle = (): void => {
      const isWritten = this.#writeStatus(name, key);
      if (isEnding && !isWritten) this.#clear(kind, key);
    };
    if (edge.runPiece === undefined) settle();
    else edge.runPiece(settle, () => {});
  }

  /** False where there is nothing to write. */
  #writeStatus(name: string, key: Buffer): boolean {
    const kind = this.#world.kinds.byName(name);
    const stored = this.#read(key);
    if (kind === undefined || stored === null) return false;
    const status = statusOf(this.#world, stored.object);
    const areAccepted = kind.facts.state.areNamesAccepted;
    if (status === null) {
      if (areAccepted) this.#refused.delete(name);
      else this.#refused.add(name);
      return false;
    }
    const settled = { ...stored.object, status };
    trackOwnStatus(this.#served, stored.object, settled, this.#world.edge.nowMs());
    claimNames(this.#world, settled);
    const next = encodeStored(settled, stored);
    // who wrote in between is settled when that write is read
    this.#home.put(key, next, stored.revision, () => this.#catchUp(name));
    return true;
  }

  #read(key: Buffer): Stored | null {
    if (!this.#home.get(key, row)) return null;
    const { bytes, start, end, modRevision: revision } = row;
    if (!isCanonical(this.#served, row)) {
      return { object: decodeRow(this.#served, row, revision), revision, schemas: [] };
    }
    const spans = schemaSpans(bytes, start, end);
    const schemas = spans.map((span) => Buffer.from(bytes.subarray(span.start, span.end)));
    return { object: readWithoutSchemas(bytes, start, end, spans), revision, schemas };
  }

  #clear(kind: CustomKind, key: Buffer): void {
    const { name } = kind.facts;
    if (this.#clearing.has(name)) return;
    this.#clearing.add(name);
    const done = (): void => void this.#clearing.delete(name);
    const read = (): Stored | null => this.#read(key);
    clearInstances({ world: this.#world, kind, key, home: this.#home, read, done });
  }
}

function prefixOf({ group, plural }: DefinitionFacts): string {
  return `/registry/${group}/${plural}/`;
}

/**
 * Whether objects are read as before. Upstream puts the storage of a kind away, and ends all who
 * watch it, with whatever change of the spec (which the generation counts) or the accepted names.
 */
function isReadAlike(before: DefinitionFacts, now: DefinitionFacts): boolean {
  if (before.uid !== now.uid || before.generation !== now.generation) return false;
  return isDeepStrictEqual(before.names, now.names);
}

/** Since when objects of each version are in its form: schemas that stayed count on. */
function unchangedSince(
  before: CustomKind,
  facts: DefinitionFacts,
  value: Row,
  previous: Row,
): ReadonlyMap<string, number> {
  const since = new Map<string, number>();
  if (before.facts.generation === facts.generation) {
    for (const { name } of facts.versions) since.set(name, before.formedSince(name));
    return since;
  }
  const now = schemaSpans(value.bytes, value.start, value.end);
  const then = schemaSpans(previous.bytes, previous.start, previous.end);
  for (const [index, version] of facts.versions.entries()) {
    const old = before.facts.versions.findIndex((one) => one.name === version.name);
    const mine = now[index];
    const theirs = then[old];
    if (mine === undefined || theirs === undefined) continue;
    const { bytes } = previous;
    const order = value.bytes.compare(bytes, theirs.start, theirs.end, mine.start, mine.end);
    if (order === 0) since.set(version.name, before.formedSince(version.name));
  }
  return since;
}
