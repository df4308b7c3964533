/** MutatingAdmissionPolicy: expressions that change what is written. */
import { builtinSchema } from '@megaplane/machinery/apply/builtin-schema';
import { DEDUCED_SCHEMA } from '@megaplane/machinery/apply/field-schema';
import { mergeValues } from '@megaplane/machinery/apply/merge';
import { MadeObject } from '@megaplane/machinery/cel/admission-environment';
import { fromJson, toJson } from '@megaplane/machinery/cel/json-values';
import { CelError, CelList, type CelValue } from '@megaplane/machinery/cel/values';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { applyPatch, parsePatch } from '@megaplane/machinery/patch';
import { forbidden, type Status } from '@megaplane/machinery/status';
import type { AdmissionPlugin, Admitted } from './admission.ts';
import { shownObject } from '../managed/tracking.ts';
import type { Served } from '../served.ts';
import type { World } from '../world.ts';
import { bindingsOf, shownObjectOf, shownBack } from './admission-request.ts';
import { evaluateConditions } from './match-conditions.ts';
import { refitted } from '../schema-gate.ts';
import { replaceObject } from './object-change.ts';
import { paramsOf } from './policy-params.ts';
import {
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
import { writtenName } from './refusal.ts';

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

export function mutatingPolicies(world: World): AdmissionPlugin {
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
      return mutateAll(applicable, write, pass);
    },
    wantsAgain: (write) => {
      const pass = passes.get(write);
      return pass !== undefined && !pass.isAgain && pass.isChanged;
    },
  };
}

function mutateAll(
  applicable: readonly Applicable<Mutations>[],
  write: Admitted,
  pass: Pass,
): Status | null {
  for (const one of applicable) {
    if (!isAbout(one, write)) continue;
    for (const binding of one.bindings) {
      const key = `${one.policy.name}/${binding.name}`;
      // in the second pass: those that want it, whose objects others may have changed since
      if (pass.isAgain && !(one.own.isReinvoked && pass.asked.has(key))) continue;
      if (!isBound(binding, write)) continue;
      const outcome = mutateOne(one, binding, write);
      if (typeof outcome !== 'boolean') return outcome;
      pass.asked.add(key);
      if (outcome) pass.isChanged = true;
    }
  }
  return null;
}

/** True where the object was changed. */
function mutateOne(
  one: Applicable<Mutations>,
  binding: Binding,
  write: Admitted,
): boolean | Status {
  const { policy, own, target } = one;
  const fail = (message: string): boolean | Status =>
    policy.ignoresFailures ? false : refusal(policy, binding, write, message);
  const params = paramsOf(policy, binding, write);
  if (params.kind === 'none') return false;
  if (params.kind === 'failed') return fail(params.message);
  let isChanged = false;
  for (const param of params.all) {
    for (const [index, { isPatch, expression }] of own.all.entries()) {
      // each sees what the one before it made
      const value = param === null ? null : fromJson(shownObject(param));
      const evaluation = new Evaluation(policy, bindingsOf(write, target, 'mutating'), value);
      if (index === 0) {
        const matched = evaluateConditions(policy.conditions, () => evaluation.bindings);
        if (matched.kind === 'skip') break;
        if (matched.kind === 'failed') return fail(matched.message);
      }
      const made = evaluation.evaluate(expression);
      const outcome = change(write, target, made, isPatch);
      if (typeof outcome === 'string') return fail(outcome);
      isChanged ||= outcome;
    }
  }
  return isChanged;
}

function refusal(policy: Policy, binding: Binding, write: Admitted, message: string): Status {
  const text = `policy '${policy.name}' with binding '${binding.name}' denied request: ${message}`;
  const causes = [{ message: text }];
  const status = forbidden(write.served.plural, writtenName(write), text, causes);
  // upstream keeps the code of a refusal, and says nothing before the policy's own words
  return { ...status, message: text, reason: 'Invalid' };
}

/** Applies what an expression made; a text where that cannot be done. */
function change(
  write: Admitted,
  target: Served,
  made: CelValue,
  isPatch: boolean,
): boolean | string {
  if (made instanceof CelError) return made.message;
  const { object, served } = write;
  if (object === null) return false;
  const shown = shownObjectOf(write, target, 'mutating') ?? {};
  const next = isPatch ? patched(shown, made) : merged(shown, made, target);
  if (typeof next === 'string') return next;
  const fitted = refitted(target, next, true);
  if (fitted !== null && !fitted.ok) return `error applying patch: ${fitted.message}`;
  const [unknown] = fitted?.strictErrors ?? [];
  if (unknown !== undefined) return `error applying patch: ${unknown}`;
  const result = fitted === null ? next : fitted.object;
  if (JSON.stringify(result) === JSON.stringify(shown)) return false;
  const refusal = replaceObject(write, object, shownBack(result, served, target));
  return refusal === null ? true : (refusal.message ?? '');
}

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
  const applied = applyPatch(patch.value, shown, undefined);
  if (applied.ok) return applied.value;
  // a test that fails leaves the object as it is
  const untested = operations.filter((one) => stringAt(one, 'op') !== 'test');
  const rest = parsePatch('json', JSON.stringify(untested));
  const isTest = untested.length < operations.length && rest.ok;
  if (isTest && applyPatch(rest.value, shown, undefined).ok) return shown;
  return `JSON Patch: ${applied.status.message ?? 'the patch does not apply'}`;
}

function merged(shown: JsonObject, made: CelValue, { resource }: Served): JsonObject | string {
  if (!(made instanceof MadeObject) || made.typeName !== 'Object') {
    return 'error applying patch: the expression must make an Object';
  }
  const json = toJson(made);
  if (json instanceof CelError) return json.message;
  const schema = builtinSchema(resource.apiVersion, resource.kind) ?? DEDUCED_SCHEMA;
  const next = mergeValues(schema, shown, json);
  return isObject(next) ? next : 'error applying patch: nothing is left of the object';
}
