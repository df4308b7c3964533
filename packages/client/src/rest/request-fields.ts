/** Header fields of requests, made once for each combination so that HPACK can index them. */
import { prepareFields, type PreparedFields } from '@megaplane/wire/client';

/** Combinations kept; a program uses a handful. */
const KINDS_MAX = 64;

export class RequestFields {
  readonly #userAgent: string;
  readonly #prepared: Map<string, PreparedFields> = new Map();
  #token = '';
  /** What was asked for last is mostly asked for again: then no text is put together for it. */
  #last: PreparedFields | null = null;
  #lastType = '';
  #lastAccept = '';

  constructor(userAgent: string) {
    this.#userAgent = userAgent;
  }

  /** `contentType` '' for requests without a body; `extra` is a field `name: value`, or ''. */
  prepare(contentType: string, accept: string, token: string, extra: string): PreparedFields {
    const isLast = contentType === this.#lastType && accept === this.#lastAccept;
    if (isLast && extra === '' && token === this.#token && this.#last !== null) return this.#last;
    const prepared = this.#find(contentType, accept, token, extra);
    if (extra !== '') return prepared;
    this.#last = prepared;
    this.#lastType = contentType;
    this.#lastAccept = accept;
    return prepared;
  }

  #find(contentType: string, accept: string, token: string, extra: string): PreparedFields {
    if (token !== this.#token || this.#prepared.size > KINDS_MAX) {
      this.#prepared.clear();
      this.#token = token;
    }
    const kind = extra === '' ? `${contentType} ${accept}` : `${contentType} ${accept} ${extra}`;
    let prepared = this.#prepared.get(kind);
    if (prepared === undefined) {
      const fields = ['user-agent', this.#userAgent, 'accept', accept];
      if (contentType !== '') fields.push('content-type', contentType);
      if (token !== '') fields.push('authorization', `Bearer ${token}`);
      const colon = extra.indexOf(': ');
      if (colon > 0) fields.push(extra.slice(0, colon), extra.slice(colon + 2));
      prepared = prepareFields(fields);
      this.#prepared.set(kind, prepared);
    }
    return prepared;
  }
}

/** Value of a field among `[name, value, ...]`; '' where it is not there. */
export function fieldOf(fields: readonly string[], name: string): string {
  for (let i = 0; i + 1 < fields.length; i += 2) {
    if (fields[i] === name) return fields[i + 1] ?? '';
  }
  return '';
}

/** Seconds of a Retry-After field among `[name, value, ...]`, at most `secondsMax`; else 0. */
export function retryAfterOf(fields: readonly string[], secondsMax: number): number {
  for (let i = 0; i + 1 < fields.length; i += 2) {
    if (fields[i] !== 'retry-after') continue;
    const seconds = Number(fields[i + 1]);
    return seconds > 0 ? Math.min(seconds, secondsMax) : 0;
  }
  return 0;
}
