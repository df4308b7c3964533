/**
 * The API server by itself, over TLS and HTTP/2: what each kind of request costs it.
 *
 *     node bench/apiserver.ts --pods 20000 --runs 3 [--only pattern]
 *
 * The server has one core, the load the other. Rates are requests per second of the server's
 * processor time (and, beside it, of the clock); so are lists, of which the median hides nothing:
 * each figure is the mean of ten or more, after one that warms up.
 *
 *     node bench/apiserver.ts --runs 1 --peer ./kube-apiserver
 *
 * With `--peer` each run is played with that program too, on an etcd of its own (`etcd` on PATH);
 * both count together. It gets a tenth of the leases and no more pods than lists need.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@megaplane/client/client';
import { flagsOf, wholeNumbers } from './flags.ts';
import * as load from './apiserver-load.ts';
import * as harness from './harness.ts';
import { startKubeApiserver } from './kube-apiserver.ts';

const values = flagsOf({
  pods: { type: 'string', default: '20000' },
  leases: { type: 'string', default: '20000' },
  nodes: { type: 'string', default: '2000' },
  runs: { type: 'string', default: '3' },
  peer: { type: 'string' },
  only: { type: 'string', default: '' },
  output: { type: 'string' },
});
const given = wholeNumbers(values, { pods: 1, leases: 1, nodes: 0, runs: 1 });
const ONLY = new RegExp(values.only);
const LIST_PODS = 10_000;
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const JSON_TYPE = 'application/json';
const WATCHERS = 500;
const WATCH_EVENTS = 400;
const IDLE_WATCHES = 2000;
const IDLE_CONNECTIONS = 500;

interface Row {
  readonly title: string;
  readonly goal: string;
  readonly unit: string;
  readonly figures: number[];
  readonly besides: number[];
  /** Of the peer. */
  readonly theirs: number[];
}

const rows: Row[] = [];
/** Whether what is noted is of the peer. */
let isPeer = false;

function note(title: string, goal: string, unit: string, figure: number, beside = NaN): void {
  let row = rows.find((one) => one.title === title);
  if (row === undefined) {
    row = { title, goal, unit, figures: [], besides: [], theirs: [] };
    rows.push(row);
  }
  if (isPeer) {
    row.theirs.push(figure);
    return;
  }
  row.figures.push(figure);
  row.besides.push(beside);
}

function noteRate(title: string, goal: string, { perCpuSecond, perSecond }: load.Rate): void {
  note(title, goal, '/CPU s', perCpuSecond, perSecond);
}

/** One server with its data, and clients of it. */
interface Rig {
  /** The server's processes. */
  readonly pids: readonly number[];
  readonly kubeconfig: string;
  /** 64 requests in flight on 4 connections. */
  readonly many: readonly Client[];
  readonly all: load.Leases;
  readonly leaseCount: number;
  readonly podCount: number;
}

async function leases(rig: Rig, isProtobuf: boolean): Promise<void> {
  const title = `lease PUT ${isProtobuf ? 'protobuf' : 'JSON'}`;
  const { all, leaseCount } = rig;
  all.isProtobuf = isProtobuf;
  await load.shoot(rig.many, leaseCount, (index) => all.shot(index), all.seen);
  const count = leaseCount * 3;
  const shoot = () => load.shoot(rig.many, count, (index) => all.shot(index), all.seen);
  noteRate(
    `${title}, 64 in flight on 4 connections`,
    '60,000',
    await load.rateOf(rig.pids, count, shoot),
  );
  if (isProtobuf) return;
  const single = await load.openClients(rig.kubeconfig, 1000, 1, 1);
  await load.shoot(single, 2000, (index) => all.shot(index), all.seen);
  const rate = await load.rateOf(rig.pids, leaseCount, () =>
    load.shoot(single, leaseCount, (index) => all.shot(index), all.seen),
  );
  noteRate(`${title}, one at a time on 1,000 connections`, '15,000', rate);
  for (const client of single) client.close();
}

async function pods({ pids, many, podCount: count }: Rig): Promise<void> {
  const create = () => load.shoot(many, count, load.podShot);
  noteRate('pod create, 2 KB JSON', '10,000', await load.rateOf(pids, count, create));
  const bind = () => load.shoot(many, count, load.bindShot);
  noteRate('binding POST', '25,000', await load.rateOf(pids, count, bind));
  const patch = () => load.shoot(many, count, (index) => load.statusShot(index, 1, true));
  noteRate('pod status PATCH', '12,000', await load.rateOf(pids, count, patch));
  const put = () => load.shoot(many, count, (index) => load.statusShot(index, 2, false));
  noteRate('pod status PUT', '12,000', await load.rateOf(pids, count, put));
  const get = () =>
    load.shoot(many, count, (index) => {
      const path = `${load.PODS}/pod-${index}`;
      return { method: 'GET', path, type: JSON_TYPE, body: null };
    });
  noteRate('get by name', '60,000', await load.rateOf(pids, count, get));
}

/** The server's processor time for a list, and beside it the time until its last byte is in. */
async function lists({ kubeconfig, pids }: Rig): Promise<void> {
  const [client] = await load.openClients(kubeconfig, 1, 1, 10);
  if (client === undefined) return;
  const time = async (title: string, goal: string, path: string, accept: string, times = 10) => {
    if (times > 1) await load.fetchAll(client, path, accept);
    const before = load.cpuSecondsOf(pids);
    let clockMs = 0;
    for (let index = 0; index < times; index++) {
      clockMs += (await load.fetchAll(client, path, accept)).ms;
    }
    const cpuMs = (load.cpuSecondsOf(pids) - before) * 1000;
    note(title, goal, 'ms of CPU', cpuMs / times, clockMs / times);
  };
  const page = `${load.PODS}?limit=${LIST_PODS}`;
  await time('list 10,000 pods, JSON', '40', page, JSON_TYPE);
  await time('list 10,000 pods, protobuf, first', '250', page, PROTOBUF, 1);
  await time('list 10,000 pods, protobuf, again', '60', page, PROTOBUF);
  await time('list 10,000 pods, Table', '120', page, TABLE);
  await time('page of 500', '3', `${load.PODS}?limit=500`, JSON_TYPE, 50);
  await time('label selector, 1 %', '20', `${load.PODS}?labelSelector=part%3Dp7`, JSON_TYPE);
  const ofNode = `/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-7`;
  await time('field selector spec.nodeName', '0.7', ofNode, JSON_TYPE, 50);
  client.close();
}

async function fanOut({ kubeconfig, pids, many }: Rig, connections: number): Promise<void> {
  const clients = await load.openClients(kubeconfig, connections, 1, 10);
  const listed = await clients[0]?.request({ method: 'GET', path: `${load.PODS}?limit=1` });
  const metadata = listed?.ok === true ? listed.object['metadata'] : undefined;
  const revision = (metadata as { readonly resourceVersion?: string }).resourceVersion ?? '';
  let events = 0;
  const watching = Array.from({ length: WATCHERS }, (_, index) => {
    return clients[index % connections]?.stream(
      `${load.PODS}?watch=true&resourceVersion=${revision}`,
      {
        onHead: () => undefined,
        onData: (bytes, start, end) => {
          for (let at = start; at < end; at++) if (bytes[at] === 0x0a) events++;
        },
        onEnd: () => undefined,
      },
    );
  });
  // until all watches are open
  await quiet(() => events);
  const before = events;
  const expected = WATCH_EVENTS * WATCHERS;
  const round = 3 + connections;
  const rate = await load.rateOf(pids, expected, async () => {
    await load.shoot(many, WATCH_EVENTS, (index) => load.statusShot(index, round, true));
    await quiet(() => events, 30);
  });
  const title = `watch fan-out, ${WATCHERS} watches on ${connections} connections`;
  noteRate(title, connections === 10 ? '250,000' : '100,000', rate);
  note(`${title}: events that came`, '100', '%', ((events - before) / expected) * 100);
  for (const one of watching) one?.cancel();
  for (const client of clients) client.close();
}

/** Resolves when a count has stood still for a while. */
async function quiet(read: () => number, forTenths = 10): Promise<void> {
  let last = -1;
  let still = 0;
  while (still < forTenths) {
    await sleep(100);
    still = read() === last ? still + 1 : 0;
    last = read();
  }
}

async function idle({ kubeconfig, pids }: Rig): Promise<void> {
  const clients = await load.openClients(kubeconfig, 20, 1, 10);
  const path = '/api/v1/namespaces/kube-system/configmaps?watch=true';
  const watch = (index: number) =>
    clients[index % 20]?.stream(path, {
      onHead: () => undefined,
      onData: () => undefined,
      onEnd: () => undefined,
    });
  for (let index = 0; index < 20; index++) watch(index);
  await sleep(1000);
  const before = load.rssMibOf(pids);
  for (let index = 0; index < IDLE_WATCHES; index++) watch(index);
  await sleep(3000);
  note('idle watch', '2', 'KiB', ((load.rssMibOf(pids) - before) * 1024) / IDLE_WATCHES);
  const beforeMib = load.rssMibOf(pids);
  const single = await load.openClients(kubeconfig, IDLE_CONNECTIONS, 1, 1);
  await Promise.all(single.map((client) => client.request({ method: 'GET', path: '/version' })));
  await sleep(3000);
  const grownKib = (load.rssMibOf(pids) - beforeMib) * 1024;
  note('idle TLS connection', '100', 'KiB', grownKib / IDLE_CONNECTIONS);
  for (const client of single) client.close();
  for (const client of clients) client.close();
}

/** A server that can be started again on what it has stored. */
interface Program {
  readonly counts: Pick<Rig, 'leaseCount' | 'podCount'>;
  readonly start: (dataDir: string) => Promise<load.Started>;
}

const ours: Program = {
  counts: { leaseCount: given.leases, podCount: given.pods },
  start: async (dataDir) => {
    const args = ['apiserver', '--data-dir', dataDir, '--secure-port', '0'];
    const server = await harness.startMegaplane(args, 0);
    return { ...server, pids: [server.pid], kubeconfig: join(dataDir, 'kubeconfig') };
  },
};

function peerOf(binary: string): Program {
  const leaseCount = Math.ceil(given.leases / 10);
  return {
    counts: { leaseCount, podCount: Math.min(given.pods, LIST_PODS) },
    start: (dataDir) => startKubeApiserver(binary, dataDir, 0),
  };
}

async function run(program: Program): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));
  let server = await program.start(dataDir);
  try {
    note('start, empty directory', '0.6', 's', server.readyMs / 1000);
    const { pids, kubeconfig } = server;
    const many = await load.openClients(kubeconfig, 1, 4, 64);
    const all = new load.Leases(program.counts.leaseCount);
    const rig: Rig = { pids, kubeconfig, many, all, ...program.counts };
    await prepare(many);
    const parts: readonly (readonly [string, () => Promise<void>])[] = [
      ['lease', () => leases(rig, false)],
      ['protobuf', () => leases(rig, true)],
      ['pod', () => pods(rig)],
      ['list', () => lists(rig)],
      ['watch', () => fanOut(rig, 10)],
      ['watch', () => fanOut(rig, WATCHERS)],
      ['idle', () => idle(rig)],
    ];
    for (const [name, part] of parts) {
      if (!ONLY.test(name)) continue;
      process.stderr.write(`${isPeer ? 'peer: ' : ''}${name} ...\n`);
      await part();
    }
    await load.shoot(many, given.nodes, load.nodeShot);
    note('resident, all of it', '-', 'MiB', load.rssMibOf(pids));
    for (const client of many) client.close();
    await server.stop();
    server = await program.start(dataDir);
    note('start with all of it', '1.2', 's', server.readyMs / 1000);
    note('resident after the start', '-', 'MiB', load.rssMibOf(server.pids));
  } finally {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** What pods need: the account that they run as. */
async function prepare([client]: readonly Client[]): Promise<void> {
  const path = '/api/v1/namespaces/default/serviceaccounts';
  const body = { kind: 'ServiceAccount', apiVersion: 'v1', metadata: { name: 'default' } };
  await client?.request({ method: 'POST', path, body });
}

/** Of two figures of one unit: how many times better ours is; nothing where that says nothing. */
function timesBetter({ unit, figures, theirs }: Row): string {
  const [own, their] = [harness.median(figures), harness.median(theirs)];
  if (unit === '%' || !(own > 0) || !(their > 0)) return '';
  return (unit === '/CPU s' ? own / their : their / own).toFixed(1);
}

harness.pinSelf(1);
const peer = values.peer === undefined ? null : peerOf(values.peer);
for (let index = 0; index < given.runs; index++) {
  isPeer = false;
  await run(ours);
  if (peer === null) continue;
  isPeer = true;
  await run(peer);
}
const { pods: podCount, leases: leaseCount, nodes: nodeCount } = given;
const counts = `${podCount} pods, ${leaseCount} leases, ${nodeCount} nodes, ${given.runs} runs`;
process.stdout.write(`${harness.machine()}\n${counts}\n\n`);
const text = (value: number): string => value.toFixed(value < 100 ? 2 : 0);
const head = ['', 'goal', 'median', '', 'by the clock', 'all runs'];
harness.printTable(
  peer === null ? head : [...head, 'peer', 'times better'],
  rows.map((row) => {
    const { title, goal, unit, figures, besides, theirs } = row;
    const beside = harness.median(besides);
    const cells = [
      title,
      goal,
      text(harness.median(figures)),
      unit,
      Number.isNaN(beside) ? '' : text(beside),
      figures.map(text).join(' '),
    ];
    return peer === null ? cells : [...cells, text(harness.median(theirs)), timesBetter(row)];
  }),
);
harness.writeResults(values.output, { counts, rows });
process.exit();
