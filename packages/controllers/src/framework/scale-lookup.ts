/**
 * How many pods a controller of any kind wants: what its scale subresource says. For budgets whose
 * pods belong to custom resources.
 */
import type { Client } from '@megaplane/client/client';
import { listAt, numberAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { groupResourceOf, groupVersionOf, objectPath, type ApiResource } from './api-resources.ts';
import { podPath } from './uncached-pod.ts';

export type FoundScale =
  | { readonly kind: 'scale'; readonly replicas: number }
  /** It is gone, or another has its name. */
  | { readonly kind: 'none' }
  /** `isPassing`: the server could not say now. */
  | { readonly kind: 'failed'; readonly message: string; readonly isPassing: boolean };

/** No answer, too many requests, or a fault of the server. */
const isPassing = (code: number): boolean => code === 0 || code === 429 || code >= 500;

/** Asks for the controller that the pod of a key (`namespace/name`) names now. */
export async function lookUpScale(
  client: Client,
  resources: readonly ApiResource[],
  podKey: string,
  uid: string,
): Promise<FoundScale> {
  const pod = await client.request({ method: 'GET', path: podPath(podKey) });
  if (!pod.ok) {
    if (pod.code === 404) return { kind: 'none' };
    return failedBy(pod.code, pod.status.message);
  }
  const owner = listAt(pod.object, 'metadata', 'ownerReferences').find(
    (one) => valueAt(one, 'controller') === true && stringAt(one, 'uid') === uid,
  );
  if (owner === undefined) return { kind: 'none' };
  const [version, kind] = [stringAt(owner, 'apiVersion'), stringAt(owner, 'kind')];
  const found = resources.find((one) => groupVersionOf(one) === version && one.kind === kind);
  if (found === undefined) {
    const what = `kind ${JSON.stringify(kind)} in version ${JSON.stringify(version)}`;
    return { kind: 'failed', message: `no matches for ${what}`, isPassing: false };
  }
  const namespace = podKey.slice(0, podKey.indexOf('/'));
  const path = objectPath(found, namespace, stringAt(owner, 'name'));
  const scale = await client.request({ method: 'GET', path: `${path}/scale` });
  if (scale.ok) {
    if (stringAt(scale.object, 'metadata', 'uid') !== uid) return { kind: 'none' };
    return { kind: 'scale', replicas: numberAt(scale.object, 'spec', 'replicas') };
  }
  if (scale.code !== 404) {
    return failedBy(scale.code, scale.status.message);
  }
  const self = await client.request({ method: 'GET', path });
  if (!self.ok) return { kind: 'none' };
  const message = `${groupResourceOf(found)} does not implement the scale subresource`;
  return { kind: 'failed', message, isPassing: false };
}

function failedBy(code: number, message = 'no answer'): FoundScale {
  return { kind: 'failed', message, isPassing: isPassing(code) };
}
