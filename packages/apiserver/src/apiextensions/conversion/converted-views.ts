/** The views of custom resources in versions that their conversion webhooks make. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { WebhookCaller } from '../../webhook/webhook-call.ts';
import { rangeOf, type Served } from '../../storage/served.ts';
import type { Storage } from '../../storage/storage.ts';
import type { World } from '../../lister/world.ts';
import { ConversionMetrics } from './conversion-metrics.ts';
import { ConversionWebhook, type ConversionOutcome } from './conversion-webhook.ts';
import { ConvertedStorage } from './converted-storage.ts';
import type { CustomKindOf } from '../../storage/served.ts';
import type { CustomVersion } from '../../storage/served.ts';
import { formConverted, formKept } from '../schema/custom-objects.ts';

/** A view is made when the first request for its version comes, and ends with its definition. */
export class ConvertedViews {
  readonly #world: World;
  readonly #caller: WebhookCaller | null;
  readonly metrics: ConversionMetrics = new ConversionMetrics();
  readonly #followed = new Set<Storage>();
  /** By name of the definition, until that changes. */
  readonly #webhooks = new Map<string, ConversionWebhook>();
  /** By name of the definition, then by version. */
  readonly #views = new Map<string, Map<string, ConvertedStorage>>();

  constructor(world: World, caller: WebhookCaller | null) {
    this.#world = world;
    this.#caller = caller;
  }

  /** The storage that shows the objects of `served`, or null where they need no webhook. */
  of(served: Served): Storage | null {
    const { custom } = served;
    if (custom?.isViewed !== true) return null;
    const { kind, facts } = custom;
    let views = this.#views.get(kind.facts.name);
    if (views === undefined) this.#views.set(kind.facts.name, (views = new Map()));
    let view = views.get(facts.name);
    if (view === undefined) {
      const webhook = this.#webhookOf(custom);
      const base = this.#world.storageOf(kind.prefix);
      this.#follow(base);
      view = new ConvertedStorage({
        base,
        range: rangeOf(served, ''),
        apiVersion: served.resource.apiVersion,
        storedVersion: `${kind.facts.group}/${kind.facts.storageVersion}`,
        convert: (sources, desired, then) => {
          webhook.convert(sources, desired, (outcome) =>
            then(outcome.ok ? formed(custom, desired, outcome.values) : outcome),
          );
        },
        homeOf: (prefix) => this.#world.storageOf(prefix),
        formKept: (object) => formKept(custom, object),
        onLost: () => this.drop(kind),
      });
      views.set(facts.name, view);
    }
    return view;
  }

  #webhookOf({ kind, schemas }: CustomVersion): ConversionWebhook {
    const { name } = kind.facts;
    let webhook = this.#webhooks.get(name);
    if (webhook === undefined) {
      const definition = schemas.definition(name) ?? {};
      webhook = new ConversionWebhook(this.#world, this.#caller, this.metrics, definition);
      this.#webhooks.set(name, webhook);
    }
    return webhook;
  }

  /**
   * Brings one object into the version of `target`, as the webhook makes it; a text says why that
   * failed.
   */
  convertTo(target: Served, object: JsonObject, then: (made: JsonObject | string) => void): void {
    const { custom } = target;
    if (custom === null) {
      then(object);
      return;
    }
    const { apiVersion } = target.resource;
    this.#webhookOf(custom).convert([{ object, revision: 0 }], apiVersion, (outcome) => {
      const [made] = outcome.ok ? outcome.values : [];
      if (made !== undefined) then(made);
      else then(outcome.ok ? 'nothing was converted' : outcome.why);
    });
  }

  /** A view is asked what it can show once watches have been told, which is after this call. */
  #follow(base: Storage): void {
    if (this.#followed.has(base)) return;
    this.#followed.add(base);
    base.onPublish(() => {
      if (this.#views.size > 0) this.#world.edge.defer(() => this.#nudge());
    });
  }

  #nudge(): void {
    for (const views of this.#views.values()) for (const view of views.values()) view.nudge();
  }

  /** Ends the views of a kind, and the watches of them. */
  drop(kind: CustomKindOf): void {
    this.#webhooks.delete(kind.facts.name);
    const views = this.#views.get(kind.facts.name);
    if (views === undefined) return;
    this.#views.delete(kind.facts.name);
    this.#world.dropHub(kind.prefix);
    for (const view of views.values()) void view.close();
  }
}

/** What a webhook made, in the form that the version allows; or what it cannot have. */
function formed(
  custom: CustomVersion,
  apiVersion: string,
  made: readonly JsonObject[],
): ConversionOutcome {
  const version = apiVersion.slice(apiVersion.indexOf('/') + 1);
  const values: JsonObject[] = [];
  for (const one of made) {
    const own = formConverted(custom, version, one);
    if (typeof own === 'string') return { ok: false, why: own };
    values.push(own);
  }
  return { ok: true, values };
}
