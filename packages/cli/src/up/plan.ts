/** Which children `up` starts, in which order, with which flags. */
import { join } from 'node:path';
import { UNIX_PATH_BYTES_MAX } from '@megaplane/base/limits';
import { SIMULATED_SELECTOR } from '@megaplane/nodes/node-object';
import { ENGINE_FLAGS } from '../service/huge-pages.ts';
import type { ChildPlan } from './children.ts';

export const COMPONENTS = ['apiserver', 'controllers', 'scheduler', 'nodes'] as const;
export type Component = (typeof COMPONENTS)[number];

/** How machines outside reach the API server of `up`, and what is made ready for them. */
export interface OutsideOptions {
  readonly bindAddress?: string;
  readonly advertiseAddress?: string;
  readonly serviceClusterIpRange?: string;
  readonly bootstrapTokens: boolean;
  /** Kubelets of other machines are expected: see `--join` in docs/up.md. */
  readonly isJoinable: boolean;
}

export interface UpOptions {
  readonly nodes: number;
  readonly pods: number;
  readonly dataDir: string;
  readonly ephemeral: boolean;
  readonly securePort: number;
  /** Of the API server, for connections. */
  readonly threads?: number;
  /** Who other machines meet, and how; absent: nobody comes from outside. */
  readonly outside?: OutsideOptions;
  /** Where all simulated kubelets listen; 0: a free one. */
  readonly kubeletPort: number;
  /** Where scheduler and controllers say how they are; 0: nowhere. */
  readonly schedulerPort?: number;
  /** Processes that look at nodes for the scheduler; 0 or absent: none. */
  readonly schedulerShards?: number;
  readonly controllersPort?: number;
  /** Where the page is served; 0 or absent: nowhere. */
  readonly pagePort?: number;
  readonly kubeconfig: string | undefined;
  readonly mergeKubeconfig: boolean;
  readonly listenClientUrls: string | undefined;
  readonly durability: string | undefined;
  /** A real etcd in place of the embedded store. */
  readonly etcdServers: string | undefined;
  /** A group of stores in place of the embedded one. */
  readonly journal?: string;
  /** Stage files, or names of sets, for the simulated nodes. */
  readonly stages: readonly string[];
  readonly components: readonly Component[];
  readonly exitWhen: 'ready' | 'bound' | undefined;
  readonly output: 'text' | 'json';
  readonly logLevel: string;
  readonly logFormat: string;
}

/**
 * The components that `--components` names: a list of names, or of names behind `-` that are left
 * out of all. Returns a sentence when the list says neither.
 */
export function chosenComponents(list: readonly string[]): readonly Component[] | string {
  const isKnown = (name: string): name is Component => COMPONENTS.some((known) => known === name);
  const bare = list.map((item) => item.replace(/^-/, ''));
  const unknown = bare.find((name) => !isKnown(name));
  if (unknown !== undefined)
    return `no component "${unknown}"; there are ${COMPONENTS.join(', ')}.`;
  const without = list.filter((item) => item.startsWith('-'));
  if (without.length !== 0 && without.length !== list.length) {
    return 'either name the components to start, or those to leave out, each behind a "-".';
  }
  const chosen =
    without.length > 0
      ? COMPONENTS.filter((name) => !list.includes(`-${name}`))
      : COMPONENTS.filter((name) => list.includes(name));
  if (!chosen.includes('apiserver')) return 'the API server cannot be left out.';
  return chosen;
}

/** Where the parts of a cluster keep their files, below its data directory. */
export function paths(dataDir: string): {
  readonly logs: string;
  readonly socket: string;
  readonly administrator: string;
  readonly authority: string;
  readonly kubeconfig: (user: string) => string;
  /** Which programs run, for the page. */
  readonly processes: string;
  readonly pageToken: string;
} {
  return {
    logs: join(dataDir, 'logs'),
    socket: join(dataDir, 'apiserver.sock'),
    administrator: join(dataDir, 'kubeconfig'),
    authority: join(dataDir, 'pki', 'ca.crt'),
    kubeconfig: (user) => join(dataDir, `${user}.kubeconfig`),
    processes: join(dataDir, 'processes.json'),
    pageToken: join(dataDir, 'page-token'),
  };
}

/** A small heap shows a leak early where bytes live outside of it. */
const HEAP_MIB_MAX: Readonly<Record<Component, number>> = {
  apiserver: 4096,
  controllers: 2048,
  scheduler: 2048,
  nodes: 2048,
};

const PAGE_HEAP_MIB_MAX = 512;

/** The plan of one child. */
export function childPlan(component: Component, options: UpOptions): ChildPlan {
  const logging = ['--log-level', options.logLevel, '--log-format', options.logFormat];
  return {
    name: component,
    runtimeFlags: [
      `--max-old-space-size=${HEAP_MIB_MAX[component]}`,
      ...(ENGINE_FLAGS.get(component) ?? []),
    ],
    args: [component, ...componentFlags(component, options), ...logging],
  };
}

/** The page is no part of the cluster: it looks at it, as any client does. */
export function pagePlan(options: UpOptions): ChildPlan | undefined {
  if ((options.pagePort ?? 0) === 0) return undefined;
  const files = paths(options.dataDir);
  return {
    name: 'page',
    runtimeFlags: [`--max-old-space-size=${PAGE_HEAP_MIB_MAX}`],
    args: [
      ...['page', '--kubeconfig', files.administrator, '--processes', files.processes],
      ...['--token-file', files.pageToken, '--listen-address', `127.0.0.1:${options.pagePort}`],
    ],
  };
}

function componentFlags(component: Component, options: UpOptions): readonly string[] {
  const files = paths(options.dataDir);
  const metrics = ['--metrics-address', '127.0.0.1:0'];
  switch (component) {
    case 'apiserver': {
      const flags = ['--data-dir', options.dataDir, '--secure-port', String(options.securePort)];
      // A system takes no longer paths for sockets; the cluster does not need this one.
      const isShort = Buffer.byteLength(files.socket) <= UNIX_PATH_BYTES_MAX;
      if (isShort) flags.push('--unix-socket', files.socket);
      // Two labels on each of a million pods say what their nodes say already.
      flags.push('--disable-admission-plugins', 'PodTopologyLabels');
      if (options.threads !== undefined) flags.push('--threads', String(options.threads));
      if (options.durability !== undefined) flags.push('--durability', options.durability);
      if (options.etcdServers !== undefined) flags.push('--etcd-servers', options.etcdServers);
      if (options.journal !== undefined) flags.push('--journal', options.journal);
      if (options.listenClientUrls !== undefined) {
        flags.push('--listen-client-urls', options.listenClientUrls);
      }
      return [...flags, ...outsideFlags(options.outside)];
    }
    case 'controllers':
      // Alone on its data directory, so there is nobody to wait for.
      return [
        ...['--kubeconfig', files.kubeconfig('controllers'), '--leader-elect=false', ...metrics],
        ...healthFlags(options.controllersPort),
        ...['--cluster-signing-cert-file', join(options.dataDir, 'pki', 'ca.crt')],
        ...['--cluster-signing-key-file', join(options.dataDir, 'pki', 'ca.key')],
        ...joinFlags(options.outside),
      ];
    case 'scheduler':
      return [
        ...['--kubeconfig', files.kubeconfig('scheduler'), '--leader-elect=false', ...metrics],
        ...healthFlags(options.schedulerPort),
        ...shardFlags(options.schedulerShards),
      ];
    case 'nodes': {
      const flags = ['--create', `${options.nodes}`];
      // nodes of others, and those of machines, are not ours
      flags.push('--manage-nodes-with-label-selector', SIMULATED_SELECTOR);
      flags.push('--server-address', `127.0.0.1:${options.kubeletPort}`);
      // the API server of the same machine finds every kubelet there, and shows its certificate
      flags.push('--node-name', 'localhost', '--client-ca-file', files.authority, '--metrics-api');
      // Stages of files may do anything to objects of any kind.
      if (options.stages.length === 0) flags.push('--kubeconfig', files.kubeconfig('nodes'));
      else flags.push('--kubeconfig', files.administrator, '--config', ...options.stages);
      return flags;
    }
  }
}

function outsideFlags(outside: OutsideOptions | undefined): readonly string[] {
  if (outside === undefined) return [];
  const { bindAddress, advertiseAddress, serviceClusterIpRange, bootstrapTokens, isJoinable } =
    outside;
  return [
    ...(bindAddress === undefined ? [] : ['--bind-address', bindAddress]),
    ...(advertiseAddress === undefined ? [] : ['--advertise-address', advertiseAddress]),
    ...(serviceClusterIpRange === undefined
      ? []
      : ['--service-cluster-ip-range', serviceClusterIpRange]),
    ...(bootstrapTokens ? ['--enable-bootstrap-token-auth=true'] : []),
    // the names of other machines need not be known here, as kubeadm has it
    ...(isJoinable ? ['--kubelet-preferred-address-types', 'InternalIP,ExternalIP,Hostname'] : []),
  ];
}

/** Tokens end, cluster-info is signed, and kubelets get certificates for their ports. */
function joinFlags(outside: OutsideOptions | undefined): readonly string[] {
  if (outside?.isJoinable !== true) return [];
  const names = ['*', 'bootstrap-signer-controller', 'token-cleaner-controller'];
  return ['--controllers', names.join(','), '--approve-kubelet-serving'];
}

function shardFlags(shards = 0): readonly string[] {
  return shards === 0 ? [] : ['--shards', String(shards)];
}

/** The API server asks for the health of both at their usual ports, as kube-apiserver does. */
function healthFlags(port = 0): readonly string[] {
  if (port === 0) return [];
  return ['--secure-port', `${port}`, '--bind-address', '127.0.0.1'];
}
