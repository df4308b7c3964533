/**
 * kube-scheduler's own flags, so that its manifests work with another program in their place. Those
 * of the election mean the same, and outrank the configuration file as they do there. The rest is
 * taken, and named in one warning where it has no effect here.
 */
import { type Command, Option } from 'commander';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { formatDuration } from '@megaplane/base/limits';
import { durationMs, flagValue } from './usage.ts';

export interface ElectionFlags {
  readonly leaderElect?: boolean;
  readonly leaderElectLeaseDuration?: number;
  readonly leaderElectRenewDeadline?: number;
  readonly leaderElectRetryPeriod?: number;
  readonly leaderElectResourceLock?: string;
  readonly leaderElectResourceName?: string;
  readonly leaderElectResourceNamespace?: string;
}

const UNUSED: readonly string[] = `
  allow-metric-labels allow-metric-labels-manifest authentication-kubeconfig
  authentication-skip-lookup authentication-token-webhook-cache-ttl
  authentication-tolerate-lookup-failure authorization-always-allow-paths
  authorization-kubeconfig authorization-webhook-cache-authorized-ttl
  authorization-webhook-cache-unauthorized-ttl bind-address cert-dir client-ca-file
  contention-profiling disable-http2-serving disabled-metrics
  http2-max-streams-per-connection kube-api-burst kube-api-content-type kube-api-qps
  log-flush-frequency log-json-info-buffer-size log-json-split-stream
  log-text-info-buffer-size log-text-split-stream min-compatibility-version
  permit-address-sharing permit-port-sharing profiling requestheader-allowed-names
  requestheader-client-ca-file requestheader-extra-headers-prefix
  requestheader-group-headers requestheader-uid-headers requestheader-username-headers
  secure-port show-hidden-metrics-for-version tls-cert-file tls-cipher-suites
  tls-curve-preferences tls-min-version tls-private-key-file tls-sni-cert-key vmodule
`
  .trim()
  .split(/\s+/);

/** Adds the flags of the election. */
export function addElectionFlags(command: Command): Command {
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
    .option('--leader-elect-resource-name <name>', 'of the Lease (default: "kube-scheduler")')
    .option('--leader-elect-resource-namespace <name>', 'of the Lease (default: "kube-system")');
}

function election(flag: string, description: string, usual: string): Option {
  const text = `${description} (default: ${usual})`;
  return new Option(`${flag} <duration>`, text).argParser(durationMs);
}

/** Adds the others, hidden. */
export function addForeignFlags(command: Command): Command {
  for (const name of UNUSED) command.addOption(new Option(`--${name} [value]`).hideHelp());
  return command
    .addOption(new Option('-v, --v <level>').hideHelp())
    .addOption(new Option('--logging-format <format>').hideHelp());
}

/** Which of those without effect were given. */
export function foreignFlags(command: Command): string[] {
  return UNUSED.filter((name) => {
    const key = name.replaceAll(/-(\w)/g, (_all, letter: string) => letter.toUpperCase());
    return command.getOptionValue(key) !== undefined;
  });
}

/** What the flags say of the election, as members of the configuration; null: nothing. */
export function electionMembers(flags: ElectionFlags): JsonObject | null {
  const text = (value: number | undefined): string | undefined =>
    value === undefined ? undefined : formatDuration(value);
  const members = {
    leaderElect: flags.leaderElect,
    leaseDuration: text(flags.leaderElectLeaseDuration),
    renewDeadline: text(flags.leaderElectRenewDeadline),
    retryPeriod: text(flags.leaderElectRetryPeriod),
    resourceLock: flags.leaderElectResourceLock,
    resourceName: flags.leaderElectResourceName,
    resourceNamespace: flags.leaderElectResourceNamespace,
  };
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return given.length === 0 ? null : (Object.fromEntries(given) as JsonObject);
}
