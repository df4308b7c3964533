/** Query parameters as Kubernetes reads them: unknown ones are ignored, malformed ones refused. */
import { badRequest, failed, success, type Result } from '@megaplane/machinery/status';
import { headerText } from './header-text.ts';
import { queryStart } from './request-info.ts';
import { parseDuration } from '@megaplane/machinery/times';

/** What most requests ask with: nothing. Never changed. */
const NOTHING = new URLSearchParams();

/** Values by name; of a repeated parameter the first counts, as upstream decodes single values. */
export class Query {
  readonly #values: URLSearchParams;

  constructor(target: string) {
    const start = queryStart(target);
    this.#values =
      start === target.length
        ? NOTHING
        : new URLSearchParams(wellFormed(headerText(target.slice(start))));
  }

  /** Nothing is asked with. */
  get isEmpty(): boolean {
    return this.#values === NOTHING;
  }

  /** The first value, or `''` where the parameter is absent. */
  text(name: string): string {
    return this.#values.get(name) ?? '';
  }

  /** Every value of a parameter that may be repeated. */
  all(name: string): readonly string[] {
    return this.#values.getAll(name);
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** What was understood, to ask somebody else with: by name, as Go's proxies pass it on. */
  sorted(): string {
    const values = new URLSearchParams(this.#values);
    values.sort();
    return values.toString();
  }

  /** Absent, `0` and `false` are false; all else is true, the empty string too. */
  flag(name: string): boolean {
    const value = this.#values.get(name);
    return value !== null && value !== '0' && value.toLowerCase() !== 'false';
  }

  /** A whole number of 64 bits; null where the parameter is absent. */
  integer(name: string): Result<number | null> {
    const value = this.#values.get(name);
    if (value === null) return success(null);
    const isNumber = /^[+-]?\d+$/.test(value);
    const exact = isNumber ? BigInt(value.replace('+', '')) : 0n;
    if (isNumber && BigInt.asIntN(64, exact) === exact) return success(Number(value));
    const fault = isNumber ? 'value out of range' : 'invalid syntax';
    return failed(badRequest(`strconv.ParseInt: parsing ${JSON.stringify(value)}: ${fault}`));
  }
}

/** Pairs with a malformed escape or a semicolon are dropped, as Go's parser does. */
function wellFormed(query: string): string {
  if (!/%(?![0-9a-fA-F]{2})|;/.test(query)) return query;
  const pairs = query.replace(/^\?/, '').split('&');
  return pairs.filter((pair) => !/%(?![0-9a-fA-F]{2})|;/.test(pair)).join('&');
}

const REVISION_MAX: bigint = 2n ** 64n - 1n;

/** `0` stands for "unset or 0"; null for a text that is no unsigned integer of 64 bits. */
export function parseRevision(text: string): number | null {
  if (text === '') return 0;
  return /^\d+$/.test(text) && BigInt(text) <= REVISION_MAX ? Number(text) : null;
}

/** A revision as refusals tell it: a number does not tell those of more than 53 bits apart. */
export function exactRevision(text: string): bigint {
  return /^\d+$/.test(text) ? BigInt(text) : 0n;
}

/** The words of Go's parser for a resourceVersion that is no number, or too large a one. */
export function revisionFault(text: string): string {
  const fault = /^\d+$/.test(text) ? 'value out of range' : 'invalid syntax';
  return `strconv.ParseUint: parsing ${JSON.stringify(text)}: ${fault}`;
}

/** A Go duration (`1m30s`, `500ms`) in milliseconds; null where it is none. */
export function durationMs(text: string): number | null {
  const nanos = parseDuration(text);
  return nanos === undefined ? null : nanos / 1e6;
}
