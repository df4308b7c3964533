/** MutatingAdmissionPolicy: expressions that change what is written. */
import { builtinSchema } from '@megaplane/machinery/apply/builtin-schema';
import { atomicPaths, faultsText, typedFaults } from '@megaplane/machinery/apply/typed-faults';
import { voidFaults } from '@megaplane/machinery/apply/void-faults';
import { DEDUCED_SCHEMA, type FieldSchema } from '@megaplane/machinery/apply/field-schema';
import { mergeValues } from '@megaplane/machinery/apply/merge';
import { MadeObject } from '@megaplane/machinery/cel/admission-environment';
import { fromJson, toJson } from '@megaplane/machinery/cel/json-values';
import { CelError, CelList, type CelValue } from '@megaplane/machinery/cel/values';
import { equals, listAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { parsePatch } from '@megaplane/machinery/patch';
import { applyJsonPatch } from '@megaplane/machinery/patch-json';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import { forbidden, internalError, type Status } from '@megaplane/machinery/status';
import { unstructuredFault, unstructuredText } from '@megaplane/machinery/unstructured';
import type { Served } from '../../storage/served.ts';
import type { World } from '../../lister/world.ts';
import { bindingsOf, shownObjectOf, shownBack } from '../webhook/admission-request.ts';
import type { CheckMetrics } from '../webhook/check-metrics.ts';
import { refitted, refittedApplied } from '../../registry/rest/schema-gate.ts';
import { replaceObject } from '../object-change.ts';
import { paramsOf, policyFault } from './policy-params.ts';
import {
  conditionsOf,
  Evaluation,
  isAbout,
  isBound,
  Policies,
  readExpression,
  type Applicable,
  type Binding,
  type Expression,
  type Policy,
} from './policies.ts';
import { estrangement, patchedObject } from '../webhook/patched-object.ts';
import { writtenName } from '../../registry/rest/refusal.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import { shownObject } from '../../managedfields/shown-fields.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

interface Mutations {
  readonly all: readonly { readonly isPatch: boolean; readonly expression: Expression }[];
  readonly isReinvoked: boolean;
}

function readMutations({ object, environment }: Policy): Mutations {
  return {
    all: listAt(object, 'spec', 'mutations').map((one) => {
      const isPatch = stringAt(one, 'patchType') === 'JSONPatch';
      const field = isPatch ? 'jsonPatch' : 'applyConfiguration';
      const source = stringAt(one, field, 'expression');
      return { isPatch, expression: readExpression(environment, source) };
    }),
    isReinvoked: stringAt(object, 'spec', 'reinvocationPolicy') === 'IfNeeded',
  };
}

/** What happened in the first pass. */
interface Pass {
  isAgain: boolean;
  isChanged: boolean;
  readonly asked: Set<string>;
}

export function mutatingPolicies(world: World, checks: CheckMetrics): AdmissionPlugin {
  const policies = new Policies(world, 'mutating', true, readMutations);
  const passes = new WeakMap<Admitted, Pass>();
  return {
    name: 'MutatingAdmissionPolicy',
    connects: true,
    repeats: ({ served, call }) => {
      const operation = call.exchange.method === 'POST' ? 'CREATE' : 'UPDATE';
      return policies.for({ served, operation, subresource: call.info.subresource }).length === 0;
    },
    mutate: (write) => {
      const applicable = policies.for(write);
      if (applicable.length === 0 || write.object === null) return null;
      let pass = passes.get(write);
      if (pass === undefined) {
        pass = { isAgain: false, isChanged: false, asked: new Set() };
        passes.set(write, pass);
      } else {
        pass.isAgain = true;
      }
      return mutateAll(checks, applicable, write, pass);
    },
    wantsAgain: (write) => {
      const pass = passes.get(write);
      return pass !== undefined && !pass.isAgain && pass.isChanged;
    },
  };
}

/** Why a policy denies a write, in its own words; of a patch that cannot be read, in others'. */
interface Denial {
  readonly text: string;
  readonly reason: 'Forbidden' | 'Invalid';
}

function mutateAll(
  checks: CheckMetrics,
  applicable: readonly Applicable<Mutations>[],
  write: Admitted,
  pass: Pass,
): Status | null {
  // what is wrong with policies and bindings is told before what is wrong with mutations
  const misled: Denial[] = [];
  const denials: Denial[] = [];
  for (const one of applicable) {
    if (!isAbout(one, write)) continue;
    const { name, ignoresFailures } = one.policy;
    const mislead = (where: string, why: string): void => {
      const text = `policy ${where} denied request: ${why}`;
      if (!ignoresFailures) misled.push({ text, reason: 'Forbidden' });
    };
    const fault = policyFault(one.policy, write);
    if (fault !== '') {
      mislead(JSON.stringify(name), fault);
      continue;
    }
    for (const binding of one.bindings) {
      if (!isBound(binding, write)) continue;
      const params = paramsOf(one.policy, binding, write);
      if (params.kind === 'failed') {
        mislead(`'${name}' with binding '${binding.name}'`, params.message);
      }
      for (const param of params.kind === 'found' ? params.all : []) {
        const found = mutateBy(checks, one, { binding, param }, write, pass);
        if (!Array.isArray(found)) return found;
        denials.push(...found);
      }
    }
  }
  return refusal(write, [...misled, ...denials]);
}

/** One binding with one of its parameters. */
interface Invocation {
  readonly binding: Binding;
  readonly param: JsonObject | null;
}

/** Changes the object; gives what denies the write, or an answer that is not the policy's. */
function mutateBy(
  checks: CheckMetrics,
  { policy, own, target }: Applicable<Mutations>,
  { binding, param }: Invocation,
  write: Admitted,
  pass: Pass,
): Denial[] | Status {
  const denials: Denial[] = [];
  const deny = (message: string): void => {
    const where = `policy '${policy.name}' with binding '${binding.name}'`;
    const text = `${where} denied request: ${message}`;
    if (!policy.ignoresFailures) denials.push({ text, reason: 'Invalid' });
  };
  const value = param === null ? null : fromJson(shownObject(param));
  // each sees what the one before it made
  const evaluated = (): Evaluation =>
    new Evaluation(policy, bindingsOf(write, target, 'mutating'), value);
  let evaluation = evaluated();
  const matched = conditionsOf(checks, policy, write.operation, evaluation);
  if (matched.kind === 'failed') deny(matched.message);
  if (matched.kind !== 'match') return denials;
  const key = [policy.name, binding.name, stringAt(param ?? {}, 'metadata', 'namespace')];
  const asked = [...key, stringAt(param ?? {}, 'metadata', 'name')].join('/');
  // in the second pass: those that want it, whose objects others may have changed since
  if (pass.isAgain && !(own.isReinvoked && pass.asked.has(asked))) return denials;
  for (const [index, { isPatch, expression }] of own.all.entries()) {
    if (index > 0) evaluation = evaluated();
    const fromMs = checks.clockMs();
    const outcome = change(write, target, evaluation.evaluate(expression), isPatch);
    const why = typeof outcome === 'object' ? (outcome.message ?? '?') : outcome;
    const tookMs = checks.clockMs() - fromMs;
    checks.mutated(policy.name, binding.name, typeof why === 'string' ? why : '', tookMs);
    if (outcome === true) pass.isChanged = true;
    else if (typeof outcome === 'string') deny(outcome);
    else if (typeof outcome === 'object') return outcome;
  }
  pass.asked.add(asked);
  return denials;
}

/** The first denial is what is said, and all are causes. */
function refusal(write: Admitted, denials: readonly Denial[]): Status | null {
  const [first] = denials;
  if (first === undefined) return null;
  const { text: message, reason } = first;
  const causes = denials.map(({ text }) => ({ message: text }));
  const status = forbidden(write.served.plural, writtenName(write), message, causes);
  // upstream keeps the code of a refusal, and says nothing before the policy's own words
  return { ...status, message, reason };
}

/** Applies what an expression made; a text, or how the write ends, where that cannot be done. */
function change(
  write: Admitted,
  target: Served,
  made: CelValue,
  isPatch: boolean,
): boolean | string | Status {
  if (made instanceof CelError) return made.message;
  const { object } = write;
  if (object === null) return false;
  const shown = shownObjectOf(write, target, 'mutating') ?? {};
  const found = isPatch ? patched(shown, made) : merged(shown, made, target);
  if (typeof found === 'string') return found;
  // a patch may make something of another kind, which cannot be read; what is applied stays
  const decoded = isPatch ? patchedObject(target, found, shown) : { object: kindred(found, shown) };
  if ('status' in decoded) return decoded.status;
  const next = isPatch && target.custom === null ? found : decoded.object;
  const estranged = isPatch ? estrangement(target, next) : '';
  if (estranged !== '') return internalError(`failed to convert object: ${estranged}`);
  // of custom kinds nothing is dropped until they are stored, and then without a word
  const isTyped = target.custom === null;
  const fitted = isTyped ? refitted(target, next, true) : refittedApplied(target, next);
  if (fitted !== null && !fitted.ok) return unfit(target, isPatch, next, fitted.message ?? '');
  const [unknown] = fitted?.strictErrors ?? [];
  if (unknown !== undefined) {
    // what is patched is decoded by the server, whose failures no policy may ignore
    if (isPatch) return internalError(`strict decoding error: ${unknown}`);
    return `error applying patch: ${unknown}`;
  }
  const result = fitted === null ? next : fitted.object;
  if (equals(result, shown)) return false;
  const refusal = replaceObject(write, object, shownBack(result, write, target));
  return refusal ?? true;
}

/** What is applied is decoded by another way than what is patched, which says so. */
function unfit(
  { custom, resource }: Served,
  isPatch: boolean,
  next: JsonObject,
  why: string,
): string | Status {
  if (custom !== null) return `error applying patch: ${why}`;
  if (isPatch) return internalError(why);
  const { group, version, kind, apiVersion } = resource;
  const type = findTypeOfKind(apiVersion, kind);
  const fault = type === undefined ? undefined : unstructuredFault(type, next);
  const text = fault ?? unstructuredText(why);
  return `unable to convert unstructured object to ${group}/${version}, Kind=${kind}: ${text}`;
}

function kindred(object: JsonObject, { kind, apiVersion }: JsonObject): JsonObject {
  return { ...object, kind: kind ?? '', apiVersion: apiVersion ?? '' };
}

const TEST_FAILED = /^testing value .* failed: test failed$/s;

function patched(shown: JsonObject, made: CelValue): JsonObject | string {
  if (!(made instanceof CelList))
    return 'type mismatch: JSONPatchType.expression should evaluate to array';
  const operations: JsonValue[] = [];
  for (let i = 0; i < made.length; i++) {
    const one = toJson(made.at(i));
    if (one instanceof CelError) return one.message;
    operations.push(one);
  }
  const patch = parsePatch('json', JSON.stringify(operations));
  if (!patch.ok) return patch.status.message ?? 'the patch cannot be read';
  if (patch.value.kind !== 'json') return 'the patch is no JSON patch';
  const applied = applyJsonPatch(shown, patch.value.operations);
  if (isObject(applied)) return applied;
  // a test that fails leaves the object as it is, whatever the other operations would come to
  if (typeof applied === 'string' && TEST_FAILED.test(applied)) return shown;
  return `JSON Patch: ${typeof applied === 'string' ? applied : 'the result is no object'}`;
}

function merged(shown: JsonObject, made: CelValue, target: Served): JsonObject | string {
  if (!(made instanceof MadeObject) || made.typeName !== 'Object') {
    return 'error applying patch: the expression must make an Object';
  }
  const json = toJson(made);
  if (json instanceof CelError) return json.message;
  const schema = schemaOf(target);
  const faults = [...typedFaults(schema, json, false), ...voidFaults(schema, json)];
  if (faults.length > 0) {
    const why = `failed to convert patch object to typed object: ${faultsText(faults)}`;
    return `error applying patch: ${why}`;
  }
  const atomics = atomicPaths(schema, json);
  if (atomics.length > 0) {
    const why = `may not mutate atomic arrays, maps or structs: ${atomics.join(', ')}`;
    return `error applying patch: invalid ApplyConfiguration: ${why}`;
  }
  const next = mergeValues(schema, shown, json);
  return isObject(next) ? next : 'error applying patch: nothing is left of the object';
}

function schemaOf({ custom, resource: { apiVersion, kind } }: Served): FieldSchema {
  if (custom !== null) return custom.schemas.schemaOf(custom).applySchema();
  return builtinSchema(apiVersion, kind) ?? DEDUCED_SCHEMA;
}
