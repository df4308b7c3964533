import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Command } from 'commander';
import { storeCommand } from './commands/store.ts';
import { withTwoDashes } from './store-flags.ts';
import { addUnusedFlags, refusedFlag, unusedFlags } from './unused-flags.ts';

/** What `etcd --help` names, from 3.4 to 3.7, and what their sources define beyond it. */
const OF_ETCD = `
  advertise-client-urls auth-token auth-token-ttl auto-compaction-mode
  auto-compaction-retention auto-tls backend-batch-interval backend-batch-limit
  backend-bbolt-freelist-type bcrypt-cost bootstrap-defrag-threshold-megabytes cert-file
  cipher-suites client-cert-allowed-hostname client-cert-auth client-cert-file client-crl-file
  client-key-file compact-hash-check-time compaction-batch-limit compaction-sleep-interval
  config-file corrupt-check-time cors data-dir debug discovery discovery-cacert discovery-cert
  discovery-dial-timeout discovery-endpoints discovery-fallback
  discovery-insecure-skip-tls-verify discovery-insecure-transport discovery-keepalive-time
  discovery-keepalive-timeout discovery-key discovery-password discovery-proxy
  discovery-request-timeout discovery-srv discovery-srv-name discovery-token discovery-user
  distributed-tracing-address distributed-tracing-instance-id distributed-tracing-sampling-rate
  distributed-tracing-service-name downgrade-check-time election-timeout
  enable-distributed-tracing enable-grpc-gateway enable-log-rotation enable-pprof enable-v2
  experimental-backend-bbolt-freelist-type experimental-bootstrap-defrag-threshold-megabytes
  experimental-compact-hash-check-enabled experimental-compact-hash-check-time
  experimental-compaction-batch-limit experimental-compaction-sleep-interval
  experimental-corrupt-check-time experimental-distributed-tracing-address
  experimental-distributed-tracing-instance-id experimental-distributed-tracing-sampling-rate
  experimental-distributed-tracing-service-name experimental-downgrade-check-time
  experimental-enable-distributed-tracing experimental-enable-lease-checkpoint
  experimental-enable-lease-checkpoint-persist experimental-enable-v2v3
  experimental-initial-corrupt-check experimental-memory-mlock
  experimental-peer-skip-client-san-verification experimental-snapshot-catchup-entries
  experimental-stop-grpc-service-on-defrag experimental-txn-mode-write-with-shared-buffer
  experimental-warning-apply-duration experimental-warning-unary-request-duration
  experimental-watch-progress-notify-interval feature-gates force-new-cluster
  grpc-keepalive-interval grpc-keepalive-min-time grpc-keepalive-timeout heartbeat-interval
  host-whitelist initial-advertise-peer-urls initial-cluster initial-cluster-state
  initial-cluster-token initial-election-tick-advance key-file listen-client-http-urls
  listen-client-urls listen-metrics-urls listen-peer-urls log-format log-level log-outputs
  log-package-levels log-rotation-config-json logger max-concurrent-streams max-learners
  max-request-bytes max-snapshots max-txn-ops max-wals memory-mlock metrics name peer-auto-tls
  peer-cert-allowed-cn peer-cert-allowed-hostname peer-cert-file peer-client-cert-auth
  peer-client-cert-file peer-client-key-file peer-crl-file peer-key-file
  peer-skip-client-san-verification peer-trusted-ca-file pre-vote proxy proxy-dial-timeout
  proxy-failure-wait proxy-read-timeout proxy-refresh-interval proxy-write-timeout
  quota-backend-bytes raft-read-timeout raft-write-timeout self-signed-cert-validity
  snapshot-catchup-entries snapshot-count socket-reuse-address socket-reuse-port
  strict-reconfig-check tls-max-version tls-min-version trusted-ca-file unsafe-no-fsync
  v2-deprecation version wal-dir warning-apply-duration warning-unary-request-duration
  watch-progress-notify-interval
`
  .trim()
  .split(/\s+/);

function parsed(...args: string[]): Command {
  return addUnusedFlags(new Command('store')).parse(args, { from: 'user' });
}

test('each flag of etcd is known', () => {
  const known = new Set(storeCommand(() => {}).options.map(({ long }) => long?.slice(2)));
  assert.deepEqual(
    OF_ETCD.filter((name) => !known.has(name)),
    [],
  );
});

test('values that etcd takes are taken', () => {
  const given = (...args: string[]): Record<string, unknown> => {
    const command = storeCommand(() => {}).action(() => {});
    return command.parse(args, { from: 'user' }).opts();
  };
  const spoken = given('--log-format=console', '--log-level=INFO');
  assert.deepEqual([spoken['logFormat'], spoken['logLevel']], ['text', 'info']);
  assert.equal(given('--log-level', 'panic')['logLevel'], 'error');
  // etcd's own default, as printed configurations have it.
  const streams = given('--max-concurrent-streams=4294967295')['maxConcurrentStreams'];
  assert.equal(streams, 4_294_967_295);
});

test('flags without a use are named, with one dash or two', () => {
  const words = ['-wal-dir', 'x', '--pre-vote', '-snapshot-count=5', '-h', '-1', 'a-b'];
  const dashed = ['--wal-dir', 'x', '--pre-vote', '--snapshot-count=5', '-h', '-1', 'a-b'];
  assert.deepEqual(withTwoDashes(words), dashed);
  const given = parsed('--wal-dir', 'x', '--pre-vote', '--snapshot-count=5');
  assert.deepEqual(unusedFlags(given), ['pre-vote', 'snapshot-count', 'wal-dir']);
  assert.equal(refusedFlag(given), null);
});

test('a store refuses to be one of several members, a proxy or a server of the v2 API', () => {
  const one = 'a=http://1.2.3.4:2380,a=http://[::1]:2380';
  const several = parsed(`--initial-cluster=${one},b=http://1.2.3.5:2380`);
  assert.match(
    refusedFlag(several) ?? '',
    /^--initial-cluster: names 2 members, but .* one member/,
  );
  assert.equal(refusedFlag(parsed(`--initial-cluster=${one}`)), null);
  const found = parsed('--discovery-srv=example.com');
  assert.match(refusedFlag(found) ?? '', /^--discovery-srv: finds the members/);
  assert.equal(refusedFlag(parsed('--discovery-fallback=proxy', '--discovery-srv=')), null);
  assert.match(refusedFlag(parsed('--proxy=on')) ?? '', /^--proxy: /);
  assert.equal(refusedFlag(parsed('--proxy=off', '--enable-v2=false')), null);
  assert.match(refusedFlag(parsed('--enable-v2')) ?? '', /^--enable-v2: .* use the v3 API/);
});
