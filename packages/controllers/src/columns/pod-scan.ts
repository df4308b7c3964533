// data plane
/**
 * What controllers of replicas need of a pod beyond `ObjectScan`: who controls it, since when it
 * is ready, how often its containers were restarted, what its deletion costs.
 */
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import { findPath, integerAt, matches, MemberCursor, pathOf } from '@megaplane/machinery/scan';
import { skipSpace, skipValue } from '@megaplane/machinery/scan';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const CONTROLLER = encode('controller');
const UID = encode('uid');
const TYPE = encode('type');
const STATUS = encode('status');
const TRANSITION = encode('lastTransitionTime');
const RESTARTS = encode('restartCount');
const QUOTED_READY = encode('"Ready"');
const QUOTED_TRUE = encode('"True"');
const CONDITIONS = pathOf('conditions');
const CONTAINERS = pathOf('containerStatuses');
const CREATED = pathOf('creationTimestamp');
const COST = pathOf('controller.kubernetes.io/pod-deletion-cost');
const LOWER_T = 0x74;
const MINUS = 0x2d;
const INT32_MAX = 2 ** 31 - 1;

export class PodScan {
  /** Uid of the controlling owner, inside its quotes; -1 where nobody controls the pod. */
  ownerStart = -1;
  ownerEnd = -1;
  isReady = false;
  /** When its readiness changed last, seconds since 1970; 0 where that was never told. */
  readyS = 0;
  createdS = 0;
  /** The highest count of all containers. */
  restarts = 0;
  deletionCost = 0;
  readonly #member = new MemberCursor();

  scan(bytes: Uint8Array, scan: ObjectScan): void {
    this.ownerStart = this.ownerEnd = -1;
    this.isReady = false;
    this.readyS = this.restarts = this.deletionCost = this.createdS = 0;
    const created = findPath(bytes, scan.metadataStart, scan.metadataEnd, CREATED);
    if (created >= 0) this.createdS = secondsAt(bytes, created + 1);
    if (scan.ownerReferencesStart >= 0) {
      this.#owners(bytes, scan.ownerReferencesStart, scan.ownerReferencesEnd);
    }
    if (scan.annotationsStart >= 0) {
      this.#cost(bytes, findPath(bytes, scan.annotationsStart, scan.annotationsEnd, COST), scan);
    }
    if (scan.statusStart < 0) return;
    this.#conditions(bytes, scan.statusStart, scan.statusEnd);
    this.#containers(bytes, scan.statusStart, scan.statusEnd);
  }

  #owners(bytes: Uint8Array, start: number, end: number): void {
    const member = this.#member;
    for (let at = firstItem(bytes, start, end); at >= 0; at = nextItem(bytes, at, end)) {
      let isController = false;
      let uidStart = -1;
      let uidEnd = -1;
      if (!member.open(bytes, at, end)) return;
      while (member.next()) {
        if (member.is(CONTROLLER)) isController = bytes[member.valueStart] === LOWER_T;
        else if (member.is(UID)) {
          uidStart = member.valueStart + 1;
          uidEnd = member.valueEnd - 1;
        }
      }
      if (!isController) continue;
      this.ownerStart = uidStart;
      this.ownerEnd = uidEnd;
      return;
    }
  }

  #cost(bytes: Uint8Array, at: number, scan: ObjectScan): void {
    if (at < 0) return;
    const isNegative = bytes[at + 1] === MINUS;
    const size = integerAt(bytes, at + (isNegative ? 2 : 1), scan.annotationsEnd);
    if (size < 0 || size > INT32_MAX) return;
    this.deletionCost = isNegative ? -size : size;
  }

  #conditions(bytes: Uint8Array, statusStart: number, end: number): void {
    const member = this.#member;
    const start = findPath(bytes, statusStart, end, CONDITIONS);
    if (start < 0) return;
    for (let at = firstItem(bytes, start, end); at >= 0; at = nextItem(bytes, at, end)) {
      let isReady = false;
      let isTrue = false;
      let sinceS = 0;
      if (!member.open(bytes, at, end)) return;
      while (member.next()) {
        const from = member.valueStart;
        if (member.is(TYPE)) isReady = matches(bytes, from, member.valueEnd, QUOTED_READY);
        else if (member.is(STATUS)) isTrue = matches(bytes, from, member.valueEnd, QUOTED_TRUE);
        else if (member.is(TRANSITION)) sinceS = secondsAt(bytes, from + 1);
      }
      if (!isReady) continue;
      this.isReady = isTrue;
      this.readyS = sinceS;
      return;
    }
  }

  #containers(bytes: Uint8Array, statusStart: number, end: number): void {
    const member = this.#member;
    const start = findPath(bytes, statusStart, end, CONTAINERS);
    if (start < 0) return;
    for (let at = firstItem(bytes, start, end); at >= 0; at = nextItem(bytes, at, end)) {
      if (!member.open(bytes, at, end)) return;
      while (member.next()) {
        if (!member.is(RESTARTS)) continue;
        this.restarts = Math.max(this.restarts, integerAt(bytes, member.valueStart, end));
      }
    }
  }
}

const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const COMMA = 0x2c;

/** Where the first item of the list at `start` begins, or -1. */
export function firstItem(bytes: Uint8Array, start: number, end: number): number {
  if (bytes[start] !== BRACKET_OPEN) return -1;
  const at = skipSpace(bytes, start + 1, end);
  return at >= end || bytes[at] === BRACKET_CLOSE ? -1 : at;
}

/** Where the item after the one at `start` begins, or -1. */
export function nextItem(bytes: Uint8Array, start: number, end: number): number {
  const after = skipValue(bytes, start, end);
  if (after < 0) return -1;
  const at = skipSpace(bytes, after, end);
  return at < end && bytes[at] === COMMA ? skipSpace(bytes, at + 1, end) : -1;
}

/** Seconds since 1970 of `2026-01-02T03:04:05Z` at an offset; 0 where there is no such text. */
export function secondsAt(bytes: Uint8Array, at: number): number {
  const year = numberAt(bytes, at, 4);
  const month = numberAt(bytes, at + 5, 2);
  const day = numberAt(bytes, at + 8, 2);
  const hour = numberAt(bytes, at + 11, 2);
  const minute = numberAt(bytes, at + 14, 2);
  const second = numberAt(bytes, at + 17, 2);
  const seconds = Date.UTC(year, month - 1, day, hour, minute, second) / 1000;
  return seconds > 0 ? seconds : 0;
}

function numberAt(bytes: Uint8Array, start: number, digits: number): number {
  let value = 0;
  for (let at = start; at < start + digits; at++) {
    const digit = bytes[at]! - 0x30;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    value = value * 10 + digit;
  }
  return value;
}
