// shell: files, clocks and the lease of the process
/** `megaplane controllers`: starts the controllers against any Kubernetes API server. */
import { ownMember } from '@megaplane/base/members';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { systemRandom } from '@megaplane/base/entropy';
import { systemClock } from '@megaplane/base/system-clock';
import type { Client } from '@megaplane/client/client';
import { createKubeClient, type KubeClient } from '@megaplane/client/kube-client';
import { createLeaderElection } from '@megaplane/client/leader-election';
import { readAuthority, type Authority } from '../certificates/signing.ts';
import { SIGNERS } from '../certificates/signers.ts';
import { LeadingClient } from '../framework/leading-client.ts';
import { tokenSigner, type SignToken } from '../serviceaccount/legacy-token.ts';
import { Manager } from './manager.ts';
import { answerPage, serveHttp } from '@megaplane/client/http-endpoint';
import { serveSecurely } from '@megaplane/client/secure-endpoint';
import { managerConfigz } from './manager-configz.ts';
import { ManagerPages } from './manager-pages.ts';
import { chosenControllers } from '../framework/options.ts';
import type { ControllersOptions, ControllersService, KeyPairFiles } from '../framework/options.ts';

const CONNECTIONS = 2;
/** Name of the lease, unless a flag says another. */
const LEASE = 'kube-controller-manager';

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
  const leadership: Leadership = { isHeld: false, mayWrite: () => true };
  const manager = new Manager({
    client: new LeadingClient(client, () => leadership.mayWrite()),
    chosen,
    options,
    rootCa,
    authorities: authoritiesOf(options),
    signToken: signTokenOf(options),
    random: systemRandom(),
    monotonicMs: () => systemClock.monotonicMs(),
    log: options.log,
  });
  const pages = pagesOf(options, client, manager, leadership);
  const endpoint = await serveHttp(options.metricsAddress ?? '127.0.0.1:0', (request) =>
    pages.pageAt(request),
  );
  const { secure } = options;
  const secureEndpoint =
    secure === undefined
      ? undefined
      : await serveSecurely(secure, client, (request, response) =>
          answerPage(request, response, (asked) => pages.pageAt(asked)),
        );
  const { promise: failure, resolve: fail } = Promise.withResolvers<Error>();
  const endElection = startElection(options, client, manager, { leadership, fail });
  return {
    listens: [`${client.server}; metrics ${endpoint.url}/metrics`, secureEndpoint?.url]
      .filter((one) => one !== undefined)
      .join(', '),
    failure,
    stop: async () => {
      manager.stop();
      await endElection();
      client.close();
      await endpoint.close();
      await secureEndpoint?.close();
    },
  };
}

interface Leadership {
  isHeld: boolean;
  /** False from the end of the lease on, also where nobody was told of it yet. */
  mayWrite: () => boolean;
}

function pagesOf(
  options: ControllersOptions,
  client: KubeClient,
  manager: Manager,
  leadership: Leadership,
): ManagerPages {
  const isElected = options.leaderElect !== false;
  const host = client.server.replace(/^[a-z]+:\/\//, '').replace(/\/.*$/, '');
  return new ManagerPages({
    flags: options.flags ?? new Map(),
    startedMs: systemClock.nowMs() - process.uptime() * 1000,
    runtime: `node ${process.version}`,
    nowMs: () => systemClock.nowMs(),
    metrics: () =>
      leadershipText(options, leadership) +
      manager.metricsText() +
      client.metrics.requests.text(host),
    configz: () => JSON.stringify(managerConfigz(options)),
    atWork: () => (!isElected || leadership.isHeld ? manager.atWork : []),
    isElected,
    graph: (uids) => manager.garbage?.dump(uids),
  });
}

/** Upstream's metric of elections; '' where there is none. */
function leadershipText(options: ControllersOptions, { isHeld }: Leadership): string {
  if (options.leaderElect === false) return '';
  const metric = 'leader_election_master_status';
  const name = options.election?.name ?? LEASE;
  return `# TYPE ${metric} gauge\n${metric}{name=${JSON.stringify(name)}} ${isHeld ? 1 : 0}\n`;
}

/** Returns what gives the lease back. */
function startElection(
  options: ControllersOptions,
  client: Client,
  manager: Manager,
  { leadership, fail }: { readonly leadership: Leadership; readonly fail: (error: Error) => void },
): () => Promise<void> {
  if (options.leaderElect === false) {
    manager.start();
    return () => Promise.resolve();
  }
  let isStopping = false;
  const { name = LEASE, namespace = 'kube-system' } = options.election ?? {};
  const election = createLeaderElection({
    ...options.election,
    client,
    namespace,
    name,
    identity: `${hostname()}_${randomUUID()}`,
    onStartedLeading: () => {
      leadership.isHeld = true;
      manager.start();
    },
    onStoppedLeading: () => {
      leadership.isHeld = false;
      manager.stop();
      if (!isStopping) fail(new Error(`the lease ${namespace}/${name} was not renewed in time`));
    },
    onNewLeader: (identity) => options.log('info', `controllers are led by ${identity}`),
  });
  leadership.mayWrite = () => election.isLeader;
  election.start();
  return () => {
    isStopping = true;
    return election.stop();
  };
}

/** Who signs, by signer: files for all of them, or for each its own. */
function authoritiesOf({ clusterSigning = {} }: ControllersOptions): Map<string, Authority> {
  const found = new Map<string, Authority>();
  const { all } = clusterSigning;
  for (const [purpose, signer] of Object.entries(SIGNERS)) {
    const files = ownMember(clusterSigning, purpose as keyof typeof SIGNERS) ?? all;
    if (files !== undefined) found.set(signer, authorityOf(files));
  }
  return found;
}

function authorityOf({ certificateFile, keyFile }: KeyPairFiles): Authority {
  try {
    return readAuthority(readFileSync(certificateFile, 'utf8'), readFileSync(keyFile, 'utf8'));
  } catch (error) {
    const why = `cannot use ${certificateFile} with ${keyFile}: ${(error as Error).message}`;
    throw new Error(`--cluster-signing-cert-file: ${why}`, { cause: error });
  }
}

function signTokenOf({ tokenKeyFile: file }: ControllersOptions): SignToken | undefined {
  if (file === undefined) return undefined;
  try {
    return tokenSigner(readFileSync(file, 'utf8'));
  } catch (error) {
    const why = (error as Error).message;
    const text = `--service-account-private-key-file: cannot use ${file}: ${why}`;
    throw new Error(text, { cause: error });
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
