// data plane: machines that are alike in all that decides are one kind
//
// A kind is what stays when id, state, binding and stamp are taken from a machine. Whether a kind
// matches a profile is worked out once and kept.
import { byUtf8 } from '../../contract/text-order.ts';
import type { Amounts } from '../amounts.ts';
import { type CapacityType, type Machine, attributeOf, matches } from '../machine.ts';
import type { Profile } from '../profile.ts';
import { Interned } from './interned.ts';
import type { Vectors } from './vectors.ts';

export type KindFields = Pick<
  Machine,
  'instanceType' | 'zone' | 'capacityType' | 'labels' | 'price' | 'interruptionProbability'
> & { readonly allocatable: Amounts };

/** Answers of `matchesKind` are forgotten, all at once, when they fill more bytes than this. */
export const MATCHES_BYTES_MAX: number = 64 * 1024 * 1024;

const UNKNOWN = 0;
const NO = 1;
const YES = 2;

export class Kinds {
  readonly fields: (KindFields & { readonly id: number })[] = [];
  readonly price: number[] = [];
  readonly probability: number[] = [];
  readonly capacityType: CapacityType[] = [];
  /** What it offers, a number of `vectors`. */
  readonly vector: number[] = [];
  /** Which list of acquirable machines it goes to: type and probability. */
  readonly list: number[] = [];
  readonly lists: { readonly instanceType: string; readonly probability: number }[] = [];
  /** How many kinds in use have amounts that are not exact here. */
  odd = 0;
  readonly #ids = new Interned<string>();
  readonly #isOdd: boolean[] = [];
  readonly #listIds = new Map<string, number>();
  readonly #vectors: Vectors;
  #matches: (Uint8Array<ArrayBuffer> | undefined)[] = [];
  #matchesBytes = 0;
  readonly #values = new Map<string, Int32Array<ArrayBuffer>>();
  readonly #valueIds = new Map<string, number>();
  readonly #valueTexts: string[] = [];

  constructor(vectors: Vectors) {
    this.#vectors = vectors;
  }

  get end(): number {
    return this.#ids.end;
  }

  /** The number of the kind of a machine, held once more. */
  hold(fields: KindFields): number {
    const before = this.#ids.size;
    const id = this.#ids.hold(keyOf(fields));
    if (this.#ids.size > before) this.#begin(id, fields);
    return id;
  }

  /** The same, for fields that are mostly those of the kind `likely` (-1: of none). */
  holdAs(fields: KindFields, likely: number): number {
    const known = this.fields[likely];
    const isSame =
      known !== undefined &&
      known.labels === fields.labels &&
      known.allocatable === fields.allocatable &&
      known.price === fields.price &&
      known.interruptionProbability === fields.interruptionProbability &&
      known.instanceType === fields.instanceType &&
      known.zone === fields.zone &&
      known.capacityType === fields.capacityType;
    if (!isSame) return this.hold(fields);
    this.#ids.holdAgain(likely);
    return likely;
  }

  release(id: number): void {
    if (!this.#ids.release(id)) return;
    this.#vectors.release(this.vector[id]!);
    if (this.#isOdd[id] === true) this.odd--;
  }

  matches(profileId: number, profile: Profile, kind: number): boolean {
    let known = this.#matches[profileId];
    if (known === undefined || known.length <= kind) known = this.#grow(profileId, kind);
    const answer = known[kind]!;
    if (answer !== UNKNOWN) return answer === YES;
    // the fields of a kind are those of a machine as far as a profile looks at it
    const isMatch = matches(profile, this.fields[kind]! as unknown as Machine);
    known[kind] = isMatch ? YES : NO;
    return isMatch;
  }

  /** The number of what a kind has under `key`; -1 if nothing. */
  valueOf(key: string, kind: number): number {
    let values = this.#values.get(key);
    if (values === undefined || values.length <= kind) {
      const larger = new Int32Array(Math.max(64, this.end * 2)).fill(-2);
      if (values !== undefined) larger.set(values);
      this.#values.set(key, larger);
      values = larger;
    }
    if (values[kind] === -2) values[kind] = this.#valueId(key, kind);
    return values[kind]!;
  }

  valueText(value: number): string {
    return this.#valueTexts[value]!;
  }

  /** The order of the texts of two values. */
  compareValues(left: number, right: number): number {
    return byUtf8(this.#valueTexts[left]!, this.#valueTexts[right]!);
  }

  #valueId(key: string, kind: number): number {
    const text = attributeOf(this.fields[kind]! as unknown as Machine, key);
    if (text === undefined) return -1;
    const known = this.#valueIds.get(text);
    if (known !== undefined) return known;
    this.#valueIds.set(text, this.#valueTexts.length);
    return this.#valueTexts.push(text) - 1;
  }

  #begin(id: number, fields: KindFields): void {
    const { instanceType, interruptionProbability: probability, price, capacityType } = fields;
    this.fields[id] = { ...fields, id };
    this.price[id] = price;
    this.probability[id] = probability;
    this.capacityType[id] = capacityType;
    this.vector[id] = this.#vectors.hold(fields.allocatable, 'offered');
    this.#isOdd[id] = this.#vectors.wasOdd;
    if (this.#vectors.wasOdd) this.odd++;
    const key = `${probability}\0${instanceType}`;
    const list = this.#listIds.get(key) ?? this.lists.push({ instanceType, probability }) - 1;
    this.#listIds.set(key, list);
    this.list[id] = list;
    for (const known of this.#matches) if (known !== undefined && id < known.length) known[id] = 0;
    for (const values of this.#values.values()) if (id < values.length) values[id] = -2;
  }

  #grow(profileId: number, kind: number): Uint8Array<ArrayBuffer> {
    const length = Math.max(64, kind + 1, Math.ceil(this.end * 1.25));
    if (this.#matchesBytes + length > MATCHES_BYTES_MAX) {
      this.#matches = [];
      this.#matchesBytes = 0;
    }
    const larger = new Uint8Array(length);
    const before = this.#matches[profileId];
    if (before !== undefined) larger.set(before);
    this.#matchesBytes += length - (before?.length ?? 0);
    this.#matches[profileId] = larger;
    return larger;
  }
}

function keyOf(fields: KindFields): string {
  const { instanceType, zone, capacityType, labels, price, interruptionProbability } = fields;
  const amounts = [...fields.allocatable].map(([name, quantity]) => {
    return `${name}\u0001${quantity.digits}\u0001${quantity.scale}`;
  });
  const texts = [...labels].map(([name, value]) => `${name}\u0001${value}`).toSorted();
  const words = [instanceType, zone, capacityType, price, interruptionProbability];
  return [...words, texts.length, ...texts, ...amounts].join('\0');
}
