/**
 * MutatingAdmissionWebhook and ValidatingAdmissionWebhook.
 *
 * Mutating webhooks are called one after the other, each with what those before it made; validating
 * ones all at once. A write that no webhook has a rule for costs a look into a table.
 */
import { parsePatch } from '@megaplane/machinery/patch';
import { applyJsonPatch } from '@megaplane/machinery/patch-json';
import { equals } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { internalError, unclassified, type Status } from '@megaplane/machinery/status';
import type { Served } from '../../storage/served.ts';
import type { World } from '../../lister/world.ts';
import {
  convertBack,
  dropForms,
  needsConversion,
  prepared,
  prepareForms,
} from './equivalent-forms.ts';
import { bindingsOf, shownBack, shownObjectOf, type Phase } from './admission-request.ts';
import { isSelected } from './matching.ts';
import { replaceObject } from '../object-change.ts';
import { estrangement, patchedObject } from './patched-object.ts';
import { refuseNameless } from '../../registry/rest/refusal.ts';
import { WebhookConfigurations, type Matching, type Webhook } from './webhook-configurations.ts';
import { denialOf, JSON_PATCH, type Reviewed } from './webhook-review.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import { callWebhook, failureOf, type CallContext } from './call-webhook.ts';
import type { AdmissionPlugin, Later, RepeatedRequest, Verdict } from '../admission-plugin.ts';
import type { Called } from './webhook-metrics.ts';

/** Whether the webhook is to be called; a Status where its conditions failed and that counts. */
function isCalled(
  { checks }: CallContext,
  { webhook, target }: Matching,
  write: Admitted,
  phase: Phase,
): boolean | Status {
  const { name, selectors, conditions } = webhook;
  if (!isSelected(selectors, write)) return false;
  const type = phase === 'mutating' ? 'admit' : 'validating';
  const owner = { kind: 'webhook', type, name } as const;
  const bindings = (): Bindings => bindingsOf(write, target, phase);
  const matched = checks.matched(owner, write.operation, conditions, bindings);
  if (matched.kind === 'match') return true;
  if (matched.kind === 'skip' || webhook.ignoresFailures) {
    checks.excluded(owner, write.operation);
    return false;
  }
  return refuseNameless(write, matched.message);
}

type Bindings = ReturnType<typeof bindingsOf>;

/** The request of a repeated write: which webhooks would be asked is known by its kind alone. */
function concerns(hooks: WebhookConfigurations, { served, call }: RepeatedRequest): boolean {
  const operation = call.exchange.method === 'POST' ? 'CREATE' : 'UPDATE';
  return hooks.for({ served, operation, subresource: call.info.subresource }).length > 0;
}

/** Names of annotations in the audit log, as upstream has them. */
const MUTATION = 'mutation.webhook.admission.k8s.io';
const FAILED_OPEN = 'failed-open.validating.webhook.admission.k8s.io';

/** Which of the webhooks that were called want to see what later ones changed. */
interface Pass {
  readonly called: Webhook[];
  readonly wanting: Set<Webhook>;
  /** Some webhook changed the object: all mutating plugins are to see it. */
  isChanged: boolean;
  /** The second pass, after which there is no other. */
  isAgain: boolean;
  /** The object as the first pass left it. */
  output: string;
}

/** Those of the first pass that want to see later changes. */
function wantAgain(pass: Pass): void {
  for (const earlier of pass.called) if (earlier.isReinvoked) pass.wanting.add(earlier);
}

export function mutatingWebhooks(world: World, context: CallContext): AdmissionPlugin {
  const hooks = new WebhookConfigurations(world, 'mutatingwebhookconfigurations');
  const passes = new WeakMap<Admitted, Pass>();
  return {
    name: 'MutatingAdmissionWebhook',
    connects: true,
    repeats: (request) => !concerns(hooks, request),
    mutate: (write) => {
      const matching = hooks.for(write);
      if (matching.length === 0) return null;
      let pass = passes.get(write);
      if (pass === undefined) {
        pass = { called: [], wanting: new Set(), isChanged: false, isAgain: false, output: '' };
        passes.set(write, pass);
      } else {
        pass.isAgain = true;
        // other plugins have changed what the webhooks made
        if (JSON.stringify(write.object) !== pass.output) wantAgain(pass);
      }
      return mutateAll(context, write, matching, pass);
    },
    wantsAgain: (write) => {
      const pass = passes.get(write);
      return pass !== undefined && !pass.isAgain && pass.isChanged;
    },
  };
}

function mutateAll(
  context: CallContext,
  write: Admitted,
  matching: readonly Matching[],
  pass: Pass,
): Later {
  return (ended) => {
    const then = (refusal: Status | null): void => {
      dropForms(write);
      ended(refusal);
    };
    const next = (index: number): void => {
      const own = matching[index];
      if (own === undefined) {
        pass.output = JSON.stringify(write.object);
        then(null);
        return;
      }
      if (pass.isAgain && !pass.wanting.has(own.webhook)) {
        next(index + 1);
        return;
      }
      const done = (refusal: Status | null): void => {
        if (refusal === null) next(index + 1);
        else then(refusal);
      };
      const place = `round_${pass.isAgain ? 1 : 0}_index_${index}`;
      const ask = (): void => {
        const wanted = isCalled(context, own, write, 'mutating');
        if (wanted !== true) done(wanted === false ? null : wanted);
        else {
          callWebhook(context, write, own, 'admit', (called) => {
            take(write, own, called, pass, place, done);
          });
        }
      };
      if (needsConversion(write, own.target)) {
        prepareForms(write, own.target, (failure) => {
          if (failure === null) ask();
          else then(failure);
        });
      } else ask();
    };
    next(0);
  };
}

/** Takes a webhook's answer over into the object, and calls `done` once. */
function take(
  write: Admitted,
  own: Matching,
  called: Called,
  pass: Pass,
  place: string,
  done: (refusal: Status | null) => void,
): void {
  const { webhook } = own;
  const { configuration, name } = webhook;
  const settle = (outcome: boolean | Failure): void => {
    if (typeof outcome !== 'boolean' && outcome.kind === 'refused') {
      done(outcome.status);
      return;
    }
    if (outcome === true) {
      pass.isChanged = true;
      // those that were called before have not seen this
      wantAgain(pass);
    }
    // whoever failed, and may, is asked again all the same
    if (!pass.isAgain) pass.called.push(webhook);
    if (typeof outcome !== 'boolean') write.call.annotate(`failed-open.${MUTATION}/${place}`, name);
    else {
      const note = { configuration, webhook: name, mutated: outcome };
      write.call.annotate(`${MUTATION}/${place}`, JSON.stringify(note));
    }
    done(null);
  };
  if (called.kind !== 'answered') settle(called);
  else if (!called.review.allowed) done(denialOf(name, called.review.status));
  else if (called.review.patch === '') settle(false);
  else patchObject(write, own, called.review, settle);
}

/** Tells `settle` whether the patch changed something. */
function patchObject(
  write: Admitted,
  { webhook, target }: Matching,
  review: Reviewed,
  settle: (outcome: boolean | Failure) => void,
): void {
  const made = patchedOf(write, target, webhook, review);
  const { object } = write;
  if (typeof made === 'boolean' || 'kind' in made || object === null) {
    settle(typeof made === 'boolean' || 'kind' in made ? made : false);
    return;
  }
  const replace = (next: JsonObject): void => {
    const refusal = replaceObject(write, object, next);
    settle(refusal === null ? true : refused(refusal));
  };
  if (needsConversion(write, target)) {
    convertBack(write, made.object, (back) => {
      if (back.ok) replace(back.object);
      else settle(refused(back.status));
    });
  } else replace(shownBack(made.object, write, target));
}

/** What the patch makes of the object in the webhook's version; false where it changes nothing. */
function patchedOf(
  write: Admitted,
  target: Served,
  webhook: Webhook,
  { patch: text, patchType }: Reviewed,
): false | Failure | { readonly object: JsonObject } {
  const { name } = webhook;
  const patch = parsePatch('json', text, false);
  if (!patch.ok) {
    const why = patch.status.message ?? '';
    return failureOf(webhook, `received undecodable patch in webhook response: ${why}`);
  }
  if (patch.value.kind !== 'json' || patch.value.operations.length === 0) return false;
  if (write.object === null) {
    const why = 'attempted to modify the object, which is not supported for this operation';
    return refused(internalError(`admission webhook ${JSON.stringify(name)} ${why}`));
  }
  if (patchType !== JSON_PATCH) {
    return failureOf(webhook, `unsupported patch type ${JSON.stringify(patchType)}`);
  }
  const shown = shownObjectOf(write, target, 'mutating') ?? {};
  const patched = applyJsonPatch(shown, patch.value.operations);
  if (typeof patched === 'string') return refused(internalError(patched));
  const result = patchedObject(target, patched, shown);
  if ('status' in result) return refused(result.status);
  const estranged = estrangement(target, result.object);
  if (estranged !== '') return refused(unclassified(estranged));
  return equals(result.object, shown) ? false : result;
}

type Failure = Exclude<Called, { readonly kind: 'answered' }>;

function refused(status: Status): Failure {
  return { kind: 'refused', status };
}

export function validatingWebhooks(world: World, context: CallContext): AdmissionPlugin {
  const hooks = new WebhookConfigurations(world, 'validatingwebhookconfigurations');
  return {
    name: 'ValidatingAdmissionWebhook',
    connects: true,
    repeats: (request) => !concerns(hooks, request),
    validate: (write) => {
      const matching = hooks.for(write);
      if (matching.length === 0) return null;
      return prepared(write, matching, () => validateMatching(context, write, matching));
    },
  };
}

/** Asks those whose conditions hold. */
function validateMatching(
  context: CallContext,
  write: Admitted,
  matching: readonly Matching[],
): Verdict {
  const wanted: Matching[] = [];
  for (const own of matching) {
    const called = isCalled(context, own, write, 'validating');
    if (typeof called !== 'boolean') return called;
    if (called) wanted.push(own);
  }
  return wanted.length === 0 ? null : validateAll(context, write, wanted);
}

/** All at once; who says no first is the one that is told. */
function validateAll(context: CallContext, write: Admitted, wanted: readonly Matching[]): Later {
  return (then) => {
    let refusal: Status | null = null;
    let left = wanted.length;
    for (const [index, own] of wanted.entries()) {
      callWebhook(context, write, own, 'validating', (called) => {
        if (called.kind === 'refused') refusal ??= called.status;
        else if (called.kind === 'ignored') {
          write.call.annotate(`${FAILED_OPEN}/round_0_index_${index}`, own.webhook.name);
        } else if (called.kind === 'answered' && !called.review.allowed) {
          refusal ??= denialOf(own.webhook.name, called.review.status);
        }
        left--;
        if (left === 0) then(refusal);
      });
    }
  };
}
