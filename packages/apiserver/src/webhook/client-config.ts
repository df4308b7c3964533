/** Where a webhook is, as its configuration says. */
import { numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';

const PORT = 443;

/** Where a webhook is. */
export interface ClientConfig {
  readonly url: string;
  readonly service: {
    readonly namespace: string;
    readonly name: string;
    readonly path: string;
    readonly port: number;
  } | null;
  /** PEM; '' takes the system's authorities. */
  readonly caBundle: string;
}

/** The `clientConfig` of a webhook. */
export function readClient(webhook: JsonObject): ClientConfig {
  const client = objectAt(webhook, 'clientConfig') ?? {};
  const service = objectAt(client, 'service');
  return {
    url: stringAt(client, 'url'),
    service:
      service === undefined
        ? null
        : {
            namespace: stringAt(service, 'namespace'),
            name: stringAt(service, 'name'),
            path: stringAt(service, 'path'),
            port: numberAt(service, 'port') || PORT,
          },
    caBundle: Buffer.from(stringAt(client, 'caBundle'), 'base64').toString('utf8'),
  };
}
