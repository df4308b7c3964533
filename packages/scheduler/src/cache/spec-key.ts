// data plane: what of a pod's spec placement depends on, as bytes
import { MemberCursor, skipSpace, skipValue } from '@megaplane/machinery/scan';
import { PLACEMENT_MEMBERS } from '../api/placement-members.ts';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Copied as they stand. The pod's node is not among them: placement is what adds it. */
const SPEC_MEMBERS: readonly Uint8Array[] = PLACEMENT_MEMBERS.map(encode);
const CONTAINER_MEMBERS: readonly Uint8Array[] = [
  'image',
  'ports',
  'resources',
  'restartPolicy',
  'restartPolicyRules',
].map(encode);
/** Volumes from one of these say something about nodes, or what they should hold. */
const BINDING_SOURCES: readonly Uint8Array[] = [
  'persistentVolumeClaim',
  'ephemeral',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'iscsi',
  'rbd',
  'csi',
  'image',
].map(encode);
const NODE_NAME = encode('nodeName');
const CONTAINERS = encode('containers');
const INIT_CONTAINERS = encode('initContainers');
const VOLUMES = encode('volumes');
const BRACKET_OPEN = 0x5b;
const COMMA = 0x2c;
const SEPARATOR = 0;

/**
 * Pods of one template differ in names that the API server made up (the volume of their token), so
 * their specs are not the same bytes. Their keys are: only members that matter, one after another,
 * each behind its name.
 */
export class SpecKey {
  bytes: Buffer = Buffer.allocUnsafe(4096);
  length = 0;
  /** Where in the source spec.nodeName stands, -1 without. */
  nodeNameStart = -1;
  nodeNameEnd = -1;
  readonly #spec = new MemberCursor();
  readonly #part = new MemberCursor();

  /** Makes the key of the spec `source[start..end)`. */
  make(source: Uint8Array, start: number, end: number): void {
    const cursor = this.#spec;
    this.length = 0;
    this.nodeNameStart = -1;
    this.nodeNameEnd = -1;
    // A key holds less than the spec, and a separator for each of its members.
    if (this.bytes.length < 2 * (end - start)) this.bytes = Buffer.allocUnsafe(4 * (end - start));
    cursor.open(source, start, end);
    while (cursor.next()) {
      if (cursor.is(NODE_NAME)) {
        this.nodeNameStart = cursor.valueStart + 1;
        this.nodeNameEnd = cursor.valueEnd - 1;
      } else if (cursor.is(CONTAINERS) || cursor.is(INIT_CONTAINERS)) {
        this.#copy(source, cursor.keyStart, cursor.keyEnd);
        this.#list(source, cursor.valueStart, cursor.valueEnd, false);
      } else if (cursor.is(VOLUMES)) {
        this.#list(source, cursor.valueStart, cursor.valueEnd, true);
      } else if (isOneOf(cursor, SPEC_MEMBERS)) {
        this.#copy(source, cursor.keyStart, cursor.valueEnd);
      }
    }
  }

  #list(source: Uint8Array, start: number, end: number, isVolumes: boolean): void {
    if (source[start] !== BRACKET_OPEN) return;
    let at = skipSpace(source, start + 1, end);
    while (at < end) {
      const itemEnd = skipValue(source, at, end);
      if (itemEnd < 0) return;
      if (isVolumes) this.#volume(source, at, itemEnd);
      else this.#container(source, at, itemEnd);
      at = skipSpace(source, itemEnd, end);
      if (at >= end || source[at] !== COMMA) return;
      at = skipSpace(source, at + 1, end);
    }
  }

  #container(source: Uint8Array, start: number, end: number): void {
    const cursor = this.#part;
    this.bytes[this.length++] = SEPARATOR;
    if (!cursor.open(source, start, end)) return;
    while (cursor.next()) {
      if (isOneOf(cursor, CONTAINER_MEMBERS)) this.#copy(source, cursor.keyStart, cursor.valueEnd);
    }
  }

  #volume(source: Uint8Array, start: number, end: number): void {
    const cursor = this.#part;
    if (!cursor.open(source, start, end)) return;
    while (cursor.next()) {
      if (!isOneOf(cursor, BINDING_SOURCES)) continue;
      this.#copy(source, start, end);
      return;
    }
  }

  #copy(source: Uint8Array, start: number, end: number): void {
    const { bytes } = this;
    let { length } = this;
    bytes[length++] = SEPARATOR;
    for (let at = start; at < end; at++) bytes[length++] = source[at]!;
    this.length = length;
  }
}

function isOneOf(cursor: MemberCursor, names: readonly Uint8Array[]): boolean {
  for (let i = 0; i < names.length; i++) if (cursor.is(names[i]!)) return true;
  return false;
}
