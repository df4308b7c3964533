// shell: the connection of `megaplane fleet pods`
import { Exposition } from '@megaplane/client/exposition';
import { serveHttp } from '@megaplane/client/http-endpoint';
import { createKubeClient } from '@megaplane/client/kube-client';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { classPenalties } from './class-penalties.ts';
import { PodsController } from './pods-controller.ts';

export interface RunPodsOptions {
  readonly kubeconfig: string;
  readonly context?: string;
  /** What the file of penalties says: class -> amounts. */
  readonly penalties?: JsonValue;
  /** `host:port` of metrics and health; none without it. */
  readonly metricsAddress?: string;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

/** Starts the controller; it works until `stop`. Throws where the penalties are wrong. */
export async function runPods(
  options: RunPodsOptions,
): Promise<{ readonly listens: string; readonly metricsUrl: string; stop(): Promise<void> }> {
  const classes = classPenalties(options.penalties);
  const { kubeconfig, context } = options;
  const client = await createKubeClient({
    kubeconfig,
    ...(context === undefined ? {} : { context }),
    userAgent: 'megaplane-fleet-pods',
  });
  const controller = new PodsController({ client, classes, log: options.log });
  const { metricsAddress } = options;
  const pages =
    metricsAddress === undefined
      ? null
      : await serveHttp(metricsAddress, ({ path }) => {
          if (path === '/metrics') {
            const contentType = 'text/plain; version=0.0.4';
            return { contentType, text: podsMetrics(controller) };
          }
          return path === '/healthz' ? { contentType: 'text/plain', text: 'ok' } : null;
        });
  controller.start();
  const metrics = pages === null ? '' : `, metrics on ${pages.url}`;
  return {
    listens: `pods of ${client.server}${metrics}`,
    metricsUrl: pages?.url ?? '',
    stop: async () => {
      controller.stop();
      client.close();
      await pages?.close();
    },
  };
}

/** Under the reference's name, which is historical. */
function podsMetrics({ metrics }: PodsController): string {
  const page = new Exposition();
  const name = 'bigfleet_unschedulable_pod_controller_reconciles_total';
  page.family(name, 'counter', 'Requests that were made or removed, and failures.');
  page.value({ outcome: 'created' }, metrics.made);
  page.value({ outcome: 'removed' }, metrics.removed);
  page.value({ outcome: 'error' }, metrics.failed);
  return page.toString();
}
