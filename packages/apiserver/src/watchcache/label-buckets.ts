/**
 * Watches by a label that each requires: an event is shown to those whose value it has or had.
 *
 * A watch stands under the first requirement of its selector that names values; selectors without
 * one (`!key`, `key != value`) have no place here.
 */
import type { LabelSelector } from '@megaplane/machinery/selectors';
import { LabelsRange } from '@megaplane/machinery/selectors-bytes';
import { MemberCursor } from '@megaplane/machinery/scan';
import type { Row } from '../storage/storage.ts';

/** Values of one requirement that a watch is listed under; those with more see every event. */
const VALUES_MAX = 16;
const BRACE_OPEN = 0x7b;

/** What a watch is found by. */
export interface LabelPlace {
  readonly key: string;
  readonly values: readonly string[];
}

/** Where a watch with this selector stands; null where no label decides. */
export function labelPlaceOf(selector: LabelSelector): LabelPlace | null {
  for (const { key, operator, values } of selector.requirements) {
    const isListed = operator === '=' || operator === '==' || operator === 'in';
    if (isListed && values.length > 0 && values.length <= VALUES_MAX) return { key, values };
  }
  return null;
}

const labels = new LabelsRange();
const cursor = new MemberCursor();

export class LabelBuckets<T> {
  readonly #byKey = new Map<string, Map<string, Set<T>>>();
  /** Lengths of the keys in use, so that most labels of an object need no text. */
  readonly #lengths = new Map<number, number>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(member: T, { key, values }: LabelPlace): void {
    this.#size++;
    let byValue = this.#byKey.get(key);
    if (byValue === undefined) {
      this.#byKey.set(key, (byValue = new Map()));
      this.#lengths.set(key.length, (this.#lengths.get(key.length) ?? 0) + 1);
    }
    for (const value of values) {
      let members = byValue.get(value);
      if (members === undefined) byValue.set(value, (members = new Set()));
      members.add(member);
    }
  }

  delete(member: T, { key, values }: LabelPlace): void {
    const byValue = this.#byKey.get(key);
    if (byValue === undefined) return;
    this.#size--;
    for (const value of values) {
      const members = byValue.get(value);
      members?.delete(member);
      if (members?.size === 0) byValue.delete(value);
    }
    if (byValue.size > 0) return;
    this.#byKey.delete(key);
    const left = (this.#lengths.get(key.length) ?? 1) - 1;
    if (left === 0) this.#lengths.delete(key.length);
    else this.#lengths.set(key.length, left);
  }

  /** Adds to `found` whose label the object in `row` has. */
  find(row: Row, found: Set<T>): void {
    const { bytes, start, end } = row;
    if (start === end) return;
    if (bytes[start] !== BRACE_OPEN) {
      // values of another writer's form are rare: everybody looks for himself
      for (const byValue of this.#byKey.values()) {
        for (const members of byValue.values()) for (const member of members) found.add(member);
      }
      return;
    }
    labels.find(bytes, start, end);
    if (labels.start === labels.end || !cursor.open(bytes, labels.start, labels.end)) return;
    while (cursor.next()) {
      if (!this.#lengths.has(cursor.keyEnd - cursor.keyStart)) continue;
      const byValue = this.#byKey.get(bytes.toString('utf8', cursor.keyStart, cursor.keyEnd));
      if (byValue === undefined) continue;
      const value = bytes.toString('utf8', cursor.valueStart + 1, cursor.valueEnd - 1);
      const members = byValue.get(value);
      if (members !== undefined) for (const member of members) found.add(member);
    }
  }
}
