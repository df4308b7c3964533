// data plane: messages inside messages whose lengths are known last
/**
 * Each message leaves room for the longest length in front of its content. When all are written
 * the lengths are, too, and everything moves together in one pass: moving each message when it
 * ends would move the innermost content once for every level around it.
 *
 *     tag ..... content tag ..... content        while it is written, five bytes each
 *     tag . content tag . content                after `join`
 */
import { WIRE_BYTES } from '@megaplane/wire/protobuf';
import { sizeVarint, writeVarint } from '@megaplane/wire/protobuf-write';

const GAP_BYTES = 5;
/** Room that `open` takes at most. */
export const OPEN_BYTES: number = 5 + GAP_BYTES;

export class LengthGaps {
  /** Where gaps stand, in the order in which they were opened, and what is to stand in them. */
  readonly #places: number[] = [];
  readonly #lengths: number[] = [];
  /** Gaps that are not closed, innermost last, and what closed ones inside them will give back. */
  readonly #open: number[] = [];
  readonly #saved: number[] = [];

  /** Writes the tag of a message; its content begins at the offset returned. */
  open(out: Uint8Array, at: number, field: number): number {
    const place = writeVarint(out, at, field * 8 + WIRE_BYTES);
    this.#open.push(this.#places.push(place) - 1);
    this.#saved.push(0);
    return place + GAP_BYTES;
  }

  /** The content of the message opened last ends at `at`. */
  close(at: number): void {
    const gap = this.#open.pop()!;
    const saved = this.#saved.pop()!;
    const length = at - this.#places[gap]! - GAP_BYTES - saved;
    this.#lengths[gap] = length;
    const outer = this.#saved.length - 1;
    if (outer >= 0) this.#saved[outer]! += saved + GAP_BYTES - sizeVarint(length);
  }

  /** Writes the lengths and moves all up to `end` together. Returns where it ends now. */
  join(out: Uint8Array, end: number): number {
    const places = this.#places;
    if (places.length === 0) return end;
    let at = places[0]!;
    for (let i = 0; i < places.length; i++) {
      at = writeVarint(out, at, this.#lengths[i]!);
      const from = places[i]! + GAP_BYTES;
      const to = places[i + 1] ?? end;
      out.copyWithin(at, from, to);
      at += to - from;
    }
    this.clear();
    return at;
  }

  clear(): void {
    this.#places.length = this.#lengths.length = this.#open.length = this.#saved.length = 0;
  }
}
