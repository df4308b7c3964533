/**
 * Subresources and virtual kinds that are code: bindings, evictions, scales, tokens, reviews. Each
 * is registered under what it serves and the verb.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Status } from '@megaplane/machinery/status';
import type { WriteOptions } from '../request/options/write-options.ts';
import type { WriteContext } from './writing.ts';

/** A request to a subresource; `body` is decoded for create and update, else empty. */
export interface SubresourceContext extends WriteContext {
  readonly options: WriteOptions;
  readonly body: JsonObject;
}

export type SubresourceHandler = (context: SubresourceContext) => void;

/** Why what is created is wrong in itself: told before those are asked who only look. */
export type Judge = (context: SubresourceContext) => Status | null;

const judges = new Map<string, Judge>();

/** Registers who judges what is created at a path. */
export function defineJudge(path: string, judge: Judge): void {
  judges.set(path, judge);
}

export function findJudge(path: string): Judge | undefined {
  return judges.get(path);
}

/** What admission is shown of something that is made under an object and not stored. */
export interface ShownForms {
  /** As it is decoded, with defaults. */
  readonly decoded: (body: JsonObject) => JsonObject;
  /** As those see it who only look: with what the server adds. */
  readonly completed: (body: JsonObject, context: WriteContext) => JsonObject;
}

const forms = new Map<string, ShownForms>();

/** Registers how what is created at a path is shown to admission, where that is not as it came. */
export function defineForms(path: string, shown: ShownForms): void {
  forms.set(path, shown);
}

export function findForms(path: string): ShownForms | undefined {
  return forms.get(path);
}

/** By path, then by verb. */
const handlers = new Map<string, Map<string, SubresourceHandler>>();

/**
 * Registers code for a subresource (`pods/binding`) or, for kinds that are not stored, for the
 * kind itself (`selfsubjectreviews.authentication.k8s.io`).
 */
export function defineSubresource(path: string, verb: string, handler: SubresourceHandler): void {
  let byVerb = handlers.get(path);
  if (byVerb === undefined) handlers.set(path, (byVerb = new Map()));
  byVerb.set(verb, handler);
}

export function findSubresource(path: string, verb: string): SubresourceHandler | undefined {
  return handlers.get(path)?.get(verb);
}
