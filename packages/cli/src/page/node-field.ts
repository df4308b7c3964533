// shell: asks the simulator, or lists nodes, and keeps the time
/**
 * One byte for each node: from the simulator, which has them in columns, or from a list of Nodes.
 * However many look, it is asked once a while: after what cost much comes a rest of fifty times
 * as long.
 */
import type { Client } from '@megaplane/client/client';
import { readPages } from '@megaplane/client/pager';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import type { FieldWay } from '@megaplane/dashboard/protocol';
import { costMs } from '../observe/observer.ts';
import { NODE_NOT_READY, NODE_READY, NODE_VALUE_MAX } from '@megaplane/dashboard/protocol';

const FRESH_MS = 1000;
const REST_FACTOR = 50;
const REST_MS_MAX = 600_000;
const ASK_MS_MAX = 10_000;
/** Nodes that are listed where no simulator tells them. */
const LISTED_MAX = 100_000;
const PAGE = 500;

interface Kept {
  readonly values: Buffer;
  readonly untilMs: number;
}

export class NodeField {
  readonly #client: Client;
  /** URL of the simulator's metrics; '' without one. */
  readonly #simulator: () => string;
  readonly #kept: Map<FieldWay, Kept> = new Map();
  readonly #asked: Map<FieldWay, Promise<Buffer>> = new Map();
  #names: readonly string[] = [];

  constructor(client: Client, simulator: () => string) {
    this.#client = client;
    this.#simulator = simulator;
  }

  /** The values of all nodes; rejects with a text for people. */
  async values(way: FieldWay): Promise<Buffer> {
    const kept = this.#kept.get(way);
    if (kept !== undefined && performance.now() < kept.untilMs) return kept.values;
    const asked = this.#asked.get(way) ?? this.#ask(way).finally(() => this.#asked.delete(way));
    this.#asked.set(way, asked);
    return asked;
  }

  /** The name of the node at a place of the field; '' where there is none. */
  async nameAt(place: number): Promise<string> {
    const simulator = this.#simulator();
    if (simulator === '') return this.#names[place] ?? '';
    return (await fetched(`${simulator}/field?row=${place}`)).toString('utf8');
  }

  async #ask(way: FieldWay): Promise<Buffer> {
    const startMs = performance.now();
    const before = process.cpuUsage();
    const simulator = this.#simulator();
    const values =
      simulator === '' ? await this.#list(way) : await fetched(`${simulator}/field?by=${way}`);
    const tookMs = costMs(before, startMs);
    const restMs = Math.min(REST_MS_MAX, Math.max(FRESH_MS, tookMs * REST_FACTOR));
    this.#kept.set(way, { values, untilMs: performance.now() + restMs });
    return values;
  }

  async #list(way: FieldWay): Promise<Buffer> {
    const values: number[] = [];
    const names: string[] = [];
    const zones = new Map<string, number>();
    const result = await readPages({
      client: this.#client,
      path: '/api/v1/nodes',
      limit: PAGE,
      onItem: (bytes, start, end) => {
        if (values.length >= LISTED_MAX) return;
        const node = parseJson(Buffer.from(bytes.subarray(start, end)).toString('utf8'));
        names.push(textAt(node, 'metadata', 'name'));
        values.push(way === 'zone' ? zoneOf(node, zones) : readinessOf(node));
      },
    });
    if (!result.ok) throw new Error(result.status.message ?? 'the nodes cannot be listed');
    this.#names = names;
    return Buffer.from(values);
  }
}

function zoneOf(node: JsonValue, zones: Map<string, number>): number {
  const zone = textAt(node, 'metadata', 'labels', 'topology.kubernetes.io/zone');
  const known = zones.get(zone) ?? Math.min(NODE_VALUE_MAX, zones.size + 1);
  zones.set(zone, known);
  return known;
}

function readinessOf(node: JsonValue): number {
  const conditions = valueAt(node, 'status', 'conditions');
  const list = Array.isArray(conditions) ? conditions : [];
  const isReady = list.some(
    (one) => textAt(one, 'type') === 'Ready' && textAt(one, 'status') === 'True',
  );
  return isReady ? NODE_READY : NODE_NOT_READY;
}

function valueAt(value: JsonValue, ...names: readonly string[]): JsonValue | undefined {
  let found: JsonValue | undefined = value;
  for (const name of names) {
    found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  }
  return found;
}

function textAt(value: JsonValue, ...names: readonly string[]): string {
  const found = valueAt(value, ...names);
  return typeof found === 'string' ? found : '';
}

async function fetched(url: string): Promise<Buffer> {
  const signal = AbortSignal.timeout(ASK_MS_MAX);
  const response = await fetch(url, { signal, redirect: 'error' });
  if (!response.ok) throw new Error(`${url} answers ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}
