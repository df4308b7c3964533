import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Command } from 'commander';
import { addElectionFlags } from './election-flags.ts';
import { addForeignFlags, foreignFlags, foreignWarning } from './foreign-flags.ts';
import { addKlogFlags, withKlogFlags } from '../service/logging.ts';
import { configurationOf } from './scheduler-files.ts';
import { electionMembers, SCHEDULER_FOREIGN } from './scheduler-flags.ts';
import { addSecureFlags, secureAddressOf } from './secure-flags.ts';

function parsed(...flags: readonly string[]): Command {
  const command = addKlogFlags(addElectionFlags(new Command('scheduler'), 'kube-scheduler'));
  addForeignFlags(addSecureFlags(command, 10_259), SCHEDULER_FOREIGN);
  command.configureOutput({ writeErr: () => {} });
  return command.exitOverride().parse(flags, { from: 'user' });
}

test('the flags of a manifest of kubeadm are taken, and those without effect named', () => {
  const given = parsed(
    '--authentication-kubeconfig=/etc/kubernetes/scheduler.conf',
    '--authorization-kubeconfig=/etc/kubernetes/scheduler.conf',
    '--bind-address=127.0.0.1',
    '--leader-elect=true',
    '--kube-api-qps=100',
    '--profiling=false',
  );
  const found = foreignFlags(given, SCHEDULER_FOREIGN);
  assert.deepEqual(found, ['kube-api-qps', 'profiling']);
  assert.equal(foreignWarning('unused', found), 'unused: --kube-api-qps, --profiling');
  assert.equal(foreignWarning('unused', []), '');
  assert.deepEqual(electionMembers(given.opts()), { leaderElect: true });
  assert.throws(() => parsed('--no-such-flag=1'));
});

test('flags of the election outrank what the file says, and are checked in the same words', () => {
  const electionOf = (...flags: readonly string[]): object =>
    configurationOf(undefined, [], electionMembers(parsed(...flags).opts())).leaderElection;
  const { leaderElection } = configurationOf(undefined);
  assert.deepEqual(electionOf(), leaderElection);
  assert.deepEqual(
    electionOf(
      '--leader-elect=false',
      '--leader-elect-lease-duration=1m0s',
      '--leader-elect-resource-name=second',
    ),
    { ...leaderElection, leaderElect: false, leaseDurationMs: 60_000, name: 'second' },
  );
  const text = 'leaderElection.leaseDuration: Invalid value: "10s": ';
  assert.throws(() => electionOf('--leader-elect-lease-duration=5s'), {
    message: `--leader-elect: ${text}must be greater than \`RenewDeadline\``,
  });
  assert.throws(() => electionOf('--leader-elect-resource-lock=endpoints'), /must be "leases"/);
});

test('the verbosity of klog is heeded', () => {
  const usual = { logFormat: 'text', logLevel: 'info' } as const;
  assert.deepEqual(withKlogFlags(usual), usual);
  assert.deepEqual(withKlogFlags({ ...usual, ...parsed('-v=2').opts() }), usual);
  const told = withKlogFlags({ ...usual, ...parsed('--v=5', '--logging-format=json').opts() });
  assert.deepEqual(told, { logFormat: 'json', logLevel: 'debug' });
});

test('the secure port is served where one of its flags is given', async () => {
  const options = (...flags: readonly string[]) => secureAddressOf(parsed(...flags).opts(), 10_259);
  assert.equal(await options(), undefined);
  assert.equal(await options('--bind-address=127.0.0.1', '--secure-port=0'), undefined);
  const found = await options('--authentication-kubeconfig=a.conf', '--bind-address=127.0.0.1');
  assert.match(found?.certificate ?? '', /BEGIN CERTIFICATE/);
  assert.deepEqual(
    { ...found, certificate: '', key: '' },
    {
      certificate: '',
      key: '',
      port: 10_259,
      host: '127.0.0.1',
      clientCa: '',
      authenticationKubeconfig: 'a.conf',
      authorizationKubeconfig: '',
      looksUp: true,
      openPaths: ['/healthz', '/readyz', '/livez'],
      tokenMs: 10_000,
      allowedMs: 10_000,
      deniedMs: 10_000,
    },
  );
  const own = await options('--secure-port=1', '--authorization-always-allow-paths=/metrics');
  assert.deepEqual(own?.openPaths, ['/metrics']);
  await assert.rejects(options('--tls-cert-file=/none'), /--tls-cert-file: cannot read/);
});
