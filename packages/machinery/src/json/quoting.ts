/** How the texts of Kubernetes print values: Go's `%q` for strings, JSON for composites. */
import { ownMember } from '@megaplane/base/members';
import type { JsonValue } from './json-value.ts';

export { quoted } from '@megaplane/base/quoting';

const HTML: Readonly<Record<string, string>> = {
  '&': '\\u0026',
  '<': '\\u003c',
  '>': '\\u003e',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
};

/** JSON as Go marshals it: what has a meaning in HTML is escaped. */
export function escapedJson(value: JsonValue, indent = 0): string {
  return withEscapes(JSON.stringify(value, null, indent));
}

/** JSON in which what has a meaning in HTML is escaped. */
export function withEscapes(json: string): string {
  return json.replaceAll(/[&<>\u2028\u2029]/g, (one) => ownMember(HTML, one) ?? one);
}
