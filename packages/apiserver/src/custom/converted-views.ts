/** The views of custom resources in versions that their conversion webhooks make. */
import type { WebhookCaller } from '../admission/webhook-call.ts';
import { rangeOf, type Served } from '../served.ts';
import type { Storage } from '../storage.ts';
import type { World } from '../world.ts';
import { ConversionMetrics } from './conversion-metrics.ts';
import { ConversionWebhook } from './conversion-webhook.ts';
import { ConvertedStorage } from './converted-storage.ts';
import type { CustomKind } from './custom-kind.ts';
import { formKept, formShown } from './custom-objects.ts';

/** A view is made when the first request for its version comes, and ends with its definition. */
export class ConvertedViews {
  readonly #world: World;
  readonly #caller: WebhookCaller | null;
  readonly metrics: ConversionMetrics = new ConversionMetrics();
  readonly #followed = new Set<Storage>();
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
      const definition = custom.schemas.definition(kind.facts.name) ?? {};
      const webhook = new ConversionWebhook(this.#world, this.#caller, this.metrics, definition);
      const base = this.#world.storageOf(kind.prefix);
      this.#follow(base);
      view = new ConvertedStorage({
        base,
        range: rangeOf(served, ''),
        apiVersion: served.resource.apiVersion,
        storedVersion: `${kind.facts.group}/${kind.facts.storageVersion}`,
        convert: (sources, desired, then) => webhook.convert(sources, desired, then),
        homeOf: (prefix) => this.#world.storageOf(prefix),
        form: (object) => formShown(custom, object),
        formKept: (object) => formKept(custom, object),
        onLost: () => this.drop(kind),
      });
      views.set(facts.name, view);
    }
    return view;
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
  drop(kind: CustomKind): void {
    const views = this.#views.get(kind.facts.name);
    if (views === undefined) return;
    this.#views.delete(kind.facts.name);
    this.#world.dropHub(kind.prefix);
    for (const view of views.values()) void view.close();
  }
}
