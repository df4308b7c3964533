/** Random users, roles, logins and calls beside a real etcd, while all of them change. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { openStore } from '@megaplane/store/open';
import { NEWER, NEWER_SKIP } from '../testing/newer-etcd.sim.ts';
import { type Fields, Peer, encode, startEtcd } from '../testing/peer.sim.ts';
import { Message } from '../codec/message.ts';
import { sameLease } from '../testing/random-requests.sim.ts';
import { serveEtcd } from '../server/run-store.ts';
import { showWatch } from '../watch/watch-peer.sim.ts';

const STEPS = process.env['MEGAPLANE_LONG'] === undefined ? 250 : 10_000;
/** Who calls: tokens of logins, the newest of each slot; one is no token, one nobody's. */
const SLOTS = 5;
const NOBODY = 0;
const ROOT = 1;
const LEASES = [5, 6] as const;

const name = fc.constantFrom('root', 'u', 'u', 'v', 'w', '');
const role = fc.constantFrom('root', 'r', 'r', 's', 't', '');
const key = fc.constantFrom('a', 'b', 'c', 'd', '', '\0');
const end = fc.constantFrom('', '', 'b', 'c', 'e', '\0');
const password = fc.constantFrom('pw', 'pw', 'new', '');

type Call = readonly [path: string, fields: Fields];
type Step =
  | { readonly kind: 'call'; readonly slot: number; readonly call: Call }
  | { readonly kind: 'watch'; readonly slot: number; readonly fields: Fields }
  | { readonly kind: 'login'; readonly slot: number; readonly fields: Fields };

/**
 * `fields(a, b)`: the first fields of a message in order. Empty ones are not sent: an end that is
 * sent and empty has a meaning of its own in etcd.
 */
function fields(...values: readonly Fields[number][1][]): Fields {
  const all = values.map((value, index) => [index + 1, value] as const);
  return all.filter(([, value]) => value !== '');
}

const range = fc.tuple(key, end);
const management: fc.Arbitrary<Call> = fc.oneof(
  fc.tuple(name, password).map((one): Call => ['Auth/UserAdd', fields(...one)]),
  name.map((one): Call => ['Auth/UserAdd', [...fields(one), [3, [[1, 1]]]]]),
  fc.tuple(name, password).map((one): Call => ['Auth/UserChangePassword', fields(...one)]),
  fc.constantFrom<Call>(['Auth/UserDelete', fields('w')], ['Auth/UserDelete', fields('u')]),
  fc.tuple(name, role).map((one): Call => ['Auth/UserGrantRole', fields(...one)]),
  fc.tuple(name, role).map((one): Call => ['Auth/UserRevokeRole', fields(...one)]),
  role.map((one): Call => ['Auth/RoleAdd', fields(one)]),
  fc.constantFrom<Call>(['Auth/RoleDelete', fields('t')], ['Auth/RoleDelete', fields('r')]),
  fc
    .tuple(role, fc.constantFrom(0, 1, 2), range)
    .map(([one, type, at]): Call => ['Auth/RoleGrantPermission', fields(one, fields(type, ...at))]),
  fc.tuple(role, range).map(([one, at]): Call => ['Auth/RoleRevokePermission', fields(one, ...at)]),
  fc.constantFrom<Call>(...[['Auth/AuthEnable', []] as const, ['Auth/AuthEnable', []] as const], [
    'Auth/AuthDisable',
    [],
  ]),
);
const looks: fc.Arbitrary<Call> = fc.oneof(
  name.map((one): Call => ['Auth/UserGet', fields(one)]),
  role.map((one): Call => ['Auth/RoleGet', fields(one)]),
  fc.constantFrom<Call>(
    ...[['Auth/UserList', []] as const, ['Auth/RoleList', []] as const],
    ...[['KV/Compact', fields(0)] as const, ['Lease/LeaseLeases', []] as const],
    ['Auth/AuthStatus', []],
  ),
);
const op = fc.oneof(
  range.map((at) => [[1, fields(...at)]] as const),
  key.map((at) => [[2, fields(at, 'v')]] as const),
  range.map((at) => [[3, fields(...at)]] as const),
);
const lease = fc.constantFrom(...LEASES);
const keys: fc.Arbitrary<Call> = fc.oneof(
  range.map((at): Call => ['KV/Range', fields(...at)]),
  fc
    .tuple(key, fc.nat(1))
    .map(([at, previous]): Call => ['KV/Put', [...fields(at, 'v'), [4, previous]]]),
  fc.tuple(key, lease).map(([at, id]): Call => ['KV/Put', fields(at, 'v', id)]),
  fc
    .tuple(range, fc.nat(1))
    .map(([at, previous]): Call => ['KV/DeleteRange', fields(...at, previous)]),
  fc
    .tuple(range, fc.array(op, { maxLength: 2 }))
    .map(([at, ops]): Call => [
      'KV/Txn',
      [
        [1, [[3, at[0]], ...(at[1] === '' ? [] : [[64, at[1]] as const])]],
        ...ops.map((one) => [2, one] as const),
      ],
    ]),
  lease.map((id): Call => ['Lease/LeaseGrant', fields(5000, id)]),
  lease.map((id): Call => ['Lease/LeaseRevoke', fields(id)]),
  lease.map((id): Call => ['Lease/LeaseTimeToLive', fields(id, 1)]),
);
const slot = fc.constantFrom(NOBODY, ROOT, ROOT, 2, 2, 3, SLOTS - 1);
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.constantFrom(ROOT, ROOT, ROOT, ROOT, 2, NOBODY), management)
      .map(([from, call]): Step => ({ kind: 'call', slot: from, call })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(slot, looks)
      .map(([from, call]): Step => ({ kind: 'call', slot: from, call })),
  },
  {
    weight: 8,
    arbitrary: fc
      .tuple(slot, keys)
      .map(([from, call]): Step => ({ kind: 'call', slot: from, call })),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(slot, range, fc.constantFrom(0, 0, -1)).map(([from, at, since]): Step => ({
      ...({ kind: 'watch', slot: from } as const),
      fields: [[1, fields(...at, since)]],
    })),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(fc.constantFrom(2, 3), name, password).map(([to, ...who]): Step => ({
      ...({ kind: 'login', slot: to } as const),
      fields: fields(...who),
    })),
  },
);

/** One server, and its tokens by slot. */
class Side {
  readonly #port: number;
  readonly #peers: Peer[] = [];

  constructor(port: number) {
    this.#port = port;
    for (let at = 0; at < SLOTS; at++) {
      this.#peers.push(new Peer(port, at === SLOTS - 1 ? 'no.1' : ''));
    }
  }

  /** What the answer says, without what differs from server to server. */
  async take(step: Step): Promise<string> {
    const peer = this.#peers[step.slot]!;
    if (step.kind === 'watch') return await firstOf(peer, step.fields);
    if (step.kind === 'login') return await this.login(step.slot, step.fields);
    const [path, request] = step.call;
    const text = await peer.show(path, request);
    return path.startsWith('Lease/') ? sameLease(text) : text;
  }

  async login(to: number, request: Fields): Promise<string> {
    const answer = await this.#peers[NOBODY]!.call('Auth/Authenticate', request);
    if (typeof answer === 'string') return answer;
    this.#peers[to]!.close();
    this.#peers[to] = new Peer(this.#port, new Message(answer).bytes(2).toString());
    return 'logged in';
  }

  close(): void {
    for (const peer of this.#peers) peer.close();
  }
}

/** The first thing that a watch is told, or how it ended. */
async function firstOf(peer: Peer, request: Fields): Promise<string> {
  return await new Promise((resolve) => {
    const call = peer.client.open('/etcdserverpb.Watch/Watch', {
      onMessage: (_call, bytes, start, to) => {
        const { created, canceled, reason, id } = showWatch(bytes, start, to);
        resolve(JSON.stringify({ created, canceled, reason, id }));
        call.cancel();
      },
      onStatus: (_call, status) => resolve(`${status.code} ${status.message}`),
    });
    call.send(encode(request));
  });
}

test('random users and what they may do are those of etcd 3.6', { skip: NEWER_SKIP }, async () => {
  const etcd = await startEtcd(NEWER?.etcd ?? '', undefined, ['--bcrypt-cost', '4']);
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }], auth: { bcryptCost: 4 } });
  const theirs = new Side(etcd.port);
  const ours = new Side(server.addresses[0]?.port ?? 0);
  const seed = Number(process.env['SEED'] ?? 20261123);
  const script: string[] = [];
  const both = async (step: Step): Promise<void> => {
    script.push(JSON.stringify(step));
    const [expected, found] = await Promise.all([theirs.take(step), ours.take(step)]);
    assert.equal(found, expected, `SEED=${seed}\n${script.slice(-30).join('\n')}`);
  };
  try {
    const begin = (...call: Call): Promise<void> => both({ kind: 'call', slot: ROOT, call });
    await begin('Auth/UserAdd', fields('root', 'pw'));
    await begin('Auth/UserGrantRole', fields('root', 'root'));
    await begin('Auth/AuthEnable', []);
    for (const step of fc.sample(steps, { numRuns: STEPS, seed })) {
      // Root comes back, whatever was done to it, unless nobody can.
      await both({ kind: 'login', slot: ROOT, fields: fields('root', 'pw') });
      await both(step);
    }
  } finally {
    theirs.close();
    ours.close();
    await server.close();
    await opened.close();
    await etcd.stop();
  }
});
