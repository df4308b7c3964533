// data plane: the text of each of a million prefixes, without numbers of 128 bits
/** Prefixes that follow each other, as eight groups of sixteen bits. */

const GROUPS = 8;
const GROUP_BITS = 16;
const GROUP_MAX = 0xffff;
const HEX: readonly string[] = Array.from({ length: GROUP_MAX + 1 }, (_, at) => at.toString(16));

export class GroupCounter {
  readonly #groups = new Uint16Array(GROUPS);
  /** The group that the last bit of the prefix is in, and what it counts there. */
  readonly #at: number;
  readonly #step: number;

  constructor(base: bigint, length: number) {
    for (let at = GROUPS - 1, rest = base; at >= 0; at--, rest >>= 16n) {
      this.#groups[at] = Number(rest & 0xffffn);
    }
    this.#at = Math.ceil(length / GROUP_BITS) - 1;
    this.#step = 2 ** ((this.#at + 1) * GROUP_BITS - length);
  }

  /** On to the next prefix. */
  next(): void {
    let carry = this.#step;
    for (let at = this.#at; at >= 0 && carry > 0; at--) {
      const sum = this.#groups[at]! + carry;
      this.#groups[at] = sum & GROUP_MAX;
      carry = sum > GROUP_MAX ? 1 : 0;
    }
  }

  /** The address of the prefix with `last` in its last group, which is 0 in it (RFC 5952). */
  text(last: number): string {
    const groups = this.#groups;
    let best = 1;
    let bestAt = -1;
    for (let at = 0; at < GROUPS; at++) {
      let end = at;
      while (end < GROUPS && groups[end] === 0 && (end < GROUPS - 1 || last === 0)) end++;
      if (end - at > best) {
        best = end - at;
        bestAt = at;
      }
      if (end > at) at = end;
    }
    let text = '';
    for (let at = 0; at < GROUPS; at++) {
      if (at === bestAt) {
        text += '::';
        at += best - 1;
        continue;
      }
      if (at > 0 && at !== bestAt + best) text += ':';
      text += HEX[at === GROUPS - 1 ? groups[at]! | last : groups[at]!]!;
    }
    return text;
  }
}
