import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Command } from 'commander';
import { chosenControllers } from '@megaplane/controllers/options';
import { controllersCommand } from '../commands/controllers.ts';
import { CONTROLLER_FOREIGN, refusalOf, tuningOf } from './controller-flags.ts';
import { foreignFlags } from './foreign-flags.ts';
import { secureAddressOf, type SecureFlags } from './secure-flags.ts';

/** What `kube-controller-manager --help` of 1.36.1 names beyond `--help` and `--version`. */
const OF_UPSTREAM = `
  allocate-node-cidrs allow-metric-labels allow-metric-labels-manifest
  attach-detach-reconcile-sync-period authentication-kubeconfig authentication-skip-lookup
  authentication-token-webhook-cache-ttl authentication-tolerate-lookup-failure
  authorization-always-allow-paths authorization-kubeconfig
  authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
  bind-address cert-dir cidr-allocator-type client-ca-file cloud-config cloud-provider
  cluster-cidr cluster-name cluster-signing-cert-file cluster-signing-duration
  cluster-signing-key-file cluster-signing-kube-apiserver-client-cert-file
  cluster-signing-kube-apiserver-client-key-file cluster-signing-kubelet-client-cert-file
  cluster-signing-kubelet-client-key-file cluster-signing-kubelet-serving-cert-file
  cluster-signing-kubelet-serving-key-file cluster-signing-legacy-unknown-cert-file
  cluster-signing-legacy-unknown-key-file concurrent-cron-job-syncs
  concurrent-daemonset-syncs concurrent-deployment-syncs
  concurrent-device-taint-eviction-syncs concurrent-endpoint-syncs
  concurrent-ephemeralvolume-syncs concurrent-gc-syncs
  concurrent-horizontal-pod-autoscaler-syncs concurrent-job-syncs concurrent-namespace-syncs
  concurrent-rc-syncs concurrent-replicaset-syncs concurrent-resource-quota-syncs
  concurrent-resourceclaim-syncs concurrent-service-endpoint-syncs concurrent-service-syncs
  concurrent-serviceaccount-token-syncs concurrent-statefulset-syncs
  concurrent-ttl-after-finished-syncs concurrent-validating-admission-policy-status-syncs
  configure-cloud-routes contention-profiling controller-shutdown-timeout
  controller-start-interval controllers disable-attach-detach-reconcile-sync
  disable-force-detach-on-timeout disable-http2-serving disabled-metrics emulated-version
  enable-dynamic-provisioning enable-garbage-collector enable-hostpath-provisioner
  enable-leader-migration endpoint-updates-batch-period endpointslice-updates-batch-period
  external-cloud-volume-plugin feature-gates flex-volume-plugin-dir
  horizontal-pod-autoscaler-cpu-initialization-period
  horizontal-pod-autoscaler-downscale-stabilization
  horizontal-pod-autoscaler-initial-readiness-delay horizontal-pod-autoscaler-sync-period
  horizontal-pod-autoscaler-tolerance http2-max-streams-per-connection kube-api-burst
  kube-api-content-type kube-api-qps kubeconfig large-cluster-size-threshold leader-elect
  leader-elect-lease-duration leader-elect-renew-deadline leader-elect-resource-lock
  leader-elect-resource-name leader-elect-resource-namespace leader-elect-retry-period
  leader-migration-config legacy-service-account-token-clean-up-period log-flush-frequency
  log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size
  log-text-split-stream logging-format master max-endpoints-per-slice
  min-compatibility-version min-resync-period mirroring-concurrent-service-endpoint-syncs
  mirroring-endpointslice-updates-batch-period mirroring-max-endpoints-per-subset
  namespace-sync-period node-cidr-mask-size node-cidr-mask-size-ipv4
  node-cidr-mask-size-ipv6 node-eviction-rate node-monitor-grace-period node-monitor-period
  node-startup-grace-period permit-address-sharing permit-port-sharing profiling
  pv-recycler-increment-timeout-nfs pv-recycler-minimum-timeout-hostpath
  pv-recycler-minimum-timeout-nfs pv-recycler-pod-template-filepath-hostpath
  pv-recycler-pod-template-filepath-nfs pv-recycler-timeout-increment-hostpath
  pvclaimbinder-sync-period requestheader-allowed-names requestheader-client-ca-file
  requestheader-extra-headers-prefix requestheader-group-headers requestheader-uid-headers
  requestheader-username-headers resource-quota-sync-period root-ca-file
  route-reconciliation-period secondary-node-eviction-rate secure-port
  service-account-private-key-file service-cluster-ip-range show-hidden-metrics-for-version
  terminated-pod-gc-threshold tls-cert-file tls-cipher-suites tls-curve-preferences
  tls-min-version tls-private-key-file tls-sni-cert-key unhealthy-zone-threshold
  use-service-account-credentials v vmodule
`
  .trim()
  .split(/\s+/);

/** The command line of the static pod that kubeadm 1.36 writes. */
const KUBEADM = `
  --allocate-node-cidrs=true
  --authentication-kubeconfig=/etc/kubernetes/controller-manager.conf
  --authorization-kubeconfig=/etc/kubernetes/controller-manager.conf
  --bind-address=127.0.0.1
  --client-ca-file=/etc/kubernetes/pki/ca.crt
  --cluster-cidr=10.244.0.0/16
  --cluster-name=kubernetes
  --cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt
  --cluster-signing-key-file=/etc/kubernetes/pki/ca.key
  --controllers=*,bootstrapsigner,tokencleaner
  --kubeconfig=/etc/kubernetes/controller-manager.conf
  --leader-elect=true
  --requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt
  --root-ca-file=/etc/kubernetes/pki/ca.crt
  --service-account-private-key-file=/etc/kubernetes/pki/sa.key
  --service-cluster-ip-range=10.96.0.0/12
  --use-service-account-credentials=true
`
  .trim()
  .split(/\s+/);

function parsed(...flags: readonly string[]): Command {
  const command = controllersCommand(() => {}).action(() => {});
  command.configureOutput({ writeErr: () => {} });
  return command.exitOverride().parse(['--kubeconfig=x', ...flags], { from: 'user' });
}

test('each flag of kube-controller-manager is known', () => {
  const known = new Set(controllersCommand(() => {}).options.map(({ long }) => long?.slice(2)));
  assert.deepEqual(
    OF_UPSTREAM.filter((name) => !known.has(name)),
    [],
  );
  assert.throws(() => parsed('--no-such-flag=1'));
});

test("kubeadm's command line is taken, and what has no effect is named", async () => {
  const command = parsed(...KUBEADM);
  assert.equal(refusalOf(command), '');
  assert.deepEqual(foreignFlags(command, CONTROLLER_FOREIGN), [
    'cluster-name',
    'requestheader-client-ca-file',
    'use-service-account-credentials',
  ]);
  const { controllers = [], clusterSigning, tokenKeyFile } = tuningOf(command);
  const chosen = chosenControllers(controllers);
  assert(typeof chosen !== 'string' && chosen.has('token-cleaner-controller'));
  assert.deepEqual(clusterSigning, {
    all: { certificateFile: '/etc/kubernetes/pki/ca.crt', keyFile: '/etc/kubernetes/pki/ca.key' },
  });
  assert.equal(tokenKeyFile, '/etc/kubernetes/pki/sa.key');
  const own = { ...command.opts<SecureFlags>(), clientCaFile: '' };
  const secure = await secureAddressOf(own, 10_257);
  assert.deepEqual([secure?.host, secure?.port], ['127.0.0.1', 10_257]);
  assert.match(secure?.certificate ?? '', /BEGIN CERTIFICATE/);
  assert.equal(await secureAddressOf(parsed().opts<SecureFlags>(), 10_257), undefined);
});

test('what upstream refuses is refused in its words', () => {
  const refusals: readonly (readonly [flags: string, text: string])[] = [
    ['--controllers=foo', '"foo" is not in the list of known controllers'],
    [
      '--controllers=foo,-bar,* --max-endpoints-per-slice=2000',
      '["foo" is not in the list of known controllers, "bar" is not in the list of known ' +
        'controllers, max-endpoints-per-slice must not be more than 1000, but got 2000]',
    ],
    ['--concurrent-job-syncs=0', 'concurrent-job-syncs must be greater than 0, but got 0'],
    ['--concurrent-gc-syncs=0', ''],
    ['--leader-elect-resource-lock=endpoints', 'resourceLock value must be "leases"'],
    ['--leader-elect-lease-duration=5s', 'leaseDuration must be greater than renewDeadline'],
    ['--leader-elect-lease-duration=5s --leader-elect=false', ''],
    [
      '--leader-elect-retry-period=20s',
      'renewDeadline must be greater than retryPeriod*JitterFactor',
    ],
    [
      '--cluster-signing-kubelet-serving-cert-file=/b ' +
        '--cluster-signing-kube-apiserver-client-key-file=/c',
      '["cluster-signing-kubelet-serving": cannot specify cert without key, ' +
        '"cluster-signing-kube-apiserver": cannot specify key without cert]',
    ],
    ['--cluster-signing-cert-file=/a', ''],
    [
      '--cluster-signing-key-file=/x --cluster-signing-kubelet-serving-cert-file=/a ' +
        '--cluster-signing-kubelet-serving-key-file=/a',
      'cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file ' +
        'flags at the same time',
    ],
  ];
  for (const [flags, text] of refusals) {
    assert.equal(refusalOf(parsed(...flags.split(' '))), text, flags);
  }
});

test('flags of single controllers reach them', () => {
  const told = tuningOf(
    parsed(
      '--enable-garbage-collector=false',
      '--concurrent-deployment-syncs=20',
      '--horizontal-pod-autoscaler-sync-period=30s',
      '--horizontal-pod-autoscaler-tolerance=0.2',
      '--kube-api-qps=50',
      '--disable-force-detach-on-timeout',
    ),
  );
  const chosen = chosenControllers(told.controllers ?? []);
  assert(typeof chosen !== 'string' && !chosen.has('garbage-collector-controller'));
  assert(chosen.has('job-controller'));
  assert.deepEqual(told.concurrentSyncs, { 'deployment-controller': 20 });
  assert.deepEqual(told.requestRate, { perSecond: 50, burst: 30 });
  assert.equal(told.neverForcesDetach, true);
  const { syncMs, tolerance, downscaleWindowMs } = told.autoscaler ?? {};
  assert.deepEqual([syncMs, tolerance, downscaleWindowMs], [30_000, 0.2, 300_000]);
  assert.equal(tuningOf(parsed('--kube-api-qps=-1')).requestRate, undefined);
});
