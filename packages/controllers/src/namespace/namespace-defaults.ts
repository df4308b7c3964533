/** Objects that every namespace has: the service account `default` and the root CA. */
import type { Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { equals, objectAt, stringAt } from '@megaplane/machinery/json';
import type { WorkResult } from '../framework/workers.ts';

export const ROOT_CA_NAME = 'kube-root-ca.crt';
const DESCRIPTION = 'kubernetes.io/description';
const ROOT_CA_DESCRIPTION =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal ' +
  'endpoints such as the internal service IP or kubernetes.default.svc. No other usage is ' +
  'guaranteed across distributions of Kubernetes clusters.';

/** One object that is made in every namespace and made again when it goes. */
export interface NamespaceDefault {
  /** `serviceaccounts`. */
  readonly resource: string;
  readonly name: string;
  /** What the metrics call the queue of it. */
  readonly queue: string;
  readonly body: JsonObject;
  /** What must be so in an object that exists, and the object with it put right. */
  readonly isRight: (object: JsonObject) => boolean;
  readonly repair: (object: JsonObject) => JsonObject;
}

export function defaultServiceAccount(): NamespaceDefault {
  const name = 'default';
  return {
    resource: 'serviceaccounts',
    name,
    queue: 'serviceaccount',
    body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } },
    isRight: () => true,
    repair: (object) => object,
  };
}

export function rootCaConfigMap(pem: string): NamespaceDefault {
  const data = { 'ca.crt': pem };
  const annotations = { [DESCRIPTION]: ROOT_CA_DESCRIPTION };
  const name = ROOT_CA_NAME;
  return {
    resource: 'configmaps',
    name,
    queue: 'root_ca_cert_publisher',
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, annotations }, data },
    isRight: (object) =>
      equals(objectAt(object, 'data') ?? {}, data) &&
      stringAt(object, 'metadata', 'annotations', DESCRIPTION) !== '',
    repair: (object) => {
      const metadata = objectAt(object, 'metadata') ?? {};
      const all = { ...objectAt(metadata, 'annotations'), ...annotations };
      const kind = { apiVersion: 'v1', kind: 'ConfigMap' };
      return { ...object, ...kind, metadata: { ...metadata, annotations: all }, data };
    },
  };
}

/** Makes sure of one default in one namespace. */
export async function ensureDefault(
  client: Client,
  namespace: string,
  one: NamespaceDefault,
): Promise<WorkResult> {
  const collection = `/api/v1/namespaces/${namespace}/${one.resource}`;
  const path = `${collection}/${one.name}`;
  const found = await client.request({ method: 'GET', path });
  if (found.ok) {
    if (one.isRight(found.object)) return 'done';
    const body = one.repair(found.object);
    const mended = await client.request({ method: 'PUT', path, body });
    return mended.ok || mended.code === 404 ? 'done' : 'retry';
  }
  if (found.code !== 404) return 'retry';
  const made = await client.request({ method: 'POST', path: collection, body: one.body });
  if (made.ok || made.code === 409) return 'done';
  // The namespace is gone or going: nothing is wanted there any more.
  return made.code === 404 || made.code === 403 ? 'done' : 'retry';
}
