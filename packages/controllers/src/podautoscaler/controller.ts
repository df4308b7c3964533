/**
 * HorizontalPodAutoscalers: every 15 s the size of each target is compared with what its metrics
 * ask for. Conditions, events and their texts are upstream's.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { equals, listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { matchesLabels, parseLabelSelector } from '@megaplane/machinery/selectors';
import type { ClientResponse } from '@megaplane/client/client';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { Announce } from '../framework/event-recorder.ts';
import { actionOf, AutoscalerMetrics, type ScalingError } from './autoscaler-metrics.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';
import { AUTOSCALER_RULES, type AutoscalerRules } from '../framework/autoscaler-rules.ts';
import { Conditions } from './autoscaler-conditions.ts';
import { MetricsSource } from './metrics-source.ts';
import { proposalOf } from './proposals.ts';
import { decide, newHistory, remember, type ScalingHistory } from './scaling-rules.ts';
import type { Proposal } from './custom-and-external-metrics.ts';

const WORKERS = 5;
/** Upstream's retries of a conflict. */
const CONFLICTS_MAX = 5;
const CONFLICT_MS = 10;
const PATH = '/apis/autoscaling/v2/horizontalpodautoscalers';

export interface AutoscalerControllerOptions extends ControllerContext {
  readonly announce: Announce;
  readonly now: () => string;
  readonly rules?: AutoscalerRules | undefined;
}

/** One look at one autoscaler. */
interface Look {
  readonly key: string;
  readonly autoscaler: JsonObject;
  readonly namespace: string;
  readonly conditions: Conditions;
  readonly rules: AutoscalerRules;
  readonly nowMs: number;
  current: number;
  desired: number;
  metrics: readonly JsonObject[];
  isRescaled: boolean;
  /** What it asks for makes no sense. */
  isWrong: boolean;
}

/** What the metrics ask for; `text` also where some of them could not be read. */
interface Asked {
  readonly replicas: number;
  readonly metric: string;
  readonly text: string;
}

/** The size to set; it is not whole where some metric could not be read. */
interface Sized {
  readonly replicas: number;
  readonly reason: string;
  readonly isWhole: boolean;
}

export class AutoscalerController {
  readonly #options: AutoscalerControllerOptions;
  readonly #rules: AutoscalerRules;
  readonly #source: MetricsSource;
  readonly #metrics: AutoscalerMetrics;
  #count = 0;
  readonly #workers: Workers<string>;
  readonly #autoscalers: ObjectCache;
  readonly #histories: Map<string, ScalingHistory> = new Map();
  /** The selector of each target, as it was last read, to see when two are after the same pods. */
  readonly #selectors: Map<string, string> = new Map();

  constructor(options: AutoscalerControllerOptions) {
    this.#options = options;
    const { client, informers, onError } = options;
    this.#rules = options.rules ?? AUTOSCALER_RULES;
    this.#source = new MetricsSource(client);
    this.#metrics = new AutoscalerMetrics(informers.metrics, () => this.#count);
    this.#workers = new Workers(
      client.timers,
      options.workers ?? WORKERS,
      (key) => this.#work(key),
      onError,
      informers.queues.queue('horizontalpodautoscaler'),
    );
    this.#autoscalers = new ObjectCache(informers, PATH, (key, after, before) => {
      this.#count += (after === undefined ? 0 : 1) - (before === undefined ? 0 : 1);
      if (after === undefined) {
        this.#metrics.forget(key);
        this.#histories.delete(key);
        this.#selectors.delete(key);
      } else if (!equals(objectAt(after, 'spec'), objectAt(before, 'spec'))) {
        // As upstream: what is new or changed waits as long as what was looked at.
        this.#workers.addAfter(key, this.#rules.syncMs);
      }
    });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  async #work(key: string): Promise<WorkResult> {
    await Promise.resolve();
    const autoscaler = this.#autoscalers.get(key);
    if (autoscaler === undefined) return 'done';
    const nowMs = this.#options.client.timers.nowMs();
    const look: Look = {
      key,
      autoscaler,
      namespace: stringAt(autoscaler, 'metadata', 'namespace'),
      conditions: new Conditions(listAt(autoscaler, 'status', 'conditions'), this.#options.now()),
      rules: this.#rules,
      nowMs,
      current: numberAt(autoscaler, 'status', 'currentReplicas'),
      desired: numberAt(autoscaler, 'status', 'desiredReplicas'),
      metrics: listAt(autoscaler, 'status', 'currentMetrics').filter(isObject),
      isRescaled: false,
      isWrong: false,
    };
    const error = await this.#look(look);
    await this.#write(look);
    const seconds = (this.#options.client.timers.nowMs() - nowMs) / 1000;
    const action = look.isRescaled ? actionOf(look.current, look.desired) : 'none';
    this.#metrics.looked(action, error, seconds);
    // A refused write waits for the next look too: sooner would not change what it says.
    return { againMs: this.#rules.syncMs };
  }

  /** Tells who is to blame where the look came to nothing. */
  async #look(look: Look): Promise<ScalingError> {
    const target = objectAt(look.autoscaler, 'spec', 'scaleTargetRef') ?? {};
    const path = await this.#source.scalePath(look.namespace, target);
    const scale = path.ok ? await this.#source.scale(path.value) : path;
    if (!path.ok || !scale.ok) {
      const text = scale.ok ? '' : scale.text;
      this.#tell(look, 'Warning', 'FailedGetScale', text);
      const said = `the HPA controller was unable to get the target's current scale: ${text}`;
      look.conditions.set('AbleToScale', false, 'FailedGetScale', said);
      return 'internal';
    }
    const said = "the HPA controller was able to get the target's current scale";
    look.conditions.set('AbleToScale', true, 'SucceededGetScale', said);
    look.current = numberAt(scale.value, 'spec', 'replicas');
    look.metrics = [];
    if (!this.#histories.has(look.key)) {
      this.#histories.set(look.key, newHistory(look.current, look.nowMs));
    }
    const wish = await this.#wish(look, scale.value);
    if (wish === undefined) return look.isWrong ? 'spec' : 'internal';
    if (wish.replicas === look.current) look.desired = look.current;
    else if (!(await this.#rescale(look, path.value, scale.value, wish))) return 'internal';
    this.#metrics.desired(look.key, look.desired);
    return wish.isWhole ? 'none' : 'internal';
  }

  /** The size to set and why; undefined where nothing can be said. */
  async #wish(look: Look, scale: JsonObject): Promise<Sized | undefined> {
    const { autoscaler, current, conditions } = look;
    const least = valueAt(autoscaler, 'spec', 'minReplicas');
    const min = typeof least === 'number' ? least : 1;
    const max = numberAt(autoscaler, 'spec', 'maxReplicas');
    if (current === 0 && min !== 0) {
      const said = 'scaling is disabled since the replica count of the target is zero';
      conditions.set('ScalingActive', false, 'ScalingDisabled', said);
      return { replicas: 0, reason: '', isWhole: true };
    }
    if (current > max) {
      const reason = 'Current number of replicas above Spec.MaxReplicas';
      return { replicas: max, reason, isWhole: true };
    }
    if (current < min) {
      const reason = 'Current number of replicas below Spec.MinReplicas';
      return { replicas: min, reason, isWhole: true };
    }
    const asked = await this.#ask(look, scale);
    if (asked === undefined) return undefined;
    const history = this.#histories.get(look.key) ?? newHistory(current, look.nowMs);
    const wish = { current, desired: asked.replicas, min, max };
    const { replicas, able, limited } = decide(autoscaler, wish, history, look.rules, look.nowMs);
    conditions.set('AbleToScale', true, ...able);
    conditions.set('ScalingLimited', ...limited);
    let reason = '';
    if (asked.replicas > current) reason = `${asked.metric} above target`;
    if (asked.replicas < current) reason = 'All metrics below target';
    return { replicas, reason, isWhole: asked.text === '' };
  }

  /** The largest of what the metrics ask for; undefined where they do not allow an answer. */
  async #ask(look: Look, scale: JsonObject): Promise<Asked | undefined> {
    const selector = await this.#selectorOf(look, scale);
    if (selector === undefined) return undefined;
    const metrics = listAt(look.autoscaler, 'spec', 'metrics').filter(isObject);
    const proposals: Proposal[] = [];
    const running = numberAt(scale, 'status', 'replicas');
    for (const metric of metrics) {
      const startMs = this.#options.client.timers.nowMs();
      const proposal = await proposalOf(this.#source, { ...look, selector, running }, metric);
      proposals.push(proposal);
      const seconds = (this.#options.client.timers.nowMs() - startMs) / 1000;
      const action = proposal.ok ? actionOf(look.current, proposal.replicas) : 'none';
      const error = proposal.ok ? 'none' : 'internal';
      this.#metrics.computed(action, error, stringAt(metric, 'type'), seconds);
    }
    const good = proposals.filter((one) => one.ok);
    const bad = proposals.filter((one) => !one.ok);
    // One that could not be read is shown without a type.
    look.metrics = proposals.map((one) => (one.ok ? one.status : { type: '' }));
    for (const { reason, text } of bad) this.#tell(look, 'Warning', reason, text);
    const best = good.reduce<(typeof good)[number] | undefined>(
      (most, one) =>
        (most?.replicas ?? 0) === 0 || one.replicas > (most?.replicas ?? 0) ? one : most,
      undefined,
    );
    const [first] = bad;
    const isUnsafe = bad.length > 0 && (best === undefined || best.replicas < look.current);
    if (best === undefined || isUnsafe) {
      const why = first?.text ?? 'no metrics are given';
      const said = `the HPA was unable to compute the replica count: ${why}`;
      look.conditions.set('ScalingActive', false, first?.reason ?? 'InvalidMetricSourceType', said);
      const share = `${bad.length} invalid out of ${metrics.length}`;
      const told = `invalid metrics (${share}), first error is: ${first?.whole ?? why}`;
      this.#tell(look, 'Warning', 'FailedComputeMetricsReplicas', told);
      return undefined;
    }
    const said = `the HPA was able to successfully calculate a replica count from ${best.metric}`;
    look.conditions.set('ScalingActive', true, 'ValidMetricFound', said);
    return { replicas: best.replicas, metric: best.metric, text: first?.text ?? '' };
  }

  async #selectorOf(look: Look, scale: JsonObject): Promise<string | undefined> {
    const selector = stringAt(scale, 'status', 'selector');
    this.#selectors.delete(look.key);
    const fail = (told: string, text: string, condition: string): undefined => {
      look.isWrong = true;
      this.#tell(look, 'Warning', told, text);
      const reason = told === 'SelectorRequired' ? 'InvalidSelector' : told;
      look.conditions.set('ScalingActive', false, reason, condition);
      this.#tell(look, 'Warning', 'FailedComputeMetricsReplicas', text);
    };
    if (selector === '') {
      const said = "the HPA target's scale is missing a selector";
      return fail('SelectorRequired', 'selector is required', said);
    }
    const parsed = parseLabelSelector(selector);
    if ('error' in parsed) {
      const text =
        "couldn't convert selector into a corresponding internal selector object: " + parsed.error;
      return fail('InvalidSelector', text, text);
    }
    this.#selectors.set(look.key, selector);
    const rivals = await this.#rivals(look, selector);
    if (rivals.length === 0) return selector;
    const keys = [look.key, ...rivals].toSorted().join(' ');
    const text = `pods by selector ${selector} are controlled by multiple HPAs: [${keys}]`;
    return fail('AmbiguousSelector', text, text);
  }

  /** Other autoscalers of the namespace that are after some of the pods of a selector. */
  async #rivals(look: Look, selector: string): Promise<string[]> {
    const prefix = `${look.namespace}/`;
    const others = [...this.#selectors].filter(
      ([key]) => key !== look.key && key.startsWith(prefix),
    );
    if (others.length === 0) return [];
    const pods = await this.#source.pods(look.namespace, selector);
    if (!pods.ok) return [];
    const labels = pods.value.map((pod) => objectAt(pod, 'metadata', 'labels') ?? {});
    return others
      .filter(([, other]) => {
        const parsed = parseLabelSelector(other);
        return !('error' in parsed) && labels.some((one) => matchesLabels(parsed.value, one));
      })
      .map(([key]) => key);
  }

  async #rescale(
    look: Look,
    path: string,
    scale: JsonObject,
    { replicas, reason }: Sized,
  ): Promise<boolean> {
    const answer = await this.#putScale(path, scale, replicas);
    if (!answer.ok) {
      const why = answer.status.message ?? `the server did not answer (${answer.code})`;
      const told = `New size: ${replicas}; reason: ${reason}; error: ${why}`;
      this.#tell(look, 'Warning', 'FailedRescale', told);
      const said = `the HPA controller was unable to update the target scale: ${why}`;
      look.conditions.set('AbleToScale', false, 'FailedUpdateScale', said);
      return false;
    }
    const said = `the HPA controller was able to update the target scale to ${replicas}`;
    look.conditions.set('AbleToScale', true, 'SucceededRescale', said);
    this.#tell(look, 'Normal', 'SuccessfulRescale', `New size: ${replicas}; reason: ${reason}`);
    const history = this.#histories.get(look.key);
    if (history !== undefined) {
      remember(look.autoscaler, history, look.current, replicas, look.nowMs);
    }
    look.desired = replicas;
    look.isRescaled = true;
    return true;
  }

  /** A conflict is one with whoever wrote the target meanwhile: the size is still right. */
  async #putScale(path: string, scale: JsonObject, replicas: number): Promise<ClientResponse> {
    const { client } = this.#options;
    let latest = scale;
    for (let tries = 1; ; tries++) {
      const body = { ...latest, spec: { ...objectAt(latest, 'spec'), replicas } };
      const answer = await client.request({ method: 'PUT', path, body });
      if (answer.ok || answer.code !== 409 || tries === CONFLICTS_MAX) return answer;
      await new Promise<void>((resolve) => client.timers.after(CONFLICT_MS, resolve));
      const read = await this.#source.read(path);
      if (read.ok) latest = read.value;
    }
  }

  async #write(look: Look): Promise<void> {
    const before = objectAt(look.autoscaler, 'status') ?? {};
    const status: JsonObject = {
      ...before,
      currentReplicas: look.current,
      desiredReplicas: look.desired,
      currentMetrics: [...look.metrics],
      conditions: look.conditions.list,
    };
    if (look.metrics.length === 0) delete status['currentMetrics'];
    if (look.isRescaled) status['lastScaleTime'] = this.#options.now();
    if (equals(before, status)) return;
    const [namespace = '', name = ''] = look.key.split('/');
    const path = `/apis/autoscaling/v2/namespaces/${namespace}/horizontalpodautoscalers/${name}`;
    const kind = 'HorizontalPodAutoscaler';
    const body = { ...look.autoscaler, apiVersion: 'autoscaling/v2', kind, status };
    const answer = await this.#options.client.request({
      method: 'PUT',
      path: `${path}/status`,
      body,
    });
    if (answer.ok) return;
    const why = answer.status.message ?? `the server did not answer (${answer.code})`;
    this.#tell(look, 'Warning', 'FailedUpdateStatus', why);
  }

  #tell(look: Look, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const [name, uid] = ['name', 'uid'].map((one) => stringAt(look.autoscaler, 'metadata', one));
    const kind = 'HorizontalPodAutoscaler';
    this.#options.announce(kind, look.namespace, name ?? '', type, reason, message, uid);
  }
}
