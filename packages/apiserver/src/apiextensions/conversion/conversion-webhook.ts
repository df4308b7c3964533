/**
 * Brings objects of a custom resource from one version to another by its conversion webhook. They
 * go in and come out as they are kept: the owners of their fields packed, without a revision.
 */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  callFailure,
  locate,
  type WebhookCaller,
  type WebhookTarget,
} from '../../webhook/webhook-call.ts';
import { httpFailure } from '../../webhook/client-failure.ts';
import type { World } from '../../lister/world.ts';
import type { ConversionFault, ConversionMetrics } from './conversion-metrics.ts';
import { conversionBody, readConversion, type ReviewScope } from './conversion-review.ts';
import { readClient, type ClientConfig } from '../../webhook/client-config.ts';
import { shownObject } from '../../managedfields/shown-fields.ts';

/** Upstream's limit of one call. */
const TIMEOUT_MS = 30_000;
const REVIEW_VERSIONS: readonly string[] = ['v1', 'v1beta1'];

/** One object to convert; `revision` is shown to the webhook where there is one. */
export interface Unconverted {
  readonly object: JsonObject;
  readonly revision: number;
}

export type ConversionOutcome =
  | { readonly ok: true; readonly values: readonly JsonObject[] }
  | { readonly ok: false; readonly why: string };

/** The webhook of one definition, as its spec has it. */
export class ConversionWebhook {
  readonly #world: World;
  readonly #caller: WebhookCaller | null;
  readonly #client: ClientConfig;
  readonly #reviewVersion: string;

  readonly #metrics: ConversionMetrics;
  readonly #definition: string;

  constructor(
    world: World,
    caller: WebhookCaller | null,
    metrics: ConversionMetrics,
    definition: JsonObject,
  ) {
    this.#world = world;
    this.#caller = caller;
    this.#metrics = metrics;
    this.#definition = stringAt(definition, 'metadata', 'name');
    const webhook = objectAt(definition, 'spec', 'conversion', 'webhook') ?? {};
    this.#client = readClient(webhook);
    const versions = listAt(webhook, 'conversionReviewVersions');
    this.#reviewVersion = REVIEW_VERSIONS.find((one) => versions.includes(one)) ?? 'v1';
  }

  /**
   * Calls `then` once with the objects in the version `desired`, in their order; those that are of
   * it are not sent.
   */
  convert(
    sources: readonly Unconverted[],
    desired: string,
    then: (outcome: ConversionOutcome) => void,
  ): void {
    const objects = sources.map(({ object }) => object);
    const foreign = objects.map((object) => object['apiVersion'] !== desired);
    const sent = objects.filter((_, index) => foreign[index]);
    const [first] = sent;
    if (first === undefined) {
      then({ ok: true, values: objects });
      return;
    }
    const revisions = sources.filter((_, index) => foreign[index]);
    const scope: ReviewScope = {
      uid: this.#world.edge.uuid(),
      desired,
      reviewVersion: this.#reviewVersion,
    };
    const shown = sent.map((object, index) => shownAt(object, revisions[index]?.revision ?? 0));
    const who = `conversion webhook for ${kindText(first)}`;
    const fromMs = this.#world.edge.nowMs();
    const count = (fault: ConversionFault | null): void => {
      const from = versionOf(stringAt(first, 'apiVersion'));
      const what = { definition: this.#definition, from, to: versionOf(desired) };
      this.#metrics.count(what, fault, this.#world.edge.nowMs() - fromMs);
    };
    this.#ask(conversionBody(scope, shown), (answer) => {
      if ('why' in answer) {
        count('call');
        then({ ok: false, why: `${who} failed: ${answer.why}` });
        return;
      }
      const read = readConversion(answer.body, scope, sent, who);
      if (!read.ok) {
        if (sources.length > 1) {
          this.#convertHalves(sources, desired, then);
          return;
        }
        count(read.fault);
        then({ ok: false, why: read.why });
        return;
      }
      count(null);
      let next = 0;
      const values = objects.map((own, index) =>
        foreign[index] === true ? (read.objects[next++] ?? own) : own,
      );
      then({ ok: true, values });
    });
  }

  /** One of many spoils the answer: what is wrong is told of the first, as if it came alone. */
  #convertHalves(
    sources: readonly Unconverted[],
    desired: string,
    then: (outcome: ConversionOutcome) => void,
  ): void {
    const half = Math.ceil(sources.length / 2);
    this.convert(sources.slice(0, half), desired, (first) => {
      if (!first.ok) {
        then(first);
        return;
      }
      this.convert(sources.slice(half), desired, (second) => {
        then(second.ok ? { ok: true, values: [...first.values, ...second.values] } : second);
      });
    });
  }

  #ask(body: Buffer, then: (answer: Answer) => void): void {
    const found = locate(this.#world, this.#client);
    const timed = `timeout=${TIMEOUT_MS / 1000}s`;
    const url = `https://${found.authority}${found.path}?${timed}`;
    if ('missing' in found) {
      then({ why: `Post "${url}": ${found.missing}` });
      return;
    }
    if (this.#caller === null) {
      then({ why: `Post "${url}": this server calls no webhooks` });
      return;
    }
    const target: WebhookTarget = { ...found, path: `${found.path}?${timed}` };
    this.#caller.call(target, body, TIMEOUT_MS, (response) => {
      if (!response.ok) then({ why: callFailure(url, response) });
      else if (response.status >= 200 && response.status <= 299) {
        const { status, contentType } = response;
        const type = contentType || 'application/json';
        const told = `status code: ${status} and content type: ${type}`;
        if (response.body.length > 0) then({ body: response.body });
        else then({ why: `0-length response with ${told}` });
      } else then({ why: httpFailure(response.status, response.body, response.contentType) });
    });
  }
}

type Answer = { readonly body: Buffer } | { readonly why: string };

/** An object as clients see it: with the owners of its fields written out, and its revision. */
function shownAt(object: JsonObject, revision: number): JsonObject {
  const shown = shownObject(object);
  if (revision === 0) return shown;
  const metadata = { ...objectAt(shown, 'metadata'), resourceVersion: String(revision) };
  return { ...shown, metadata };
}

/** `v1` of `example.com/v1`. */
function versionOf(apiVersion: string): string {
  return apiVersion.slice(apiVersion.indexOf('/') + 1);
}

/** `example.com/v1, Kind=Widget` */
function kindText(object: JsonObject): string {
  return `${stringAt(object, 'apiVersion')}, Kind=${stringAt(object, 'kind')}`;
}
