/**
 * What API servers behind this one have to know to believe it: the ConfigMap in kube-system that
 * tells whose certificates speak for users, and by which header fields.
 */
import { putMember } from '@megaplane/base/members';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { equals, objectAt, stringAt } from '@megaplane/machinery/json';
import { ensure } from '../registry/rest/missing-objects.ts';
import { decodeRow } from '../serializer/encoder.ts';
import { findServed, keyOf } from '../storage/served.ts';
import { emptyRow } from '../storage/storage.ts';
import type { World } from '../lister/world.ts';

const NAME = 'extension-apiserver-authentication';
const NAMESPACE = 'kube-system';
const row = emptyRow();

export interface ProxyAuthority {
  /** PEM of who signs clients' certificates, and of who signs the front proxy's. */
  readonly clientCa: string;
  readonly proxyCa: string;
  /** Names of the front proxy in its certificate. */
  readonly names: readonly string[];
}

/**
 * Writes the ConfigMap, or adds what it does not tell yet: several servers on the same storage may
 * have authorities of their own, and all of them are to be believed.
 */
export function publishProxyAuthority(world: World, authority: ProxyAuthority): void {
  const own: JsonObject = {
    'client-ca-file': authority.clientCa,
    'requestheader-allowed-names': JSON.stringify(authority.names),
    'requestheader-client-ca-file': authority.proxyCa,
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-uid-headers': '["X-Remote-Uid"]',
    'requestheader-username-headers': '["X-Remote-User"]',
  };
  const metadata = { name: NAME, namespace: NAMESPACE };
  const object: JsonObject = { kind: 'ConfigMap', apiVersion: 'v1', metadata, data: own };
  ensure(world, object, (isMade) => {
    const served = findServed('', 'v1', 'configmaps');
    if (isMade || served === undefined) return;
    const key = keyOf(served, NAMESPACE, NAME);
    if (!world.storage.get(key, row)) return;
    const { modRevision } = row;
    const stored = decodeRow(served, row, modRevision);
    const before = objectAt(stored, 'data') ?? {};
    const data: JsonObject = { ...before };
    for (const [name, value] of Object.entries(own)) {
      putMember(data, name, joined(stringAt(before, name), typeof value === 'string' ? value : ''));
    }
    if (equals(before, data)) return;
    world.storage.put(key, encodeCanonical({ ...stored, data }), modRevision, () => {});
  });
}

/** Both of two PEM texts, or of two lists of names as JSON. */
function joined(before: string, own: string): string {
  if (before === '' || before.includes(own)) return before === '' ? own : before;
  if (!own.startsWith('[')) return `${before.trimEnd()}\n${own}`;
  const [left, right] = [namesIn(before), namesIn(own)];
  // no names at all means any
  if (left.length === 0 || right.length === 0) return '[]';
  return JSON.stringify([...new Set([...left, ...right])]);
}

function namesIn(text: string): string[] {
  try {
    const value: unknown = parseJson(text);
    return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return [];
  }
}
