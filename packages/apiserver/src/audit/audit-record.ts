/**
 * What is kept of one request for the audit log, from its arrival on: what was sent, as the server
 * understood it, and what was answered.
 *
 * Upstream logs the object after it was decoded, with its defaults (`LogRequestObject` in
 * endpoints/handlers), patches as they were sent, and answers before they are encoded.
 */
import { parse } from 'yaml';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { decodeProtobuf, isProtobuf } from '@megaplane/machinery/protobuf';
import { wireForm } from '@megaplane/machinery/empty-collections';
import type { CustomVersion } from '../storage/served.ts';
import type { Identity } from '../request/identity.ts';
import { withDefaults } from '../registry/rest/schema-gate.ts';
import type { RequestRecord } from '../request/request-record.ts';
import type { Verdict } from './audit-policy.ts';

/** Answers above this are left out of events: a list may be of a million objects. */
const ANSWER_BYTES_MAX: number = 16 * 1024 * 1024;

/** What of an object the reference of an event names where the path of the request does not. */
export interface Named {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

export class AuditRecord implements RequestRecord {
  readonly verdict: Verdict;
  /** Who sent it, before any impersonation. */
  readonly user: Identity;
  /** The object, patch or options that were sent; undefined: none that was understood. */
  sent: JsonValue | undefined;
  named: Named | null = null;
  /** Milliseconds that parts of the server took for the request, by upstream's names. */
  readonly latencies: Map<string, number> = new Map();
  /** Milliseconds of a clock that never goes back, with fractions. */
  readonly clockMs: () => number;
  #pieces: Uint8Array[] = [];
  #bytes = 0;

  constructor(verdict: Verdict, user: Identity, clockMs: () => number) {
    this.verdict = verdict;
    this.user = user;
    this.clockMs = clockMs;
  }

  get #keepsSent(): boolean {
    const { level } = this.verdict;
    return level === 'Request' || level === 'RequestResponse';
  }

  get keepsAnswer(): boolean {
    return this.verdict.level === 'RequestResponse';
  }

  /** An object was decoded; nothing has changed it yet. */
  noteObject(object: JsonObject, custom: CustomVersion | null): void {
    const metadata = objectAt(object, 'metadata');
    const text = (name: string): string => stringAt(metadata, name);
    this.named = {
      namespace: text('namespace'),
      name: text('name'),
      uid: text('uid'),
      resourceVersion: text('resourceVersion'),
    };
    if (!this.#keepsSent) return;
    this.sent = withDefaults({ custom }, structuredClone(wireForm(object)));
  }

  /** Options of a deletion came in a body; upstream logs them in its own version. */
  noteOptions(options: JsonObject): void {
    if (!this.#keepsSent) return;
    const { kind: _kind, apiVersion: _version, ...fields } = structuredClone(options);
    this.sent = { kind: 'DeleteOptions', apiVersion: 'meta.k8s.io/__internal', ...fields };
  }

  /** A patch is about to be made; what is no JSON is shown as JSON, and what is neither not. */
  notePatch(bytes: Buffer): void {
    if (!this.#keepsSent) return;
    const text = bytes.toString('utf8');
    try {
      this.sent = parseJson(text);
    } catch {
      this.sent = fromYaml(text);
    }
  }

  /** Parts that come one after the other add up; of those at once the longest counts. */
  noteLatency(name: string, ms: number, isShared: boolean): void {
    const before = this.latencies.get(name) ?? 0;
    this.latencies.set(name, isShared ? Math.max(before, ms) : before + ms);
  }

  /** Bytes of the answer, as they would be without compression. */
  keepAnswer(bytes: Uint8Array | string): void {
    const length = bytes.length;
    if (this.#bytes + length > ANSWER_BYTES_MAX) this.#pieces = [];
    else this.#pieces.push(Buffer.from(bytes as Uint8Array));
    this.#bytes += length;
  }

  /** The answer, where it is an object. */
  answered(): JsonValue | undefined {
    if (this.#pieces.length === 0) return undefined;
    return objectIn(Buffer.concat(this.#pieces));
  }
}

function fromYaml(text: string): JsonValue | undefined {
  try {
    return parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function objectIn(bytes: Buffer): JsonObject | undefined {
  if (isProtobuf(bytes, 0, bytes.length)) {
    const decoded = decodeProtobuf(bytes, 0, bytes.length);
    return decoded.ok ? withItems(decoded.object) : undefined;
  }
  const text = bytes.toString('utf8');
  let value: JsonValue | undefined;
  try {
    value = parseJson(text);
  } catch {
    value = fromYaml(text);
  }
  return isObject(value) ? value : undefined;
}

/** Protobuf has no sign of an empty list, which the answer in JSON would have. */
function withItems(object: JsonObject): JsonObject {
  return object['items'] === null ? { ...object, items: [] } : object;
}

/** Without the owners of fields: of an object, of the items of a list, of the rows of a table. */
export function withoutManagedFields(value: JsonValue): JsonValue {
  if (!isObject(value)) return value;
  const { metadata, items, rows } = value;
  const shown: JsonObject = { ...value };
  if (isObject(metadata)) {
    const { managedFields: _owners, ...rest } = metadata;
    shown['metadata'] = rest;
  }
  if (Array.isArray(items)) shown['items'] = items.map(withoutManagedFields);
  if (Array.isArray(rows)) {
    shown['rows'] = rows.map((row) => {
      const object = isObject(row) ? row['object'] : undefined;
      if (!isObject(row) || object === undefined) return row;
      return { ...row, object: withoutManagedFields(object) };
    });
  }
  return shown;
}
