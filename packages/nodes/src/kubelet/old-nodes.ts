/**
 * Nodes that a simulator made before there was a mark for them. `up` plays what has the mark only,
 * so a cluster of an older version gets it here: on nodes that say of themselves that they are
 * simulated, and on no others.
 */
import { CONTENT, type Client } from '@megaplane/client/client';
import { readPages } from '@megaplane/client/pager';
import { stringAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isPassing, retry } from '../client/retry.ts';
import { KUBELET_VERSION, SIMULATED_LABEL } from './node-object.ts';

const PATH = '/api/v1/nodes';
/** Patches in flight at once. */
const UNDER_WAY_MAX = 64;
/** What the versions of all our simulated kubelets end with. */
const OWN = KUBELET_VERSION.slice(KUBELET_VERSION.indexOf('-'));

export interface OldNodesOptions {
  readonly client: Client;
  readonly isStopped: () => boolean;
  readonly onTrouble: (message: string) => void;
}

/** Resolves when all have the mark, or the end has come; a server in trouble is waited for. */
export function markOldNodes({ client, isStopped, onTrouble }: OldNodesOptions): Promise<void> {
  return retry({
    ...{ client, isStopped, onTrouble },
    attempt: async () => {
      const names: string[] = [];
      const result = await readPages({
        ...{ client, path: PATH, labelSelector: `!${SIMULATED_LABEL}` },
        onItem: (bytes, start, end) => {
          const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
          const node = parseJson(text.toString('utf8')) as JsonObject;
          if (isOwn(node)) names.push(stringAt(node, 'metadata', 'name'));
        },
      });
      if (!result.ok) return `cannot read ${PATH}: ${result.status.message}`;
      for (let at = 0; at < names.length && !isStopped(); at += UNDER_WAY_MAX) {
        const some = names.slice(at, at + UNDER_WAY_MAX);
        const faults = await Promise.all(some.map((name) => mark(client, name)));
        const fault = faults.find((one) => one !== '');
        if (fault !== undefined) return fault;
      }
      return '';
    },
  });
}

function isOwn(node: JsonObject): boolean {
  const info = (field: string): string => stringAt(node, 'status', 'nodeInfo', field);
  return info('kubeletVersion').endsWith(OWN) && info('bootID') === '';
}

/** '' when the node has the mark, or is gone. */
async function mark(client: Client, name: string): Promise<string> {
  const answer = await client.request({
    method: 'PATCH',
    path: `${PATH}/${name}`,
    contentType: CONTENT.mergePatch,
    body: { metadata: { labels: { [SIMULATED_LABEL]: 'true' } } },
  });
  // a refusal stays one: those nodes are not played, as those of others
  return answer.ok || !isPassing(answer.code) ? '' : (answer.status.message ?? 'no answer');
}
