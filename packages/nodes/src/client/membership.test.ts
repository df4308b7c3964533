import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClientRequest, ClientResponse } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { FakeClient } from '../../test/fake-client.ts';
import { Membership, parsePart, PERIOD_MS, SILENT_MS } from './membership.ts';

/** The leases of one server, for any number of members. */
class Leases {
  readonly byName: Map<string, JsonObject> = new Map();

  answer({ method, path, body }: ClientRequest): ClientResponse {
    const name = path.split('/').at(-1) ?? '';
    const of = (object: JsonObject | undefined): ClientResponse =>
      (object === undefined
        ? { ok: false, code: 404, status: {} }
        : { ok: true, code: 200, object }) as unknown as ClientResponse;
    if (path.includes('labelSelector')) return of({ items: [...this.byName.values()] });
    if (method === 'DELETE') this.byName.delete(name);
    if (method === 'GET' || method === 'DELETE') return of(this.byName.get(name));
    const lease = body as { readonly metadata: { readonly name: string } } & JsonObject;
    this.byName.set(lease.metadata.name, lease);
    return of(lease);
  }
}

class Member extends FakeClient {
  readonly parts: string[] = [];
  readonly membership: Membership;
  readonly #leases: Leases;
  isCut = false;

  constructor(leases: Leases, identity: string) {
    super(1);
    this.#leases = leases;
    this.membership = new Membership({
      client: this,
      identity,
      onPart: ({ index, count }) => this.parts.push(`${index}/${count}`),
      onTrouble: () => {},
    });
  }

  override request(request: ClientRequest): Promise<ClientResponse> {
    if (this.isCut) return Promise.reject(new Error('cut off'));
    return Promise.resolve(this.#leases.answer(request));
  }
}

async function turns(members: readonly Member[], durationMs: number): Promise<void> {
  for (let passed = 0; passed < durationMs; passed += PERIOD_MS) {
    for (const member of members) {
      member.pass(PERIOD_MS);
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    }
  }
}

test('members count each other, and those that fall silent no longer', async () => {
  const leases = new Leases();
  const [a, b] = [new Member(leases, 'a'), new Member(leases, 'b')];
  assert.deepEqual(await a.membership.start(), { index: 0, count: 1 });
  assert.deepEqual(await b.membership.start(), { index: 1, count: 2 });
  await turns([a, b], PERIOD_MS);
  assert.deepEqual(a.parts, ['0/2']);
  b.isCut = true;
  await turns([a, b], SILENT_MS + PERIOD_MS);
  assert.deepEqual(a.parts, ['0/2', '0/1']);
  b.isCut = false;
  await turns([a, b], 2 * PERIOD_MS);
  assert.deepEqual(a.parts, ['0/2', '0/1', '0/2']);
  assert.deepEqual(b.parts, []);
  await a.membership.stop();
  await turns([b], PERIOD_MS);
  assert.deepEqual(b.parts, ['0/1']);
});

test('a lease that was left behind long ago is not a member', async () => {
  const leases = new Leases();
  const old = { renewTime: '2020-01-01T00:00:00.000000Z', leaseDurationSeconds: 12 };
  leases.byName.set('a', { metadata: { name: 'a' }, spec: old });
  const b = new Member(leases, 'b');
  assert.deepEqual(await b.membership.start(), { index: 0, count: 1 });
});

test('leases of killed members are deleted in the end, those of others are not', async () => {
  const leases = new Leases();
  const [a, b, c] = ['a', 'b', 'c'].map((name) => new Member(leases, name)) as [
    Member,
    Member,
    Member,
  ];
  for (const { membership } of [a, b, c]) await membership.start();
  b.isCut = true;
  await turns([a, b, c], 500_000);
  assert.deepEqual([...leases.byName.keys()], ['a', 'b', 'c']);
  await turns([a, b, c], 200_000);
  assert.deepEqual([...leases.byName.keys()], ['a', 'c']);
  assert.deepEqual(c.parts, ['1/2']);
});

test('who was cut off for long waits until all know of it again', async () => {
  const leases = new Leases();
  const [a, b] = [new Member(leases, 'a'), new Member(leases, 'b')];
  await a.membership.start();
  await b.membership.start();
  await turns([a, b], 3 * PERIOD_MS);
  assert.ok(b.membership.isSure);
  b.isCut = true;
  await turns([a, b], SILENT_MS);
  assert.ok(!b.membership.isSure);
  b.isCut = false;
  await turns([a, b], PERIOD_MS);
  assert.ok(!b.membership.isSure, 'a may still renew its leases');
  await turns([a, b], 2 * PERIOD_MS);
  assert.ok(b.membership.isSure);
  assert.ok(a.membership.isSure);
});

test('a part that is none is told', () => {
  assert.deepEqual(parsePart('1/4'), { index: 1, count: 4 });
  const wrong = [
    ['4/4', /counted from 0, so the last is 3/],
    ['x', /neither auto nor I\/N/],
    ['0/0', /from 1 to 1024/],
  ] as const;
  for (const [text, expected] of wrong) {
    const found = parsePart(text);
    assert(found instanceof Error);
    assert.match(found.message, expected);
  }
});
