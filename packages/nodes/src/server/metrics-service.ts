/**
 * Makes the metrics API of the kubelets' port part of the API server: an APIService, and a Service
 * without pods that leads to this machine. One that somebody else has made is left as it is.
 */
import { CONTENT, type Client } from '@megaplane/client/client';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';

const NAMESPACE = 'kube-system';
const NAME = 'megaplane-nodes-metrics';
const API_SERVICE = 'v1beta1.metrics.k8s.io';
const API_SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices';
const OWNER_LABEL = 'megaplane.dev/part';
/** A server that starts may not be ready to take them. */
const TRIES_MAX = 5;
const RETRY_MS = 2000;

/** Where the API server reaches the port. */
export interface MetricsEndpoint {
  readonly host: string;
  readonly port: number;
}

/** Never rejects: what is in the way is told by `log`, for clusters live without metrics, too. */
export async function publishMetricsApi(
  client: Client,
  endpoint: MetricsEndpoint,
  log: (message: string) => void,
): Promise<void> {
  let why = '';
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const found = await client.request({ method: 'GET', path: `${API_SERVICES}/${API_SERVICE}` });
    if (found.ok && stringAt(found.object, 'metadata', 'labels', OWNER_LABEL) === '') {
      log(`${API_SERVICE} is served by somebody else already`);
      return;
    }
    why =
      (await apply(client, serviceOf(endpoint))) || (await apply(client, apiServiceOf(endpoint)));
    if (why === '') return;
    await new Promise<void>((resolve) => client.timers.after(RETRY_MS, resolve));
  }
  log(`${API_SERVICE} cannot be registered, so kubectl top says nothing: ${why}`);
}

interface Applied {
  readonly path: string;
  readonly body: JsonObject;
}

async function apply(client: Client, { path, body }: Applied): Promise<string> {
  const query = '?fieldManager=megaplane-nodes&force=true';
  const answer = await client.request({
    method: 'PATCH',
    path: path + query,
    contentType: CONTENT.applyPatch,
    body: JSON.stringify(body),
  });
  return answer.ok ? '' : (answer.status.message ?? `${path}: ${answer.code}`);
}

function serviceOf({ host, port }: MetricsEndpoint): Applied {
  return {
    path: `/api/v1/namespaces/${NAMESPACE}/services/${NAME}`,
    body: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: NAME, namespace: NAMESPACE, labels: { [OWNER_LABEL]: 'nodes' } },
      spec: { type: 'ExternalName', externalName: host, ports: [{ name: 'https', port }] },
    },
  };
}

function apiServiceOf({ port }: MetricsEndpoint): Applied {
  return {
    path: `${API_SERVICES}/${API_SERVICE}`,
    body: {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: API_SERVICE, labels: { [OWNER_LABEL]: 'nodes' } },
      spec: {
        group: 'metrics.k8s.io',
        version: 'v1beta1',
        groupPriorityMinimum: 100,
        versionPriority: 100,
        // the port's certificate is signed by nobody
        insecureSkipTLSVerify: true,
        service: { namespace: NAMESPACE, name: NAME, port },
      },
    },
  };
}
