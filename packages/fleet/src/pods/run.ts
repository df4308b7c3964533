// shell: the connection of `megaplane fleet pods`
import { createKubeClient } from '@megaplane/client/kube-client';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { classPenalties } from './class-penalties.ts';
import { PodsController } from './pods-controller.ts';

export interface RunPodsOptions {
  readonly kubeconfig: string;
  readonly context?: string;
  /** What the file of penalties says: class -> amounts. */
  readonly penalties?: JsonValue;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

/** Starts the controller; it works until `stop`. Throws where the penalties are wrong. */
export async function runPods(
  options: RunPodsOptions,
): Promise<{ readonly listens: string; stop(): Promise<void> }> {
  const classes = classPenalties(options.penalties);
  const { kubeconfig, context } = options;
  const client = await createKubeClient({
    kubeconfig,
    ...(context === undefined ? {} : { context }),
    userAgent: 'megaplane-fleet-pods',
  });
  const controller = new PodsController({ client, classes, log: options.log });
  controller.start();
  return {
    listens: `pods of ${client.server}`,
    stop: () => {
      controller.stop();
      client.close();
      return Promise.resolve();
    },
  };
}
