/** Decides about the pods of a scenario, one after another, and says why. */
import { Cluster } from '../framework/cluster.ts';
import { Evaluator, type Decision as Decided } from '../placement/evaluator.ts';
import { unasked, type Asking } from '../extenders/extender-rounds.ts';
import type { KubeObject, PodObject } from '../api/objects.ts';
import { PodInfo } from '../framework/pod-info.ts';
import { createProfile, DEFAULT_SCHEDULER_NAME } from '../framework/runtime/profile.ts';
import type { Profile, ProfileConfiguration } from '../framework/runtime/profile.ts';
import type { Compatibility } from '../framework/compatibility.ts';
import { startTree } from '../sharding/in-process.ts';
import { ShardRoot } from '../sharding/root.ts';

export interface ScenarioConfiguration {
  readonly profiles?: readonly ProfileConfiguration[];
  readonly percentageOfNodesToScore?: number;
}

export type Change =
  | { readonly apply: KubeObject }
  | {
      readonly delete: {
        readonly kind: string;
        readonly namespace?: string;
        readonly name: string;
      };
    };

/** What became of a step: the next ones start from it, not from what was decided here. */
export interface Outcome {
  readonly chosen?: string;
  readonly startTime?: string;
  readonly gated?: boolean;
  readonly failed?: {
    readonly nominated?: string | null;
    readonly victims?: readonly string[];
  };
  readonly after?: {
    readonly unnominated?: readonly string[];
    readonly apply?: readonly KubeObject[];
  };
}

export interface Step {
  readonly pod?: PodObject;
  readonly retry?: string;
  readonly before?: readonly Change[];
  readonly keep?: boolean;
  readonly result?: Outcome;
}

export interface Scenario {
  readonly name?: string;
  readonly config?: ScenarioConfiguration | null;
  readonly objects: readonly KubeObject[];
  readonly steps: readonly Step[];
}

/** Pods that are gated are not decided about. */
type Decision = Decided | { readonly kind: 'gated' };

/** The answer about one step, in the form of the recorded decisions. */
export interface StepAnswer {
  readonly feasible?: readonly string[];
  readonly scores?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly bestNodes?: readonly string[];
  readonly chosen?: string;
  readonly gated?: true;
  readonly failed: {
    readonly message: string;
    readonly reasons: Readonly<Record<string, number>>;
    readonly nominated: string | null;
    readonly victims: readonly string[];
    readonly reason?: string;
  } | null;
}

export interface ScenarioAnswer {
  readonly steps: readonly StepAnswer[];
}

/** Answers each step of a scenario. Steps without a `result` go on from the answer itself. */
export function explainScenario(scenario: Scenario, compatibility?: Compatibility): ScenarioAnswer {
  const run = new ScenarioRun(scenario, profilesOf(scenario, compatibility), null);
  return { steps: scenario.steps.map((step) => unasked(run.step(step))) };
}

export interface ShardedScenario {
  readonly shards: number;
  /** Levels of relays between the shards and the root. */
  readonly relayLevels: number;
  readonly fanOut: number;
}

/** The same answers, of shards that look at the nodes, over the wire that real ones use. */
export async function explainSharded(
  scenario: Scenario,
  compatibility: Compatibility | undefined,
  sharded: ShardedScenario,
): Promise<ScenarioAnswer> {
  const profiles = profilesOf(scenario, compatibility);
  const tree = await startTree({ ...sharded, profiles });
  try {
    const root = new ShardRoot(tree.root);
    const run = new ScenarioRun(scenario, profiles, root);
    const steps: StepAnswer[] = [];
    for (const step of scenario.steps) steps.push(await answered(run.step(step), root));
    return { steps };
  } finally {
    await tree.close();
  }
}

/** Goes through a decision, of which the shards answer all questions. */
async function answered<Value>(asking: Asking<Value>, root: ShardRoot): Promise<Value> {
  let step = asking.next();
  while (step.done !== true) {
    const question = step.value;
    if (question.kind !== 'shards' || question.round === null)
      throw new Error('a scenario has no extenders, and its shards know all');
    const reply = await root.ask(question.round);
    step = asking.next([{ ok: true, value: null, reply }]);
  }
  return step.value;
}

function profilesOf(
  { config }: Scenario,
  compatibility: Compatibility | undefined,
): ReadonlyMap<string, Profile> {
  const profiles = (config?.profiles ?? [{}]).map((profile) =>
    createProfile(profile, compatibility),
  );
  return new Map(profiles.map((profile) => [profile.schedulerName, profile]));
}

class ScenarioRun {
  readonly #cluster = new Cluster();
  readonly #profiles: ReadonlyMap<string, Profile>;
  readonly #evaluator: Evaluator;
  readonly #root: ShardRoot | null;

  /** `root`: of shards that look at the nodes; null: they are looked at here. */
  constructor(
    { config, objects }: Scenario,
    profiles: ReadonlyMap<string, Profile>,
    root: ShardRoot | null,
  ) {
    this.#profiles = profiles;
    this.#root = root;
    this.#evaluator = new Evaluator(config?.percentageOfNodesToScore ?? 100, [], root);
    for (const object of objects) this.#apply(object);
  }

  #apply(object: KubeObject): void {
    this.#cluster.apply(object);
    this.#root?.applied(object);
  }

  #delete(kind: string, key: string): void {
    this.#cluster.delete(kind, key);
    this.#root?.deleted(kind, key);
  }

  *step(step: Step): Asking<StepAnswer> {
    for (const change of step.before ?? []) this.#change(change);
    if (step.pod !== undefined) this.#apply({ ...step.pod, kind: 'Pod' });
    const key = step.retry ?? new PodInfo(step.pod as PodObject).key;
    const pod = this.#cluster.pod(key);
    if (pod === undefined) throw new Error(`step for pod ${key}: there is no such pod`);
    const decision = yield* this.#decide(pod);
    this.#take(step, pod, step.result ?? this.#outcomeOf(decision, pod));
    return answerOf(decision, pod);
  }

  *#decide(pod: PodInfo): Asking<Decision> {
    this.#cluster.refresh();
    this.#root?.see(this.#cluster.nodes);
    const name = pod.pod.spec.schedulerName ?? DEFAULT_SCHEDULER_NAME;
    const profile = this.#profiles.get(name);
    if (profile === undefined) throw new Error(`pod ${pod.key}: no profile is named ${name}`);
    // Who is held back takes no room anywhere.
    const waiting = [...this.#cluster.pods].filter(
      (other) =>
        other.nodeName === '' &&
        other.pod.status?.nominatedNodeName !== undefined &&
        Evaluator.gateOf(other, this.#cluster, profile) === null,
    );
    if (Evaluator.gateOf(pod, this.#cluster, profile) !== null) return { kind: 'gated' };
    return yield* this.#evaluator.decideAsking(pod, this.#cluster, profile, {
      on: (node) => waiting.filter((other) => other.pod.status?.nominatedNodeName === node),
    });
  }

  #change(change: Change): void {
    if ('apply' in change) return this.#apply(change.apply);
    const { kind, namespace, name } = change.delete;
    const isNamed = namespace === undefined || namespace === '';
    const space = kind === 'Pod' && isNamed ? 'default' : namespace;
    this.#delete(kind, space === undefined || space === '' ? name : `${space}/${name}`);
  }

  /** Brings the cluster to where the next step starts. */
  #take(step: Step, pod: PodInfo, result: Outcome): void {
    if (result.chosen !== undefined) {
      const { nominatedNodeName: _, ...status } = pod.pod.status ?? {};
      const startTime = result.startTime === undefined ? {} : { startTime: result.startTime };
      this.#apply({
        ...pod.pod,
        kind: 'Pod',
        spec: { ...pod.pod.spec, nodeName: result.chosen },
        status: { ...status, ...startTime },
      } as PodObject);
    } else if (result.failed !== undefined) {
      this.#takeFailure(step, pod, result.failed);
    }
    for (const key of result.after?.unnominated ?? []) this.#nominate(key, null);
    for (const object of result.after?.apply ?? []) this.#apply(object);
  }

  #takeFailure(step: Step, pod: PodInfo, failure: NonNullable<Outcome['failed']>): void {
    const nominated = failure.nominated ?? null;
    if (nominated === null) {
      if (step.keep === true || step.retry !== undefined) return this.#nominate(pod.key, null);
      return this.#delete('Pod', pod.key);
    }
    this.#nominate(pod.key, nominated);
    for (const key of failure.victims ?? []) this.#evict(key);
  }

  #nominate(key: string, node: string | null): void {
    const pod = this.#cluster.pod(key)?.pod;
    if (pod === undefined) return;
    const { nominatedNodeName: _, ...status } = pod.status ?? {};
    const nomination = node === null ? {} : { nominatedNodeName: node };
    this.#apply({ ...pod, kind: 'Pod', status: { ...status, ...nomination } } as PodObject);
  }

  /** What follows from the answer itself. */
  #outcomeOf(decision: Decision, pod: PodInfo): Outcome {
    switch (decision.kind) {
      case 'gated':
        return { gated: true };
      case 'placed': {
        const { chosen, cycle } = decision;
        const node = this.#cluster.node(chosen);
        const reserved = node === undefined ? [] : cycle.reserve(node);
        const objects = Array.isArray(reserved) ? reserved.flatMap(({ outcome }) => outcome) : [];
        return { chosen, after: { apply: objects } };
      }
      case 'failed':
        return {
          failed: {
            nominated: nominatedAfter(decision, pod),
            victims: decision.nomination?.victims.map(({ key }) => key) ?? [],
          },
        };
    }
  }

  #evict(key: string): void {
    const pod = this.#cluster.pod(key)?.pod;
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return;
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'PreemptionByScheduler',
    };
    this.#apply({
      ...pod,
      kind: 'Pod',
      metadata: { ...pod.metadata, deletionTimestamp: '2030-01-01T00:00:00Z' },
      status: { ...pod.status, conditions: [...(pod.status?.conditions ?? []), condition] },
    } as PodObject);
  }
}

/** The node that a pod without a place waits for afterwards. */
function nominatedAfter(decision: Decision & { kind: 'failed' }, { pod }: PodInfo): string | null {
  if (decision.nomination !== null) return decision.nomination.node;
  return decision.clearsNomination ? null : (pod.status?.nominatedNodeName ?? null);
}

function answerOf(decision: Decision, pod: PodInfo): StepAnswer {
  switch (decision.kind) {
    case 'gated':
      return { gated: true, failed: null };
    case 'placed': {
      const { feasible, best, chosen, scores } = decision;
      const names = feasible.map(({ name }) => name);
      const answer = { feasible: names, bestNodes: best, chosen, failed: null };
      if (scores === null) return answer;
      const byNode = scores.map(({ total, plugins }, index) => [
        names[index] ?? '',
        { ...Object.fromEntries(plugins), total },
      ]);
      return { ...answer, scores: Object.fromEntries(byNode) as StepAnswer['scores'] & object };
    }
    case 'failed':
      return {
        failed: {
          message: decision.message,
          reasons: Object.fromEntries(decision.reasons),
          nominated: nominatedAfter(decision, pod),
          victims: decision.nomination?.victims.map(({ key }) => key) ?? [],
          ...(decision.isError ? { reason: 'SchedulerError' } : {}),
        },
      };
  }
}
