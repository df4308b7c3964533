/** Whether a daemon's pod belongs on a node: upstream's predicates of the DaemonSet controller. */
import { ownMember } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { type Taint, tolerates } from '../framework/tolerations.ts';
import { integerOf } from '@megaplane/machinery/selectors';

const HOSTNAME = 'kubernetes.io/hostname';

/** What a node is to a daemon. */
export interface DaemonNode {
  readonly name: string;
  readonly labels: JsonObject;
  readonly taints: readonly Taint[];
}

export interface Fit {
  /** A pod should be made if there is none. */
  readonly shouldRun: boolean;
  /** A pod that is there may stay. */
  readonly mayStay: boolean;
}

/** Of no node, and of one that the template does not select. */
export const NO_FIT: Fit = { shouldRun: false, mayStay: false };

/** Tolerations that every daemon's pod gets. */
export function daemonTolerations(spec: JsonObject): JsonValue[] {
  const wanted = [
    ['node.kubernetes.io/not-ready', 'NoExecute'],
    ['node.kubernetes.io/unreachable', 'NoExecute'],
    ['node.kubernetes.io/disk-pressure', 'NoSchedule'],
    ['node.kubernetes.io/memory-pressure', 'NoSchedule'],
    ['node.kubernetes.io/pid-pressure', 'NoSchedule'],
    ['node.kubernetes.io/unschedulable', 'NoSchedule'],
  ];
  if (spec['hostNetwork'] === true) {
    wanted.push(['node.kubernetes.io/network-unavailable', 'NoSchedule']);
  }
  const given = listAt(spec, 'tolerations');
  const tolerations = [...given];
  for (const [key = '', effect = ''] of wanted) {
    const isThere = given.some(
      (one) =>
        stringAt(one, 'key') === key &&
        stringAt(one, 'effect') === effect &&
        stringAt(one, 'operator') === 'Exists',
    );
    if (!isThere) tolerations.push({ key, operator: 'Exists', effect });
  }
  return tolerations;
}

/** A daemon's template, read once for all nodes. */
export class DaemonFit {
  readonly #nodeName: string;
  readonly #selector: JsonObject;
  readonly #terms: readonly JsonValue[] | null;
  readonly #tolerations: readonly JsonValue[];
  /** Nodes that differ in nothing but their names are all the same to the template. */
  readonly isByName: boolean;

  constructor(spec: JsonObject) {
    this.#nodeName = stringAt(spec, 'nodeName');
    this.#selector = objectAt(spec, 'nodeSelector') ?? {};
    const required = objectAt(
      spec,
      'affinity',
      'nodeAffinity',
      'requiredDuringSchedulingIgnoredDuringExecution',
    );
    this.#terms = required === undefined ? null : listAt(required, 'nodeSelectorTerms');
    this.#tolerations = daemonTolerations(spec);
    const text = JSON.stringify([this.#selector, this.#terms]);
    this.isByName =
      this.#nodeName !== '' || text.includes(HOSTNAME) || text.includes('metadata.name');
  }

  of(node: DaemonNode): Fit {
    if (this.#nodeName !== '' && this.#nodeName !== node.name) return NO_FIT;
    if (!this.#isSelected(node)) return NO_FIT;
    const borne = (taint: Taint): boolean =>
      this.#tolerations.some((toleration) => tolerates(toleration, taint));
    const isKept = (effect: string): boolean =>
      node.taints.every((taint) => taint.effect !== effect || borne(taint));
    const mayStay = isKept('NoExecute');
    return { shouldRun: mayStay && isKept('NoSchedule'), mayStay };
  }

  #isSelected(node: DaemonNode): boolean {
    for (const [name, value] of Object.entries(this.#selector)) {
      if (ownMember(node.labels, name) !== value) return false;
    }
    if (this.#terms === null) return true;
    return this.#terms.some((term) => isObject(term) && meetsTerm(term, node));
  }
}

/** An empty term selects nothing. */
function meetsTerm(term: JsonObject, node: DaemonNode): boolean {
  const expressions = listAt(term, 'matchExpressions');
  const fields = listAt(term, 'matchFields');
  if (expressions.length === 0 && fields.length === 0) return false;
  return (
    expressions.every((one) => meets(one, ownMember(node.labels, stringAt(one, 'key')))) &&
    fields.every((one) => stringAt(one, 'key') === 'metadata.name' && meets(one, node.name))
  );
}

function meets(requirement: JsonValue, value: JsonValue | undefined): boolean {
  const values = listAt(requirement, 'values');
  const isThere = typeof value === 'string';
  switch (stringAt(requirement, 'operator')) {
    case 'In':
      return isThere && values.includes(value);
    case 'NotIn':
      return !isThere || !values.includes(value);
    case 'Exists':
      return isThere;
    case 'DoesNotExist':
      return !isThere;
    case 'Gt':
      return isThere && compareIntegers(value, values[0]) > 0;
    case 'Lt':
      return isThere && compareIntegers(value, values[0]) < 0;
    default:
      return false;
  }
}

/** Of 64 bits; 0 where one of the texts is none. */
function compareIntegers(left: string, right: JsonValue | undefined): number {
  const one = integerOf(left);
  const other = typeof right === 'string' ? integerOf(right) : undefined;
  if (one === undefined || other === undefined) return 0;
  return one < other ? -1 : one > other ? 1 : 0;
}
