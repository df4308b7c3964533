/**
 * Where each pod can be reached, as a short record in a slab by row of the pods' informer: made
 * once when the pod has its addresses, as nothing in it changes but those.
 *
 *   record   JSON of [uid, node, addresses, hostname, subdomain, [port name, protocol, number] ...]
 *   hash     of the addresses as they stand in the status; 0 = no record
 */
import { Uint32Column } from '@megaplane/base/column';
import { Slab } from '@megaplane/base/slab';
import { findPath, pathOf, skipValue } from '@megaplane/machinery/scan';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';

const BYTES_MAX: number = 8 * 2 ** 30;
const REGION_BYTES: number = 2 ** 22;
const ADDRESSES = pathOf('status', 'podIPs');
const ADDRESS = pathOf('status', 'podIP');

export interface PodEndpoint {
  readonly uid: string;
  readonly node: string;
  readonly addresses: readonly string[];
  readonly hostname: string;
  readonly subdomain: string;
  readonly ports: readonly (readonly [name: string, protocol: string, port: number])[];
}

type Record = [string, string, string[], string, string, [string, string, number][]];

export class PodEndpoints {
  readonly #slab = new Slab({ regionBytes: REGION_BYTES, bytesMax: BYTES_MAX });
  readonly #refs = new Uint32Column();
  readonly #lengths = new Uint32Column();
  readonly #hashes = new Uint32Column();

  /** Takes a pod in; true where its addresses changed. */
  upsert(row: number, isNew: boolean, bytes: Buffer, start: number, end: number): boolean {
    const isOther = isNew && this.remove(row);
    let at = findPath(bytes, start, end, ADDRESSES);
    if (at < 0) at = findPath(bytes, start, end, ADDRESS);
    if (at < 0) return this.remove(row) || isOther;
    const hash = hashOf(bytes, at, skipValue(bytes, at, end));
    if (hash === this.#hashes.get(row)) return isOther;
    this.remove(row);
    const pod = JSON.parse(bytes.toString('utf8', start, end)) as JsonObject;
    const text = Buffer.from(JSON.stringify(recordOf(pod)));
    const ref = this.#slab.store(text, 0, text.length);
    if (ref === 0) throw new Error(`no memory for the addresses of pods: ${BYTES_MAX} bytes used`);
    this.#refs.set(row, ref);
    this.#lengths.set(row, text.length);
    this.#hashes.set(row, hash);
    return true;
  }

  /** True where there was a record. */
  remove(row: number): boolean {
    const ref = this.#refs.get(row);
    if (ref === 0) return false;
    this.#slab.free(ref);
    this.#refs.set(row, 0);
    this.#hashes.set(row, 0);
    return true;
  }

  /** Undefined for a pod without addresses. */
  get(row: number): PodEndpoint | undefined {
    const ref = this.#refs.get(row);
    if (ref === 0) return undefined;
    const start = this.#slab.startAt(ref);
    const text = this.#slab.bytesAt(ref).toString('utf8', start, start + this.#lengths.get(row));
    const [uid, node, addresses, hostname, subdomain, ports] = JSON.parse(text) as Record;
    return { uid, node, addresses, hostname, subdomain, ports };
  }
}

function recordOf(pod: JsonObject): Record {
  const listed = listAt(pod, 'status', 'podIPs').map((one) => stringAt(one, 'ip'));
  const addresses = listed.length > 0 ? listed : [stringAt(pod, 'status', 'podIP')];
  const sidecars = listAt(pod, 'spec', 'initContainers').filter(
    (one) => stringAt(one, 'restartPolicy') === 'Always',
  );
  const ports = [...listAt(pod, 'spec', 'containers'), ...sidecars]
    .flatMap((container) => listAt(container, 'ports'))
    .filter((port) => stringAt(port, 'name') !== '')
    .map((port): [string, string, number] => [
      stringAt(port, 'name'),
      stringAt(port, 'protocol') || 'TCP',
      numberAt(port, 'containerPort'),
    ]);
  return [
    stringAt(pod, 'metadata', 'uid'),
    stringAt(pod, 'spec', 'nodeName'),
    addresses.filter((one) => one !== ''),
    stringAt(pod, 'spec', 'hostname'),
    stringAt(pod, 'spec', 'subdomain'),
    ports,
  ];
}

/** FNV-1a, never 0. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
  return hash >>> 0 || 1;
}
