// shell: standard output, files
/** What the commands around a network do: from flags to steps and texts. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  nat64Faults,
  nat64Notes,
  nat64Steps,
  type Nat64Request,
} from '@megaplane/network/gateway/nat64';
import {
  gatewayTunnel,
  isKey,
  nodeTunnel,
  type TunnelPeer,
} from '@megaplane/network/gateway/tunnel';
import { corefile, kubeletNetworkConfig, kubeProxyConfig } from '@megaplane/network/node/conflist';
import { run, StepRecord, stepText } from '@megaplane/network/node/node-network';
import { holds, parseAddress, parsePrefix, type Prefix } from '@megaplane/network/plan/prefix';
import { policyRules } from '@megaplane/network/policy';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const PROGRAMS = ['kube-proxy', 'kubelet', 'coredns'] as const;

export interface Nat64Flags {
  readonly uplink?: string;
  readonly client: readonly string[];
  readonly prefix: string;
  readonly pool: string;
  readonly listen: readonly string[];
  readonly forward: readonly string[];
  readonly translator: 'tayga' | 'jool';
  readonly stateDir: string;
  readonly down?: true;
  readonly dryRun?: true;
}

/** The exit code; what is wrong is on stderr. */
export function nat64(flags: Nat64Flags): number {
  const record = new StepRecord(join(flags.stateDir, 'nat64.json'));
  if (flags.down === true) return report(record.undo(), EXIT_FAILED);
  const faults: string[] = [];
  const prefix = prefixOf('--prefix', flags.prefix, faults);
  const pool = prefixOf('--pool', flags.pool, faults);
  const clients = flags.client.flatMap((text) => prefixOf('--client', text, faults) ?? []);
  for (const [flag, addresses] of [
    ['--listen', flags.listen],
    ['--forward', flags.forward],
  ] as const) {
    const bad = addresses.find((one) => parseAddress(one) === undefined);
    if (bad !== undefined) faults.push(`${flag}: ${bad} is no address`);
  }
  const { uplink = '' } = flags;
  if (!/^[\w.-]{1,15}$/.test(uplink)) faults.push('--uplink: the name of an interface is needed');
  if (prefix === undefined || pool === undefined || faults.length > 0)
    return report(faults, EXIT_USAGE);
  const { listen, forward, stateDir, translator } = flags;
  const request: Nat64Request = {
    ...{ prefix, pool, uplink, clients, listen, forward, stateDir, translator },
  };
  const wrong = nat64Faults(request);
  if (wrong.length > 0) return report(wrong, EXIT_USAGE);
  const steps = nat64Steps(request);
  if (flags.dryRun === true) {
    process.stdout.write(`${steps.map(stepText).join('\n')}\n`);
    return 0;
  }
  const why = record.perform(steps, { uplink });
  if (why !== '') return report([why], EXIT_FAILED);
  process.stdout.write(
    nat64Notes(request)
      .map((note) => `${note}\n`)
      .join(''),
  );
  return 0;
}

export interface PolicyFlags {
  readonly base: string;
  readonly podCidr: string;
  readonly services: string;
  readonly node: readonly string[];
  readonly controlPlane: readonly string[];
  readonly admin: readonly string[];
  readonly uplink: string;
  readonly bridge: string;
  readonly publicPort: readonly number[];
  readonly nodePort: readonly number[];
  readonly ownPublicPort: readonly number[];
  readonly check?: true;
  readonly apply?: true;
}

/** Prints the rules, or loads them. */
export function policy(flags: PolicyFlags): number {
  const faults: string[] = [];
  const six = (flag: string, text: string): Prefix[] => {
    const prefix = prefixOf(flag, text, faults);
    if (prefix?.bits === 32) faults.push(`${flag}: ${text} is no prefix of IPv6`);
    return prefix === undefined ? [] : [prefix];
  };
  const [base] = six('--base', flags.base);
  const [pods] = six('--pod-cidr', flags.podCidr);
  const [services] = six('--services', flags.services);
  const nodes = flags.node.flatMap((text) => six('--node', text));
  const controlPlane = flags.controlPlane.flatMap((text) => six('--control-plane', text));
  const admins = flags.admin.flatMap((text) => six('--admin', text));
  for (const name of [flags.uplink, flags.bridge]) {
    if (!/^[\w.-]{1,15}$/.test(name)) faults.push(`${JSON.stringify(name)} is no interface`);
  }
  if (base !== undefined && pods !== undefined && !holds(base, pods)) {
    faults.push(`--pod-cidr: ${flags.podCidr} does not lie in ${flags.base}`);
  }
  if (base === undefined || pods === undefined || services === undefined || faults.length > 0) {
    return report(faults, EXIT_USAGE);
  }
  const { uplink, bridge, publicPort: publicPorts, nodePort: nodePorts } = flags;
  const text = policyRules({
    ...{ base, pods, services, nodes, controlPlane, admins, uplink, bridge },
    ...{ publicPorts, nodePorts, ownPublicPorts: flags.ownPublicPort },
  });
  if (flags.check === true || flags.apply === true) {
    const why = run('nft', [...(flags.apply === true ? [] : ['-c']), '-f', '-'], text);
    return report(why === '' ? [] : [why], EXIT_FAILED);
  }
  process.stdout.write(text);
  return 0;
}

export interface TunnelGatewayFlags {
  readonly pool: string;
  readonly privateKey: string;
  readonly peers: string;
  readonly uplink: string;
}

export function tunnelGateway(flags: TunnelGatewayFlags): number {
  const faults: string[] = [];
  const pool = poolOf(flags.pool, faults);
  const key = keyIn('--private-key', flags.privateKey, faults);
  const peers: TunnelPeer[] = [];
  for (const line of readFileSync(flags.peers, 'utf8').split('\n')) {
    if (line.trim() === '') continue;
    const [number = '', publicKey = ''] = line.trim().split(/\s+/);
    if (!/^\d{1,8}$/.test(number) || !isKey(publicKey)) {
      faults.push(`--peers: ${JSON.stringify(line.slice(0, 80))} is no number and key`);
    } else peers.push({ number: Number(number), publicKey });
  }
  const numbers = new Set(peers.map(({ number }) => number));
  if (numbers.size < peers.length) faults.push('--peers: two nodes have one number');
  if (pool === undefined || faults.length > 0) return report(faults, EXIT_USAGE);
  process.stdout.write(gatewayTunnel(pool, key, flags.uplink, peers));
  return 0;
}

export interface TunnelNodeFlags {
  readonly pool: string;
  readonly number: number;
  readonly privateKey: string;
  readonly endpoint: string;
  readonly gatewayKey: string;
}

export function tunnelNode(flags: TunnelNodeFlags): number {
  const faults: string[] = [];
  const pool = poolOf(flags.pool, faults);
  const key = keyIn('--private-key', flags.privateKey, faults);
  if (!isKey(flags.gatewayKey)) faults.push('--gateway-key: it is no key of WireGuard');
  if (!/^\S+:\d{1,5}$/.test(flags.endpoint)) faults.push('--endpoint: host:port is needed');
  if (pool === undefined || faults.length > 0) return report(faults, EXIT_USAGE);
  if (2 ** (32 - pool.length) - 3 < flags.number) {
    return report([`--number: ${flags.pool} has no address for node ${flags.number}`], EXIT_USAGE);
  }
  const gateway = { endpoint: flags.endpoint, publicKey: flags.gatewayKey };
  process.stdout.write(nodeTunnel(pool, flags.number, key, gateway));
  return 0;
}

export interface ConfigFlags {
  readonly bridge: string;
  readonly nodeName: string;
  readonly clusterDns: readonly string[];
  readonly clusterDomain: string;
  readonly forward: string;
}

export function configurations(program: string, flags: ConfigFlags): number {
  const texts = new Map<string, string>([
    ['kube-proxy', kubeProxyConfig(flags.bridge, flags.nodeName)],
    ['kubelet', kubeletNetworkConfig(flags.clusterDns, flags.clusterDomain)],
    ['coredns', corefile(flags.clusterDomain, flags.forward)],
  ]);
  const one = texts.get(program);
  if (one === undefined && program !== 'all') {
    return report([`there are ${PROGRAMS.join(', ')} and all, but no ${program}`], EXIT_USAGE);
  }
  const all = PROGRAMS.map((name) => `# ${name}\n${texts.get(name) ?? ''}`).join('---\n');
  process.stdout.write(one ?? all);
  return 0;
}

function prefixOf(flag: string, text: string, faults: string[]): Prefix | undefined {
  const prefix = parsePrefix(text);
  if (typeof prefix !== 'string') return prefix;
  faults.push(`${flag}: ${prefix}`);
  return undefined;
}

function poolOf(text: string, faults: string[]): Prefix | undefined {
  const pool = prefixOf('--pool', text, faults);
  if (pool?.bits === 128) faults.push('--pool: a prefix of IPv4 is needed');
  return pool;
}

function keyIn(flag: string, file: string, faults: string[]): string {
  const key = readFileSync(file, 'utf8').trim();
  if (!isKey(key)) faults.push(`${flag}: ${file} holds no key of WireGuard (wg genkey)`);
  return key;
}

function report(faults: readonly string[], code: number): number {
  for (const fault of faults) process.stderr.write(`megaplane: ${fault}\n`);
  return faults.length === 0 ? 0 : code;
}
