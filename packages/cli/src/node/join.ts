// shell: this machine: its name, programs and clock
/** `megaplane node join`. */
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { delimiter, join } from 'node:path';
import { guarded } from '@megaplane/base/deferred';
import { isObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { discover, read, type Cluster } from '@megaplane/network/join/discovery';
import {
  joinSteps,
  KUBELET_DIR,
  KUBELET_HAD,
  KUBELET_KUBECONFIG,
  KUBELET_UNIT,
  kubeletArgs,
  NETWORK_UNIT,
  type JoinFacts,
} from '@megaplane/network/join/join-files';
import { isHash, parseToken, type Token } from '@megaplane/network/join/token';
import { readFileOr, run, StepRecord, stepText } from '@megaplane/network/node/node-network';
import { networkUp, networkWords, type NetworkNodeFlags } from './network-node.ts';

export interface JoinFlags {
  readonly token: string;
  readonly discoveryTokenCaCertHash: readonly string[];
  readonly discoveryTokenUnsafeSkipCaVerification?: true;
  readonly nodeName?: string;
  readonly nodeIp: string;
  readonly kubelet?: string;
  readonly criSocket: string;
  readonly keepContainerd?: true;
  readonly foreground?: true;
  readonly dryRun?: true;
}

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
/** Where Debian and all others have the plugins of CNI. */
const PLUGIN_DIRS = ['/opt/cni/bin', '/usr/lib/cni'] as const;
const CONFIG_DIR = '/etc/cni/net.d';
const CONTAINERD_CONFIG = '/etc/containerd/config.toml';
const NODE_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Resolves with the exit code; what is wrong is on stderr. */
export async function joinNode(
  address: string,
  flags: JoinFlags & NetworkNodeFlags,
): Promise<number> {
  const token = parseToken(flags.token);
  const usage = usageFault(address, flags, token);
  if (usage !== '' || token === undefined) return fail(usage, EXIT_USAGE);
  const nodeName = (flags.nodeName ?? hostname()).toLowerCase();
  if (!NODE_NAME.test(nodeName))
    return fail(`--node-name: ${nodeName} is no name of a node`, EXIT_USAGE);
  const kubelet = flags.kubelet ?? onPath('kubelet');
  if (kubelet === undefined && flags.dryRun !== true) {
    return fail('there is no kubelet on PATH: install it, or name it by --kubelet');
  }
  const nowMs = (): number => Date.now();
  const hashes = flags.discoveryTokenCaCertHash;
  const cluster = await discover({ address, token, hashes, nowMs });
  const taken = await nameFault(cluster, nodeName, token, nowMs);
  if (taken !== '' && flags.dryRun !== true) return fail(taken);
  const facts = await factsOf(
    cluster,
    { ...flags, kubelet: kubelet ?? 'kubelet' },
    nodeName,
    token,
  );
  const steps = joinSteps(facts);
  if (flags.dryRun === true) {
    process.stdout.write(`${steps.map(stepText).join('\n')}\n`);
    process.stdout.write(`${[facts.kubelet, ...kubeletArgs(facts)].join(' ')}\n`);
    return 0;
  }
  if (!facts.hasSystemd && flags.foreground !== true) {
    return fail('there is no systemd here: run the kubelet in the foreground by --foreground');
  }
  return settle(steps, facts, flags, address);
}

async function settle(
  steps: ReturnType<typeof joinSteps>,
  facts: JoinFacts,
  flags: JoinFlags & NetworkNodeFlags,
  address: string,
): Promise<number> {
  const record = new StepRecord(join(flags.stateDir, 'node.json'));
  if (facts.network.length > 0) {
    const code = await networkUp(flags);
    if (code !== 0) return code;
  }
  const mode = flags.foreground === true ? 'foreground' : 'systemd';
  const before = readFileOr(CONTAINERD_CONFIG);
  const kept = record.facts[KUBELET_HAD] ?? JSON.stringify(namesIn(KUBELET_DIR));
  const told = { server: address, node: facts.nodeName, mode, [KUBELET_HAD]: kept };
  const why = record.perform(steps, told);
  const hasNew = readFileOr(CONTAINERD_CONFIG) !== before;
  if (why !== '') return fail(why);
  if (flags.foreground === true) {
    // where systemd is, it is restarted; here it is whoever started it that knows how
    if (hasNew)
      process.stderr.write(`megaplane: ${CONTAINERD_CONFIG} is new: restart containerd\n`);
    return foreground(facts);
  }
  const fault = startUnits(facts);
  if (fault !== '') return fail(fault);
  process.stdout.write(`${facts.nodeName} joins: kubectl get node ${facts.nodeName}\n`);
  return 0;
}

function usageFault(
  address: string,
  flags: JoinFlags & NetworkNodeFlags,
  token: Token | undefined,
): string {
  if (!/^(?:\[[\da-fA-F:.]+\]|[\w.-]+):\d{1,5}$/.test(address)) {
    return `${JSON.stringify(address)} is no host:port, such as 10.0.0.1:6443 or [fd00::1]:6443`;
  }
  if (token === undefined) return '--token: 6 letters or digits, a dot and 16 more are needed';
  const hashes = flags.discoveryTokenCaCertHash;
  const bad = hashes.find((one) => !isHash(one));
  if (bad !== undefined)
    return `--discovery-token-ca-cert-hash: ${bad} is not sha256: and 64 digits`;
  if (hashes.length === 0 && flags.discoveryTokenUnsafeSkipCaVerification !== true) {
    return (
      'without --discovery-token-ca-cert-hash whoever knows the token can pass for the cluster: ' +
      'name it, or say --discovery-token-unsafe-skip-ca-verification'
    );
  }
  const hasUplink = flags.uplink !== undefined;
  if (hasUplink !== flags.podCidr.length > 0) return '--uplink and --pod-cidr belong together';
  return '';
}

/** As kubeadm: a node of this name that lives is another machine. */
async function nameFault(
  cluster: Cluster,
  name: string,
  token: Token,
  nowMs: () => number,
): Promise<string> {
  const node = await read(cluster, `/api/v1/nodes/${name}`, token, nowMs);
  const conditions = listAt(node, 'status', 'conditions').filter(isObject);
  const isReady = conditions.some((one) => one['type'] === 'Ready' && one['status'] === 'True');
  if (!isReady || existsSync(KUBELET_KUBECONFIG)) return '';
  return `a node ${name} is there, and Ready: take another name (--node-name), or delete that one`;
}

async function factsOf(
  cluster: Cluster,
  flags: JoinFlags & NetworkNodeFlags & { readonly kubelet: string },
  nodeName: string,
  token: Token,
): Promise<JoinFacts> {
  const path = '/api/v1/namespaces/kube-system/configmaps/kubelet-config';
  const map = await read(cluster, path, token, () => Date.now());
  const kubeletConfig = stringAt(map, 'data', 'kubelet');
  if (kubeletConfig === '')
    throw new Error('the cluster has no kubelet-config: run join-command there');
  const hasSystemd = existsSync('/run/systemd/system') && flags.foreground !== true;
  const pluginDir = flags.cniBinDir ?? PLUGIN_DIRS.find((dir) => existsSync(join(dir, 'bridge')));
  const main = process.argv[1] ?? 'megaplane';
  // without it the kubelet looks its own name up first, which takes 20 s where no resolver answers
  const nodeIp = flags.nodeIp === '' ? cluster.localAddress.replace(/^::ffff:/, '') : flags.nodeIp;
  // the root of the second version has this file, wherever it is mounted as the only one
  const hasOldCgroups = !existsSync('/sys/fs/cgroup/cgroup.controllers');
  return {
    ...cluster,
    ...{ token, nodeName, nodeIp, kubeletConfig, hasSystemd, hasOldCgroups },
    kubelet: flags.kubelet,
    megaplane: main,
    runtimeEndpoint: flags.criSocket,
    network: flags.uplink === undefined ? [] : networkWords(flags),
    ...(flags.keepContainerd === true
      ? {}
      : {
          containerd: {
            config: CONTAINERD_CONFIG,
            pluginDir: pluginDir ?? PLUGIN_DIRS[0],
            configDir: flags.cniConfigDir ?? CONFIG_DIR,
          },
        }),
  };
}

function namesIn(dir: string): readonly string[] {
  return existsSync(dir) ? readdirSync(dir) : [];
}

function startUnits({ network, containerd }: JoinFacts): string {
  const units = [...(network.length > 0 ? [NETWORK_UNIT] : []), KUBELET_UNIT];
  return (
    run('systemctl', ['daemon-reload']) ||
    (containerd === undefined ? '' : run('systemctl', ['restart', 'containerd'])) ||
    run('systemctl', ['enable', '--now', ...units])
  );
}

/** The kubelet as a child; its end is ours. */
function foreground(facts: JoinFacts): Promise<number> {
  const child = spawn(facts.kubelet, kubeletArgs(facts), { stdio: 'inherit' });
  const pass = guarded((signal: NodeJS.Signals) => void child.kill(signal));
  process.on('SIGINT', pass).on('SIGTERM', pass);
  return new Promise((resolve) => {
    child.on(
      'error',
      guarded((error) => resolve(fail(`${facts.kubelet}: ${error.message}`))),
    );
    child.on(
      'exit',
      guarded((code) => resolve(code ?? EXIT_FAILED)),
    );
  });
}

function onPath(program: string): string | undefined {
  for (const dir of (process.env['PATH'] ?? '').split(delimiter)) {
    const file = join(dir, program);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // the next one
    }
  }
  return undefined;
}

function fail(text: string, code = EXIT_FAILED): number {
  process.stderr.write(`megaplane: ${text}\n`);
  return code;
}
