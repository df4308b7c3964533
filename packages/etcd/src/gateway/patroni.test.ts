/**
 * The calls that Patroni makes to keep a PostgreSQL cluster's leader in etcd, through the JSON
 * gateway (its `dcs/etcd3.py`), on a real etcd and on ours: the same answers, ids left out.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openStore } from '@megaplane/store/open';
import { has, startEtcd } from '../testing/peer.sim.ts';
import { serveEtcd } from '../server/run-store.ts';

const SKIP =
  has('etcd') && has('etcdctl') ? false : 'needs etcd: apt-get install etcd-server etcd-client';

const b64 = (text: string): string => Buffer.from(text).toString('base64');
const PREFIX = '/service/batman/';
const NAME = b64('postgresql0');
const LEADER = b64(`${PREFIX}leader`);

type Answer = Readonly<Record<string, unknown>>;

/** A node of Patroni, and what it was told. */
class PatroniNode {
  readonly #base: string;
  #token = '';
  /** Ids by the order in which they were seen. */
  readonly #ids: string[] = [];
  readonly told: string[] = [];

  constructor(port: number) {
    this.#base = `http://127.0.0.1:${port}`;
  }

  #show(text: string): string {
    return text
      .replaceAll(/"(cluster_id|member_id|raft_term)":"\d+",?/g, '')
      .replaceAll(/\b\d{14,20}\b/g, (id) => {
        if (!this.#ids.includes(id)) this.#ids.push(id);
        return `id${this.#ids.indexOf(id)}`;
      })
      .replaceAll(/"token":"\w+\.\d+"/g, '"token":"T"')
      .replaceAll(',}', '}')
      .replaceAll(/\d+\.\d+\.\d+\.\d+:\d+|localhost:\d+/g, 'address');
  }

  #headers(): Record<string, string> {
    const headers = { 'content-type': 'application/json', 'user-agent': 'Patroni/4.0.4' };
    return this.#token === '' ? headers : { ...headers, authorization: this.#token };
  }

  async call(path: string, body: unknown): Promise<Answer> {
    const init = { method: 'POST', headers: this.#headers(), body: JSON.stringify(body) };
    const response = await fetch(`${this.#base}/v3${path}`, init);
    const text = await response.text();
    this.told.push(`${path} ${response.status} ${this.#show(text)}`);
    return JSON.parse(text) as Answer;
  }

  /** `_ensure_version_prefix`, `_get_members`. */
  async find(): Promise<void> {
    const version = (await (await fetch(`${this.#base}/version`)).json()) as Record<string, string>;
    for (const name of ['etcdserver', 'etcdcluster']) {
      assert.match(version[name] ?? '', /^\d+\.\d+\.\d+$/, 'Patroni reads numbers between dots');
    }
    await this.call('/cluster/member/list', {});
  }

  async logIn(name: string, password: string): Promise<void> {
    this.#token = '';
    const { token = '' } = await this.call('/auth/authenticate', { name, password });
    this.#token = String(token);
  }

  useToken(token: string): void {
    this.#token = token;
  }

  async lease(ttl: number): Promise<string> {
    return String((await this.call('/lease/grant', { TTL: ttl }))['ID']);
  }

  put(key: string, value: string, more: Answer = {}): Promise<Answer> {
    return this.call('/kv/put', { key: b64(PREFIX + key), value: b64(value), ...more });
  }

  /** `put` with a revision: one compare, one put. */
  putIf(key: string, value: string, compare: Answer, more: Answer = {}): Promise<Answer> {
    const fields = { key: b64(PREFIX + key), value: b64(value), ...more };
    const compares = [{ ...compare, key: fields.key }];
    return this.call('/kv/txn', { compare: compares, success: [{ request_put: fields }] });
  }

  range(serializable = true): Promise<Answer> {
    const range = { key: b64(PREFIX), range_end: b64('/service/batman0'), serializable };
    return this.call('/kv/range', range);
  }

  /**
   * `KVCache`: what a watch on everything tells, until so many events have come or it ends. Events
   * of one moment may come in one answer or in several.
   */
  async watch(from: string, events: number, meanwhile: () => Promise<unknown>): Promise<void> {
    const range = { key: b64(PREFIX), range_end: b64('/service/batman0') };
    const body = JSON.stringify({
      create_request: { ...range, start_revision: from, filters: [] },
    });
    const init = { method: 'POST', headers: this.#headers(), body };
    const response = await fetch(`${this.#base}/v3/watch`, init);
    const told = [`watch ${response.status}`];
    let isWriting: Promise<unknown> | null = null;
    let seen = 0;
    for await (const line of linesOf(response)) {
      const { result } = JSON.parse(line) as WatchLine;
      if (result?.created === true) isWriting ??= meanwhile();
      for (const event of result?.events ?? []) told.push(this.#show(JSON.stringify(event)));
      seen += result?.events?.length ?? 0;
      if (result?.events === undefined) told.push(this.#show(line));
      if (result === undefined || result.canceled === true || seen >= events) break;
    }
    await isWriting;
    this.told.push(told.join('\n'));
  }
}

interface WatchLine {
  readonly result?: {
    readonly created?: boolean;
    readonly canceled?: boolean;
    readonly events?: readonly unknown[];
  };
}

async function* linesOf(response: Response): AsyncIterable<string> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    const lines = (text + decoder.decode(chunk, { stream: true })).split('\n');
    text = lines.pop() ?? '';
    yield* lines;
  }
  if (text !== '') yield text;
}

/** `_update_leader` without the lease that holds the key: two compares, one inside the other. */
function takeOver(lease: string): Answer {
  const put = { request_put: { key: LEADER, value: NAME, lease } };
  const isFree = { key: LEADER, target: 'CREATE', create_revision: '0' };
  return {
    compare: [{ key: LEADER, target: 'VALUE', value: NAME }],
    success: [put],
    failure: [{ request_txn: { compare: [isFree], success: [put] } }],
  };
}

async function runLife(node: PatroniNode): Promise<void> {
  await node.find();
  await node.logIn('patroni', 'secret');
  await node.range();
  const lease = await node.lease(30);
  await node.put('members/postgresql0', '{"state":"running"}', { lease });
  await node.putIf('initialize', '', { target: 'CREATE', create_revision: '0' });
  await node.putIf('leader', 'postgresql0', { target: 'CREATE', create_revision: '0' }, { lease });
  await node.putIf('leader', 'postgresql1', { target: 'CREATE', create_revision: '0' }, { lease });
  await node.put('initialize', '7093463493');
  const config = await node.putIf('config', '{"ttl":30}', { target: 'MOD', mod_revision: '0' });
  const { revision } = config['header'] as { revision: string };
  await node.putIf('config', '{"ttl":20}', { target: 'MOD', mod_revision: revision });
  await node.putIf('config', '{"ttl":10}', { target: 'MOD', mod_revision: revision });
  await node.call('/lease/keepalive', { ID: lease });
  await node.watch(revision, 4, async () => {
    await node.put('status', '{"optime":67108960}');
    await node.call('/kv/txn', takeOver(lease));
  });
  await node.range(false);
  await node.call('/lease/revoke', { ID: lease });
  await node.call('/lease/keepalive', { ID: lease });
  await node.put('members/postgresql0', '{}', { lease });
  const second = await node.lease(30);
  await node.call('/kv/txn', takeOver(second));
  await node.call('/kv/txn', takeOver(second));
  await node.putIf('sync', '{}', { target: 'MOD', mod_revision: '0' });
  const leader = { request_delete_range: { key: LEADER } };
  const isOurs = { key: LEADER, target: 'VALUE', value: NAME };
  await node.call('/kv/txn', { compare: [isOurs], success: [leader] });
  await node.call('/kv/txn', { compare: [isOurs], success: [leader] });
  await node.call('/kv/deleterange', { key: b64(`${PREFIX}initialize`) });
  await node.call('/kv/compaction', { revision });
  await node.watch('2', 2, () => Promise.resolve());
  await node.call('/kv/deleterange', { key: b64(PREFIX), range_end: b64('/service/batman0') });
}

async function runGuarded(node: PatroniNode): Promise<void> {
  await node.call('/auth/user/add', { name: 'root', password: 'r' });
  await node.call('/auth/user/add', { name: 'patroni', password: 'secret' });
  await node.call('/auth/role/add', { name: 'batman' });
  const perm = { permType: 'READWRITE', key: b64(PREFIX), range_end: b64('/service/batman0') };
  await node.call('/auth/role/grant', { name: 'batman', perm });
  await node.call('/auth/user/grant', { user: 'patroni', role: 'batman' });
  await node.call('/auth/user/grant', { user: 'root', role: 'root' });
  await node.call('/auth/enable', {});
  await node.range();
  await node.put('status', '{}');
  await node.logIn('patroni', 'wrong');
  await node.logIn('patroni', 'secret');
  const lease = await node.lease(30);
  const { header } = await node.range();
  const { revision } = header as { revision: string };
  await node.watch(revision, 4, () => node.put('leader', 'postgresql0', { lease }));
  await node.call('/kv/range', { key: b64('/service/robin/') });
  await node.call('/kv/txn', takeOver(lease));
  await node.call('/lease/keepalive', { ID: lease });
  node.useToken('wrong.1');
  await node.range();
  await node.watch(revision, 1, () => Promise.resolve());
  await node.logIn('root', 'r');
  await node.call('/auth/disable', {});
  node.useToken('');
  await node.range();
}

test('Patroni is answered as by a real etcd', { skip: SKIP }, async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, {
    listen: [{ port: 0 }],
    advertiseClientUrls: ['http://localhost:2379'],
    auth: { bcryptCost: 4 },
  });
  const etcd = await startEtcd('etcd', undefined, ['--bcrypt-cost', '4']);
  try {
    const ours = new PatroniNode(server.addresses[0]?.port ?? 0);
    const theirs = new PatroniNode(etcd.port);
    for (const node of [ours, theirs]) {
      await runLife(node);
      await runGuarded(node);
    }
    assert.deepEqual(ours.told, theirs.told);
    assert(ours.told.some((line) => line.includes('"succeeded":true,"responses":[{"response_')));
  } finally {
    await etcd.stop();
    await server.close();
    await opened.close();
  }
});
