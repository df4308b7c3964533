// data plane: the bytes of a renewal, spliced into a prepared template
/**
 * Renewals as bytes. Leases whose names and versions are of the same lengths differ in a few bytes
 * only, so there is one template for each pair of lengths, and a renewal writes into it:
 *
 *     …"name":"NAME",…"resourceVersion":"VERSION",…"name":"NAME","uid":"UID"…
 *     …"holderIdentity":"NAME",…"renewTime":"TIME"…
 */
import { leaseBody } from './lease-object.ts';
import type { UidColumn } from '../columns/uid-column.ts';

/** Templates that are kept; names and versions have a handful of lengths. */
export const TEMPLATES_MAX = 512;
/** Longest name of a Node. */
const NAME_LENGTH_MAX = 253;
const UID = '00000000-0000-0000-0000-000000000000';
const TIME = '1970-01-01T00:00:00.000000Z';
/** Stands for the name and for digits; no other part of a Lease has it. */
const NAME_MARK = '~';
const ZERO = 0x30;

class Template {
  readonly bytes: Buffer;
  readonly nameAt: readonly number[];
  readonly versionAt: number;
  readonly uidAt: number;
  readonly timeAt: number;
  /** The time that stands in it. */
  time = TIME;

  constructor(nameLength: number, digits: number, durationSeconds: number, holder: string) {
    const name = NAME_MARK.repeat(nameLength);
    const version = 10 ** (digits - 1);
    const own = holder === '' ? name : holder;
    const text = leaseBody(name, UID, version, durationSeconds, TIME, own);
    this.bytes = Buffer.from(text);
    const nameAt: number[] = [];
    for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + nameLength)) {
      nameAt.push(at);
    }
    this.nameAt = nameAt;
    this.versionAt = text.indexOf(`"${version}"`, text.indexOf('"resourceVersion":')) + 1;
    this.uidAt = text.indexOf(UID);
    this.timeAt = text.lastIndexOf(TIME);
  }
}

/** Writes the renewals of one process; all their Leases last equally long. */
export class LeaseWriter {
  readonly #durationSeconds: number;
  readonly #holder: string;
  readonly #templates: Map<number, Template> = new Map();
  #last: Template | null = null;
  #lastKey = -1;

  /** `holder` '': each Node holds its own Lease. */
  constructor(durationSeconds: number, holder: string) {
    this.#durationSeconds = durationSeconds;
    this.#holder = holder;
  }

  /**
   * The Lease of a Node as of `time` (MicroTime of 27 characters), valid until the next call; null
   * where a template cannot hold it (a UID or a name of another form): then `leaseBody` is asked.
   */
  write(
    name: string,
    uids: UidColumn,
    id: number,
    resourceVersion: number,
    time: string,
  ): Buffer | null {
    const { length } = name;
    if (length === 0 || length > NAME_LENGTH_MAX || time.length !== TIME.length) return null;
    const digits = digitsOf(resourceVersion);
    const template = this.#templateOf(length, digits);
    const { bytes, nameAt } = template;
    if (!uids.write(id, bytes, template.uidAt)) return null;
    for (let at = 0; at < length; at++) {
      const code = name.charCodeAt(at);
      if (code > 0x7f || code === 0x22 || code === 0x5c) return null;
      for (let place = 0; place < nameAt.length; place++) bytes[nameAt[place]! + at] = code;
    }
    writeDigits(bytes, template.versionAt, digits, resourceVersion);
    if (template.time !== time) {
      bytes.latin1Write(time, template.timeAt, time.length);
      template.time = time;
    }
    return bytes;
  }

  #templateOf(nameLength: number, digits: number): Template {
    const key = nameLength * 32 + digits;
    if (this.#last !== null && key === this.#lastKey) return this.#last;
    let template = this.#templates.get(key);
    if (template === undefined) {
      if (this.#templates.size >= TEMPLATES_MAX) this.#templates.clear();
      template = new Template(nameLength, digits, this.#durationSeconds, this.#holder);
      this.#templates.set(key, template);
    }
    this.#last = template;
    this.#lastKey = key;
    return template;
  }
}

function digitsOf(value: number): number {
  let digits = 1;
  for (let limit = 10; value >= limit; limit *= 10) digits++;
  return digits;
}

function writeDigits(bytes: Uint8Array, at: number, digits: number, value: number): void {
  let rest = value;
  for (let place = at + digits - 1; place >= at; place--) {
    const next = Math.floor(rest / 10);
    bytes[place] = ZERO + (rest - next * 10);
    rest = next;
  }
}
