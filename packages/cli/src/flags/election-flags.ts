/** The flags of a program of which one works at a time: upstream's component-base names them. */
import { type Command, Option } from 'commander';
import { durationMs, flagValue } from '../parsers/flag-parsers.ts';

export interface ElectionFlags {
  readonly leaderElect?: boolean;
  readonly leaderElectLeaseDuration?: number;
  readonly leaderElectRenewDeadline?: number;
  readonly leaderElectRetryPeriod?: number;
  readonly leaderElectResourceLock?: string;
  readonly leaderElectResourceName?: string;
  readonly leaderElectResourceNamespace?: string;
}

/** Adds them; `lease` is the name that the program uses. */
export function addElectionFlags(command: Command, lease: string): Command {
  return command
    .option(
      '--leader-elect [bool]',
      'wait for the lease before doing anything (default: true)',
      flagValue,
    )
    .addOption(election('--leader-elect-lease-duration', 'the lease is free after this', '15s'))
    .addOption(election('--leader-elect-renew-deadline', 'who leads gives up after this', '10s'))
    .addOption(election('--leader-elect-retry-period', 'between tries for the lease', '2s'))
    .option('--leader-elect-resource-lock <kind>', 'leases; there is no other')
    .option('--leader-elect-resource-name <name>', `of the Lease (default: "${lease}")`)
    .option('--leader-elect-resource-namespace <name>', 'of the Lease (default: "kube-system")');
}

function election(flag: string, description: string, usual: string): Option {
  const text = `${description} (default: ${usual})`;
  return new Option(`${flag} <duration>`, text).argParser(durationMs);
}
