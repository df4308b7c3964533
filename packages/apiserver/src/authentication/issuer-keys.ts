// shell: sockets and timers
/** The keys that an issuer of tokens publishes, read when a token needs one that is not known. */
import { guarded } from '@megaplane/base/deferred';
import { createPublicKey, type KeyObject } from 'node:crypto';
import { request } from 'node:https';
import { clientTls } from '@megaplane/base/tls-parts';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import { isObject, type JsonValue } from '@megaplane/machinery/json-value';
import type { Unknown } from './authentication.ts';
import type { IssuerKeys, JwtIssuer } from './jwt-authenticator.ts';

const TIMEOUT_MS = 10_000;
const ANSWER_BYTES_MAX: number = 1024 * 1024;
/** Keys are read again at most this often, whatever tokens are sent. */
const REFRESH_MS_MIN = 10_000;

export class PublishedKeys implements IssuerKeys {
  readonly #issuer: JwtIssuer;
  readonly #log: (message: string) => void;
  #keys: readonly { readonly id: string; readonly key: KeyObject }[] = [];
  #waiting: (() => void)[] = [];
  #lastMs = -Infinity;

  constructor(issuer: JwtIssuer, log: (message: string) => void) {
    this.#issuer = issuer;
    this.#log = log;
  }

  find(keyId: string | undefined): readonly KeyObject[] {
    const named = this.#keys.filter(({ id }) => keyId === undefined || id === keyId);
    return named.map(({ key }) => key);
  }

  refresh(): Unknown | null {
    const isUnderWay = this.#waiting.length > 0;
    if (!isUnderWay && performance.now() - this.#lastMs < REFRESH_MS_MIN) return null;
    return {
      pending: (then) => {
        this.#waiting.push(then);
        if (this.#waiting.length === 1) void this.#read();
      },
    };
  }

  async #read(): Promise<void> {
    try {
      this.#keys = await this.#fetch();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#log(`the keys of ${this.#issuer.url} cannot be read: ${why}`);
    }
    this.#lastMs = performance.now();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const then of waiting) then();
  }

  async #fetch(): Promise<{ id: string; key: KeyObject }[]> {
    const { url, discoveryUrl, certificateAuthority } = this.#issuer;
    const discovery = await getJson(discoveryUrl, certificateAuthority);
    const issuer = stringAt(discovery, 'issuer');
    if (issuer !== url) throw new Error(`${discoveryUrl} is of the issuer ${issuer}`);
    const set = await getJson(stringAt(discovery, 'jwks_uri'), certificateAuthority);
    return listAt(set, 'keys').flatMap((jwk) => {
      const use = stringAt(jwk, 'use');
      if (!isObject(jwk) || (use !== '' && use !== 'sig')) return [];
      const kind = stringAt(jwk, 'kty');
      if (kind !== 'RSA' && kind !== 'EC') return [];
      return [{ id: stringAt(jwk, 'kid'), key: createPublicKey({ key: jwk, format: 'jwk' }) }];
    });
  }
}

/** GETs a JSON document over TLS. Rejects with what went wrong. */
async function getJson(url: string, ca: string): Promise<JsonValue> {
  const text = await new Promise<string>((resolve, reject) => {
    const asked = request(
      url,
      { ...clientTls({ ca: ca === '' ? undefined : ca }), timeout: TIMEOUT_MS, agent: false },
      (answer) => {
        const chunks: Buffer[] = [];
        let length = 0;
        answer.on(
          'data',
          guarded((chunk: Buffer) => {
            length += chunk.length;
            if (length > ANSWER_BYTES_MAX) {
              asked.destroy(new Error(`${url} answers more than ${ANSWER_BYTES_MAX} bytes`));
            } else chunks.push(chunk);
          }),
        );
        answer.on(
          'end',
          guarded(() => {
            if (answer.statusCode === 200) resolve(Buffer.concat(chunks).toString('utf8'));
            else reject(new Error(`${url} answered ${answer.statusCode}`));
          }),
        );
        answer.on('error', guarded(reject));
      },
    );
    asked.on(
      'timeout',
      guarded(() => asked.destroy(new Error(`${url} did not answer in time`))),
    );
    asked.on('error', guarded(reject));
    asked.end();
  });
  return parseJson(text);
}
