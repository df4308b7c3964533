/** One object as YAML, and its change by server-side apply. */
import type { Client } from '@megaplane/client/client';
import { CONTENT } from '@megaplane/client/client';
import { withQuery } from '@megaplane/client/list-query';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import type { ObjectText } from '@megaplane/dashboard/protocol';
import { parse, stringify } from 'yaml';
import { namedBy } from './kube-paths.ts';

const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
export const FIELD_MANAGER = 'megaplane-page';
/** The server sets these, and whoever applies them would own what it cannot change. */
const OF_SERVER = ['uid', 'creationTimestamp', 'generation', 'managedFields', 'selfLink'] as const;

/** An answer to the page: what was asked for, or a text for people with its HTTP status. */
export type Answer<Value> = Value | { readonly error: string; readonly code: number };

/** Reads an object, and whether the user may change or delete it. */
export async function readObject(
  client: Client,
  path: string,
  isReadOnly: boolean,
): Promise<Answer<ObjectText>> {
  const answer = await client.request({ method: 'GET', path, accept: CONTENT.json });
  if (!answer.ok) return { error: answer.status.message ?? '', code: answer.code || 502 };
  const { metadata, ...rest } = answer.object;
  const { managedFields = null, ...meta } = isObject(metadata) ? metadata : {};
  const { apiVersion, kind, ...others } = rest;
  const [mayChange, mayDelete] = isReadOnly
    ? [false, false]
    : await Promise.all([isAllowed(client, path, 'patch'), isAllowed(client, path, 'delete')]);
  return {
    text: stringify({ apiVersion, kind, metadata: meta, ...others }, { lineWidth: 0 }),
    managedFields: managedFields === null ? '' : stringify(managedFields, { lineWidth: 0 }),
    mayChange,
    mayDelete,
  };
}

async function isAllowed(client: Client, path: string, verb: string): Promise<boolean> {
  const { group, version, namespace, resource, name } = namedBy(path);
  const resourceAttributes = { group, version, namespace, resource, name, verb };
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes },
  };
  const answer = await client.request({ method: 'POST', path: REVIEWS, body });
  const status = answer.ok ? answer.object['status'] : undefined;
  return isObject(status) && status['allowed'] === true;
}

/** Applies a text. `isForced` takes fields from those who own them. */
export async function applyObject(
  client: Client,
  path: string,
  text: string,
  isForced: boolean,
): Promise<Answer<{ readonly resourceVersion: string }>> {
  let found: unknown;
  try {
    found = parse(text, { maxAliasCount: 0 });
  } catch (error) {
    return { error: `this is no YAML: ${(error as Error).message.split('\n')[0]}`, code: 400 };
  }
  if (!isObject(found as JsonObject)) return { error: 'one object is needed', code: 400 };
  const query = { fieldManager: FIELD_MANAGER, force: isForced ? 'true' : undefined };
  const answer = await client.request({
    method: 'PATCH',
    path: withQuery(path, query),
    contentType: CONTENT.applyPatch,
    body: withoutServers(found as JsonObject),
  });
  if (!answer.ok) return { error: answer.status.message ?? '', code: answer.code || 502 };
  return { resourceVersion: stringAt(answer.object, 'metadata', 'resourceVersion') };
}

function withoutServers(whole: JsonObject): JsonObject {
  const object = Object.fromEntries(Object.entries(whole).filter(([name]) => name !== 'status'));
  const { metadata } = object;
  if (!isObject(metadata)) return object;
  const kept = Object.entries(metadata).filter(
    ([name]) => !OF_SERVER.some((known) => known === name),
  );
  return { ...object, metadata: Object.fromEntries(kept) };
}

/** Deletes an object. */
export async function deleteObject(
  client: Client,
  path: string,
): Promise<Answer<{ readonly isDeleted: true }>> {
  const answer = await client.request({ method: 'DELETE', path });
  if (!answer.ok) return { error: answer.status.message ?? '', code: answer.code || 502 };
  return { isDeleted: true };
}
