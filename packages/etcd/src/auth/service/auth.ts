// shell: clocks, randomness and key files of users
/** Puts the parts of users and roles together for a server. */
import { createPrivateKey, createPublicKey, randomBytes, randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseDurationMs } from '@megaplane/base/limits';
import type { GrpcMethods } from '@megaplane/wire/grpc';
import type { EtcdContext } from '../../call/context.ts';
import { AuthGuard } from './auth-guard.ts';
import { AuthService } from './auth-service.ts';
import { AUTH_DOCUMENT, AuthState } from '../auth-state.ts';
import { PasswordThread } from '../password-thread.ts';
import { JWT_METHODS, JwtTokens, SimpleTokens, type Now, type Tokens } from '../tokens.ts';

const SIMPLE_TTL_MS = 300_000;
const JWT_TTL_MS = 300_000;
const BCRYPT_COST = 10;

export interface AuthOptions {
  /** etcd's --auth-token: `simple`, or `jwt` with its options. */
  readonly token?: string;
  /** Of simple tokens, after the last use. */
  readonly tokenTtlMs?: number;
  readonly bcryptCost?: number;
  /** Common names of client certificates are users. */
  readonly usesCertificates?: boolean;
}

export interface Auth {
  readonly state: AuthState;
  readonly guard: AuthGuard;
  /** Another member knows the tokens that this one gave out. */
  readonly sharesTokens: boolean;
  register(methods: GrpcMethods): void;
}

export function makeAuth(context: EtcdContext, options: AuthOptions): Auth {
  const { store } = context;
  const state = new AuthState(store.documents.get(AUTH_DOCUMENT), (bytes) =>
    store.setDocument(AUTH_DOCUMENT, bytes),
  );
  store.onDocument = (number) => {
    if (number === AUTH_DOCUMENT) state.load(store.documents.get(AUTH_DOCUMENT));
  };
  const tokens = makeTokens(options);
  const now = (): Now => ({ monotonicMs: performance.now(), wallMs: Date.now() });
  const usesCertificates = options.usesCertificates === true;
  const guard = new AuthGuard({ context, state, tokens, usesCertificates, now });
  const bcryptCost = options.bcryptCost ?? BCRYPT_COST;
  const service = new AuthService({
    ...{ context, state, tokens, now, bcryptCost, drawBytes: randomBytes },
    passwords: new PasswordThread(),
  });
  const sharesTokens = !(tokens instanceof SimpleTokens);
  return { state, guard, sharesTokens, register: (methods) => service.register(methods) };
}

function makeTokens({ token = 'simple', tokenTtlMs }: AuthOptions): Tokens {
  const [kind = '', ...pairs] = token.split(',');
  if (kind === 'simple' || kind === '') {
    return new SimpleTokens(tokenTtlMs ?? SIMPLE_TTL_MS, (max) => randomInt(max));
  }
  if (kind !== 'jwt') throw new Error(`--auth-token: ${kind} is neither simple nor jwt`);
  const options = new Map(
    pairs.map((pair) => {
      const [name = '', value = '', ...more] = pair.split('=');
      if (more.length > 0 || value === '') throw new Error(`--auth-token: ${pair} is no option`);
      return [name, value] as const;
    }),
  );
  return makeJwt(options);
}

function makeJwt(options: ReadonlyMap<string, string>): JwtTokens {
  const method = options.get('sign-method') ?? '';
  if (!JWT_METHODS.test(method)) {
    throw new Error(
      `--auth-token: sign-method=${method} is not known; RS256, ES256 and others are`,
    );
  }
  const ttl = parseDurationMs(options.get('ttl') ?? '');
  const ttlMs = options.has('ttl') ? ttl : { kind: 'value' as const, value: JWT_TTL_MS };
  if (ttlMs.kind === 'invalid') throw new Error(`--auth-token: ttl: ${ttlMs.message}`);
  const privateFile = options.get('priv-key');
  const publicFile = options.get('pub-key');
  const read = (name: string, path: string): Buffer => {
    try {
      return readFileSync(path);
    } catch (error) {
      throw new Error(`--auth-token: ${name}: ${(error as Error).message}`, { cause: error });
    }
  };
  const secret = privateFile === undefined ? null : read('priv-key', privateFile);
  const shared = { method, ttlMs: ttlMs.value };
  if (method.startsWith('HS')) {
    if (secret === null) throw new Error('--auth-token: priv-key with the secret is needed');
    return new JwtTokens({ ...shared, signingKey: secret, verifyingKey: secret });
  }
  if (secret === null && publicFile === undefined) {
    throw new Error('--auth-token: priv-key, or pub-key to verify only, is needed');
  }
  const signingKey = secret === null ? null : createPrivateKey(secret);
  const shown = publicFile === undefined ? secret : read('pub-key', publicFile);
  return new JwtTokens({ ...shared, signingKey, verifyingKey: createPublicKey(shown ?? '') });
}
