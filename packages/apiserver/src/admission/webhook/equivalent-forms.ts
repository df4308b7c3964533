/**
 * Writes of custom resources as those see them who asked for another version (`matchPolicy:
 * Equivalent`), where a conversion webhook makes the versions: it is asked before they are, and
 * again for what they made.
 */
import { objectAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { internalError, type Status } from '@megaplane/machinery/status';
import { formConverted } from '../../apiextensions/schema/custom-objects.ts';
import type { Served } from '../../storage/served.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { Verdict } from '../admission-plugin.ts';

type Outcome =
  | { readonly ok: true; readonly object: JsonObject }
  | { readonly ok: false; readonly status: Status };

interface Form {
  /** What the object was when it was converted: the write may change it in place. */
  readonly text: string;
  readonly object: JsonObject;
}

/** By object of a write, then by version. */
const forms = new WeakMap<JsonObject, Map<Served, Form>>();

/** Whether only a webhook can tell how the write looks in the version of `target`. */
export function needsConversion({ served, subresource }: Admitted, target: Served): boolean {
  if (served === target || target.custom?.kind.facts.isConverting !== true) return false;
  const own = served.resource.subresources.get(subresource);
  return own === undefined || own.kind === served.resource.kind;
}

/** An object of a write in the version of `target`, once it was prepared. */
export function convertedForm(object: JsonObject, target: Served): JsonObject | undefined {
  return forms.get(object)?.get(target)?.object;
}

/** Forgets the forms: plugins that come later change the object, and do not ask for them. */
export function dropForms({ object, previous }: Admitted): void {
  for (const one of [object, previous]) if (one !== null) forms.delete(one);
}

/** Converts what is not converted yet, and calls `then` once; a Status says why that failed. */
export function prepareForms(
  write: Admitted,
  target: Served,
  then: (failure: Status | null) => void,
): void {
  const waiting = [write.object, write.previous].filter((one) => one !== null);
  const next = (): void => {
    const object = waiting.shift();
    if (object === undefined) {
      then(null);
      return;
    }
    const text = JSON.stringify(object);
    let own = forms.get(object);
    if (own === undefined) forms.set(object, (own = new Map()));
    if (own.get(target)?.text === text) {
      next();
      return;
    }
    convert(write, object, target, (outcome) => {
      if (!outcome.ok) {
        then(outcome.status);
        return;
      }
      own.set(target, { text, object: outcome.object });
      next();
    });
  };
  next();
}

/** The verdict of those who look at the write in several versions, once all are there. */
export function prepared(
  write: Admitted,
  seen: readonly { readonly target: Served }[],
  judge: () => Verdict,
): Verdict {
  const targets = new Set(seen.map(({ target }) => target));
  const waiting = [...targets].filter((target) => needsConversion(write, target));
  if (waiting.length === 0) return judge();
  return (then) => {
    const next = (failure: Status | null): void => {
      const target = waiting.shift();
      if (failure !== null) then(failure);
      else if (target !== undefined) prepareForms(write, target, next);
      else {
        const verdict = judge();
        if (typeof verdict === 'function') verdict(then);
        else then(verdict);
      }
    };
    next(null);
  };
}

/** What was made of the object in the version of `target`, in the version of the write again. */
export function convertBack(
  write: Admitted,
  object: JsonObject,
  then: (outcome: Outcome) => void,
): void {
  // who owns which fields stays as it was found out before
  const { managedFields: _, ...metadata } = objectAt(object, 'metadata') ?? {};
  convert(write, { ...object, metadata }, write.served, then);
}

function convert(
  { world }: Admitted,
  object: JsonObject,
  target: Served,
  then: (outcome: Outcome) => void,
): void {
  world.kinds.convertTo(target, object, (made) => {
    const { custom } = target;
    const isMade = custom !== null && typeof made !== 'string';
    const formed = isMade ? formConverted(custom, custom.facts.name, made) : made;
    if (typeof formed === 'string') {
      then({ ok: false, status: internalError(`Internal error occurred: ${formed}`) });
    } else then({ ok: true, object: formed });
  });
}
