/**
 * Continue tokens of paged lists: where the next page starts and the revision that all pages show.
 * The format is upstream's, so tokens survive a change of server.
 */

/** Start of the next page, relative to the resource's prefix, and the revision (-1: latest). */
export interface ContinueToken {
  readonly revision: number;
  readonly start: string;
}

const VERSION = 'meta.k8s.io/v1';
const PREFIX = 'continue key is not valid: ';

/** The opaque text for `metadata.continue`; `lastKey` is the last one already sent. */
export function encodeContinue(lastKey: string, revision: number): string {
  return Buffer.from(
    `{"v":"${VERSION}","rv":${revision},"start":${JSON.stringify(`${lastKey}\0`)}}`,
  ).toString('base64url');
}

/** Reads a token; returns upstream's text of the fault where there is one. */
export function decodeContinue(text: string): ContinueToken | string {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) {
    return 'continue key is not valid: illegal base64 data at input byte 0';
  }
  let token: { v?: unknown; rv?: unknown; start?: unknown } | null;
  try {
    token = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as typeof token;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return 'continue key is not valid: invalid character';
  }
  if (token?.v !== VERSION) {
    const version = JSON.stringify(token?.v ?? '');
    return `${PREFIX}server does not recognize this encoded version ${version}`;
  }
  const { rv, start } = token;
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0 || rv < -1) {
    return `${PREFIX}incorrect encoded start resourceVersion (version ${VERSION})`;
  }
  if (typeof start !== 'string' || start === '') {
    return 'continue key is not valid: encoded start key empty (version meta.k8s.io/v1)';
  }
  if (start.split('/').includes('..')) {
    return `continue key is not valid: ${start}`;
  }
  return { revision: rv, start };
}
