import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type OpenStore, openStore } from '@megaplane/store/open';
import { NEWER, NEWER_SKIP } from '../../testing/newer-etcd.sim.ts';
import { has, startEtcd } from '../../testing/peer.sim.ts';
import { type EtcdServer, serveEtcd } from '../../server/run-store.ts';

const SKIP = has('etcdctl') ? false : 'needs etcdctl: apt-get install etcd-client';
const ENVIRONMENT = { ...process.env, ETCDCTL_API: '3' };

async function etcdctl(endpoint: string, line: string): Promise<string> {
  const args = line.split(' ').map((word) => (word === "''" ? '' : word));
  const child = spawn('etcdctl', ['--endpoints', endpoint, ...args], { env: ENVIRONMENT });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stdin.end();
  await once(child, 'close');
  return output
    .trim()
    .replaceAll(/\{"level.*\n?/g, '')
    .replaceAll(/"(ts|logger)":"[^"]*",?/g, '');
}

/** etcdctl's words; every answer must be that of a real etcd. */
const SCRIPT = `
auth enable
auth disable
user add root:secret --interactive=false
user add root:secret --interactive=false
user add --no-password nobody
user list
role list
role add root
user grant-role root root
role add pods
role add pods
role add other
role get root
role grant-permission pods readwrite /pods/ /pods0
role grant-permission pods readwrite /pods/ /pods0
role grant-permission pods read /nodes/ --prefix
role grant-permission pods write single
role grant-permission other read zz --from-key
role grant-permission other read b a
role grant-permission missing read a
role get pods
role get other
role get missing
role revoke-permission pods /nothing
user add alice:pw --interactive=false
user add bob:pw2 --interactive=false
user grant-role alice pods
user grant-role alice pods
user grant-role alice missing
user grant-role missing pods
user revoke-role alice other
user get alice
user get missing
put /pods/a 1
put single 1
put secret 1
auth enable
put /pods/a 2
get /pods/a
--user alice:wrong get /pods/a
--user missing:pw get /pods/a
--user nobody:pw get /pods/a
--user alice:pw get /pods/a
--user alice:pw put /pods/a 3
--user alice:pw put /pods/a 3 --prev-kv
--user alice:pw get single
--user alice:pw put single 2
--user alice:pw put single 2 --prev-kv
--user alice:pw get /pods/ --prefix --keys-only
--user alice:pw get /pods/ /pods0 -w fields
--user alice:pw get /pods/ /podz
--user alice:pw get /pod --prefix
--user alice:pw get secret
--user alice:pw del secret
--user alice:pw del /pods/a
--user alice:pw del single --prev-kv
--user alice:pw get zz
--user bob:pw2 get /pods/a
--user alice:pw compaction 3
--user alice:pw user list
--user alice:pw user get alice
--user alice:pw user get bob
--user alice:pw role get pods
--user alice:pw role get other
--user alice:pw role list
--user alice:pw lease grant 100
--user alice:pw watch secret
--user alice:pw auth disable
--user root:secret user grant-role bob other
--user bob:pw2 get zz
--user bob:pw2 get zzz
--user bob:pw2 get zz --from-key
--user bob:pw2 get zy --from-key
--user root:secret user delete root
--user root:secret user revoke-role root root
--user root:secret role delete root
--user root:secret role delete pods
--user alice:pw get /pods/a
--user root:secret user delete bob
--user bob:pw2 get zz
--user root:secret put x y
--user root:secret get x
--user root:secret auth disable
get secret
user delete alice
role delete other
user list
`;

/** Where etcd 3.4 let through, or left out, what it later did not; we follow the later ones. */
const STRICTER = [
  'role get root',
  'role grant-permission other read b a',
  '--user alice:pw compaction 3',
];

async function compare(theirs: string, ours: string, isOld: boolean): Promise<void> {
  const differences: string[] = [];
  for (const line of SCRIPT.trim().split('\n')) {
    if (isOld && STRICTER.includes(line)) continue;
    const [expected, found] = await Promise.all([etcdctl(theirs, line), etcdctl(ours, line)]);
    const clean = (text: string): string =>
      text
        .replaceAll(/^"(ClusterID|MemberID|RaftTerm)" : .*$/gm, '')
        .replaceAll(/lease [0-9a-f]+ granted/g, 'lease granted')
        .replaceAll(theirs, 'E')
        .replaceAll(ours, 'E')
        .replaceAll(/endpoint:\/\/client-[^/]*/g, 'endpoint');
    if (clean(expected) === clean(found)) continue;
    differences.push(`${line}\n  theirs ${clean(expected)}\n  ours   ${clean(found)}`);
  }
  assert.deepEqual(differences, []);
}

async function withServer(
  dataDir: string | null,
  use: (server: EtcdServer, endpoint: string, opened: OpenStore) => Promise<void>,
): Promise<void> {
  const opened = openStore({ dataDir, durability: 'fsync', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }], auth: { bcryptCost: 4 } });
  try {
    await use(server, `127.0.0.1:${server.addresses[0]?.port}`, opened);
  } finally {
    await server.close();
    await opened.close();
  }
}

test('users and roles answer as those of a real etcd', { skip: SKIP || !has('etcd') }, async () => {
  const etcd = await startEtcd('etcd', undefined, ['--bcrypt-cost', '4']);
  try {
    await withServer(null, (_server, endpoint) =>
      compare(`127.0.0.1:${etcd.port}`, endpoint, true),
    );
  } finally {
    await etcd.stop();
  }
});

test('the same as of a newer etcd', { skip: SKIP || NEWER_SKIP }, async () => {
  const etcd = await startEtcd(NEWER?.etcd ?? '', undefined, ['--bcrypt-cost', '4']);
  try {
    await withServer(null, (_server, endpoint) =>
      compare(`127.0.0.1:${etcd.port}`, endpoint, false),
    );
  } finally {
    await etcd.stop();
  }
});

test('a restart keeps users, roles and the enabled guard', { skip: SKIP }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-auth-'));
  try {
    await withServer(dir, async (_server, endpoint) => {
      for (const line of [
        'user add root:secret --interactive=false',
        'user grant-role root root',
        'role add r',
        'role grant-permission r read k',
        'user add alice:pw --interactive=false',
        'user grant-role alice r',
        'put k v',
        'auth enable',
      ]) {
        assert.doesNotMatch(await etcdctl(endpoint, line), /Error/);
      }
    });
    await withServer(dir, async (_server, endpoint) => {
      assert.match(await etcdctl(endpoint, 'get k'), /etcdserver: user name is empty/);
      assert.equal(await etcdctl(endpoint, '--user alice:pw get k'), 'k\nv');
      assert.match(await etcdctl(endpoint, '--user alice:pw put k w'), /permission denied/);
      const gateway = async (path: string, body: object, token = ''): Promise<string> => {
        const headers = token === '' ? {} : { authorization: token };
        const init = { method: 'POST', body: JSON.stringify(body), headers };
        return (await fetch(`http://${endpoint}/v3/${path}`, init)).text();
      };
      const login = await gateway('auth/authenticate', { name: 'alice', password: 'pw' });
      const { token } = JSON.parse(login) as { token: string };
      assert.match(await gateway('kv/range', { key: 'aw==' }, token), /"value":"dg=="/);
      assert.match(await gateway('kv/range', { key: 'aw==' }), /user name is empty/);
      assert.match(await gateway('kv/range', { key: 'aw==' }, 'x.1'), /invalid auth token/);
    });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
