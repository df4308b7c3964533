/** What OpenAPI documents say of types and fields in words, which `kubectl explain` shows. */
import { brotliDecompressSync } from 'node:zlib';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { DESCRIPTIONS } from '../tables/descriptions.ts';

export interface Described {
  /** Of the type; '' where there is nothing to say. */
  readonly text: string;
  readonly fields: ReadonlyMap<string, string>;
}

const NOTHING: Described = { text: '', fields: new Map() };

/** Held while documents are made: the words of all types are half a megabyte. */
let known: WeakRef<ReadonlyMap<string, Described>> | undefined;

/** Of a type by the name of its schema, `io.k8s.api.core.v1.PodSpec`. */
export function descriptionOf(schema: string): Described {
  return all().get(schema) ?? NOTHING;
}

/** A schema's words, where there are any. */
export function worded(description = ''): JsonObject {
  return description === '' ? {} : { description };
}

function all(): ReadonlyMap<string, Described> {
  const held = known?.deref();
  if (held !== undefined) return held;
  const types = new Map<string, Described>();
  let fields = new Map<string, string>();
  const text = brotliDecompressSync(Buffer.from(DESCRIPTIONS, 'base64')).toString('utf8');
  for (const line of text.split('\n')) {
    const tab = line.indexOf('\t');
    const words = line
      .slice(tab + 1)
      .replaceAll(/\\(.)/g, (_, one: string) => (one === 'n' ? '\n' : one));
    if (line.startsWith(' ')) {
      fields.set(line.slice(1, tab), words);
      continue;
    }
    fields = new Map();
    types.set(line.slice(0, tab), { text: words, fields });
  }
  known = new WeakRef(types);
  return types;
}
