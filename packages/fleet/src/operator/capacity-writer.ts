/** Keeps an AvailableCapacity for each profile that the shard gives hints for. */
import { createHash } from 'node:crypto';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { API_VERSION, AVAILABLE_CAPACITIES_PATH } from '../contract/api.ts';
import { operatorName } from '../contract/profile.ts';
import { AvailableCapacityUpdate_Confidence as Confidence } from '../contract/tables/shard.ts';
import type { AvailableCapacityUpdate } from '../contract/tables/shard.ts';
import { foundIn, JSON_PATCH } from './cluster-api.ts';
import type { ClusterApi } from './cluster-api.ts';
import { Lanes } from './lanes.ts';

const WRITES_MAX = 8;
const KEY_PREFIX = 'available:';
const AVAILABILITY = new Map<number, string>([
  [Confidence.LOW, 'Low'],
  [Confidence.MEDIUM, 'Medium'],
  [Confidence.HIGH, 'High'],
]);

/** Name of the object of a hint: fingerprints have characters that names may not. */
export function capacityName(supersedesKey: string): string {
  const fingerprint = supersedesKey.startsWith(KEY_PREFIX)
    ? supersedesKey.slice(KEY_PREFIX.length)
    : supersedesKey;
  return `ac-${createHash('sha256').update(fingerprint).digest('hex')}`;
}

export function capacitySpec(update: AvailableCapacityUpdate): JsonObject {
  // a price that is none may not end as a quantity
  const cost = Number.isFinite(update.costPerHour) ? Math.max(0, update.costPerHour) : 0;
  return {
    requirements: update.requirements.map(({ key, operator, values }) => {
      const requirement: JsonObject = { key, operator: operatorName(operator) };
      return values.length === 0 ? requirement : { ...requirement, values: [...values] };
    }),
    resources: { ...update.resources?.resources },
    availability: AVAILABILITY.get(update.confidence) ?? 'None',
    availableCount: update.availableCount,
    cost: cost.toFixed(6).replace(/\.?0+$/, ''),
  };
}

export class CapacityWriter {
  readonly #api: ClusterApi;
  readonly #log: (level: 'info' | 'warn', message: string) => void;
  readonly #written = new Map<string, string>();
  readonly #lanes: Lanes<JsonObject>;

  constructor(api: ClusterApi, log: (level: 'info' | 'warn', message: string) => void) {
    this.#api = api;
    this.#log = log;
    this.#lanes = new Lanes(WRITES_MAX, (name, spec) => this.#write(name, spec));
  }

  tell(update: AvailableCapacityUpdate): void {
    this.#lanes.put(capacityName(update.supersedesKey), capacitySpec(update));
  }

  settled(): Promise<void> {
    return this.#lanes.settled();
  }

  async #write(name: string, spec: JsonObject): Promise<void> {
    const text = JSON.stringify(spec);
    if (this.#written.get(name) === text) return;
    const path = `${AVAILABLE_CAPACITIES_PATH}/${name}`;
    try {
      const patch = [{ op: 'add', path: '/spec', value: spec }];
      const found = foundIn(await this.#api.request('PATCH', path, patch, JSON_PATCH));
      if (found === undefined) {
        const kind = { apiVersion: API_VERSION, kind: 'AvailableCapacity' };
        const body = { ...kind, metadata: { name }, spec };
        foundIn(await this.#api.request('POST', AVAILABLE_CAPACITIES_PATH, body));
      }
      this.#written.set(name, text);
    } catch (error) {
      this.#log('warn', `${path}: ${(error as Error).message}`);
    }
  }
}
