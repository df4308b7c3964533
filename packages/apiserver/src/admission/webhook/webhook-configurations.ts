/** The webhooks of all configurations, read when those change and matched once for each kind. */
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import type { Served } from '../../storage/served.ts';
import type { World } from '../../lister/world.ts';
import { FollowedObjects } from '../../lister/followed-objects.ts';
import { readConditions, type MatchCondition } from './match-conditions.ts';
import {
  isExempt,
  readSelectors,
  rulesAt,
  targetOf,
  type ResourceRule,
  type Selectors,
} from './matching.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import { type ClientConfig, readClient } from '../../webhook/client-config.ts';

export interface Webhook {
  readonly name: string;
  readonly configuration: string;
  readonly client: ClientConfig;
  readonly rules: readonly ResourceRule[];
  readonly isEquivalent: boolean;
  readonly selectors: Selectors;
  readonly conditions: readonly MatchCondition[];
  readonly ignoresFailures: boolean;
  readonly timeoutSeconds: number;
  readonly allowsDryRun: boolean;
  /** `v1` or `v1beta1`, the first of the webhook's versions that is known here. */
  readonly version: string;
  readonly isReinvoked: boolean;
}

/** A webhook, and the version in which it wants to see objects of the kind in question. */
export interface Matching {
  readonly webhook: Webhook;
  readonly target: Served;
}

const TIMEOUT_SECONDS = 10;

export class WebhookConfigurations {
  readonly #objects: FollowedObjects<readonly Webhook[]>;
  #matching = new WeakMap<Served, Map<string, readonly Matching[]>>();
  #generation = -1;

  constructor(world: World, plural: string) {
    this.#objects = new FollowedObjects(
      world,
      'admissionregistration.k8s.io',
      plural,
      readConfiguration,
    );
  }

  /** Webhooks with a rule for this kind of write, in the order in which they are called. */
  for(write: Pick<Admitted, 'served' | 'operation' | 'subresource'>): readonly Matching[] {
    const all = this.#objects.all();
    if (all.length === 0) return NONE;
    if (this.#generation !== this.#objects.generation) {
      this.#generation = this.#objects.generation;
      this.#matching = new WeakMap();
    }
    const { served, operation, subresource } = write;
    let own = this.#matching.get(served);
    if (own === undefined) this.#matching.set(served, (own = new Map()));
    const key = `${operation}/${subresource}`;
    let found = own.get(key);
    if (found === undefined) {
      found = isExempt(served)
        ? NONE
        : all.flat().flatMap((webhook) => {
            const { rules, isEquivalent } = webhook;
            const hit = targetOf(rules, isEquivalent, served, operation, subresource);
            return hit === null ? [] : [{ webhook, target: hit.target }];
          });
      own.set(key, found);
    }
    return found;
  }
}

const NONE: readonly Matching[] = [];

function readConfiguration(configuration: JsonObject): readonly Webhook[] {
  const name = stringAt(configuration, 'metadata', 'name');
  return listAt(configuration, 'webhooks')
    .filter(isObject)
    .map((webhook) => readWebhook(webhook, name));
}

function readWebhook(webhook: JsonObject, configuration: string): Webhook {
  const versions = listAt(webhook, 'admissionReviewVersions');
  const effects = stringAt(webhook, 'sideEffects');
  return {
    name: stringAt(webhook, 'name'),
    configuration,
    client: readClient(webhook),
    rules: rulesAt(webhook, 'rules'),
    isEquivalent: stringAt(webhook, 'matchPolicy') !== 'Exact',
    selectors: readSelectors(webhook),
    conditions: readConditions(webhook, false),
    ignoresFailures: stringAt(webhook, 'failurePolicy') === 'Ignore',
    timeoutSeconds: numberAt(webhook, 'timeoutSeconds') || TIMEOUT_SECONDS,
    allowsDryRun: effects === 'None' || effects === 'NoneOnDryRun',
    version: String(versions.find((one) => one === 'v1' || one === 'v1beta1') ?? ''),
    isReinvoked: stringAt(webhook, 'reinvocationPolicy') === 'IfNeeded',
  };
}
