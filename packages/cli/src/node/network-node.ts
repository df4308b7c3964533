// shell: standard output and time
/** `megaplane network node`: from flags to what is done. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pauseMs } from 'node:timers/promises';
import {
  bringUp,
  dryRun,
  recordOf,
  requestOf,
  takeDown,
  type NodeNetworkFlags,
} from '@megaplane/network/node/node-network';

/** As the command line gives them: without `--down` an uplink and a prefix are needed. */
export interface NetworkNodeFlags {
  readonly uplink?: string;
  readonly podCidr: readonly string[];
  readonly mode: 'proxy' | 'route';
  readonly bridge: string;
  readonly mtu: number;
  readonly neighbours: number;
  readonly route: readonly string[];
  readonly cniConfigDir?: string;
  readonly cniBinDir?: string;
  readonly stateDir: string;
  readonly trustPrefix?: true;
  readonly down?: true;
  readonly force?: true;
  readonly dryRun?: true;
}

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const CONFIG_DIR = '/etc/cni/net.d';
const PLUGIN_DIRS = ['/opt/cni/bin', '/usr/lib/cni'] as const;

/** Where runtimes look for plugins: the directory that has those of CNI already. */
function pluginDir(flags: NetworkNodeFlags): string {
  const found = PLUGIN_DIRS.find((dir) => existsSync(join(dir, 'bridge')));
  return flags.cniBinDir ?? found ?? PLUGIN_DIRS[0];
}

function requestFlags(flags: NetworkNodeFlags, uplink: string): NodeNetworkFlags {
  return {
    ...flags,
    uplink,
    cniConfigDir: flags.cniConfigDir ?? CONFIG_DIR,
    cniBinDir: pluginDir(flags),
    trustsPrefix: flags.trustPrefix === true,
  };
}

/** Resolves with the exit code; what is wrong is on stderr. */
export async function networkNode(flags: NetworkNodeFlags): Promise<number> {
  if (flags.down === true)
    return report(takeDown(flags.stateDir, flags.force === true), EXIT_FAILED);
  return networkUp(flags);
}

export async function networkUp(flags: NetworkNodeFlags): Promise<number> {
  if (flags.uplink === undefined || flags.podCidr.length === 0) {
    return report(['--uplink and --pod-cidr are needed'], EXIT_USAGE);
  }
  const request = requestOf(requestFlags(flags, flags.uplink));
  if (Array.isArray(request)) return report(request as readonly string[], EXIT_USAGE);
  if (!('uplink' in request)) return EXIT_USAGE;
  if (flags.dryRun === true) {
    process.stdout.write(dryRun(request));
    return 0;
  }
  const record = recordOf(flags.stateDir);
  const options = { trustsPrefix: flags.trustPrefix === true, pause: pauseMs };
  return report(await bringUp(request, record, options), EXIT_FAILED);
}

/** The words of the command that does the same at each start of the machine. */
export function networkWords(flags: NetworkNodeFlags): readonly string[] {
  return [
    ...['network', 'node', '--uplink', flags.uplink ?? ''],
    ...flags.podCidr.flatMap((one) => ['--pod-cidr', one]),
    ...['--mode', flags.mode, '--bridge', flags.bridge, '--state-dir', flags.stateDir],
    ...flags.route.flatMap((one) => ['--route', one]),
    // nobody has it but this machine, which had it before its restart
    '--trust-prefix',
  ];
}

function report(faults: readonly string[], code: number): number {
  for (const fault of faults) process.stderr.write(`megaplane: ${fault}\n`);
  return faults.length === 0 ? 0 : code;
}
