/**
 * The status of ValidatingAdmissionPolicies: which generation was looked at, and what their
 * expressions would stumble over, as far as the types of the kinds that they match can tell.
 * Upstream's controller manager does this; here the server does, so that it is done everywhere.
 */
import { admissionEnvironment } from '@megaplane/machinery/cel/admission-environment';
import { builtinType, customType } from '@megaplane/machinery/cel/builtin-types';
import { compileCel } from '@megaplane/machinery/cel/program';
import { DYN, type CelType } from '@megaplane/machinery/cel/typing';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import type { Kinds } from '../../apiextensions/schema/kind-registry.ts';
import { decodeRow } from '../../serializer/encoder.ts';
import { followChanges } from '../../storage/follow.ts';
import { allServed, findServed, rangeOf, type Served } from '../../storage/served.ts';
import type { World } from '../../lister/world.ts';

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
    const warnings = checkPolicy(world, object);
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

/** The type of objects of a kind; undefined where nothing is known of it. */
function typeOf({ custom, resource }: Served): CelType | undefined {
  if (custom === null) return builtinType(resource.apiVersion, resource.kind);
  return customType(custom.schemas.schemaOf(custom).root, resource.kind);
}

/** What a rule means; upstream's mapper takes the core group for any group. */
function namedBy(kinds: Kinds, group: string, version: string, plural: string): Served[] {
  if (group === '') {
    const isNamed = ({ resource }: Served): boolean =>
      resource.version === version && resource.resource === plural;
    return allServed().filter(isNamed);
  }
  const served = kinds.find(group, version, plural);
  return served === undefined ? [] : [served];
}

/** Kinds that the rules name outright, by group, version and name; patterns stand for too many. */
function kindsOf({ kinds: all }: World, policy: JsonObject): Kind[] {
  const kinds = new Map<string, Kind>();
  const texts = (rule: JsonValue, field: string): string[] =>
    listAt(rule, field)
      .filter((one) => typeof one === 'string')
      .toSorted();
  for (const rule of listAt(policy, 'spec', 'matchConstraints', 'resourceRules')) {
    for (const group of texts(rule, 'apiGroups')) {
      for (const version of texts(rule, 'apiVersions')) {
        for (const resource of texts(rule, 'resources')) {
          for (const served of namedBy(all, group, version, resource)) {
            if (kinds.size >= KINDS_MAX) break;
            const { kind, group: own } = served.resource;
            const type = typeOf(served);
            const text = `${own}/${version}, Kind=${kind}`;
            if (type !== undefined) kinds.set([own, version, kind].join('\0'), { text, type });
          }
        }
      }
    }
  }
  const sorted = [...kinds].sort(([left], [right]) => (left < right ? -1 : 1));
  return sorted.map(([, kind]) => kind);
}

/** The type of `params`; undefined where a policy has none. */
function paramsTypeOf({ kinds }: World, policy: JsonObject): CelType | undefined {
  const paramKind = objectAt(policy, 'spec', 'paramKind');
  if (paramKind === undefined) return undefined;
  const served = kinds.findKind(stringAt(paramKind, 'apiVersion'), stringAt(paramKind, 'kind'));
  return (served && typeOf(served)) ?? DYN;
}

/** `expressionWarnings` of the status: of validations alone, as upstream's TypeChecker has it. */
function checkPolicy(world: World, policy: JsonObject): JsonObject[] {
  const params = paramsTypeOf(world, policy);
  const hasParams = params !== undefined;
  const worlds = kindsOf(world, policy).map(({ text, type }) => {
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
