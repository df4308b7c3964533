// data plane
/**
 * NaCl's secretbox: XSalsa20 for secrecy and Poly1305 for authenticity, which OpenSSL does not have
 * together (D. J. Bernstein, "Cryptography in NaCl", and RFC 8439 section 2.5 for Poly1305).
 *
 *     box = tag (16) | message ^ XSalsa20(key, nonce)[32..]      tag by XSalsa20(key, nonce)[0..32]
 */
import { timingSafeEqual } from 'node:crypto';

export const SECRETBOX_KEY_BYTES = 32;
export const SECRETBOX_NONCE_BYTES = 24;
const TAG_BYTES = 16;
const BLOCK_BYTES = 64;
/** "expand 32-byte k" */
const SIGMA = Uint32Array.of(0x61707865, 0x3320646e, 0x79622d32, 0x6b206574);

/** Seals `message`; the same nonce must never be used twice with one key. */
export function sealBox(message: Buffer, nonce: Buffer, key: Buffer): Buffer {
  const stream = new Salsa(key, nonce);
  const box = Buffer.alloc(TAG_BYTES + message.length);
  const first = stream.block(0);
  stream.xor(message, box, TAG_BYTES, first);
  poly1305(box.subarray(TAG_BYTES), first.subarray(0, 32)).copy(box);
  return box;
}

/** Opens a box; null where it was not sealed with this key and nonce, or was changed. */
export function openBox(box: Buffer, nonce: Buffer, key: Buffer): Buffer | null {
  if (box.length < TAG_BYTES) return null;
  const stream = new Salsa(key, nonce);
  const first = stream.block(0);
  const sealed = box.subarray(TAG_BYTES);
  const tag = poly1305(sealed, first.subarray(0, 32));
  if (!timingSafeEqual(tag, box.subarray(0, TAG_BYTES))) return null;
  const message = Buffer.alloc(sealed.length);
  stream.xor(sealed, message, 0, first);
  return message;
}

/** XSalsa20: a key of its own from key and half the nonce, then Salsa20 with the rest. */
class Salsa {
  readonly #state: Uint32Array = new Uint32Array(16);
  readonly #work: Uint32Array = new Uint32Array(16);

  constructor(key: Buffer, nonce: Buffer) {
    const state = this.#state;
    setConstants(state);
    for (let i = 0; i < 4; i++) {
      state[1 + i] = key.readUInt32LE(4 * i);
      state[11 + i] = key.readUInt32LE(16 + 4 * i);
      state[6 + i] = nonce.readUInt32LE(4 * i);
    }
    this.#rounds();
    const work = this.#work;
    // HSalsa20 takes these words, without adding the input
    const inner = [
      work[0]!,
      work[5]!,
      work[10]!,
      work[15]!,
      work[6]!,
      work[7]!,
      work[8]!,
      work[9]!,
    ];
    for (let i = 0; i < 4; i++) {
      state[1 + i] = inner[i]!;
      state[11 + i] = inner[4 + i]!;
    }
    state[6] = nonce.readUInt32LE(16);
    state[7] = nonce.readUInt32LE(20);
  }

  /** Block number `count` of the stream. */
  block(count: number): Buffer {
    const state = this.#state;
    state[8] = count >>> 0;
    state[9] = Math.floor(count / 4294967296);
    this.#rounds();
    const out = Buffer.alloc(BLOCK_BYTES);
    for (let i = 0; i < 16; i++) out.writeUInt32LE((this.#work[i]! + state[i]!) >>> 0, 4 * i);
    return out;
  }

  /** `from` with the stream from its byte 32 on; `first` is block 0. */
  xor(from: Buffer, to: Buffer, at: number, first: Buffer): void {
    let block = first;
    let place = 32;
    let count = 0;
    for (let i = 0; i < from.length; i++) {
      if (place === BLOCK_BYTES) {
        block = this.block(++count);
        place = 0;
      }
      to[at + i] = from[i]! ^ block[place++]!;
    }
  }

  /** Twenty rounds of the state, into the work. */
  #rounds(): void {
    const x = this.#work;
    x.set(this.#state);
    for (let round = 0; round < 10; round++) {
      quarter(x, 0, 4, 8, 12);
      quarter(x, 5, 9, 13, 1);
      quarter(x, 10, 14, 2, 6);
      quarter(x, 15, 3, 7, 11);
      quarter(x, 0, 1, 2, 3);
      quarter(x, 5, 6, 7, 4);
      quarter(x, 10, 11, 8, 9);
      quarter(x, 15, 12, 13, 14);
    }
  }
}

function setConstants(state: Uint32Array): void {
  state[0] = SIGMA[0]!;
  state[5] = SIGMA[1]!;
  state[10] = SIGMA[2]!;
  state[15] = SIGMA[3]!;
}

function quarter(x: Uint32Array, a: number, b: number, c: number, d: number): void {
  x[b] = x[b]! ^ rotate(x[a]! + x[d]!, 7);
  x[c] = x[c]! ^ rotate(x[b] + x[a]!, 9);
  x[d] = x[d]! ^ rotate(x[c] + x[b], 13);
  x[a] = x[a]! ^ rotate(x[d] + x[c], 18);
}

function rotate(sum: number, bits: number): number {
  const word = sum >>> 0;
  return (word << bits) | (word >>> (32 - bits));
}

const LIMBS = 10;
const LIMB_BITS = 13;
const LIMB_MASK = 0x1fff;

/** Poly1305 in limbs of 13 bits: no product of two and sum of ten is too large for a number. */
function poly1305(message: Buffer, key: Buffer): Buffer {
  const r = limbsOf(clamped(key), 0);
  const h = new Float64Array(LIMBS);
  const chunk = Buffer.alloc(TAG_BYTES);
  for (let at = 0; at < message.length; at += TAG_BYTES) {
    const size = Math.min(TAG_BYTES, message.length - at);
    chunk.fill(0);
    message.copy(chunk, 0, at, at + size);
    // a one stands right after the bytes of each piece
    if (size < TAG_BYTES) chunk[size] = 1;
    const block = limbsOf(chunk, size === TAG_BYTES ? 1 : 0);
    for (let i = 0; i < LIMBS; i++) h[i] = h[i]! + block[i]!;
    multiply(h, r);
  }
  return withPad(h, key);
}

function clamped(key: Buffer): Buffer {
  const r = Buffer.from(key.subarray(0, TAG_BYTES));
  for (const at of [3, 7, 11, 15]) r[at] = r[at]! & 0x0f;
  for (const at of [4, 8, 12]) r[at] = r[at]! & 0xfc;
  return r;
}

/** Sixteen bytes, and a bit above them, as limbs. */
function limbsOf(bytes: Buffer, top: number): Float64Array {
  const limbs = new Float64Array(LIMBS);
  for (let limb = 0; limb < LIMBS; limb++) {
    let value = 0;
    for (let bit = 0; bit < LIMB_BITS; bit++) {
      const at = limb * LIMB_BITS + bit;
      const isSet = at < 128 ? (bytes[at >> 3]! >> (at & 7)) & 1 : at === 128 ? top : 0;
      value |= isSet << bit;
    }
    limbs[limb] = value;
  }
  return limbs;
}

/** `h = h * r mod 2^130 - 5`, not wholly reduced. */
function multiply(h: Float64Array, r: Float64Array): void {
  const product = new Float64Array(LIMBS);
  for (let i = 0; i < LIMBS; i++) {
    for (let j = 0; j < LIMBS; j++) {
      const place = i + j;
      const factor = place >= LIMBS ? 5 : 1;
      product[place % LIMBS] = product[place % LIMBS]! + factor * h[i]! * r[j]!;
    }
  }
  carry(product);
  h.set(product);
}

function carry(limbs: Float64Array): void {
  for (let round = 0; round < 2; round++) {
    let over = 0;
    for (let i = 0; i < LIMBS; i++) {
      const sum = limbs[i]! + over;
      over = Math.floor(sum / (LIMB_MASK + 1));
      limbs[i] = sum - over * (LIMB_MASK + 1);
    }
    limbs[0] = limbs[0]! + 5 * over;
  }
}

/** The hash, reduced, plus the second half of the key, modulo 2^128. */
function withPad(h: Float64Array, key: Buffer): Buffer {
  let value = 0n;
  carry(h);
  for (let i = LIMBS - 1; i >= 0; i--) value = (value << 13n) + BigInt(h[i]!);
  value %= (1n << 130n) - 5n;
  const pad = key.readBigUInt64LE(16) + (key.readBigUInt64LE(24) << 64n);
  const sum = BigInt.asUintN(128, value + pad);
  const tag = Buffer.alloc(TAG_BYTES);
  tag.writeBigUInt64LE(BigInt.asUintN(64, sum), 0);
  tag.writeBigUInt64LE(sum >> 64n, 8);
  return tag;
}
