import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { NEWER } from '@megaplane/etcd/newer-etcd.sim';
import { Command } from 'commander';
import { storeCommand } from '../commands/store.ts';
import { environmentFaults, readEnvironment, withTwoDashes } from './store-flags.ts';
import { addUnusedFlags, refusedFlag, unusedFlags } from './unused-flags.ts';

/** The table of the docs: each flag of etcd, its releases, and what becomes of it here. */
const ROWS = readFileSync(join(import.meta.dirname, '../../../../docs/etcd-flags.md'), 'utf8')
  .split('\n')
  .map((line) => /^\| `--([a-z0-9-]+)` \| ([\d., ]+) \| (.*) \|$/.exec(line))
  .filter((row) => row !== null)
  .map(([, name = '', releases = '', here = '']) => ({ name, releases, here }));

/** What `--help` of a real one names; null where it is not there. */
function helpOf(program: string): string[] | null {
  const { error, stdout, stderr } = spawnSync(program, ['--help'], { encoding: 'utf8' });
  if (error !== undefined) return null;
  const found = `${stdout}${stderr}`.matchAll(/^\s*--([a-z0-9-]+)/gm);
  return [...found].map(([, name = '']) => name);
}

/** Others than those without a use are left alone. */
function parsed(...args: string[]): Command {
  const command = addUnusedFlags(new Command('store')).allowUnknownOption().allowExcessArguments();
  return command.parse(args, { from: 'user' });
}

test('each flag of etcd is known, and what the docs say of it is done', () => {
  assert(ROWS.length > 140);
  const known = new Set(storeCommand(() => {}).options.map(({ long }) => long?.slice(2)));
  for (const { name, here } of ROWS) {
    assert(known.has(name), name);
    const given = parsed(`--${name}=on`);
    const isUnused = unusedFlags(given).includes(name);
    const isRefused = refusedFlag(given) !== null;
    const done = isRefused ? 'refused where' : isUnused ? 'taken' : 'obeyed';
    assert(here.startsWith(done), `--${name} is ${done}, the docs say ${here}`);
  }
});

test('the table of the docs has each flag that a real etcd names', (t) => {
  const documented = new Set(ROWS.map(({ name }) => name));
  const programs = ['etcd', ...(NEWER === null ? [] : [NEWER.etcd])];
  const found = programs.map(helpOf).filter((names) => names !== null);
  if (found.length === 0) return t.skip('needs etcd: apt-get install etcd-server');
  for (const names of found) {
    assert(names.length > 60, 'its help is read');
    assert.deepEqual(
      names.filter((name) => !documented.has(name)),
      [],
    );
  }
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

test('variables of the environment are taken as etcd takes them', () => {
  const faults = (environment: Record<string, string>, ...args: string[]) => {
    const command = readEnvironment(
      storeCommand(() => {}),
      environment,
    );
    return environmentFaults(command.action(() => {}).parse(args, { from: 'user' }), environment);
  };
  const none = { conflict: null, unknown: [] };
  assert.deepEqual(faults({ ETCD_NAME: 'a', PATH: '/bin', ETCDCTL_API: '3' }), none);
  assert.deepEqual(faults({ ETCD_WAL_DIR: 'x' }, '--name', 'a'), none);
  assert.match(faults({ ETCD_NAME: 'a' }, '--name', 'b').conflict ?? '', /--name: ETCD_NAME is in/);
  const services = { ETCD_PORT: 'tcp://10.0.0.1:2379', ETCD_SERVICE_HOST: '10.0.0.1' };
  assert.deepEqual(faults(services).unknown, ['ETCD_PORT', 'ETCD_SERVICE_HOST']);
});

test('help shows what envtest looks for', () => {
  assert.match(storeCommand(() => {}).helpInformation(), /--unsafe-no-fsync/);
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
