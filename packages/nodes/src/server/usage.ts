/**
 * How much processor time and memory simulated containers claim to use: ResourceUsage and
 * ClusterResourceUsage of kwok, by values or by CEL over `node`, `pod` and `container`.
 *
 * A cumulative usage grows by what is used at each look, as in kwok: between two looks the newer
 * value counts. It begins at zero with the first look.
 */
import { celEnvironment, compileCel, type Program } from '@megaplane/machinery/cel/program';
import { plainType } from '@megaplane/machinery/cel/builtin-types';
import { tableOf } from '@megaplane/machinery/cel/functions';
import { DYN, type CelType } from '@megaplane/machinery/cel/typing';
import {
  CelError,
  Duration,
  Timestamp,
  Uint,
  type CelValue,
} from '@megaplane/machinery/cel/values';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { findTypeOfKind, type Type } from '@megaplane/machinery/schema';
import { GoStruct, quantityOf } from '../cel/go-struct.ts';
import { kwokLibrary } from '../cel/kwok-functions.ts';
import type { Field } from '../yaml/yaml-fields.ts';
import { textsOf, type PodRules } from './pod-rules.ts';
import type { Environment } from '@megaplane/machinery/environment';

/** Sums that are kept; the one that was looked at longest ago goes first, and begins anew. */
export const SUMS_MAX = 1_000_000;

export interface UsageItem {
  readonly containers: readonly string[];
  readonly usage: ReadonlyMap<string, number | Program>;
}

/** What an expression sees; `node` is there always. */
export interface UsageSubject {
  readonly node: JsonObject;
  /** In the order of the server. */
  readonly pods: readonly JsonObject[];
  readonly pod: JsonObject | null;
  readonly container: JsonObject | null;
}

const POD: CelType = plainType('v1', 'Pod') ?? DYN;
const NODE: CelType = plainType('v1', 'Node') ?? DYN;
const CONTAINER: CelType =
  POD.fields?.get('spec')?.type.fields?.get('containers')?.type.params[0] ?? DYN;
const POD_STRUCT = findTypeOfKind('v1', 'Pod');
const NODE_STRUCT = findTypeOfKind('v1', 'Node');
const CONTAINER_STRUCT = itemsOf(fieldOf(POD_STRUCT, 'spec'), 'containers');

interface Sum {
  sum: number;
  atMs: number;
}

export interface UsageWorld {
  readonly rules: PodRules<UsageItem>;
  nowMs(): number;
  random(): number;
  /** Containers that the node has started so far. */
  startedContainers(node: string): number;
}

/** Evaluates expressions of usages and metrics. */
export class Usage {
  readonly #world: UsageWorld;
  readonly #environment: Environment;
  readonly #sums: Map<string, Sum> = new Map();
  #subject: UsageSubject | null = null;

  constructor(world: UsageWorld) {
    this.#world = world;
    const base = celEnvironment({
      variables: { node: NODE, pod: POD, container: CONTAINER },
      isHomogeneous: false,
    });
    const functions = new Map(base.functions);
    for (const [name, overloads] of this.#functions()) {
      functions.set(name, [...(functions.get(name) ?? []), ...overloads]);
    }
    this.#environment = { ...base, functions };
  }

  /** Throws a FileError at the field where the expression cannot be understood. */
  compile(field: Field): Program {
    const compiled = compileCel(this.#environment, field.text().trim());
    if (!compiled.ok) throw field.error(`CEL: ${compiled.message}`);
    return compiled.program;
  }

  /** The value as a number; an Error where it is none. */
  number(program: Program, subject: UsageSubject): number | Error {
    const value = this.#evaluate(program, subject);
    if (typeof value === 'number') return value;
    if (typeof value === 'bigint') return Number(value);
    if (value instanceof Uint) return Number(value.value);
    if (typeof value === 'boolean') return value ? 1 : 0;
    if (value instanceof Duration) return Number(value.nanos);
    if (value instanceof CelError) return new Error(value.message);
    return new Error(`${program.source} gives no number`);
  }

  /** The value as text; an Error where it is none. */
  text(program: Program, subject: UsageSubject): string | Error {
    const value = this.#evaluate(program, subject);
    if (typeof value === 'string') return value;
    if (value instanceof CelError) return new Error(value.message);
    return new Error(`${program.source} gives no text`);
  }

  #evaluate(program: Program, subject: UsageSubject): CelValue {
    const before = this.#subject;
    this.#subject = subject;
    const { node, pod, container } = subject;
    const bindings = {
      node: structOf(node, NODE_STRUCT),
      pod: structOf(pod, POD_STRUCT),
      container: structOf(container, CONTAINER_STRUCT),
    };
    const { value } = program.evaluate(bindings);
    this.#subject = before;
    return value;
  }

  #functions(): ReturnType<typeof tableOf> {
    const now = (): CelValue => new Timestamp(BigInt(Math.trunc(this.#world.nowMs())) * 1_000_000n);
    const started = (node: CelValue): CelValue => {
      const own = this.#subject?.node ?? {};
      const name = typeof node === 'string' ? node : stringAt(own, 'metadata', 'name');
      return this.#world.startedContainers(name);
    };
    const age = (of: CelValue): CelValue => this.#age(of);
    return tableOf([
      {
        ...kwokLibrary(this.#world),
        'now_old: now(): timestamp': now,
        'since: SinceSecond(dyn): double': age,
        'since_of: dyn . SinceSecond(): double': age,
        'started: StartedContainersTotal(dyn): double': started,
        'started_of: dyn . StartedContainersTotal(): double': started,
        'started_old: startedContainersTotal(dyn): double': started,
        'started_old_of: dyn . startedContainersTotal(): double': started,
        'usage: dyn . Usage(string): double': (of: CelValue, resource: string) =>
          this.#used(of, resource, '', false),
        'usage_in: dyn . Usage(string, string): double': (
          of: CelValue,
          resource: string,
          container: string,
        ) => this.#used(of, resource, container, false),
        'sum: dyn . CumulativeUsage(string): double': (of: CelValue, resource: string) =>
          this.#used(of, resource, '', true),
        'sum_in: dyn . CumulativeUsage(string, string): double': (
          of: CelValue,
          resource: string,
          container: string,
        ) => this.#used(of, resource, container, true),
      },
    ]);
  }

  #isNode(of: CelValue): boolean {
    return of instanceof GoStruct && of.json === this.#subject?.node;
  }

  #age(of: CelValue): CelValue {
    const object = this.#isNode(of) ? this.#subject?.node : this.#subject?.pod;
    const created = Date.parse(stringAt(object ?? {}, 'metadata', 'creationTimestamp'));
    return Number.isNaN(created) ? 0 : (this.#world.nowMs() - created) / 1000;
  }

  #used(of: CelValue, resource: string, container: string, isSum: boolean): CelValue {
    const subject = this.#subject;
    if (subject === null) return new CelError('there is nothing that uses resources');
    if (!this.#isNode(of)) {
      return subject.pod === null
        ? new CelError('there is no pod here')
        : this.ofPod(subject.node, subject.pod, resource, container, isSum);
    }
    const node = stringAt(subject.node, 'metadata', 'name');
    let used = 0;
    for (const pod of subject.pods) used += this.ofPod(subject.node, pod, resource, '', false);
    return isSum ? this.#sum(`${resource} ${node}`, used) : used;
  }

  /** What the containers of a pod (or one of them) use now, or have used since the first look. */
  ofPod(
    node: JsonObject,
    pod: JsonObject,
    resource: string,
    container: string,
    isSum: boolean,
  ): number {
    const namespace = stringAt(pod, 'metadata', 'namespace');
    const name = stringAt(pod, 'metadata', 'name');
    let sum = 0;
    for (const one of listAt(pod, 'spec', 'containers')) {
      if (!isObject(one)) continue;
      const own = stringAt(one, 'name');
      if (container !== '' && own !== container) continue;
      const now = this.#ofContainer(node, pod, one, resource);
      sum += isSum ? this.#sum(`${resource} ${namespace}/${name}/${own}`, now) : now;
    }
    return sum;
  }

  #ofContainer(node: JsonObject, pod: JsonObject, container: JsonObject, resource: string): number {
    const namespace = stringAt(pod, 'metadata', 'namespace');
    const name = stringAt(pod, 'metadata', 'name');
    const { rules } = this.#world;
    const containers = (item: UsageItem): readonly string[] => item.containers;
    const found = rules.find(namespace, name, containers, stringAt(container, 'name'));
    const usage = found.kind === 'found' ? found.item.usage.get(resource) : undefined;
    if (usage === undefined || typeof usage === 'number') return usage ?? 0;
    const value = this.number(usage, { node, pod, container, pods: [] });
    return value instanceof Error ? 0 : value;
  }

  #sum(key: string, used: number): number {
    const atMs = this.#world.nowMs();
    const kept = this.#sums.get(key);
    const seconds = kept === undefined ? 0 : Math.max(0, atMs - kept.atMs) / 1000;
    const sum = (kept?.sum ?? 0) + seconds * used;
    this.#sums.delete(key);
    const oldest = this.#sums.size >= SUMS_MAX ? this.#sums.keys().next().value : undefined;
    if (oldest !== undefined) this.#sums.delete(oldest);
    this.#sums.set(key, { sum, atMs });
    return sum;
  }
}

/** An item of a usage; `usage` compiles its expressions. */
export function readUsage(field: Field, usage: Usage): UsageItem {
  const part = field.members(['containers', 'usage']);
  const found = new Map<string, number | Program>();
  for (const [resource, value] of part('usage').entries()) {
    const own = value.members(['value', 'expression']);
    if (!own('value').isAbsent) {
      const amount = quantityOf(own('value').word());
      if (typeof amount !== 'number') throw own('value').error('a quantity is expected');
      found.set(resource, amount);
    } else if (!own('expression').isAbsent) found.set(resource, usage.compile(own('expression')));
  }
  return { containers: textsOf(part('containers')), usage: found };
}

/** As kwok has it, a struct of Go: what is left out is empty, zero or false. */
function structOf(object: JsonObject | null, type: Type | undefined): CelValue {
  return object === null || type === undefined ? null : new GoStruct(object, type);
}

function fieldOf(type: Type | undefined, name: string): Type | undefined {
  const shape = type?.fields.find((field) => field.name === name)?.shape;
  return shape?.kind === 'object' ? shape.type : undefined;
}

function itemsOf(type: Type | undefined, name: string): Type | undefined {
  const shape = type?.fields.find((field) => field.name === name)?.shape;
  return shape?.kind === 'list' && shape.items.kind === 'object' ? shape.items.type : undefined;
}
