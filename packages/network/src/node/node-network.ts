// shell: looks at the interfaces of this machine
/** `megaplane network node`: makes this machine a node of the network, and takes that back. */
import { existsSync, readlinkSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { enterAgain, entriesIn, takeOut } from './entries.ts';
import { addressesOf, portsOf, run, output } from './machine.ts';
import { stepsOf, type NodeNetworkRequest } from './node-plan.ts';
import { readFileOr } from './read-file.ts';
import { StepRecord } from './record.ts';
import { stepText } from './steps.ts';

export { output, run } from './machine.ts';
export { readFileOr } from './read-file.ts';
export { StepRecord } from './record.ts';
export { stepText } from './steps.ts';
import {
  addressText,
  holds,
  overlaps,
  parseAddress,
  parsePrefix,
  prefixText,
} from '../plan/prefix.ts';
import type { Prefix } from '../plan/prefix.ts';
import type { NodeMode } from '../plan/providers.ts';

export interface NodeNetworkFlags {
  readonly uplink: string;
  readonly podCidr: readonly string[];
  readonly mode: NodeMode;
  readonly bridge: string;
  readonly mtu: number;
  readonly neighbours: number;
  /** `prefix=address`. */
  readonly route: readonly string[];
  readonly cniConfigDir: string;
  readonly cniBinDir: string;
  readonly stateDir: string;
  /** Nobody is asked whether another node has the prefix. */
  readonly trustsPrefix: boolean;
}

/** An address whose duplicate is looked for is tentative for about a second. */
const DUPLICATE_LOOKS = 30;
const LOOK_MS = 100;
const NAME = /^[A-Za-z0-9._-]{1,15}$/;
const POD_BITS_MIN = 4;
/** RFC 8200, 5. */
const MTU_MIN = 1280;
/** Addresses of links, of groups, of loops, and those that say that there is none. */
const NOBODYS: readonly Prefix[] = ['fe80::/10', 'ff00::/8', '::/96', '169.254.0.0/16']
  .concat(['224.0.0.0/3', '127.0.0.0/8', '0.0.0.0/8'])
  .map(parsePrefix)
  .filter((one) => typeof one !== 'string');

/** What is asked for, as steps need it; a list of texts says all that is wrong with it. */
export function requestOf(flags: NodeNetworkFlags): NodeNetworkRequest | readonly string[] {
  const faults: string[] = [];
  for (const [flag, name] of [
    ['--uplink', flags.uplink],
    ['--bridge', flags.bridge],
  ] as const) {
    if (!NAME.test(name))
      faults.push(`${flag}: ${JSON.stringify(name)} is no name of an interface`);
  }
  const prefixes: Prefix[] = [];
  for (const text of flags.podCidr) {
    const prefix = parsePrefix(text);
    if (typeof prefix === 'string') faults.push(`--pod-cidr: ${prefix}`);
    else if (prefix.length > prefix.bits - POD_BITS_MIN) {
      faults.push(`--pod-cidr: ${text} is too small: at most /${prefix.bits - POD_BITS_MIN}`);
    } else if (NOBODYS.some((one) => overlaps(one, prefix))) {
      faults.push(`--pod-cidr: ${text} is for no pods: addresses of links, loops and groups`);
    } else prefixes.push(prefix);
  }
  const sixes = prefixes.filter(({ bits }) => bits === 128);
  const fours = prefixes.filter(({ bits }) => bits === 32);
  const [prefix] = sixes;
  if (faults.length === 0 && (sixes.length !== 1 || fours.length > 1)) {
    faults.push('--pod-cidr: one prefix of IPv6 is needed, and one of IPv4 may be');
  }
  const routes: { prefix: Prefix; via: string }[] = [];
  for (const text of flags.route) {
    const [left = '', via = ''] = text.split('=');
    const other = parsePrefix(left);
    if (typeof other === 'string') faults.push(`--route: ${other}`);
    else if (parseAddress(via)?.bits !== other.bits) {
      faults.push(`--route: ${text} is not PREFIX=ADDRESS of one family`);
    } else if (other.length === 0) {
      faults.push(`--route: ${text} is the machine's own way to everywhere, not that to a node`);
    } else if (prefixes.some((own) => overlaps(own, other))) {
      faults.push(`--route: ${text} leads the pods of this node elsewhere`);
    } else routes.push({ prefix: other, via });
  }
  if (flags.mtu > 0 && flags.mtu < MTU_MIN) {
    faults.push(`--mtu: ${flags.mtu} is less than the ${MTU_MIN} that IPv6 needs`);
  }
  if (prefix === undefined || faults.length > 0) return faults;
  const own = addressesOf(flags.uplink).flatMap((one) => {
    const address = parseAddress(one.split('/')[0] ?? '');
    return address?.bits === 128 ? [address.value] : [];
  });
  return {
    ...{ bridge: flags.bridge, uplink: flags.uplink, mode: flags.mode, prefix, own, routes },
    ...{ prefix4: fours[0], neighbours: flags.neighbours, mtu: flags.mtu },
    ...{ configDir: flags.cniConfigDir, pluginDir: flags.cniBinDir },
    stateDir: join(flags.stateDir, 'ndp'),
    leaseDir: join(flags.stateDir, 'addresses'),
  };
}

/** What the machine lacks for it, or has already: each a sentence with what to do. */
export function faultsOfMachine(request: NodeNetworkRequest, record: StepRecord): string[] {
  const { uplink, bridge, prefix, own } = request;
  if (!existsSync('/proc/sys/net/ipv6')) {
    return ['the kernel has no IPv6: start it without ipv6.disable=1'];
  }
  if (!existsSync(`/sys/class/net/${uplink}`)) {
    return [`--uplink: there is no interface ${uplink}; there are ${devices().join(', ')}`];
  }
  if (uplink === 'lo') return ['--uplink: lo reaches nobody: name the interface to the others'];
  const faults: string[] = [];
  const off = readFileOr(`/proc/sys/net/ipv6/conf/${uplink}/disable_ipv6`)?.trim();
  if (off === '1') {
    faults.push(`IPv6 is off on ${uplink}: sysctl -w net.ipv6.conf.${uplink}.disable_ipv6=0`);
  }
  if (masterOf(uplink) === bridge) {
    faults.push(`${uplink} is a port of ${bridge}: frames of pods would leave with their own MACs`);
  }
  const gateway = prefix.base + 1n;
  if (own.includes(gateway)) {
    const text = addressText(gateway, 128);
    faults.push(`--pod-cidr: ${text}, the bridge's, is ${uplink}'s own: take another prefix`);
  }
  faults.push(...faultsOfSegment(request));
  if (existsSync(`/sys/class/net/${bridge}`)) faults.push(...faultsOfBridge(request, record));
  return faults;
}

/** The bridge would take all that is beside the node on its segment. */
function faultsOfSegment({ uplink, prefix, prefix4 }: NodeNetworkRequest): string[] {
  const faults: string[] = [];
  for (const text of addressesOf(uplink)) {
    const [address = '', length = ''] = text.split('/');
    const found = parseAddress(address);
    if (found === undefined || Number(length) === found.bits) continue;
    const shift = BigInt(found.bits - Number(length));
    const base = (found.value >> shift) << shift;
    const segment: Prefix = { base, length: Number(length), bits: found.bits };
    for (const pods of [prefix, prefix4]) {
      if (pods === undefined || !holds(pods, segment)) continue;
      const all = `${prefixText(pods)} holds all of the segment of ${uplink}`;
      faults.push(`--pod-cidr: ${all} (${prefixText(segment)}): take a part of it, or another one`);
    }
  }
  return faults;
}

function faultsOfBridge(
  { bridge, prefix, prefix4 }: NodeNetworkRequest,
  record: StepRecord,
): string[] {
  if (!existsSync(`/sys/class/net/${bridge}/bridge`)) return [`--bridge: ${bridge} is no bridge`];
  const wanted = [prefix, prefix4].flatMap((one) =>
    one === undefined ? [] : `${addressText(one.base + 1n, one.bits)}/${one.length}`,
  );
  const others = addressesOf(bridge).filter((one) => !wanted.includes(one));
  if (others.length === 0) return [];
  const what = `${bridge} exists already, with ${others.join(', ')}`;
  const how = record.hasMade(bridge)
    ? 'first take the network of before down: megaplane network node --down'
    : 'name another one by --bridge, or remove it: ip link del';
  return [`--bridge: ${what}: ${how}`];
}

function masterOf(device: string): string {
  try {
    return basename(readlinkSync(`/sys/class/net/${device}/master`));
  } catch {
    return '';
  }
}

function devices(): string[] {
  const text = output('ip', ['-brief', 'link', 'show']);
  const names = text.split('\n').map((line) => (line.split(/[ @]/)[0] ?? '').trim());
  return names.filter((name) => name !== '' && name !== 'lo');
}

/**
 * Whether another node of the segment answers for the prefix: its bridge's address is tried at the
 * uplink, and the kernel looks for its duplicate (RFC 4862, 5.4).
 */
export async function isPrefixTaken(
  { uplink, prefix }: NodeNetworkRequest,
  pause: (ms: number) => Promise<unknown>,
): Promise<boolean> {
  const address = `${addressText(prefix.base + 1n, 128)}/128`;
  if (run('ip', ['addr', 'add', address, 'dev', uplink, 'noprefixroute']) !== '') return false;
  let state = '';
  for (let look = 0; look < DUPLICATE_LOOKS; look++) {
    state = output('ip', ['-6', 'addr', 'show', 'dev', uplink, 'to', address]);
    if (/dadfailed/.test(state) || !/tentative/.test(state)) break;
    await pause(LOOK_MS);
  }
  run('ip', ['addr', 'del', address, 'dev', uplink]);
  return /dadfailed/.test(state);
}

/** The file with what was done. */
export function recordOf(stateDir: string): StepRecord {
  return new StepRecord(join(stateDir, 'network.json'));
}

/** Resolves with what is in the way, or an empty list: the node is one. */
export async function bringUp(
  request: NodeNetworkRequest,
  record: StepRecord,
  options: { readonly trustsPrefix: boolean; readonly pause: (ms: number) => Promise<unknown> },
): Promise<readonly string[]> {
  const faults = faultsOfMachine(request, record);
  if (faults.length > 0) return faults;
  const isNew = !record.hasMade(request.bridge);
  if (request.mode === 'proxy' && isNew && !options.trustsPrefix) {
    if (await isPrefixTaken(request, options.pause)) {
      const text = prefixText(request.prefix);
      return [`--pod-cidr: another node of this segment answers for ${text}: it has that prefix`];
    }
  }
  const facts = {
    uplink: request.uplink,
    bridge: request.bridge,
    prefix: prefixText(request.prefix),
  };
  const why = record.perform(stepsOf(request), facts);
  if (why !== '') return [why];
  if (request.mode !== 'proxy') return [];
  const gateway = addressText(request.prefix.base + 1n, 128);
  const args = ['-6', 'neigh', 'replace', 'proxy', gateway, 'dev', request.uplink];
  const again = run('ip', args) || enterAgain(request.stateDir, request.uplink);
  return again === '' ? [] : [again];
}

/** Takes the network down again; texts say what is in the way, or was left. */
export function takeDown(stateDir: string, isForced: boolean): readonly string[] {
  const record = recordOf(stateDir);
  if (record.isEmpty) return [];
  const { uplink = '', bridge = '', prefix = '' } = record.facts;
  const ports = portsOf(bridge);
  if (ports.length > 0 && !isForced) {
    const count = ports.length === 1 ? 'one pod is' : `${ports.length} pods are`;
    return [`${count} still on ${bridge} (${ports.slice(0, 3).join(', ')}): --force cuts them off`];
  }
  rmSync(join(stateDir, 'addresses'), { recursive: true, force: true });
  const entries = join(stateDir, 'ndp');
  const why = entriesIn(entries).length > 0 ? takeOut(entries) : '';
  const parsed = parsePrefix(prefix);
  if (typeof parsed !== 'string') {
    const gateway = addressText(parsed.base + 1n, 128);
    run('ip', ['-6', 'neigh', 'del', 'proxy', gateway, 'dev', uplink]);
  }
  return [...(why === '' ? [] : [why]), ...record.undo()];
}

/** What would be done, as a person would do it by hand. */
export function dryRun(request: NodeNetworkRequest): string {
  return `${stepsOf(request).map(stepText).join('\n')}\n`;
}
