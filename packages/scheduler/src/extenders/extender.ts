/**
 * An HTTP extender (`extender/v1` of kube-scheduler): what it is asked, and what its answers mean.
 * No call is made here: decisions say what they want to know (`Question`) and go on with the
 * answer, so that they stay functions of what they were told.
 */
import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import type { ExtenderConfiguration } from '../config/configuration.ts';
import type { NodeInfo } from '../framework/node-info.ts';
import type { PodInfo } from '../framework/pod-info.ts';
import type { Candidate } from '../framework/plugin.ts';
import type { ResultName } from './extender-answer.ts';
import type { Snapshot } from '../framework/snapshot.ts';
import type { Round } from '../sharding/protocol/rounds.ts';

/** What a decision has to know before it can go on; all calls of a question at once. */
export type Question =
  /** The whole pod, as the API server has it. */
  | { readonly kind: 'pod'; readonly key: string }
  | { readonly kind: 'calls'; readonly calls: readonly ExtenderCall[] }
  /** What all shards say; null: nothing, but they are to know all that has happened. */
  | { readonly kind: 'shards'; readonly round: Round | null };

export interface ExtenderCall {
  readonly extender: Extender;
  readonly verb: string;
  /** What is to be read from the answer. */
  readonly result: ResultName;
  readonly body: JsonValue;
}

/** The pseudo plugin under which extenders reject; every event may change their minds. */
export const EXTENDERS = 'Extender';
/** Extenders score from 0 to 10, plugins to 100. */
const SCORE_FACTOR = 10;

export interface Filtered {
  readonly nodes: readonly NodeInfo[];
  readonly failed: ReadonlyMap<string, string>;
  readonly unresolvable: ReadonlyMap<string, string>;
}

/** A member by its name in any case, as Go reads it. */
function member(value: JsonValue | undefined, name: string): JsonValue | undefined {
  if (!isObject(value)) return undefined;
  if (ownMember(value, name) !== undefined) return ownMember(value, name);
  const wanted = name.toLowerCase();
  const found = Object.keys(value).find((key) => key.toLowerCase() === wanted);
  return found === undefined ? undefined : ownMember(value, found);
}

function textMap(value: JsonValue | undefined): Map<string, string> {
  const entries = isObject(value) ? Object.entries(value) : [];
  return new Map(entries.map(([key, text]) => [key, typeof text === 'string' ? text : '']));
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** As int64 has it: scores that are no scores overflow. */
function wrapped(score: number): number {
  return Number.isSafeInteger(score) ? score : Number(BigInt.asIntN(64, BigInt(score)));
}

export class Extender {
  readonly configuration: ExtenderConfiguration;
  readonly #managed: ReadonlySet<string>;

  constructor(configuration: ExtenderConfiguration) {
    this.configuration = configuration;
    this.#managed = new Set((configuration.managedResources ?? []).map(({ name }) => name));
  }

  get url(): string {
    return this.configuration.urlPrefix ?? '';
  }

  get filters(): boolean {
    return (this.configuration.filterVerb ?? '') !== '';
  }

  get prioritizes(): boolean {
    return (this.configuration.prioritizeVerb ?? '') !== '';
  }

  get preempts(): boolean {
    return (this.configuration.preemptVerb ?? '') !== '';
  }

  get binds(): boolean {
    return (this.configuration.bindVerb ?? '') !== '';
  }

  get isIgnorable(): boolean {
    return this.configuration.ignorable === true;
  }

  /** Whether it looks at every pod, or the pod asks for something that it manages. */
  isInterested({ spec }: PodInfo['pod']): boolean {
    if (this.#managed.size === 0) return true;
    const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
    return containers.some(({ resources }) =>
      [resources?.requests, resources?.limits].some((named) =>
        Object.keys(named ?? {}).some((name) => this.#managed.has(name)),
      ),
    );
  }

  #call(verb: string | undefined, result: ResultName, body: JsonValue): ExtenderCall {
    return { extender: this, verb: verb ?? '', result, body };
  }

  #nodesOf(nodes: readonly NodeInfo[], snapshot: Snapshot): JsonObject {
    if (this.configuration.nodeCacheCapable === true) {
      return { Nodes: null, NodeNames: nodes.map(({ name }) => name) };
    }
    const items = nodes.map(
      ({ name, node }) => (snapshot.object('Node', name) ?? node) as unknown as JsonValue,
    );
    return { Nodes: { metadata: {}, items }, NodeNames: null };
  }

  filterCall(pod: JsonValue, nodes: readonly NodeInfo[], snapshot: Snapshot): ExtenderCall {
    const body = { Pod: pod, ...this.#nodesOf(nodes, snapshot) };
    return this.#call(this.configuration.filterVerb, 'ExtenderFilterResult', body);
  }

  /** What is left of the nodes asked about; a text if the answer makes no sense. */
  readFilter(value: JsonValue, nodes: readonly NodeInfo[]): Filtered | string {
    const error = textOf(member(value, 'Error'));
    if (error !== '') return error;
    const byName = new Map(nodes.map((node) => [node.name, node]));
    const names = member(value, 'NodeNames');
    const items = member(member(value, 'Nodes'), 'items');
    const listed =
      this.configuration.nodeCacheCapable === true && Array.isArray(names)
        ? names.map(textOf)
        : Array.isArray(items)
          ? items.map((item) => textOf(member(member(item, 'metadata'), 'name')))
          : [];
    const left: NodeInfo[] = [];
    for (const name of listed) {
      const node = byName.get(name);
      if (node === undefined) {
        const who = `extender ${JSON.stringify(this.url)}`;
        const what = `${JSON.stringify(name)} which is not found in the input node list`;
        return `${who} claims a filtered node ${what}`;
      }
      left.push(node);
    }
    return {
      nodes: left,
      failed: textMap(member(value, 'FailedNodes')),
      unresolvable: textMap(member(value, 'FailedAndUnresolvableNodes')),
    };
  }

  prioritizeCall(pod: JsonValue, nodes: readonly NodeInfo[], snapshot: Snapshot): ExtenderCall {
    const body = { Pod: pod, ...this.#nodesOf(nodes, snapshot) };
    return this.#call(this.configuration.prioritizeVerb, 'HostPriorityList', body);
  }

  /** Weighted scores by node, on the scale of plugins. */
  readPrioritize(value: JsonValue): Map<string, number> {
    const scores = new Map<string, number>();
    for (const one of Array.isArray(value) ? value : []) {
      const host = textOf(member(one, 'Host'));
      const score = member(one, 'Score');
      if (typeof score !== 'number') continue;
      const weighted = wrapped(score * (this.configuration.weight ?? 0) * SCORE_FACTOR);
      scores.set(host, (scores.get(host) ?? 0) + weighted);
    }
    return scores;
  }

  preemptCall(pod: JsonValue, candidates: readonly Candidate[]): ExtenderCall {
    const isShort = this.configuration.nodeCacheCapable === true;
    const victims = candidates.map(({ node, victims: pods, violations }): [string, JsonValue] => [
      node,
      {
        Pods: pods.map(({ pod: { metadata, spec, status } }) =>
          isShort
            ? { UID: metadata.uid ?? '' }
            : ({ metadata, spec, status } as unknown as JsonObject),
        ),
        NumPDBViolations: violations,
      },
    ]);
    const name = isShort ? 'NodeNameToMetaVictims' : 'NodeNameToVictims';
    const other = isShort ? 'NodeNameToVictims' : 'NodeNameToMetaVictims';
    const body = { Pod: pod, [name]: Object.fromEntries(victims), [other]: null };
    return this.#call(this.configuration.preemptVerb, 'ExtenderPreemptionResult', body);
  }

  /** The candidates that the extender leaves, with its victims; a text if it names what is not. */
  readPreempt(value: JsonValue, snapshot: Snapshot): Candidate[] | string {
    const byNode = member(value, 'NodeNameToMetaVictims');
    const candidates: Candidate[] = [];
    for (const [node, meta] of isObject(byNode) ? Object.entries(byNode) : []) {
      const info = snapshot.node(node);
      if (info === undefined) return `nodeinfo not found for node name ${JSON.stringify(node)}`;
      const listed = member(meta, 'Pods');
      const victims: PodInfo[] = [];
      for (const one of Array.isArray(listed) ? listed : []) {
        const uid = textOf(member(one, 'UID'));
        const victim = info.pods.find(({ pod }) => pod.metadata.uid === uid);
        if (victim === undefined) {
          // Upstream prints the struct.
          const claim = `claims to preempt pod (UID: &{${uid}}) on node: ${node}`;
          return `extender: ${this.url} ${claim}, but the pod is not found on that node`;
        }
        victims.push(victim);
      }
      if (victims.length === 0) {
        if (this.isIgnorable) continue;
        return `expected at least one victim pod on node ${JSON.stringify(node)}`;
      }
      const violations = member(meta, 'NumPDBViolations');
      const count = typeof violations === 'number' ? violations : 0;
      candidates.push({ node, victims, violations: count });
    }
    return candidates;
  }

  /** Asks it to bind a pod in the scheduler's place. */
  bindCall(namespace: string, name: string, uid: string, node: string): ExtenderCall {
    const body = { PodName: name, PodNamespace: namespace, PodUID: uid, Node: node };
    return this.#call(this.configuration.bindVerb, 'ExtenderBindingResult', body);
  }

  /** Empty if the pod is bound. */
  static bindError(value: JsonValue): string {
    return textOf(member(value, 'Error'));
  }
}

/** Those that may be ignored come last, so that what the others leave is not asked for twice. */
export function createExtenders(configurations: readonly ExtenderConfiguration[]): Extender[] {
  const extenders = configurations.map((configuration) => new Extender(configuration));
  return [
    ...extenders.filter(({ isIgnorable }) => !isIgnorable),
    ...extenders.filter(({ isIgnorable }) => isIgnorable),
  ];
}
