/**
 * Objects in the versions that owners of their fields wrote in, where only a webhook can bring them
 * there. Who owns what is found out in one go, which cannot wait: it runs with what is known, asks
 * for what it lacks, and runs again when that has come.
 */
import { faultsText, typedFaults } from '@megaplane/machinery/apply/typed-faults';
import { objectAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Served } from '../storage/served.ts';
import type { World } from '../lister/world.ts';
import type { Call } from '../request/call.ts';
import type { RequestScope } from '../lister/request-scope.ts';

/** Conversions of one request, at most: several for each version that an owner wrote in. */
const CONVERSIONS_MAX = 200;

/** What the last run lacked first. */
interface Wish {
  readonly key: string;
  readonly object: JsonObject;
  readonly target: Served;
}

/** The conversions of one request. */
export class VersionConversions {
  /** By version and object; a text says why there is none. */
  readonly #known = new Map<string, JsonObject | string>();
  #wish: Wish | null = null;
  #fault: string | null = null;

  /** Why the last run has no result. */
  get fault(): string | null {
    return this.#fault;
  }

  /** A run begins. */
  begin(): this {
    this.#wish = null;
    this.#fault = null;
    return this;
  }

  /** There is no such version any more: nobody can say what the object is there. */
  refuse(apiVersion: string): void {
    this.#fault ??= `request to convert CR to an invalid group/version: ${apiVersion}`;
  }

  /** The object in the version of `target`; anything where the run has to be repeated or failed. */
  convert(value: JsonObject, target: Served): JsonObject {
    const { apiVersion } = target.resource;
    if (value['apiVersion'] === apiVersion) return value;
    // what comes after a wish is made of a guess, and says nothing
    if (this.#wish !== null || this.#fault !== null) return { ...value, apiVersion };
    const { managedFields: _, ...metadata } = objectAt(value, 'metadata') ?? {};
    const object = { ...value, metadata };
    const key = `${apiVersion} ${JSON.stringify(object)}`;
    const known = this.#known.get(key);
    if (known === undefined) this.#wish = { key, object, target };
    else if (typeof known === 'string') this.#fault = known;
    else return known;
    return { ...object, apiVersion };
  }

  /** Fetches what the last run lacked and calls `again`; false where it lacked nothing. */
  fetch(world: World, again: () => void): boolean {
    const wish = this.#wish;
    if (wish === null) return false;
    const { key, object, target } = wish;
    if (this.#known.size >= CONVERSIONS_MAX) {
      this.#known.set(key, `more than ${CONVERSIONS_MAX} conversions`);
      again();
      return true;
    }
    world.kinds.convertTo(target, object, (made) => {
      this.#known.set(key, typeof made === 'string' ? made : typed(made, target));
      again();
    });
    return true;
  }
}

function typed(made: JsonObject, { custom }: Served): JsonObject | string {
  if (custom === null) return made;
  const faults = typedFaults(custom.schemas.schemaOf(custom).applySchema(), made, false);
  return faults.length > 0 ? faultsText(faults) : made;
}

const conversions = new WeakMap<Call, VersionConversions>();

/** What a webhook makes of a request's object in versions that owners of its fields wrote in. */
export function conversionsOf(call: Call): VersionConversions {
  let found = conversions.get(call);
  if (found === undefined) conversions.set(call, (found = new VersionConversions()));
  return found;
}

/** Whether only a webhook can say what the object is in other versions. */
function isConverting({ served }: RequestScope): boolean {
  return served.custom?.kind.facts.isConverting === true;
}

/** Whether owners of fields have to be found out again, by `again`, when a webhook has answered. */
export function awaitConversions(context: RequestScope, again: () => void): boolean {
  const { call, world } = context;
  return isConverting(context) && conversionsOf(call).fetch(world, again);
}

/** Why the owners of fields could not be found out. */
export function conversionFault(context: RequestScope): string | null {
  return context.served.custom === null ? null : conversionsOf(context.call).fault;
}
