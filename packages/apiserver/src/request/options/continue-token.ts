/**
 * Continue tokens of paged lists: where the next page starts and the revision that all pages show.
 * The format is upstream's, so tokens survive a change of server.
 */
import { syntaxError } from '@megaplane/machinery/json-syntax';
import type { KeyRange } from '../../storage/served.ts';
import { parseJson } from '@megaplane/machinery/json-text';

/** Start of the next page, relative to what is listed, and the revision (below 0: latest). */
export interface ContinueToken {
  readonly revision: number;
  readonly start: string;
}

const VERSION = 'meta.k8s.io/v1';
const PREFIX = 'continue key is not valid';

/** The opaque text for `metadata.continue`; `lastKey` is the last one already sent. */
export function encodeContinue(lastKey: string, revision: number): string {
  return Buffer.from(
    `{"v":"${VERSION}","rv":${revision},"start":${JSON.stringify(`${lastKey}\0`)}}`,
  ).toString('base64url');
}

/** The token of a list of `range` whose last page ended with `lastKey`. */
export function continueAfter(range: KeyRange, lastKey: Buffer, revision: number): string {
  return encodeContinue(lastKey.toString('utf8', range.start.length), revision);
}

/** The first key that the next page of a list of `range` may show. */
export function startOfPage(range: KeyRange, token: ContinueToken | null): Buffer {
  if (token === null) return range.start;
  return Buffer.concat([range.start, Buffer.from(token.start)]);
}

/** Reads a token; returns upstream's text of the fault where there is one. */
export function decodeContinue(text: string): ContinueToken | string {
  const illegal = illegalAt(text);
  if (illegal >= 0) return `${PREFIX}: illegal base64 data at input byte ${illegal}`;
  const bytes = Buffer.from(text, 'base64url');
  // Go's scanner goes by bytes, and tells one as the character of that number
  const fault = syntaxError(bytes.toString('latin1'));
  const json = bytes.toString('utf8');
  if (fault !== '') return `${PREFIX}: ${fault}`;
  const parsed = parseJson(json) as unknown;
  const isObject = typeof parsed === 'object' && !Array.isArray(parsed);
  if (!isObject) {
    const kind = Array.isArray(parsed)
      ? 'array'
      : typeof parsed === 'boolean'
        ? 'bool'
        : typeof parsed;
    const type = 'Go value of type storage.continueToken';
    return `${PREFIX}: json: cannot unmarshal ${kind} into ${type}`;
  }
  return tokenOf(parsed ?? {});
}

function tokenOf(token: { v?: unknown; rv?: unknown; start?: unknown }): ContinueToken | string {
  const { v, rv, start } = { v: token.v ?? '', rv: token.rv ?? 0, start: token.start ?? '' };
  if (typeof v !== 'string') return misfit('v', v, 'string');
  const isWhole = typeof rv === 'bigint' || Number.isSafeInteger(rv);
  if (!isWhole) return misfit('rv', rv, 'int64');
  const revision = Number(rv);
  if (typeof start !== 'string') return misfit('start', start, 'string');
  if (v !== VERSION) return `${PREFIX}: server does not recognize this encoded version ${v}`;
  if (revision === 0)
    return `${PREFIX}: incorrect encoded start resourceVersion (version ${VERSION})`;
  if (start === '') return `${PREFIX}: encoded start key empty (version ${VERSION})`;
  // a start must not lead out of what is listed, nor be written in two ways
  if (start === '/') return { revision, start: '' };
  const parts = (start.startsWith('/') ? start.slice(1) : start).split('/');
  const isClean = parts.every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isClean) return `${PREFIX}: ${start}`;
  return { revision, start: parts.join('/') };
}

/** What Go's decoder says of a field of another type. */
function misfit(field: string, value: unknown, type: string): string {
  const kind = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
  const found = kind === 'number' && type === 'int64' ? `number ${String(value)}` : kind;
  const place = `Go struct field continueToken.${field} of type ${type}`;
  return `${PREFIX}: json: cannot unmarshal ${found} into ${place}`;
}

/** Where Go's decoder of unpadded base64 stumbles; -1 where it does not. Line ends are skipped. */
function illegalAt(text: string): number {
  let valid = 0;
  let last = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? '';
    if (character === '\n' || character === '\r') continue;
    if (!/[A-Za-z0-9_-]/.test(character)) return at;
    if (valid % 4 === 0) last = at;
    valid++;
  }
  return valid % 4 === 1 ? last : -1;
}
