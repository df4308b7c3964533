// data plane: bcrypt, in slices
/**
 * Hashes of passwords in the form `$2a$10$` + 22 characters of salt + 31 of hash (Provos and
 * Mazieres, 1999), because etcd's users come with such hashes and go back with them. The cost is
 * meant to hurt, so the work is a generator that yields about every millisecond.
 */
import { timingSafeEqual } from 'node:crypto';
import { Blowfish, piWords } from './blowfish.ts';

const ALPHABET = './ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const STANDARD = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const FORM = /^\$2[aby]\$(\d\d)\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{31})$/;
export const SALT_BYTES = 16;
const HASH_BYTES = 23;
/** Longer passwords would be cut by the algorithm; they are refused as in Go. */
export const PASSWORD_BYTES_MAX = 72;
const TEXT: Int32Array = wordsOf(Buffer.from('OrpheanBeholderScryDoubt', 'latin1'));
/** Rounds of the key schedule between two yields. */
const SLICE_ROUNDS = 8;

function translate(text: string, from: string, to: string): string {
  return Array.from(text, (digit) => to.charAt(from.indexOf(digit))).join('');
}

function encode(bytes: Buffer): string {
  return translate(bytes.toString('base64').replaceAll('=', ''), STANDARD, ALPHABET);
}

function decode(text: string): Buffer {
  return Buffer.from(translate(text, ALPHABET, STANDARD), 'base64');
}

function wordsOf(bytes: Buffer): Int32Array {
  return Int32Array.from({ length: bytes.length >> 2 }, (_, i) => bytes.readInt32BE(i * 4));
}

/** 18 words of the key, its final zero included, over and over. */
function keyWords(password: Buffer): Int32Array {
  const key = Buffer.concat([password, Buffer.from([0])]);
  const cycled = Buffer.alloc(72);
  for (let i = 0; i < cycled.length; i++) cycled[i] = key[i % key.length]!;
  return wordsOf(cycled);
}

/** Yields while there is more to do; returns the 23 bytes of the hash. */
function* digest(password: Buffer, cost: number, salt: Buffer): Generator<void, Buffer> {
  const cipher = new Blowfish(yield* piWords());
  const key = keyWords(password);
  const saltWords = wordsOf(salt);
  const saltKey = Int32Array.from({ length: 18 }, (_, i) => saltWords[i % 4]!);
  cipher.expand(key, saltWords);
  for (let round = 0; round < 2 ** cost; round++) {
    cipher.expand(key, null);
    cipher.expand(saltKey, null);
    if (round % SLICE_ROUNDS === 0) yield;
  }
  const out = Buffer.alloc(24);
  for (let block = 0; block < TEXT.length; block += 2) {
    cipher.left = TEXT[block]!;
    cipher.right = TEXT[block + 1]!;
    for (let i = 0; i < 64; i++) cipher.encrypt(cipher.left, cipher.right);
    out.writeInt32BE(cipher.left, block * 4);
    out.writeInt32BE(cipher.right, block * 4 + 4);
  }
  return out.subarray(0, HASH_BYTES);
}

/** The hash of a password of at most PASSWORD_BYTES_MAX bytes, as text. */
export function* hashPassword(
  password: Buffer,
  cost: number,
  salt: Buffer,
): Generator<void, string> {
  const hash = yield* digest(password, cost, salt);
  return `$2a$${String(cost).padStart(2, '0')}$${encode(salt)}${encode(hash)}`;
}

/** Does the password belong to the hash? False for a text that is no hash, too. */
export function* checkPassword(password: Buffer, hashed: string): Generator<void, boolean> {
  const parts = FORM.exec(hashed);
  if (parts === null || password.length > PASSWORD_BYTES_MAX) return false;
  const [, cost = '', salt = '', hash = ''] = parts;
  if (Number(cost) < 4 || Number(cost) > 31) return false;
  const found = yield* digest(password, Number(cost), decode(salt));
  return timingSafeEqual(found, decode(hash));
}
