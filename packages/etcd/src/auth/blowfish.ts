// data plane: Blowfish as bcrypt uses it
/**
 * The cipher of Bruce Schneier (1993): 18 subkeys and four boxes of 256 words, which begin as the
 * fraction of pi in binary. The 33,344 bits are computed once at the first use instead of listed.
 */
const SUBKEYS = 18;
const BOX_WORDS = 1024;
const WORDS = SUBKEYS + BOX_WORDS;
const GUARD_BITS = 64n;
/** Terms of a series between two yields. */
const SLICE_TERMS = 128n;

let initial: Uint32Array | null = null;

/** arctan(1 / x) as a fixed-point number with `bits` binary places. */
function* arctanInverse(x: bigint, bits: bigint): Generator<void, bigint> {
  let power = (1n << bits) / x;
  let sum = power;
  const square = x * x;
  for (let n = 3n, sign = -1n; power > 0n; n += 2n, sign = -sign) {
    power /= square;
    sum += (sign * power) / n;
    if (n % SLICE_TERMS === 1n) yield;
  }
  return sum;
}

/** The words of the fraction of pi, by Machin's formula; yields about every millisecond. */
export function* piWords(): Generator<void, Uint32Array> {
  if (initial !== null) return initial;
  const bits = BigInt(WORDS * 32) + GUARD_BITS;
  const fifth = yield* arctanInverse(5n, bits);
  const small = yield* arctanInverse(239n, bits);
  const pi = 16n * fifth - 4n * small;
  const fraction = BigInt.asUintN(WORDS * 32, pi >> GUARD_BITS);
  const digits = fraction.toString(16).padStart(WORDS * 8, '0');
  initial = Uint32Array.from({ length: WORDS }, (_, i) =>
    Number.parseInt(digits.slice(i * 8, i * 8 + 8), 16),
  );
  return initial;
}

/** The state of bcrypt's variant with its expensive key schedule. */
export class Blowfish {
  readonly #p: Int32Array;
  readonly #s: Int32Array;
  /** The block that `encrypt` worked on. */
  left = 0;
  right = 0;

  /** Takes what `piWords` gave. */
  constructor(words: Uint32Array) {
    this.#p = Int32Array.from(words.subarray(0, SUBKEYS), (word) => word | 0);
    this.#s = Int32Array.from(words.subarray(SUBKEYS), (word) => word | 0);
  }

  encrypt(leftIn: number, rightIn: number): void {
    const p = this.#p;
    const s = this.#s;
    let left = leftIn ^ p[0]!;
    let right = rightIn;
    for (let round = 1; round <= 16; round += 2) {
      right ^= p[round]! ^ mix(s, left);
      left ^= p[round + 1]! ^ mix(s, right);
    }
    this.left = right ^ p[17]!;
    this.right = left;
  }

  /** ExpandKey of the bcrypt paper; `salt` null stands for zeros. Both as big-endian words. */
  expand(key: Int32Array, salt: Int32Array | null): void {
    const p = this.#p;
    const s = this.#s;
    for (let i = 0; i < SUBKEYS; i++) p[i]! ^= key[i % key.length]!;
    let left = 0;
    let right = 0;
    let next = 0;
    for (let i = 0; i < SUBKEYS + BOX_WORDS; i += 2) {
      if (salt !== null) {
        left ^= salt[next]!;
        right ^= salt[next + 1]!;
        next ^= 2;
      }
      this.encrypt(left, right);
      left = this.left;
      right = this.right;
      if (i < SUBKEYS) {
        p[i] = left;
        p[i + 1] = right;
      } else {
        s[i - SUBKEYS] = left;
        s[i - SUBKEYS + 1] = right;
      }
    }
  }
}

function mix(s: Int32Array, x: number): number {
  const sum = (s[x >>> 24]! + s[256 + ((x >>> 16) & 255)]!) | 0;
  return ((sum ^ s[512 + ((x >>> 8) & 255)]!) + s[768 + (x & 255)]!) | 0;
}
