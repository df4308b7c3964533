/**
 * The status of ValidatingAdmissionPolicies: which generation was looked at, and what their
 * expressions would stumble over, as far as the types of the kinds that they match can tell.
 * Upstream's controller manager does this; here the server does, so that it is done everywhere.
 */
import { admissionEnvironment } from '@megaplane/machinery/cel/admission-environment';
import { builtinType } from '@megaplane/machinery/cel/builtin-types';
import { compileCel } from '@megaplane/machinery/cel/program';
import { DYN, type CelType } from '@megaplane/machinery/cel/typing';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { decodeRow } from '../encoder.ts';
import { followChanges } from '../follow.ts';
import { findServed, rangeOf, type Served } from '../served.ts';
import type { World } from '../world.ts';

/** Kinds that one policy is checked against; further ones are not looked at, as upstream. */
const KINDS_MAX = 10;

/** Keeps the statuses up to date for as long as the storage lives. */
export function followPolicies(world: World): void {
  const served = findServed('admissionregistration.k8s.io', 'v1', 'validatingadmissionpolicies');
  if (served === undefined) return;
  let isPlanned = false;
  followChanges(world.storage, rangeOf(served, ''), () => {
    if (isPlanned) return;
    isPlanned = true;
    world.edge.defer(() => {
      isPlanned = false;
      checkAll(world, served);
    });
  });
}

function checkAll(world: World, served: Served): void {
  const { start, end } = rangeOf(served, '');
  const stale: { readonly key: Buffer; readonly object: JsonObject; readonly revision: number }[] =
    [];
  world.storage.page(start, end, 0, (row) => {
    const object = decodeRow(served, row, row.modRevision);
    const generation = numberAt(object, 'metadata', 'generation');
    if (numberAt(object, 'status', 'observedGeneration') < generation) {
      const key = Buffer.from(row.key.subarray(row.keyStart, row.keyEnd));
      stale.push({ key, object, revision: row.modRevision });
    }
    return true;
  });
  for (const { key, object, revision } of stale) {
    const warnings = checkPolicy(object);
    const status: JsonObject = {
      ...objectAt(object, 'status'),
      observedGeneration: numberAt(object, 'metadata', 'generation'),
      typeChecking: warnings.length === 0 ? {} : { expressionWarnings: warnings },
    };
    // who wrote in between is looked at next time
    world.storage.put(key, encodeCanonical({ ...object, status }), revision, () => {});
  }
}

interface Kind {
  readonly text: string;
  readonly type: CelType;
}

/** Kinds that the rules name outright; patterns stand for too many. */
function kindsOf(policy: JsonObject): Kind[] {
  const kinds = new Map<string, Kind>();
  const texts = (rule: JsonValue, field: string): string[] =>
    listAt(rule, field).filter((one) => typeof one === 'string');
  for (const rule of listAt(policy, 'spec', 'matchConstraints', 'resourceRules')) {
    for (const group of texts(rule, 'apiGroups')) {
      for (const version of texts(rule, 'apiVersions')) {
        for (const resource of texts(rule, 'resources')) {
          const served = findServed(group, version, resource);
          if (served === undefined) continue;
          const { apiVersion, kind } = served.resource;
          const type = builtinType(apiVersion, kind);
          const text = `${apiVersion}, Kind=${kind}`;
          if (type !== undefined && kinds.size < KINDS_MAX) kinds.set(text, { text, type });
        }
      }
    }
  }
  return Array.from(kinds.values());
}

/** `expressionWarnings` of the status. */
function checkPolicy(policy: JsonObject): JsonObject[] {
  const kinds = kindsOf(policy);
  const paramKind = objectAt(policy, 'spec', 'paramKind');
  const params =
    paramKind === undefined
      ? undefined
      : (builtinType(stringAt(paramKind, 'apiVersion'), stringAt(paramKind, 'kind')) ?? DYN);
  const warnings = new Map<string, string[]>();
  for (const { text, type } of kinds) {
    const variables = new Map<string, CelType>();
    const hasParams = params !== undefined;
    const look = (path: string, source: string): CelType => {
      const own = new Map(variables);
      const environment = admissionEnvironment({ hasParams, variables: own, object: type, params });
      const compiled = compileCel(environment, source);
      if (compiled.ok) return compiled.program.type;
      const list = warnings.get(path) ?? [];
      list.push(`${text}: ${compiled.message}\n`);
      warnings.set(path, list);
      return DYN;
    };
    for (const [index, one] of listAt(policy, 'spec', 'variables').entries()) {
      const found = look(`spec.variables[${index}].expression`, stringAt(one, 'expression'));
      variables.set(stringAt(one, 'name'), found);
    }
    for (const [index, one] of listAt(policy, 'spec', 'validations').entries()) {
      const at = `spec.validations[${index}]`;
      look(`${at}.expression`, stringAt(one, 'expression'));
      const message = stringAt(one, 'messageExpression');
      if (message !== '') look(`${at}.messageExpression`, message);
    }
  }
  return Array.from(warnings, ([fieldRef, list]) => ({ fieldRef, warning: list.join('\n') }));
}
