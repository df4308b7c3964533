/**
 * What a Service that changes its type leaves behind. As upstream has it: a field that the new type
 * has no use for goes where the old type had one and the client left the value as it was; one that
 * the client touched too stays, for validation to refuse.
 */
import { ownMember } from '@megaplane/base/members';
import { equals, listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';

const ADDRESS_FIELDS = [['clusterIP', 'clusterIPs'], ['ipFamilies'], ['ipFamilyPolicy']] as const;

const PLAIN = 'ClusterIP';

type Need = (spec: JsonObject) => boolean;

const isBalanced: Need = (spec) => typeOf(spec) === 'LoadBalancer';
const hasAddress: Need = (spec) => typeOf(spec) !== 'ExternalName';
const hasNodePorts: Need = (spec) => isBalanced(spec) || typeOf(spec) === 'NodePort';
const isHealthChecked: Need = (spec) => {
  return isBalanced(spec) && stringAt(spec, 'externalTrafficPolicy') === 'Local';
};
/** From outside of the cluster. */
const isAccessible: Need = (spec) => {
  return hasNodePorts(spec) || (typeOf(spec) === PLAIN && listAt(spec, 'externalIPs').length > 0);
};

/** Of a Service's spec. */
export function typeOf(spec: JsonObject): string {
  return stringAt(spec, 'type') || PLAIN;
}

/** Drops in place what `next` has of the type that `previous` was. */
export function dropTypeDependent(next: JsonObject, previous: JsonObject): void {
  const spec = objectAt(next, 'spec') ?? {};
  const before = objectAt(previous, 'spec') ?? {};
  const drop = (need: Need, ...fields: readonly string[]): void => {
    if (!need(before) || need(spec)) return;
    const isSame = fields.every((field) => isUntouched(spec, before, field));
    if (isSame) for (const field of fields) delete spec[field];
  };
  for (const fields of ADDRESS_FIELDS) drop(hasAddress, ...fields);
  if (hasNodePorts(before) && !hasNodePorts(spec) && arePortsUntouched(spec, before)) {
    spec['ports'] = listAt(spec, 'ports').map((port) => {
      const { nodePort: _, ...rest } = port as JsonObject;
      return rest;
    });
  }
  drop(isHealthChecked, 'healthCheckNodePort');
  drop(isBalanced, 'allocateLoadBalancerNodePorts');
  drop(isBalanced, 'loadBalancerClass');
  drop(isAccessible, 'externalTrafficPolicy');
  if (listAt(spec, 'ports').length === 0) delete spec['ports'];
  if (!isBalanced(spec)) next['status'] = { ...objectAt(next, 'status'), loadBalancer: {} };
}

function isUntouched(spec: JsonObject, before: JsonObject, field: string): boolean {
  return equals(ownMember(spec, field) ?? null, ownMember(before, field) ?? null);
}

function arePortsUntouched(spec: JsonObject, before: JsonObject): boolean {
  const numbersOf = (one: JsonObject): number[] => {
    const numbers = new Set<number>();
    for (const port of listAt(one, 'ports')) {
      const number = isObject(port) ? valueAt(port, 'nodePort') : undefined;
      if (typeof number === 'number' && number !== 0) numbers.add(number);
    }
    return [...numbers].toSorted((a, b) => a - b);
  };
  return equals(numbersOf(spec), numbersOf(before));
}
