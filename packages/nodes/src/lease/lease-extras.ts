/**
 * What others have written into leases, which renewals keep, as those of kubelets and of kwok do
 * (client-go's lease controller copies the lease that it renews). Few leases carry any of it, but
 * after a change of simulators all may: what one carries is kept as text, those alike share it.
 */
import { parseJson } from '@megaplane/machinery/json-text';
import { ownMember } from '@megaplane/base/members';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt } from '@megaplane/machinery/json';

const OF_METADATA = ['labels', 'annotations', 'finalizers'] as const;
const OF_SPEC = ['acquireTime', 'leaseTransitions', 'preferredHolder', 'strategy'] as const;
const MARKS: readonly string[] = [...OF_METADATA, ...OF_SPEC].map((name) => `"${name}":`);

interface Extras {
  readonly metadata: JsonObject;
  readonly spec: JsonObject;
}

export class LeaseExtras {
  readonly #of: Map<number, string> = new Map();
  /** What the one before carried. */
  #last = '';

  /** The lease of a row as the server has it. */
  note(id: number, bytes: Uint8Array, start: number, end: number): void {
    this.#of.delete(id);
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
    if (!MARKS.some((mark) => text.includes(mark))) return;
    const lease = parseJson(text.toString('utf8')) as JsonObject;
    const metadata = membersOf(objectAt(lease, 'metadata') ?? {}, OF_METADATA);
    const spec = membersOf(objectAt(lease, 'spec') ?? {}, OF_SPEC);
    if (Object.keys({ ...metadata, ...spec }).length === 0) return;
    const extras: Extras = { metadata, spec };
    const kept = JSON.stringify(extras);
    if (kept !== this.#last) this.#last = kept;
    this.#of.set(id, this.#last);
  }

  forget(id: number): void {
    this.#of.delete(id);
  }

  has(id: number): boolean {
    return this.#of.has(id);
  }

  /** The body of a renewal with what others wrote; what we say ourselves counts. */
  merged(id: number, body: string): string {
    const kept = this.#of.get(id);
    if (kept === undefined) return body;
    const extras = parseJson(kept) as unknown as Extras;
    const own = parseJson(body) as JsonObject;
    const both = (mine: JsonObject | undefined, theirs: JsonObject): JsonObject => ({
      ...mine,
      ...theirs,
      ...mine,
    });
    const metadata = both(objectAt(own, 'metadata'), extras.metadata);
    return JSON.stringify({ ...own, metadata, spec: both(objectAt(own, 'spec'), extras.spec) });
  }
}

function membersOf(object: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = ownMember(object, name);
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}
