/**
 * A gateway to services that have IPv4 only: a translator (NAT64, RFC 6146) and a resolver that
 * gives names without IPv6 an address behind it (DNS64, RFC 6147).
 *
 * Tayga translates addresses one to one into a pool of IPv4, without state for ports; nftables puts
 * the pool behind the one address of the gateway. So a pool of a /16 serves 65,533 pods at a time.
 */
import { addressText, prefixText, type Prefix } from '../plan/prefix.ts';
import { INPUT_FILE_MODE, type Step } from '../node/steps.ts';

export interface Nat64Request {
  /** Behind which IPv4 addresses stand: a /96. */
  readonly prefix: Prefix;
  /** Of IPv4, for those who are translated. */
  readonly pool: Prefix;
  /** The interface with IPv4. */
  readonly uplink: string;
  /** Who may ask for names, and come through. */
  readonly clients: readonly Prefix[];
  /** Where the resolver listens; empty: none is set up. */
  readonly listen: readonly string[];
  /** Resolvers to ask; empty: the root servers. */
  readonly forward: readonly string[];
  readonly stateDir: string;
  readonly translator: 'tayga' | 'jool';
}

export const DEVICE = 'nat64';
const TABLE = 'megaplane_nat64';
const JOOL_INSTANCE = 'megaplane';
/** RFC 6052 lets no private IPv4 address behind it. */
const WELL_KNOWN = '64:ff9b::/96';
const TRANSLATED_LENGTH = 96;
const POOL_LENGTH_MAX = 29;

/** All that is wrong with a request. */
export function nat64Faults({ prefix, pool, clients }: Nat64Request): string[] {
  const faults: string[] = [];
  if (prefix.bits !== 128 || prefix.length !== TRANSLATED_LENGTH) {
    faults.push('--prefix: a /96 of IPv6 is needed');
  }
  if (pool.bits !== 32 || pool.length > POOL_LENGTH_MAX) {
    faults.push(`--pool: a prefix of IPv4 of /${POOL_LENGTH_MAX} or larger is needed`);
  }
  if (clients.length === 0)
    faults.push('--client: without a prefix of clients all may come through');
  if (clients.some(({ bits }) => bits !== 128))
    faults.push('--client: prefixes of IPv6 are needed');
  return faults;
}

/** What to know of a request that can be done. */
export function nat64Notes({ prefix, pool }: Nat64Request): string[] {
  const hosts = 2 ** (32 - pool.length) - 3;
  const notes = [`At most ${hosts} pods are translated at a time; an address rests 2 hours.`];
  if (prefixText(prefix) === WELL_KNOWN) {
    notes.push(`Behind ${WELL_KNOWN} no private IPv4 address is reached (RFC 6052).`);
  }
  return notes;
}

export function taygaConfig({ prefix, pool, stateDir }: Nat64Request): string {
  return `tun-device ${DEVICE}
ipv4-addr ${addressText(pool.base + 1n, 32)}
prefix ${prefixText(prefix)}
dynamic-pool ${prefixText(pool)}
data-dir ${stateDir}/tayga
`;
}

export function unboundConfig({
  prefix,
  clients,
  listen,
  forward,
  stateDir,
}: Nat64Request): string {
  const lines = [
    'server:',
    '  username: ""',
    '  chroot: ""',
    `  directory: "${stateDir}"`,
    `  pidfile: "${stateDir}/unbound.pid"`,
    '  use-syslog: no',
    `  logfile: "${stateDir}/unbound.log"`,
    '  do-ip6: yes',
    '  module-config: "dns64 iterator"',
    `  dns64-prefix: ${prefixText(prefix)}`,
    ...listen.map((address) => `  interface: ${address}`),
    ...clients.map((client) => `  access-control: ${prefixText(client)} allow`),
    'remote-control:',
    '  control-enable: no',
  ];
  if (forward.length > 0) {
    lines.push('forward-zone:', '  name: "."', ...forward.map((one) => `  forward-addr: ${one}`));
  }
  return `${lines.join('\n')}\n`;
}

/** Steps in their order. */
export function nat64Steps(request: Nat64Request): readonly Step[] {
  const { prefix, pool, stateDir, listen, translator } = request;
  const set = (path: string): Step => ({ kind: 'setting', path, value: '1', isOptional: false });
  const steps: Step[] = [set('net/ipv6/conf/all/forwarding'), set('net/ipv4/ip_forward')];
  steps.push({ kind: 'directory', path: `${stateDir}/tayga` });
  if (translator === 'tayga') {
    const config = `${stateDir}/tayga.conf`;
    steps.push({ kind: 'file', path: config, text: taygaConfig(request), mode: INPUT_FILE_MODE });
    steps.push({ kind: 'tunnel', name: DEVICE, config });
    steps.push({ kind: 'deviceRoute', prefix: prefixText(pool), device: DEVICE });
    steps.push({ kind: 'deviceRoute', prefix: prefixText(prefix), device: DEVICE });
    steps.push({ kind: 'nftables', table: TABLE, family: 'inet', rules: natRules(request) });
    const pidFile = `${stateDir}/tayga.pid`;
    steps.push({
      ...{ kind: 'daemon', pidFile, program: 'tayga' },
      args: ['--config', config, '--pidfile', pidFile],
    });
  } else {
    const args = ['instance', 'add', JOOL_INSTANCE, '--netfilter', '--pool6', prefixText(prefix)];
    const undo = ['jool', 'instance', 'remove', JOOL_INSTANCE];
    steps.push({ kind: 'command', words: ['modprobe', 'jool'], undo: [] });
    steps.push({ kind: 'command', words: ['jool', ...args], undo });
  }
  if (listen.length > 0) {
    const config = `${stateDir}/unbound.conf`;
    steps.push({ kind: 'file', path: config, text: unboundConfig(request), mode: INPUT_FILE_MODE });
    const pidFile = `${stateDir}/unbound.pid`;
    steps.push({ kind: 'daemon', program: 'unbound', args: ['-c', config], pidFile });
  }
  return steps;
}

/** Who is translated goes out under the gateway's address; others do not come through. */
function natRules({ pool, prefix, uplink, clients }: Nat64Request): string {
  const from = clients.map(prefixText).join(', ');
  return `table inet ${TABLE} {
  chain forward {
    type filter hook forward priority filter; policy accept;
    ip6 daddr ${prefixText(prefix)} ip6 saddr != { ${from} } counter drop
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${prefixText(pool)} oifname "${uplink}" masquerade
  }
}
`;
}
