/**
 * kube-scheduler's own flags, so that its manifests work with another program in their place. Those
 * of the election and the secure port mean the same; the former outrank the configuration file.
 * The rest is taken, and named in one warning where it has no effect here.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { formatDuration } from '@megaplane/base/limits';
import type { ElectionFlags } from './election-flags.ts';
import { flagNames } from './foreign-flags.ts';

/** Those without effect here. */
export const SCHEDULER_FOREIGN: readonly string[] = flagNames(`
  allow-metric-labels allow-metric-labels-manifest authentication-tolerate-lookup-failure
  cert-dir contention-profiling disable-http2-serving disabled-metrics
  http2-max-streams-per-connection kube-api-burst kube-api-content-type kube-api-qps
  log-flush-frequency log-json-info-buffer-size log-json-split-stream
  log-text-info-buffer-size log-text-split-stream master min-compatibility-version
  permit-address-sharing permit-port-sharing profiling requestheader-allowed-names
  requestheader-client-ca-file requestheader-extra-headers-prefix
  requestheader-group-headers requestheader-uid-headers requestheader-username-headers
  show-hidden-metrics-for-version tls-cipher-suites tls-curve-preferences tls-min-version
  tls-sni-cert-key vmodule
`);

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
