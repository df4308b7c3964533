// data plane
/** Reads from a Node's bytes what the node controllers keep of it, without parsing them. */
import { ObjectScan } from '@megaplane/machinery/object-scan';
import {
  findPath,
  matches,
  MemberCursor,
  pathOf,
  skipSpace,
  skipValue,
} from '@megaplane/machinery/scan';
import {
  ABSENT,
  CONDITION_TYPES,
  FALSE,
  LABELS_DIFFER,
  NO_EXECUTE_ANY,
  NO_EXECUTE_NOT_READY,
  NO_EXECUTE_UNREACHABLE,
  NO_SCHEDULE_SHIFT,
  NO_SCHEDULE_TAINTS,
  OUT_OF_SERVICE,
  TAINT_OUT_OF_SERVICE,
  TRUE,
  UNKNOWN,
  UNSCHEDULABLE,
} from './node-flags.ts';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const quote = (text: string): Uint8Array => encode(`"${text}"`);

const TAINTS = pathOf('taints');
const SPEC_UNSCHEDULABLE = pathOf('unschedulable');
const TYPE = encode('type');
const STATUS = encode('status');
const HEARTBEAT = encode('lastHeartbeatTime');
const KEY = encode('key');
const EFFECT = encode('effect');
const STATUS_TRUE = quote('True');
const STATUS_FALSE = quote('False');
const NO_SCHEDULE = quote('NoSchedule');
const NO_EXECUTE = quote('NoExecute');
const TYPES = CONDITION_TYPES.map(quote);
const TAINT_KEYS = NO_SCHEDULE_TAINTS.map(quote);
const OUT_OF_SERVICE_KEY = quote(TAINT_OUT_OF_SERVICE);
const OS = encode('kubernetes.io/os');
const OS_BETA = encode('beta.kubernetes.io/os');
const ARCH = encode('kubernetes.io/arch');
const ARCH_BETA = encode('beta.kubernetes.io/arch');
const ZONE = encode('topology.kubernetes.io/zone');
const ZONE_BETA = encode('failure-domain.beta.kubernetes.io/zone');
const REGION = encode('topology.kubernetes.io/region');
const REGION_BETA = encode('failure-domain.beta.kubernetes.io/region');

export const TTL_ANNOTATION = 'node.alpha.kubernetes.io/ttl';
const TTL = pathOf(TTL_ANNOTATION);
/** What is larger is wrong, whatever it is. */
const TTL_MAX = 1_000_000;

const COMMA = 0x2c;
const QUOTE = 0x22;
const ZERO = 0x30;
const BRACKET = 0x5b;
const LOWER_T = 0x74;

/** FNV-1a over a range; tells that a value changed, not what it is. Never 0. */
export function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
  return hash >>> 0 || 1;
}

/** One scan at a time; reuse it. */
export class NodeScan {
  /** See node-flags.ts, bits 0 to 22. */
  bits = 0;
  /** Changes when the kubelet posts its Ready condition again; 0 without that condition. */
  heartbeat = 0;
  /** `spec.taints` as JSON, or an empty range. */
  taintsStart = 0;
  taintsEnd = 0;
  /** Values of the zone's and the region's label, without quotes; empty where absent. */
  zoneStart = 0;
  zoneEnd = 0;
  regionStart = 0;
  regionEnd = 0;

  /** Seconds of the annotation that tells how long to keep Secrets; -1 where it is no number. */
  ttl = -1;

  readonly #own = new ObjectScan();
  readonly #cursor = new MemberCursor();

  /** False where the bytes hold no object. */
  scan(bytes: Uint8Array, start: number, end: number): boolean {
    if (!this.#own.scan(bytes, start, end)) return false;
    this.read(bytes, this.#own);
    return true;
  }

  /** Of an object that was scanned already. */
  read(bytes: Uint8Array, object: ObjectScan): void {
    this.bits = 0;
    this.heartbeat = 0;
    this.ttl = -1;
    this.taintsStart = this.taintsEnd = 0;
    this.zoneStart = this.zoneEnd = this.regionStart = this.regionEnd = 0;
    if (object.labelsStart >= 0) this.#labels(bytes, object.labelsStart, object.labelsEnd);
    if (object.annotationsStart >= 0) {
      this.#annotations(bytes, object.annotationsStart, object.annotationsEnd);
    }
    if (object.specStart >= 0) this.#spec(bytes, object.specStart, object.specEnd);
    this.#conditions(bytes, object.conditionsStart, object.statusEnd);
  }

  #labels(bytes: Uint8Array, start: number, end: number): void {
    const cursor = this.#cursor;
    let os = 0;
    let osBeta = 0;
    let arch = 0;
    let archBeta = 0;
    if (!cursor.open(bytes, start, end)) return;
    while (cursor.next()) {
      const from = cursor.valueStart + 1;
      const to = cursor.valueEnd - 1;
      if (cursor.is(ZONE) || (this.zoneEnd === 0 && cursor.is(ZONE_BETA))) {
        this.zoneStart = from;
        this.zoneEnd = to;
      } else if (cursor.is(REGION) || (this.regionEnd === 0 && cursor.is(REGION_BETA))) {
        this.regionStart = from;
        this.regionEnd = to;
      } else if (cursor.is(OS)) os = hashOf(bytes, from, to);
      else if (cursor.is(OS_BETA)) osBeta = hashOf(bytes, from, to);
      else if (cursor.is(ARCH)) arch = hashOf(bytes, from, to);
      else if (cursor.is(ARCH_BETA)) archBeta = hashOf(bytes, from, to);
    }
    if ((os !== 0 && os !== osBeta) || (arch !== 0 && arch !== archBeta)) {
      this.bits |= LABELS_DIFFER;
    }
  }

  #annotations(bytes: Uint8Array, start: number, end: number): void {
    const at = findPath(bytes, start, end, TTL);
    if (at < 0 || bytes[at] !== QUOTE) return;
    let seconds = 0;
    let digit = at + 1;
    for (; digit < end && bytes[digit] !== QUOTE; digit++) {
      const value = bytes[digit]! - ZERO;
      if (value < 0 || value > 9 || seconds > TTL_MAX) return;
      seconds = 10 * seconds + value;
    }
    if (digit > at + 1) this.ttl = seconds;
  }

  #spec(bytes: Uint8Array, start: number, end: number): void {
    const unschedulable = findPath(bytes, start, end, SPEC_UNSCHEDULABLE);
    if (unschedulable >= 0 && bytes[unschedulable] === LOWER_T) this.bits |= UNSCHEDULABLE;
    const list = findPath(bytes, start, end, TAINTS);
    if (list < 0 || bytes[list] !== BRACKET) return;
    this.taintsStart = list;
    this.taintsEnd = skipValue(bytes, list, end);
    const cursor = this.#cursor;
    let at = list;
    do {
      at = skipSpace(bytes, at + 1, end);
      if (!cursor.open(bytes, at, end)) return;
      let keyStart = 0;
      let keyEnd = 0;
      let effectStart = 0;
      let effectEnd = 0;
      while (cursor.next()) {
        if (cursor.is(KEY)) {
          keyStart = cursor.valueStart;
          keyEnd = cursor.valueEnd;
        } else if (cursor.is(EFFECT)) {
          effectStart = cursor.valueStart;
          effectEnd = cursor.valueEnd;
        }
      }
      this.#taint(bytes, keyStart, keyEnd, effectStart, effectEnd);
      at = skipSpace(bytes, cursor.closeEnd, end);
    } while (at < end && bytes[at] === COMMA);
  }

  #taint(
    bytes: Uint8Array,
    keyStart: number,
    keyEnd: number,
    effectStart: number,
    effectEnd: number,
  ): void {
    if (matches(bytes, keyStart, keyEnd, OUT_OF_SERVICE_KEY)) this.bits |= OUT_OF_SERVICE;
    if (matches(bytes, effectStart, effectEnd, NO_EXECUTE)) {
      this.bits |= NO_EXECUTE_ANY;
      if (matches(bytes, keyStart, keyEnd, TAINT_KEYS[0]!)) this.bits |= NO_EXECUTE_NOT_READY;
      if (matches(bytes, keyStart, keyEnd, TAINT_KEYS[1]!)) this.bits |= NO_EXECUTE_UNREACHABLE;
      return;
    }
    if (!matches(bytes, effectStart, effectEnd, NO_SCHEDULE)) return;
    for (let index = 0; index < TAINT_KEYS.length; index++) {
      if (!matches(bytes, keyStart, keyEnd, TAINT_KEYS[index]!)) continue;
      this.bits |= 1 << (NO_SCHEDULE_SHIFT + index);
      return;
    }
  }

  #conditions(bytes: Uint8Array, list: number, end: number): void {
    if (list < 0 || bytes[list] !== BRACKET) return;
    const cursor = this.#cursor;
    let at = list;
    do {
      at = skipSpace(bytes, at + 1, end);
      if (!cursor.open(bytes, at, end)) return;
      let typeStart = 0;
      let typeEnd = 0;
      let status = ABSENT;
      let heartbeat = 1;
      while (cursor.next()) {
        const from = cursor.valueStart;
        const to = cursor.valueEnd;
        if (cursor.is(TYPE)) {
          typeStart = from;
          typeEnd = to;
        } else if (cursor.is(STATUS)) {
          status = matches(bytes, from, to, STATUS_TRUE)
            ? TRUE
            : matches(bytes, from, to, STATUS_FALSE)
              ? FALSE
              : UNKNOWN;
        } else if (cursor.is(HEARTBEAT)) {
          heartbeat = hashOf(bytes, from, to);
        }
      }
      this.#condition(bytes, typeStart, typeEnd, status, heartbeat);
      at = skipSpace(bytes, cursor.closeEnd, end);
    } while (at < end && bytes[at] === COMMA);
  }

  #condition(
    bytes: Uint8Array,
    typeStart: number,
    typeEnd: number,
    status: number,
    heartbeat: number,
  ): void {
    for (let index = 0; index < TYPES.length; index++) {
      if (!matches(bytes, typeStart, typeEnd, TYPES[index]!)) continue;
      this.bits |= status << (index * 2);
      if (index === 0) this.heartbeat = heartbeat;
      return;
    }
  }
}
