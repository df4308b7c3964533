// data plane
/**
 * What the printers of pods and nodes read, taken from stored bytes: the large parts that no cell
 * shows (volumes, environment, images, managedFields) are stepped over, not parsed.
 */
import { parseJson } from '../json/json-text.ts';
import { putMember } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { MemberCursor, skipSpace, skipValue } from '../json/scan.ts';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** How a member is taken over: parsed, or (a list) by its length alone. */
const PARSED = 1;
const COUNTED = 2;

type Wanted = readonly (readonly [name: string, bytes: Uint8Array, how: number])[];

function parsed(...names: string[]): Wanted {
  return names.map((name) => [name, encode(name), PARSED] as const);
}

const METADATA = encode('metadata');
const SPEC = encode('spec');
const STATUS = encode('status');

const POD_METADATA = parsed('name', 'creationTimestamp', 'deletionTimestamp');
const POD_SPEC: Wanted = [
  ...parsed('nodeName', 'initContainers', 'readinessGates'),
  ['containers', encode('containers'), COUNTED],
];
const POD_STATUS = parsed(
  'phase',
  'reason',
  'conditions',
  'podIP',
  'podIPs',
  'nominatedNodeName',
  'initContainerStatuses',
  'containerStatuses',
);
const NODE_METADATA = parsed('name', 'creationTimestamp', 'labels');
const NODE_SPEC = parsed('unschedulable');
const NODE_STATUS = parsed('conditions', 'addresses', 'nodeInfo');

const top = new MemberCursor();
const inner = new MemberCursor();

/** A Pod with what its row shows; undefined where the bytes hold no object. */
export function podDigest(bytes: Buffer, start: number, end: number): JsonObject | undefined {
  return digest(bytes, start, end, POD_METADATA, POD_SPEC, POD_STATUS);
}

/** A Node with what its row shows; undefined where the bytes hold no object. */
export function nodeDigest(bytes: Buffer, start: number, end: number): JsonObject | undefined {
  return digest(bytes, start, end, NODE_METADATA, NODE_SPEC, NODE_STATUS);
}

function digest(
  bytes: Buffer,
  start: number,
  end: number,
  metadata: Wanted,
  spec: Wanted,
  status: Wanted,
): JsonObject | undefined {
  const object: JsonObject = {};
  if (!top.open(bytes, skipSpace(bytes, start, end), end)) return undefined;
  while (top.nextKey()) {
    let wanted: Wanted | undefined;
    let name = '';
    if (top.is(METADATA)) {
      wanted = metadata;
      name = 'metadata';
    } else if (top.is(SPEC)) {
      wanted = spec;
      name = 'spec';
    } else if (top.is(STATUS)) {
      wanted = status;
      name = 'status';
    }
    // Parts are read while they are stepped over: the bytes are gone through once.
    if (wanted !== undefined && inner.open(bytes, top.valueStart, end)) {
      putMember(object, name, part(bytes, wanted));
      if (!inner.isClosed) return undefined;
      top.resume(inner.closeEnd);
    } else if (!top.skip()) {
      return undefined;
    }
  }
  return top.isClosed ? object : undefined;
}

/** Reads the object that `inner` has been opened on. */
function part(bytes: Buffer, wanted: Wanted): JsonObject {
  const object: JsonObject = {};
  while (inner.next()) {
    const length = inner.keyEnd - inner.keyStart;
    for (let i = 0; i < wanted.length; i++) {
      const [name, key, how] = wanted[i]!;
      if (key.length !== length || !inner.is(key)) continue;
      putMember(
        object,
        name,
        how === COUNTED
          ? emptyItems(bytes, inner.valueStart, inner.valueEnd)
          : valueIn(bytes, inner.valueStart, inner.valueEnd),
      );
      break;
    }
  }
  return object;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACKET = 0x5b;

/** Plain strings are cut out; everything else is left to the JSON parser. */
function valueIn(bytes: Buffer, start: number, end: number): JsonValue {
  if (bytes[start] === QUOTE) {
    let at = start + 1;
    while (at < end - 1 && bytes[at]! < 0x80 && bytes[at] !== BACKSLASH) at++;
    if (at === end - 1) return bytes.latin1Slice(start + 1, end - 1);
  }
  return parseJson(bytes.utf8Slice(start, end));
}

/** As many empty objects as the list has items. */
function emptyItems(bytes: Buffer, start: number, end: number): JsonValue[] {
  const items: JsonValue[] = [];
  if (bytes[start] !== BRACKET) return items;
  let at = skipSpace(bytes, start + 1, end);
  while (at < end - 1) {
    const after = skipValue(bytes, at, end);
    if (after < 0) break;
    items.push({});
    at = skipSpace(bytes, skipSpace(bytes, after, end) + 1, end);
  }
  return items;
}
