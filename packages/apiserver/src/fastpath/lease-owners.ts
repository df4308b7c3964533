// data plane
/**
 * Whose the fields of a renewed lease are, without reading them: a renewal by the one who owns
 * every field of the spec changes the time of its entry and nothing else.
 */
import { decodeFields } from '@megaplane/machinery/apply/field-set-codec';
import { templateOf, type Template } from '@megaplane/machinery/apply/field-templates';
import { parseJson } from '@megaplane/machinery/json-text';
import { isPacked } from '../managedfields/shown-fields.ts';
import { managerOfAgent } from '../request/agent-manager.ts';

const OPEN = Buffer.from('"managedFields"');
const REFERENCES_OPEN_LENGTH = OPEN.length + 2;
const ID_LENGTH = 12;
/** Seconds since 1970 in base 36, until the year 2038. */
const TIME_LENGTH = 6;
const TIME_MAX = 36 ** TIME_LENGTH;
const QUOTE = 0x22;
const COMMA = 0x2c;
const SEMICOLON = 0x3b;
const API_VERSION = 'coordination.k8s.io/v1';
/** In the order of the bits of a mask, from bit 1 on. */
const SPEC_FIELDS = [
  'holderIdentity',
  'leaseDurationSeconds',
  'acquireTime',
  'renewTime',
  'leaseTransitions',
] as const;
/** User agents and templates that are remembered; beyond it they are looked at again. */
const REMEMBERED_MAX = 4096;

export class LeaseOwners {
  readonly #names = new Map<string, string>();
  readonly #masks = new Map<string, number>();
  readonly #lastId: Buffer = Buffer.alloc(ID_LENGTH);
  #lastAgent = '';
  #lastMask = -1;

  /**
   * Sets the time of the one entry in `value`, whose metadata's first member is at `at`. False
   * where the renewal may change more than that: another manager, several of them, other fields.
   */
  renew(value: Buffer, at: number, agent: string, specMask: number, seconds: number): boolean {
    if (!isPacked(value, at)) return !startsWithOpen(value, at);
    const start = at + REFERENCES_OPEN_LENGTH;
    const timeAt = start + ID_LENGTH + 1;
    if (!isOneReference(value, timeAt) || seconds >= TIME_MAX) return false;
    if (!this.#isLast(value, start, agent, specMask)) {
      const id = value.utf8Slice(start, start + ID_LENGTH);
      const template = templateOf(id);
      if (template === undefined || template.manager.name !== this.#nameOf(agent)) return false;
      if (this.#maskOf(id, template) !== specMask) return false;
      value.copy(this.#lastId, 0, start, start + ID_LENGTH);
      this.#lastAgent = agent;
      this.#lastMask = specMask;
    }
    let rest = seconds;
    for (let place = timeAt + TIME_LENGTH - 1; place >= timeAt; place--) {
      const digit = rest % 36;
      value[place] = digit < 10 ? 0x30 + digit : 0x57 + digit;
      rest = (rest - digit) / 36;
    }
    return true;
  }

  /** Most renewals are like the one before. */
  #isLast(value: Buffer, start: number, agent: string, specMask: number): boolean {
    if (specMask !== this.#lastMask || agent !== this.#lastAgent) return false;
    const last = this.#lastId;
    for (let at = 0; at < ID_LENGTH; at++) if (value[start + at] !== last[at]) return false;
    return true;
  }

  #nameOf(agent: string): string {
    let name = this.#names.get(agent);
    if (name === undefined) {
      name = managerOfAgent(agent) || 'unknown';
      if (this.#names.size >= REMEMBERED_MAX) this.#names.clear();
      this.#names.set(agent, name);
    }
    return name;
  }

  /** The fields of a spec that entries of the template own; -1 where it is of another kind. */
  #maskOf(id: string, template: Template): number {
    let mask = this.#masks.get(id);
    if (mask === undefined) {
      mask = ownedMask(template);
      if (this.#masks.size >= REMEMBERED_MAX) this.#masks.clear();
      this.#masks.set(id, mask);
    }
    return mask;
  }
}

/** A time of the usual length, and nothing after it but what fills the holes of the same entry. */
function isOneReference(value: Buffer, timeAt: number): boolean {
  for (let at = timeAt; at < timeAt + TIME_LENGTH; at++) {
    if (value[at] === QUOTE || value[at] === SEMICOLON || value[at] === COMMA) return false;
  }
  let at = timeAt + TIME_LENGTH;
  if (value[at] !== QUOTE && value[at] !== SEMICOLON) return false;
  while (value[at] !== QUOTE) if (value[at++] === COMMA) return false;
  return true;
}

function startsWithOpen(value: Buffer, at: number): boolean {
  return value.compare(OPEN, 0, OPEN.length, at, Math.min(at + OPEN.length, value.length)) === 0;
}

function ownedMask({ manager, pieces }: Template): number {
  const { operation, apiVersion, subresource } = manager;
  if (operation !== 'Update' || apiVersion !== API_VERSION || subresource !== '') return -1;
  // what fills the holes does not matter here
  const fields = decodeFields(parseJson(pieces.join('x')));
  let mask = 0;
  for (let index = 0; index < SPEC_FIELDS.length; index++) {
    if (fields?.has(['f:spec', `f:${SPEC_FIELDS[index]!}`]) === true) mask |= 2 << index;
  }
  return mask;
}
