// shell: files, clocks and the lease of the process
/** `megaplane controllers`: starts the controllers against any Kubernetes API server. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { systemRandom } from '@megaplane/base/entropy';
import { systemClock } from '@megaplane/base/system-clock';
import type { Client } from '@megaplane/client/client';
import { createKubeClient } from '@megaplane/client/kube-client';
import { createLeaderElection } from '@megaplane/client/leader-election';
import { readAuthority, type Authority } from './certificates/signing.ts';
import { Manager } from './manager.ts';
import { serveMetrics } from '@megaplane/client/metrics-endpoint';
import { chosenControllers, type ControllersOptions, type ControllersService } from './options.ts';

const CONNECTIONS = 2;

/** Resolves when it listens; with leader election the work begins when the lease is held. */
export async function runControllers(options: ControllersOptions): Promise<ControllersService> {
  const chosen = chosenControllers(options.controllers ?? ['*']);
  if (typeof chosen === 'string') throw new Error(chosen);
  const client = await createKubeClient({
    kubeconfig: options.kubeconfig,
    limits: { connections: options.connections ?? CONNECTIONS },
    userAgent: 'kube-controller-manager/megaplane',
  });
  const rootCa = rootCaOf(options, client.endpoint.tls?.ca ?? '');
  const manager = new Manager({
    client,
    chosen,
    options,
    rootCa,
    authority: authorityOf(options),
    random: systemRandom(),
    monotonicMs: () => systemClock.monotonicMs(),
    log: options.log,
  });
  const endpoint = await serveMetrics(options.metricsAddress ?? '127.0.0.1:0', () =>
    manager.metricsText(),
  );
  const { promise: failure, resolve: fail } = Promise.withResolvers<Error>();
  const endElection = startElection(options, client, manager, fail);
  return {
    listens: `${client.server}; metrics ${endpoint.url}`,
    failure,
    stop: async () => {
      manager.stop();
      await endElection();
      client.close();
      await endpoint.close();
    },
  };
}

/** Returns what gives the lease back. */
function startElection(
  options: ControllersOptions,
  client: Client,
  manager: Manager,
  fail: (error: Error) => void,
): () => Promise<void> {
  if (options.leaderElect === false) {
    manager.start();
    return () => Promise.resolve();
  }
  let isStopping = false;
  const election = createLeaderElection({
    client,
    namespace: 'kube-system',
    name: 'kube-controller-manager',
    identity: `${hostname()}_${randomUUID()}`,
    onStartedLeading: () => manager.start(),
    onStoppedLeading: () => {
      manager.stop();
      if (!isStopping)
        fail(new Error('the lease kube-system/kube-controller-manager was not renewed in time'));
    },
    onNewLeader: (identity) => options.log('info', `controllers are led by ${identity}`),
  });
  election.start();
  return () => {
    isStopping = true;
    return election.stop();
  };
}

function authorityOf(options: ControllersOptions): Authority | undefined {
  const { clusterSigningCertFile: certificate, clusterSigningKeyFile: key } = options;
  if (certificate === undefined && key === undefined) return undefined;
  if (certificate === undefined || key === undefined) {
    throw new Error('--cluster-signing-cert-file and --cluster-signing-key-file go together');
  }
  try {
    return readAuthority(readFileSync(certificate, 'utf8'), readFileSync(key, 'utf8'));
  } catch (error) {
    const why = (error as Error).message;
    throw new Error(`--cluster-signing-cert-file: cannot use ${certificate} with ${key}: ${why}`, {
      cause: error,
    });
  }
}

function rootCaOf(options: ControllersOptions, ofKubeconfig: string): string {
  if (options.rootCaFile === undefined) return ofKubeconfig;
  try {
    return readFileSync(options.rootCaFile, 'utf8');
  } catch (error) {
    const why = (error as Error).message;
    throw new Error(`--root-ca-file: cannot read ${options.rootCaFile}: ${why}`, { cause: error });
  }
}
