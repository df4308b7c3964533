/**
 * Paths that rules and selectable fields write: `.spec.list`, `.labels['a.b/c']`. Each step must be
 * known to the schema.
 */
import { ownMember } from '@megaplane/base/members';
import { child, childKey } from './field-path.ts';
import type { SchemaNode } from './schema-node.ts';

export type FoundPath =
  | {
      readonly ok: true;
      readonly path: string;
      readonly root: string;
      readonly node: SchemaNode | null;
    }
  | { readonly ok: false; readonly message: string };

/** Points, brackets, and what is between them; quoted texts are one. */
function tokensOf(path: string): string[] {
  return (
    path.match(/[.[\]]|'(?:\\'|[^'])*'|'[\s\S]*|[^.[\]']?[^.[\]]*/g)?.filter((one) => one !== '') ??
    []
  );
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  "'": "'",
  '\\': '\\',
};

function unescaped(text: string): { readonly text: string; readonly wrong: string } {
  let wrong = '';
  const plain = text.replaceAll(/\\./gs, (escape) => {
    const found = ownMember(ESCAPES, escape.charAt(1));
    if (found === undefined) wrong = escape;
    return found ?? '';
  });
  return { text: plain, wrong };
}

function failed(message: string): FoundPath {
  return { ok: false, message };
}

const END = 'unexpected end of JSON path';
const UNKNOWN = 'does not refer to a valid field';

/** Follows a path from a node on. `allowsKeys`: steps in brackets. */
export function followPath(start: SchemaNode, path: string, allowsKeys: boolean): FoundPath {
  const tokens = tokensOf(path);
  let node: SchemaNode | null = start;
  let found = '';
  let root = '';
  for (let i = 0; i < tokens.length;) {
    const sign = tokens[i++] ?? '';
    if (sign !== '.' && sign !== '[') return failed(`expected [ or . but got: ${sign}`);
    if (sign === '[' && !allowsKeys) return failed('array notation is not allowed');
    let name = tokens[i++];
    if (name === undefined) return failed(END);
    if (sign === '[') {
      const isQuoted = name.length >= 2 && name.startsWith("'") && name.endsWith("'");
      if (!isQuoted) return failed(`expected single quoted string but got ${name}`);
      const plain = unescaped(name.slice(1, -1));
      if (plain.wrong !== '') {
        return failed(`invalid string literal: invalid escape char ${plain.wrong}`);
      }
      name = plain.text;
    }
    if (node === null) return failed(UNKNOWN);
    const isNamed: boolean = node.properties !== null;
    const next: SchemaNode | null =
      (isNamed ? node.properties?.get(name) : node.additional) ?? null;
    // values of an open map have no schema
    const isOpen = !isNamed && node.additionalKind !== 'absent';
    if (next === null && !isOpen) return failed(UNKNOWN);
    found = isNamed ? child(found, name) : childKey(found, name);
    if (root === '') root = isNamed ? name : '';
    node = next;
    if (sign === '[') {
      const close = tokens[i++];
      if (close === undefined) return failed(END);
      if (close !== ']') return failed(`expected ] but got ${close}`);
    }
  }
  return { ok: true, path: found, root, node };
}
