/** What the operator asks of its cluster's API server, as promises. */
import type { Client, ClientResponse, Method } from '@megaplane/client/client';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';

export interface ClusterApi {
  request(
    method: Method,
    path: string,
    body?: JsonValue,
    contentType?: string,
  ): Promise<ClientResponse>;
}

export const JSON_PATCH = 'application/json-patch+json';
export const MERGE_PATCH = 'application/merge-patch+json';

export function clusterApi(client: Client): ClusterApi {
  return {
    request: (method, path, body, contentType = 'application/json') =>
      client.request({
        ...{ method, path, contentType },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
  };
}

/** The object of an answer; undefined for 404. Throws an `Error` for any other failure. */
export function foundIn(answer: ClientResponse): JsonObject | undefined {
  if (answer.ok) return answer.object;
  if (answer.code === 404) return undefined;
  throw new Error(answer.status.message ?? `HTTP ${answer.code}`);
}
