/**
 * etcd's flags, of 3.4 to 3.7, that a store of one member has no use for. Most are taken and named
 * in one warning, so that manifests keep working. Those that ask for what this store is not, a
 * member among others or a server of the v2 API, are refused: whoever starts three stores as
 * three members would believe their data to be in three places.
 */
import type { Command } from 'commander';
import { addForeignFlags, flagNames, foreignFlags, foreignValue } from './foreign-flags.ts';

const UNUSED: readonly string[] = flagNames(`
  initial-cluster initial-cluster-state initial-cluster-token
  initial-corrupt-check initial-election-tick-advance
  peer-auto-tls peer-cert-allowed-cn peer-cert-allowed-hostname peer-cert-file
  peer-client-cert-auth peer-client-cert-file peer-client-key-file peer-crl-file
  peer-key-file peer-skip-client-san-verification peer-trusted-ca-file
  discovery discovery-cacert discovery-cert discovery-dial-timeout discovery-endpoints
  discovery-fallback discovery-insecure-skip-tls-verify discovery-insecure-transport
  discovery-keepalive-time discovery-keepalive-timeout discovery-key discovery-password
  discovery-proxy discovery-request-timeout discovery-srv discovery-srv-name
  discovery-token discovery-user
  proxy proxy-dial-timeout proxy-failure-wait proxy-read-timeout proxy-refresh-interval
  proxy-write-timeout
  advertise-peer-urls backend-batch-interval backend-batch-limit
  backend-bbolt-freelist-type bootstrap-defrag-threshold-megabytes client-cert-file
  client-key-file compact-hash-check-enabled compact-hash-check-time compaction-batch-limit
  compaction-sleep-interval corrupt-check-time debug downgrade-check-time election-timeout
  enable-log-rotation enable-pprof enable-v2 feature-gates force-new-cluster
  grpc-keepalive-min-time heartbeat-interval listen-peer-urls log-outputs
  log-package-levels log-rotation-config-json logger max-learners max-snapshots max-wals
  memory-mlock pre-vote raft-read-timeout raft-write-timeout snapshot-catchup-entries
  snapshot-count socket-reuse-address socket-reuse-port strict-reconfig-check
  v2-deprecation wal-dir warning-apply-duration warning-unary-request-duration
  distributed-tracing-address distributed-tracing-instance-id
  distributed-tracing-sampling-rate distributed-tracing-service-name
  enable-distributed-tracing
  experimental-backend-bbolt-freelist-type
  experimental-bootstrap-defrag-threshold-megabytes experimental-compact-hash-check-enabled
  experimental-compact-hash-check-time experimental-compaction-batch-limit
  experimental-compaction-sleep-interval experimental-corrupt-check-time
  experimental-distributed-tracing-address experimental-distributed-tracing-instance-id
  experimental-distributed-tracing-sampling-rate
  experimental-distributed-tracing-service-name experimental-downgrade-check-time
  experimental-enable-distributed-tracing experimental-enable-lease-checkpoint
  experimental-enable-lease-checkpoint-persist experimental-enable-v2v3
  experimental-initial-corrupt-check experimental-memory-mlock
  experimental-peer-skip-client-san-verification experimental-snapshot-catchup-entries
  experimental-stop-grpc-service-on-defrag experimental-txn-mode-write-with-shared-buffer
  experimental-warning-apply-duration experimental-warning-unary-request-duration
`);

/** Values that mean "no" to etcd. */
const OFF = new Set<unknown>(['', 'false', 'off', 'exit', '0']);
const ONE_MEMBER = 'this store is one member and has no peers';

/** Adds them, hidden. */
export function addUnusedFlags(command: Command): Command {
  return addForeignFlags(command, UNUSED);
}

/** Which of them were given, for one warning. */
export function unusedFlags(command: Command): string[] {
  return foreignFlags(command, UNUSED);
}

/** Why the store must not start with what was given; null when it may. */
export function refusedFlag(command: Command): string | null {
  const value = (name: string): unknown => foreignValue(command, name);
  const isOn = (name: string): boolean => value(name) !== undefined && !OFF.has(value(name));
  const cluster = value('initial-cluster');
  const members = typeof cluster === 'string' ? cluster.split(',') : [];
  const names = new Set(members.map((member) => member.split('=')[0]));
  if (names.size > 1) {
    return (
      `--initial-cluster: names ${names.size} members, but ${ONE_MEMBER}; start one store, or ` +
      'etcd itself where data must be on several machines'
    );
  }
  const finder = UNUSED.find(
    (name) => /^discovery(-token|-srv|-endpoints)?$/.test(name) && isOn(name),
  );
  if (finder !== undefined) {
    return `--${finder}: finds the members of a cluster, but ${ONE_MEMBER}; leave it out`;
  }
  if (isOn('proxy')) return '--proxy: this program is no proxy; leave it out, or run etcd for it';
  const older = ['enable-v2', 'experimental-enable-v2v3'].find(isOn);
  return older === undefined ? null : `--${older}: the v2 API is not offered; use the v3 API`;
}
