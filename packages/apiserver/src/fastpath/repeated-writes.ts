/**
 * Writes that are like writes before them.
 *
 * A hundred thousand pods of one Deployment differ in name, uid and times; so do the statuses that
 * kubelets report of them. What the write path does to one it does to all: it decodes, defaults,
 * admits, validates, finds out who owns which fields, encodes. So when a write of the same shape
 * (see `shape.ts`) is seen again, the path is run once more in rehearsal, with markers for the
 * values that differ; its result is a template (see `template.ts`), and from then on such writes
 * are made by filling it in. A template counts only if it gives, byte for byte, what the path
 * gave for the real write.
 *
 * The result depends on other objects too: accounts, classes, limits, policies. Whatever may bear
 * on it (see `independent-kinds.ts`) ends all templates when it changes; what plugins of admission
 * say of themselves (`repeats`) decides whether a write may be repeated at all. Everything else (a
 * name that is taken, a revision that is not the stored one, a body of another shape) is left to
 * the ordinary way.
 */
import { assert } from '@megaplane/base/assert';
import { ownBytes } from '@megaplane/base/bytes';
import { BodyText } from '@megaplane/machinery/body-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { MemberCursor } from '@megaplane/machinery/scan';
import type { Status } from '@megaplane/machinery/status';
import type { Admission } from '../admission/admission.ts';
import { Call } from '../request/call.ts';
import { decodeRow, isCopied } from '../serializer/encoder.ts';
import { PROTOBUF_TYPE } from '../request/negotiation.ts';
import { encoderOf } from '../serializer/representation.ts';
import { keyOf, type Served } from '../storage/served.ts';
import { Sink } from '../sink/sink.ts';
import { emptyRow, EXPECT_ABSENT } from '../storage/storage.ts';
import type { Services } from '../registry/rest/services.ts';
import type { World } from '../lister/world.ts';
import { refusedWrite } from '../handlers/writing.ts';
import { contextText, rehearser } from './context-text.ts';
import { followOthers } from './independent-kinds.ts';
import { QuickBindings } from './quick-bindings.ts';
import { drawAgain, rehearsed, RehearsedExchange, Run, watched, type Taken } from './rehearsal.ts';
import { Shape } from './shape.ts';
import {
  expand,
  isPlainName,
  MARKERS_DRAWN,
  markersOf,
  NAME_MARKER,
  REVISION_MARKER,
  Template,
  type Drawn,
  type Values,
} from './template.ts';
import type { Admitted } from '../registry/rest/admitted.ts';

/** Bodies above this go the ordinary way. */
const BODY_BYTES_MAX = 32 * 1024;
/** Templates that are kept, of a few KB each; the oldest makes room. */
const TEMPLATES_MAX = 2048;
/** And the bytes of their shapes; a template is about as large as its shape. */
const SHAPES_BYTES_MAX: number = 16 * 1024 * 1024;
/** Shapes whose first sight is remembered; beyond it all are forgotten. */
const SEEN_MAX = 4096;
/** A template that was of use for fewer writes than this is not worth finding again at once. */
const USES_MIN = 8;
/** Sights that such a shape waits for. */
const PATIENCE = 64;
/** And one whose write was refused, or changed nothing. */
const PATIENCE_FAILED = 2;

/** What may be repeated: subresources by storage and method. */
const REPEATED: ReadonlyMap<string, ReadonlyMap<string, readonly string[]>> = new Map([
  [
    'pods',
    new Map([
      ['POST', ['']],
      ['PATCH', ['status']],
      ['PUT', ['status']],
    ]),
  ],
  [
    'nodes',
    new Map([
      ['POST', ['']],
      ['PATCH', ['status', '']],
      ['PUT', ['status']],
    ]),
  ],
  ['leases.coordination.k8s.io', new Map([['POST', ['']]])],
  ['persistentvolumes', new Map([['POST', ['']]])],
  ['persistentvolumeclaims', new Map([['POST', ['']]])],
]);

const JSON_TYPES: ReadonlySet<string> = new Set([
  '',
  'application/json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
]);

const METADATA = Buffer.from('metadata');
const STATUS = Buffer.from('status');
const NAME = Buffer.from('name');
const row = emptyRow();
const sink = new Sink();
/** Key and value of the write that is being made: of use until it is stored. */
const filled = new Sink();
const cursor = new MemberCursor();
const inner = new MemberCursor();

/** How a write of one shape ends. */
interface Known {
  readonly shape: Buffer;
  readonly epoch: number;
  /** null: it cannot be said in a template. */
  readonly made: Made | null;
  /** An object that was made so, once quotas count such: they count each alike. */
  example: JsonObject | null;
  uses: number;
}

interface Made {
  readonly key: Template;
  /** The object, or (of changes of the status alone) its metadata. */
  readonly head: Template;
  /** Its status, where the rest of the object is copied. */
  readonly status: Template | null;
  readonly drawn: Drawn;
  readonly code: number;
}

/** A write as it was read: where its parts stand in the shape and in what is stored. */
interface Reading {
  readonly hash: number;
  readonly name: string;
  readonly parts: Parts | null;
  /** In the shape: where metadata and status of the stored object end, and where the body does. */
  readonly metadataAt: number;
  readonly statusAt: number;
  readonly bodyAt: number;
  readonly bodyEnd: number;
  /** The body came in protobuf and was read as JSON. */
  readonly isText: boolean;
}

/** A stored object, and where two of its members stand. */
interface Parts {
  /** All of the object may change: it is read as a whole, and its members' places do not count. */
  readonly isWhole: boolean;
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  readonly revision: number;
  readonly metadataStart: number;
  readonly metadataEnd: number;
  readonly statusStart: number;
  readonly statusEnd: number;
}

/** Runs a request by the ordinary way. */
export type Ordinary = (call: Call) => void;

/** See the head of the file. */
export class RepeatedWrites {
  readonly #world: World;
  readonly #services: Services;
  readonly #admission: Admission;
  readonly #bindings: QuickBindings;
  readonly #shape = new Shape();
  readonly #known = new Map<number, Known>();
  readonly #seen = new Map<number, number>();
  #epoch = 0;
  #shapeBytes = 0;
  #isBusy = false;
  /** Writes that were made from templates. */
  uses = 0;

  /** Bindings that were made the short way. */
  get bindings(): number {
    return this.#bindings.uses;
  }

  constructor(world: World, services: Services, admission: Admission) {
    this.#world = world;
    this.#services = services;
    this.#admission = admission;
    this.#bindings = new QuickBindings(world, admission);
    followOthers(world.storage, () => this.#epoch++);
  }

  /**
   * Answers the request if it is a write that may be repeated: from a template, or by `ordinary`
   * and with an eye on it. False leaves it untouched.
   */
  answer(call: Call, served: Served, ordinary: Ordinary): boolean {
    if (call.info.subresource === 'binding') {
      return this.#bindings.answer(call, served, this.#epoch);
    }
    if (this.#isBusy || !this.#mayRepeat(call, served)) return false;
    const reading = this.#read(call, served);
    if (reading === null) return false;
    const known = this.#known.get(reading.hash);
    if (known !== undefined && this.#isOf(known)) {
      if (known.epoch === this.#epoch) {
        const { made } = known;
        if (made === null || !this.#repeat(call, served, reading, known, made)) return false;
        this.#admission.noteRepeated({ world: this.#world, call, served });
        return true;
      }
      this.#drop(reading.hash);
      if (known.uses < USES_MIN) this.#seen.set(reading.hash, -PATIENCE);
    }
    const sights = (this.#seen.get(reading.hash) ?? 0) + 1;
    if (this.#seen.size >= SEEN_MAX) this.#seen.clear();
    this.#seen.set(reading.hash, sights);
    if (sights < 2) return false;
    this.#seen.delete(reading.hash);
    this.#learn(call, served, reading, ordinary);
    return true;
  }

  #mayRepeat(call: Call, served: Served): boolean {
    const { info, exchange } = call;
    const ways = REPEATED.get(served.resource.storage.name)?.get(exchange.method);
    if (ways?.includes(info.subresource) !== true) return false;
    if (served.isConverted || this.#world.storage.isShared) return false;
    if (call.body.length > BODY_BYTES_MAX || call.body.length === 0) return false;
    if (call.query.text('dryRun') !== '') return false;
    const type = exchange.header('content-type') ?? '';
    const isProtobuf = type === PROTOBUF_TYPE && exchange.method !== 'PATCH';
    if (!isProtobuf && !JSON_TYPES.has(type)) return false;
    return this.#admission.repeats({ world: this.#world, call, served });
  }

  /** Reads body and stored object into the shape; null where there is none. */
  #read(call: Call, served: Served): Reading | null {
    const { info } = call;
    const isText = call.exchange.header('content-type') === PROTOBUF_TYPE;
    const body = isText ? bodyTextOf(served).read(call.body) : call.body;
    if (body === null) return null;
    const isNew = info.name === '';
    const name = isNew ? nameIn(body) : info.name;
    if (name !== '' && !isPlainName(name)) return null;
    const isWhole = info.subresource === '';
    const parts = isNew ? null : this.#parts(served, info.namespace, name, isWhole);
    if (!isNew && parts === null) return null;
    const shape = this.#shape;
    const isStatus = info.subresource === 'status';
    shape.begin(Math.floor(call.nowMs / 1000), name, String(parts?.revision ?? ''), isStatus);
    shape.literal(contextText(call, served));
    const metadataAt = shape.length;
    if (parts?.isWhole === true) shape.append(parts.bytes, parts.start, parts.end);
    else if (parts !== null) shape.append(parts.bytes, parts.metadataStart, parts.metadataEnd);
    const statusAt = shape.length;
    if (parts?.isWhole === false) shape.append(parts.bytes, parts.statusStart, parts.statusEnd);
    const bodyAt = shape.length;
    if (!shape.append(body, 0, body.length)) return null;
    const bodyEnd = shape.length;
    if (shape.asksForSpec && parts !== null) {
      const { bytes, metadataEnd, statusStart } = parts;
      if (!shape.append(bytes, metadataEnd, statusStart)) return null;
    }
    return { hash: shape.finish(), name, parts, metadataAt, statusAt, bodyAt, bodyEnd, isText };
  }

  #parts(served: Served, namespace: string, name: string, isWhole: boolean): Parts | null {
    if (!this.#world.storage.get(keyOf(served, namespace, name), row)) return null;
    if (!isCopied(served, row)) return null;
    const { bytes, start, end, modRevision: revision } = row;
    return isWhole
      ? { ...NO_MEMBERS, isWhole, bytes, start, end, revision }
      : partsOf(bytes, start, end, revision);
  }

  #isOf({ shape }: Known): boolean {
    const { bytes, length } = this.#shape;
    return shape.length === length && shape.compare(bytes, 0, length) === 0;
  }

  #repeat(call: Call, served: Served, reading: Reading, known: Known, made: Made): boolean {
    const { storage, edge } = this.#world;
    const drawn = drawAgain(edge, made.drawn);
    // in memory that stays: buffers of each write's own make the collector hurry
    const { parts } = reading;
    const cut = fillWrite(filled, made, parts, this.#shape, drawn);
    const key = filled.bytes.subarray(0, cut);
    const value = filled.bytes.subarray(cut, filled.length);
    const charged = parts === null ? this.#charge(call, served, known, key, value) : 'free';
    if (charged === 'refused') return false;
    let isDone = true;
    storage.put(key, value, parts?.revision ?? EXPECT_ABSENT, (outcome) => {
      if (outcome.kind === 'done') sendStored(call, served, made.code, value, outcome.revision);
      else if (charged === 'free') isDone = false;
      else call.fail(refusedWrite(served, reading.name, outcome));
    });
    // a name that is taken, a store that is full: the ordinary way has the words for it
    if (isDone) {
      known.uses++;
      this.uses++;
    }
    return isDone;
  }

  /** Counts a new object against quotas; what they refuse is for the ordinary way to tell. */
  #charge(
    call: Call,
    served: Served,
    known: Known,
    key: Buffer,
    value: Buffer,
  ): 'free' | 'charged' | 'refused' {
    const world = this.#world;
    if (!this.#admission.isCharged({ world, call, served })) return 'free';
    // nothing is charged for an object that cannot be made
    if (world.storage.get(key, row)) return 'refused';
    known.example ??= exampleOf(served, value);
    const { example: object } = known;
    const context = { world, services: this.#services, call, served, isDryRun: false };
    const write: Admitted = {
      ...context,
      operation: 'CREATE',
      subresource: '',
      object,
      previous: null,
    };
    let verdict: Status | null | undefined;
    this.#admission.charge(write, (refusal) => (verdict = refusal));
    assert(verdict !== undefined, 'storage of this process charges at once');
    return verdict === null ? 'charged' : 'refused';
  }

  /** Runs the write, then rehearses it, and keeps the template if it is a true one. */
  #learn(call: Call, served: Served, reading: Reading, ordinary: Ordinary): void {
    const shape = ownBytes(this.#shape.bytes, 0, this.#shape.length);
    const markers = markersOf(this.#shape);
    const values: Values = {
      kinds: markers.kinds,
      seconds: this.#shape.seconds.slice(0, this.#shape.holes),
      texts: this.#shape.texts.slice(0, this.#shape.holes),
    };
    const parts = reading.parts === null ? null : ownParts(reading.parts);
    const lesson = { reading: { ...reading, parts }, shape, markers, values };
    const epoch = this.#epoch;
    this.#isBusy = true;
    try {
      const real = this.#watch(call, ordinary);
      const isPlain = real !== null && !call.headers().includes('warning');
      const code = call.code;
      const made =
        isPlain && (code === 200 || code === 201)
          ? this.#rehearse(call, served, { ...lesson, real }, ordinary)
          : null;
      // a write that did not come about says nothing of the next one
      if (real === null) this.#seen.set(reading.hash, -PATIENCE_FAILED);
      else this.#keep(reading.hash, { shape, epoch, made, example: null, uses: 0 });
    } finally {
      this.#isBusy = false;
    }
  }

  #watch(call: Call, ordinary: Ordinary): Taken | null {
    const { storage, edge } = this.#world;
    const run = new Run();
    const stage = watched(storage, edge, run);
    this.#world.staged(stage.storage, stage.edge, () => ordinary(call));
    return run.taken;
  }

  #rehearse(call: Call, served: Served, lesson: Lesson, ordinary: Ordinary): Made | null {
    const { reading, shape, markers } = lesson;
    const { parts } = reading;
    const { storage } = this.#world;
    const part = (from: number, to: number) => expand(shape.subarray(from, to), markers);
    const nowMs = (markers.seconds[0] ?? 0) * 1000;
    const isNew = parts === null;
    const info = isNew ? call.info : { ...call.info, name: NAME_MARKER };
    const body = part(reading.bodyAt, reading.bodyEnd);
    const exchange = new RehearsedExchange(call.exchange, body, reading.isText);
    const actor = isNew ? call.identity : rehearser(call.identity, served, NAME_MARKER);
    const rehearsal = new Call(exchange, info, call.query, actor, nowMs, call.auditId);
    rehearsal.media = call.media;
    rehearsal.isRehearsal = true;
    const head = part(reading.metadataAt, reading.statusAt);
    const stored = isNew
      ? null
      : {
          key: keyOf(served, info.namespace, NAME_MARKER),
          bytes: parts.isWhole ? head : joined(parts, head, part(reading.statusAt, reading.bodyAt)),
          revision: Number(REVISION_MARKER),
        };
    const run = new Run();
    const stage = rehearsed({ storage, nowMs, drawn: MARKERS_DRAWN, stored }, run);
    this.#world.staged(stage.storage, stage.edge, () => {
      this.#admission.uncharged(() => ordinary(rehearsal));
    });
    const { taken } = run;
    if (taken === null || rehearsal.headers().includes('warning')) return null;
    return madeOf(lesson, taken, call.code);
  }

  #keep(hash: number, known: Known): void {
    this.#drop(hash);
    this.#known.set(hash, known);
    this.#shapeBytes += known.shape.length;
    for (const [oldest] of this.#known) {
      if (this.#known.size <= TEMPLATES_MAX && this.#shapeBytes <= SHAPES_BYTES_MAX) return;
      this.#drop(oldest);
    }
  }

  #drop(hash: number): void {
    this.#shapeBytes -= this.#known.get(hash)?.shape.length ?? 0;
    this.#known.delete(hash);
  }
}

/** All that is known of one write of a shape after it was made the ordinary way. */
interface Lesson {
  readonly reading: Reading;
  readonly shape: Buffer;
  readonly markers: Values;
  readonly values: Values;
  readonly real: Taken;
}

/** The template of what a rehearsal gave; null unless it gives what the real write gave. */
function madeOf(
  { reading, markers, values, real }: Lesson,
  taken: Taken,
  code: number,
): Made | null {
  const { drawn } = real;
  const isLike =
    taken.drawn.uuids.length === drawn.uuids.length &&
    taken.drawn.suffixes.length === drawn.suffixes.length;
  if (!isLike) return null;
  const { parts } = reading;
  const templates = templatesOf(taken.value, parts, markers);
  if (templates === null) return null;
  const made: Made = { key: Template.of(taken.key, markers), ...templates, drawn, code };
  const cut = fillWrite(filled, made, parts, values, drawn);
  const isTrue =
    real.key.equals(filled.bytes.subarray(0, cut)) &&
    real.value.equals(filled.bytes.subarray(cut, filled.length));
  return isTrue ? made : null;
}

/** Of the whole object, or of the two members of it that a change of its status changes. */
function templatesOf(
  value: Buffer,
  parts: Parts | null,
  markers: Values,
): Pick<Made, 'head' | 'status'> | null {
  if (parts === null || parts.isWhole) return { head: Template.of(value, markers), status: null };
  const after = partsOf(value, 0, value.length, 0);
  if (after === null) return null;
  const { metadataStart, metadataEnd, statusStart, statusEnd } = after;
  return {
    head: Template.of(value.subarray(metadataStart, metadataEnd), markers),
    status: Template.of(value.subarray(statusStart, statusEnd), markers),
  };
}

/** Key and value of a write, one behind the other; gives where the value begins. */
function fillWrite(
  out: Sink,
  made: Made,
  parts: Parts | null,
  values: Values,
  drawn: Drawn,
): number {
  out.length = 0;
  made.key.fill(out, values, drawn);
  const cut = out.length;
  if (parts === null || made.status === null) {
    made.head.fill(out, values, drawn);
    return cut;
  }
  // the stored object with another metadata and status
  const { bytes, start, end, metadataStart, metadataEnd, statusStart, statusEnd } = parts;
  out.append(bytes, start, metadataStart);
  made.head.fill(out, values, drawn);
  out.append(bytes, metadataEnd, statusStart);
  made.status.fill(out, values, drawn);
  out.append(bytes, statusEnd, end);
  return cut;
}

/** `metadata.name` of a body; '' where it has none. */
function nameIn(body: Buffer): string {
  const end = body.length;
  if (!cursor.open(body, 0, end)) return '';
  while (cursor.nextKey()) {
    if (!cursor.is(METADATA)) {
      if (!cursor.skip()) return '';
      continue;
    }
    if (!inner.open(body, cursor.valueStart, end)) return '';
    while (inner.next()) {
      if (inner.is(NAME)) return body.utf8Slice(inner.valueStart + 1, inner.valueEnd - 1);
    }
    return '';
  }
  return '';
}

const bodyTexts = new WeakMap<Served, BodyText>();

function bodyTextOf(served: Served): BodyText {
  let text = bodyTexts.get(served);
  if (text === undefined) {
    const { apiVersion, kind } = served.resource;
    bodyTexts.set(served, (text = new BodyText(apiVersion, kind)));
  }
  return text;
}

/** Where metadata and status stand; null where one is missing or they stand in another order. */
function partsOf(bytes: Buffer, start: number, end: number, revision: number): Parts | null {
  let metadataStart = -1;
  let metadataEnd = -1;
  let statusStart = -1;
  let statusEnd = -1;
  if (!cursor.open(bytes, start, end)) return null;
  while (cursor.next()) {
    if (cursor.is(METADATA)) {
      metadataStart = cursor.valueStart;
      metadataEnd = cursor.valueEnd;
    } else if (cursor.is(STATUS)) {
      statusStart = cursor.valueStart;
      statusEnd = cursor.valueEnd;
    }
  }
  if (!cursor.isClosed || metadataStart < 0 || statusStart < metadataEnd) return null;
  const members = { metadataStart, metadataEnd, statusStart, statusEnd };
  return { isWhole: false, bytes, start, end, revision, ...members };
}

const NO_MEMBERS = { metadataStart: 0, metadataEnd: 0, statusStart: 0, statusEnd: 0 };

/** The same in bytes of their own. */
function ownParts(parts: Parts): Parts {
  const { bytes, start, end, revision } = parts;
  const own = Buffer.from(bytes.subarray(start, end));
  return {
    isWhole: parts.isWhole,
    bytes: own,
    start: 0,
    end: own.length,
    revision,
    metadataStart: parts.metadataStart - start,
    metadataEnd: parts.metadataEnd - start,
    statusStart: parts.statusStart - start,
    statusEnd: parts.statusEnd - start,
  };
}

/** The stored object with another metadata and status. */
function joined(parts: Parts, metadata: Buffer, status: Buffer): Buffer {
  const { bytes, start, end, metadataStart, metadataEnd, statusStart, statusEnd } = parts;
  const kept = end - start - (metadataEnd - metadataStart) - (statusEnd - statusStart);
  const out = Buffer.allocUnsafe(kept + metadata.length + status.length);
  let length = bytes.copy(out, 0, start, metadataStart);
  length += metadata.copy(out, length);
  length += bytes.copy(out, length, metadataEnd, statusStart);
  length += status.copy(out, length);
  bytes.copy(out, length, statusEnd, end);
  return out;
}

function exampleOf(served: Served, value: Buffer): JsonObject {
  row.bytes = ownBytes(value, 0, value.length);
  row.start = 0;
  row.end = value.length;
  return decodeRow(served, row, 0);
}

/** Answers with an object from its stored bytes. */
function sendStored(
  call: Call,
  served: Served,
  code: number,
  bytes: Buffer,
  revision: number,
): void {
  const encoder = encoderOf(call, served, false);
  if (!encoder.ok) {
    call.fail(encoder.status);
    return;
  }
  row.bytes = bytes;
  row.start = 0;
  row.end = bytes.length;
  row.modRevision = revision;
  sink.length = 0;
  encoder.value.object(sink, row, revision);
  call.sendFrom(code, encoder.value.contentType, sink);
}
