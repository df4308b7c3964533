/**
 * Empties released volumes of the policy Recycle, by upstream's pod for it: one that deletes what
 * it finds, wherever the scheduler puts it. Its state is all that is kept: after a restart the
 * recycling goes on where it stands.
 */
import type { Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';

const PODS = '/api/v1/namespaces/default/pods';
const IMAGE = 'registry.k8s.io/build-image/debian-base:bookworm-v1.0.6';
const SCRUB =
  'test -e /scrub && find /scrub -mindepth 1 -delete && test -z "$(ls -A /scrub)" || exit 1';
/** Sources that can be recycled. */
const SOURCES = ['nfs', 'hostPath'] as const;
const DEADLINE_SECONDS = 300;

/** `busy`: worth another look after a while. */
export type Recycling =
  | { readonly kind: 'impossible' | 'busy' | 'recycled' }
  | { readonly kind: 'failed'; readonly message: string };

/** One look at a volume that is to be recycled; starts what is not under way. */
export async function recycle(client: Client, volume: JsonObject): Promise<Recycling> {
  const source = SOURCES.find((one) => objectAt(volume, 'spec', one) !== undefined);
  if (source === undefined) return { kind: 'impossible' };
  const pod = podFor(volume, source);
  const path = `${PODS}/${stringAt(pod, 'metadata', 'name')}`;
  const found = await client.request({ method: 'GET', path });
  if (!found.ok) {
    if (found.code === 404) await client.request({ method: 'POST', path: PODS, body: pod });
    return { kind: 'busy' };
  }
  const isOurs = equals(
    objectAt({ one: listAt(found.object, 'spec', 'volumes')[0] ?? null }, 'one', source)?.['path'],
    objectAt(volume, 'spec', source)?.['path'],
  );
  const phase = stringAt(found.object, 'status', 'phase');
  const isOver = phase === 'Succeeded' || phase === 'Failed';
  if (isOurs && !isOver) return { kind: 'busy' };
  const gone = await client.request({ method: 'DELETE', path });
  if (!isOurs || (!gone.ok && gone.code !== 404)) return { kind: 'busy' };
  if (phase === 'Succeeded') return { kind: 'recycled' };
  const why =
    stringAt(found.object, 'status', 'message') || 'pod failed, pod.Status.Message unknown';
  return { kind: 'failed', message: `Recycle failed: failed to recycle volume: ${why}` };
}

function podFor(volume: JsonObject, source: (typeof SOURCES)[number]): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `recycler-for-${stringAt(volume, 'metadata', 'name')}`,
      namespace: 'default',
    },
    spec: {
      activeDeadlineSeconds: DEADLINE_SECONDS,
      restartPolicy: 'Never',
      volumes: [{ name: 'vol', [source]: objectAt(volume, 'spec', source) ?? {} }],
      containers: [
        {
          name: 'pv-recycler',
          image: IMAGE,
          command: ['/bin/sh'],
          args: ['-c', SCRUB],
          volumeMounts: [{ name: 'vol', mountPath: '/scrub' }],
        },
      ],
    },
  };
}
