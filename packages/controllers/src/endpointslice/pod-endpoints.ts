/**
 * Where each pod can be reached, as a short record in a slab by row of the pods' informer: made
 * once when the pod has its addresses, as nothing in it changes but those.
 *
 *   record   JSON of [uid, node, addresses, hostname, subdomain, [port name, protocol, number] ...]
 *   hash     of the addresses as they stand in the status; 0 = no record
 */
import { Uint32Column } from '@megaplane/base/column';
import { Slab } from '@megaplane/base/slab';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonValue } from '@megaplane/machinery/json-value';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import { findPath, pathOf, type ScanPath, skipValue, stringValue } from '@megaplane/machinery/scan';
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';

const BYTES_MAX: number = 8 * 2 ** 30;
const REGION_BYTES: number = 2 ** 22;
const FIRST_REGION_BYTES: number = 2 ** 17;
const ADDRESSES = pathOf('podIPs');
const ADDRESS = pathOf('podIP');
const HOSTNAME = pathOf('hostname');
const SUBDOMAIN = pathOf('subdomain');
const CONTAINERS = pathOf('containers');
const SIDECARS = pathOf('initContainers');
const PORTS = Buffer.from('"ports"');

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
  readonly #slab = new Slab({
    regionBytes: REGION_BYTES,
    firstRegionBytes: FIRST_REGION_BYTES,
    bytesMax: BYTES_MAX,
  });
  readonly #refs = new Uint32Column();
  readonly #lengths = new Uint32Column();
  readonly #hashes = new Uint32Column();

  /** Takes a pod in; true where its addresses changed. */
  upsert(row: number, isNew: boolean, bytes: Buffer, scan: ObjectScan): boolean {
    const isOther = isNew && this.remove(row);
    const { statusStart, statusEnd } = scan;
    let at = statusStart < 0 ? -1 : findPath(bytes, statusStart, statusEnd, ADDRESSES);
    if (at < 0 && statusStart >= 0) at = findPath(bytes, statusStart, statusEnd, ADDRESS);
    if (at < 0) return this.remove(row) || isOther;
    const end = skipValue(bytes, at, statusEnd);
    const hash = hashOf(bytes, at, end);
    if (hash === this.#hashes.get(row)) return isOther;
    this.remove(row);
    const text = Buffer.from(JSON.stringify(recordOf(bytes, scan, at, end)));
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
    const [uid, node, addresses, hostname, subdomain, ports] = parseJson(text) as Record;
    return { uid, node, addresses, hostname, subdomain, ports };
  }
}

/** `start` and `end` are those of the addresses: a list of objects, or one address. */
function recordOf(bytes: Buffer, scan: ObjectScan, start: number, end: number): Record {
  const given = parseJson(bytes.toString('utf8', start, end));
  const addresses = Array.isArray(given) ? given.map((one) => stringAt(one, 'ip')) : [given];
  const { specStart, specEnd, uidStart, uidEnd, nodeNameStart, nodeNameEnd } = scan;
  const textAt = (path: ScanPath): string =>
    specStart < 0 ? '' : stringValue(bytes, findPath(bytes, specStart, specEnd, path), specEnd);
  return [
    uidStart < 0 ? '' : bytes.toString('utf8', uidStart, uidEnd),
    nodeNameStart < 0 ? '' : bytes.toString('utf8', nodeNameStart, nodeNameEnd),
    addresses.filter((one): one is string => typeof one === 'string' && one !== ''),
    textAt(HOSTNAME),
    textAt(SUBDOMAIN),
    portsOf(bytes, specStart, specEnd),
  ];
}

/** Ports with a name; most pods have none, which is seen without parsing their containers. */
function portsOf(bytes: Buffer, start: number, end: number): [string, string, number][] {
  if (start < 0 || !bytes.subarray(start, end).includes(PORTS)) return [];
  const listOf = (path: ScanPath): readonly JsonValue[] => {
    const at = findPath(bytes, start, end, path);
    const list: unknown =
      at < 0 ? [] : parseJson(bytes.toString('utf8', at, skipValue(bytes, at, end)));
    return Array.isArray(list) ? (list as JsonValue[]) : [];
  };
  const sidecars = listOf(SIDECARS).filter((one) => stringAt(one, 'restartPolicy') === 'Always');
  return [...listOf(CONTAINERS), ...sidecars]
    .flatMap((container) => listAt(container, 'ports'))
    .filter((port) => stringAt(port, 'name') !== '')
    .map((port) => [
      stringAt(port, 'name'),
      stringAt(port, 'protocol') || 'TCP',
      numberAt(port, 'containerPort'),
    ]);
}

/** FNV-1a, never 0. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
  return hash >>> 0 || 1;
}
