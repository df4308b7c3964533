/** Reads a cluster once, and reports on one of its pods. */
import type { Client } from '@megaplane/client/client';
import { Cluster } from '../framework/cluster.ts';
import { FEED_KINDS } from '../server/cluster-feeds.ts';
import type { KubeObject, PodObject } from '../api/objects.ts';
import { PodInfo } from '../framework/pod-info.ts';
import { DEFAULT_SCHEDULER_NAME, type Profile } from '../framework/runtime/profile.ts';
import { listAt, objectAt, textAt } from '../config/schema/members.ts';
import { gangReportOn } from './gang-report.ts';
import { reportOn, type PodReport } from './pod-report.ts';

const PAGE = 500;
const NOT_FOUND = 404;

/** All objects of a collection, page by page; none where the server does not have the kind. */
async function listAll(client: Client, kind: string, path: string): Promise<KubeObject[]> {
  const objects: KubeObject[] = [];
  let token = '';
  for (;;) {
    const more = token === '' ? '' : `&continue=${encodeURIComponent(token)}`;
    const answer = await client.request({ method: 'GET', path: `${path}?limit=${PAGE}${more}` });
    if (!answer.ok && answer.code === NOT_FOUND) return [];
    if (!answer.ok) throw new Error(`${path}: ${answer.status.message ?? answer.code}`);
    for (const item of listAt(answer.object, 'items')) {
      objects.push({ ...(item as unknown as KubeObject), kind });
    }
    token = textAt(objectAt(answer.object, 'metadata'), 'continue');
    if (token === '') return objects;
  }
}

/** Throws with a text for people if there is no such pod, or no profile for it. */
export async function reportOnLive(
  client: Client,
  namespace: string,
  name: string,
  profiles: readonly Profile[],
): Promise<PodReport> {
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  const found = await client.request({ method: 'GET', path });
  if (!found.ok) throw new Error(found.status.message ?? `${path}: ${found.code}`);
  const whole = found.object as unknown as PodObject;
  const isOn = whole.spec.nodeName ?? '';
  const { nodeName: _, ...spec } = whole.spec;
  const pod = new PodInfo({ ...whole, kind: 'Pod', spec });
  const schedulerName = spec.schedulerName ?? DEFAULT_SCHEDULER_NAME;
  const profile = profiles.find((one) => one.schedulerName === schedulerName);
  if (profile === undefined) {
    throw new Error(`pod ${pod.key} is for scheduler ${schedulerName}, which is not configured`);
  }
  const cluster = new Cluster(true);
  const kinds = [{ kind: 'Node', path: '/api/v1/nodes' }, ...FEED_KINDS];
  const lists = kinds.map(({ kind, path: collection }) => listAll(client, kind, collection));
  for (const objects of await Promise.all(lists)) for (const one of objects) cluster.apply(one);
  for (const one of await listAll(client, 'Pod', '/api/v1/pods')) {
    const isItself = one.metadata.name === name && one.metadata.namespace === namespace;
    if (!isItself) cluster.apply(one);
  }
  cluster.refresh();
  const waiting = [...cluster.pods].filter(({ nodeName }) => nodeName === '');
  const nominations = {
    on: (node: string) => waiting.filter((other) => other.pod.status?.nominatedNodeName === node),
  };
  const gang = gangReportOn(pod, isOn, cluster, profile, nominations);
  return reportOn(pod, isOn, cluster, profile, nominations, gang);
}
