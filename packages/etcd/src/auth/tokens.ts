/**
 * Proofs of who a caller is: simple tokens, which this process remembers for a while, and JSON web
 * tokens (RFC 7519), which carry user and revision under a signature.
 */
import { parseNested } from '@megaplane/base/nested-json';
import { type KeyObject, createHmac, sign, timingSafeEqual, verify } from 'node:crypto';
import type { Identity } from './auth-state.ts';

export interface Tokens {
  /** A token for a user; null when this process only verifies. */
  assign(name: string, revision: number, now: Now): string | null;
  /** Whose token it is; null when it is not good. `revision` is the state's now. */
  find(token: string, revision: number, now: Now): Identity | null;
  /** The user was deleted or has another password. */
  forget(name: string): void;
  forgetAll(): void;
}

export interface Now {
  readonly monotonicMs: number;
  /** Since 1970. */
  readonly wallMs: number;
}

/** Tokens held at once; beyond it the one unused for longest goes. */
const TOKENS_MAX = 100_000;
const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
const LENGTH = 16;

/** etcd's default kind: a random word and a number, good for `ttlMs` after the last use. */
export class SimpleTokens implements Tokens {
  readonly #ttlMs: number;
  readonly #random: (max: number) => number;
  readonly #byToken: Map<string, { readonly name: string; untilMs: number }> = new Map();
  #count = 0;

  /** `random` draws a whole number below `max` that nobody can guess. */
  constructor(ttlMs: number, random: (max: number) => number) {
    this.#ttlMs = ttlMs;
    this.#random = random;
  }

  assign(name: string, _revision: number, { monotonicMs }: Now): string {
    const word = Array.from({ length: LENGTH }, () => LETTERS.charAt(this.#random(LETTERS.length)));
    const token = `${word.join('')}.${++this.#count}`;
    this.#drop(monotonicMs);
    this.#byToken.set(token, { name, untilMs: monotonicMs + this.#ttlMs });
    return token;
  }

  /** Entries stand in the order of their last use. */
  #drop(nowMs: number): void {
    for (const [token, { untilMs }] of this.#byToken) {
      if (untilMs > nowMs && this.#byToken.size < TOKENS_MAX) return;
      this.#byToken.delete(token);
    }
  }

  find(token: string, revision: number, { monotonicMs }: Now): Identity | null {
    const found = this.#byToken.get(token);
    if (found === undefined) return null;
    this.#byToken.delete(token);
    if (found.untilMs <= monotonicMs) return null;
    found.untilMs = monotonicMs + this.#ttlMs;
    this.#byToken.set(token, found);
    return { name: found.name, revision };
  }

  forget(name: string): void {
    for (const [token, found] of this.#byToken) {
      if (found.name === name) this.#byToken.delete(token);
    }
  }

  forgetAll(): void {
    this.#byToken.clear();
  }
}

/** How a JSON web token is signed; `RS256`, `PS512`, `ES384`, `HS256`, `EdDSA` and their kin. */
export interface JwtOptions {
  readonly method: string;
  /** Null: this process only verifies. For HMAC the secret's bytes. */
  readonly signingKey: KeyObject | Buffer | null;
  readonly verifyingKey: KeyObject | Buffer;
  readonly ttlMs: number;
}

export const JWT_METHODS: RegExp = /^(?:[RPEH]S(?:256|384|512)|EdDSA)$/;
const PSS_PADDING = 6;
const SALT_AS_DIGEST = -1;

function signature(options: JwtOptions, key: KeyObject | Buffer, text: string): Buffer {
  const data = Buffer.from(text, 'latin1');
  const hash = hashOf(options.method);
  if (Buffer.isBuffer(key))
    return createHmac(hash ?? 'sha256', key)
      .update(data)
      .digest();
  return sign(hash, data, keyOptions(options.method, key));
}

function hashOf(method: string): string | null {
  return method === 'EdDSA' ? null : `sha${method.slice(2)}`;
}

function keyOptions(method: string, key: KeyObject) {
  if (method.startsWith('PS')) return { key, padding: PSS_PADDING, saltLength: SALT_AS_DIGEST };
  if (method.startsWith('ES')) return { key, dsaEncoding: 'ieee-p1363' as const };
  return { key };
}

function isSigned(options: JwtOptions, text: string, found: Buffer): boolean {
  const { method, verifyingKey: key } = options;
  if (Buffer.isBuffer(key)) {
    const expected = signature(options, key, text);
    return expected.length === found.length && timingSafeEqual(expected, found);
  }
  return verify(hashOf(method), Buffer.from(text, 'latin1'), keyOptions(method, key), found);
}

function part(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = parseNested(Buffer.from(text, 'base64url').toString('utf8'));
    return typeof value === 'object' ? (value as Record<string, unknown> | null) : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

export class JwtTokens implements Tokens {
  readonly #options: JwtOptions;

  constructor(options: JwtOptions) {
    this.#options = options;
  }

  assign(username: string, revision: number, { wallMs }: Now): string | null {
    const { method, signingKey, ttlMs } = this.#options;
    if (signingKey === null) return null;
    const exp = Math.floor((wallMs + ttlMs) / 1000);
    const text = `${part({ alg: method, typ: 'JWT' })}.${part({ exp, revision, username })}`;
    return `${text}.${signature(this.#options, signingKey, text).toString('base64url')}`;
  }

  find(token: string, _revision: number, { wallMs }: Now): Identity | null {
    const [head = '', claims = '', proof = '', ...more] = token.split('.');
    if (more.length > 0 || parsed(head)?.['alg'] !== this.#options.method) return null;
    if (!isSigned(this.#options, `${head}.${claims}`, Buffer.from(proof, 'base64url'))) return null;
    const found = parsed(claims);
    const { username, revision, exp, nbf } = found ?? {};
    if (typeof username !== 'string' || typeof revision !== 'number') return null;
    if (typeof exp === 'number' && wallMs >= exp * 1000) return null;
    if (typeof nbf === 'number' && wallMs < nbf * 1000) return null;
    return { name: username, revision };
  }

  /** They cannot be called back; a change of the user makes their revision old. */
  forget(): void {}

  forgetAll(): void {}
}
