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

/** Kinds that the rules name outright, by group, version and name; patterns stand for too many. */
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
          const text = `${group}/${version}, Kind=${kind}`;
          const order = [group, version, kind].join('\0');
          if (type !== undefined && kinds.size < KINDS_MAX) kinds.set(order, { text, type });
        }
      }
    }
  }
  const sorted = [...kinds].sort(([left], [right]) => (left < right ? -1 : 1));
  return sorted.map(([, kind]) => kind);
}

/** `expressionWarnings` of the status: of validations alone, as upstream's TypeChecker has it. */
function checkPolicy(policy: JsonObject): JsonObject[] {
  const paramKind = objectAt(policy, 'spec', 'paramKind');
  const params =
    paramKind === undefined
      ? undefined
      : (builtinType(stringAt(paramKind, 'apiVersion'), stringAt(paramKind, 'kind')) ?? DYN);
  const hasParams = params !== undefined;
  const worlds = kindsOf(policy).map(({ text, type }) => {
    const variables = new Map<string, CelType>();
    const compile = (source: string): ReturnType<typeof compileCel> => {
      const own = new Map(variables);
      const parts = { hasParams, variables: own, object: type, params };
      return compileCel(admissionEnvironment(parts), source);
    };
    for (const one of listAt(policy, 'spec', 'variables')) {
      const compiled = compile(stringAt(one, 'expression'));
      // what is wrong with a variable is nowhere told
      variables.set(stringAt(one, 'name'), compiled.ok ? compiled.program.type : DYN);
    }
    return { text, compile };
  });
  const warnings: JsonObject[] = [];
  const look = (fieldRef: string, source: string): void => {
    const found: string[] = [];
    for (const { text, compile } of worlds) {
      const compiled = compile(source);
      if (!compiled.ok) found.push(`${text}: ${compiled.message}\n`);
    }
    if (found.length > 0) warnings.push({ fieldRef, warning: found.join('\n') });
  };
  for (const [index, one] of listAt(policy, 'spec', 'validations').entries()) {
    const at = `spec.validations[${index}]`;
    look(`${at}.expression`, stringAt(one, 'expression'));
    const message = stringAt(one, 'messageExpression');
    if (message !== '') look(`${at}.messageExpression`, message);
  }
  return warnings;
}
