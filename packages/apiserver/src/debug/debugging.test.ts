/** Pages for looking into a server: flags, status, health over time, profiles, other programs. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { gunzipSync } from 'node:zlib';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { AccessModel } from '../testing/access.sim.ts';
import { identityOf } from '../request/identity.ts';
import { encodeProfile } from './pprof.ts';
import type { ProcessFacts } from './process-facts.ts';
import { cpuProfileOf, heapProfileOf } from './v8-profiles.ts';

const STARTED_MS = Date.UTC(2026, 10, 5, 6, 7, 8);
const STATUSES = '/api/v1/componentstatuses';

function serverWith(more: Partial<ProcessFacts> = {}): AccessModel {
  const process: ProcessFacts = {
    flags: new Map([
      ['v', '2'],
      ['bind-address', '::'],
    ]),
    startedMs: STARTED_MS,
    runtime: 'node v1',
    probe: (port, then) => then(port === 10259, port === 10259 ? 'ok' : 'dial tcp: refused'),
    profiler: { take: (kind, seconds, then) => then(Buffer.from(`${kind} ${seconds}`)) },
    setVerbosity: null,
    ...more,
  };
  const model = new AccessModel({
    process,
    tokenReaders: () => [(token) => (token === 'joe' ? identityOf('joe', []) : null)],
  });
  model.nowMs = STARTED_MS + 3_723_000;
  return model;
}

function json(model: AccessModel, path: string, accept = ''): JsonObject {
  return JSON.parse(model.ask('GET', path, undefined, '', { accept }).text) as JsonObject;
}

test('flags are a page, or an object of a version that is asked for', () => {
  const model = serverWith();
  const page = model.ask('GET', '/flagz');
  assert.equal(page.contentType, 'text/plain; charset=utf-8');
  assert.match(page.text, /^\napiserver flagz\nWarning: This endpoint is .*\nbind-address:::\n/);
  const accept = 'application/json;v=v1beta1;g=config.k8s.io;as=Flagz';
  assert.deepEqual(json(model, '/flagz', accept), {
    kind: 'Flagz',
    apiVersion: 'config.k8s.io/v1beta1',
    metadata: { name: 'apiserver' },
    flags: { 'bind-address': '::', v: '2' },
  });
  const old = model.ask('GET', '/flagz', undefined, '', {
    accept: accept.replace('beta', 'alpha'),
  });
  assert.match(old.headers.join(), /This version of the flagz endpoint is deprecated/);
  const plain = model.ask('GET', '/flagz', undefined, '', { accept: 'application/json' });
  assert.equal(plain.status, 406);
  assert.match(plain.text, /accepted: application\/json, application\/yaml, text\/plain/);
  assert.equal(model.ask('GET', '/flagz', undefined, 'joe').status, 403);
  assert.equal(model.ask('GET', '/flagz', undefined, '', { accept: '*/*' }).text, page.text);
});

test('the status tells versions, times and where else to look', () => {
  const model = serverWith();
  const { text } = model.ask('GET', '/statusz');
  assert.match(text, /\nStarted: Thu Nov  5 06:07:08 UTC 2026\nUp: 1 hr 02 min 03 sec\n/);
  assert.match(
    text,
    /Binary version: 1\.36\.1\nEmulation version: 1\.36\nPaths: \/flagz \/healthz \/livez/,
  );
  const accept = 'application/json;v=v1beta1;g=config.k8s.io;as=Statusz';
  const { paths, ...rest } = json(model, '/statusz', accept);
  assert.deepEqual(rest, {
    kind: 'Statusz',
    apiVersion: 'config.k8s.io/v1beta1',
    metadata: { name: 'apiserver' },
    startTime: '2026-11-05T06:07:08Z',
    uptimeSeconds: 3723,
    goVersion: 'node v1',
    binaryVersion: '1.36.1',
    emulationVersion: '1.36',
  });
  assert.ok(Array.isArray(paths) && paths.includes('/metrics') && !paths.includes('/apis'));
});

test('checks are counted one by one, where they were looked at together', () => {
  const model = serverWith();
  model.ask('GET', '/readyz?exclude=ping');
  model.ask('GET', '/readyz');
  model.ask('GET', '/livez/log');
  const { text } = model.ask('GET', '/metrics/slis');
  assert.match(text, /\nkubernetes_healthcheck\{name="log",type="readyz"\} 1\n/);
  assert.match(
    text,
    /\nkubernetes_healthchecks_total\{name="log",status="success",type="readyz"\} 2\n/,
  );
  assert.match(text, /\nkubernetes_healthchecks_total\{name="ping",.*type="readyz"\} 1\n/);
  assert.doesNotMatch(text, /livez/);
  const told = model.ask('GET', '/readyz?verbose&exclude=nope').text;
  assert.match(told, /warn: some health checks cannot be excluded: no matches for "nope"\n/);
});

test('how much is logged changes by a PUT', () => {
  const levels: number[] = [];
  const model = serverWith({ setVerbosity: (level) => levels.push(level) });
  const put = (text: string): string => {
    const { status, text: said } = model.ask('PUT', '/debug/flags/v', Buffer.from(text));
    return `${status} ${said}`;
  };
  assert.equal(put('4'), '200 successfully set klog.logging.verbosity to 4\n');
  assert.match(put('x'), /^400 strconv.ParseUint: parsing "x": invalid syntax/);
  assert.deepEqual(levels, [4]);
  assert.equal(model.ask('GET', '/debug/flags/v').status, 406);
  assert.match(model.ask('GET', '/debug/flags').text, /<tr>v<br>/);
});

test('profiles are those that there are, for as long as is asked', () => {
  const model = serverWith();
  assert.equal(model.ask('GET', '/debug/pprof/profile?seconds=2').text, 'profile 2');
  assert.equal(model.ask('GET', '/debug/pprof/heap').text, 'heap 5');
  assert.equal(model.ask('GET', '/debug/pprof/symbol').text, 'num_symbols: 1\n');
  assert.equal(model.ask('GET', '/debug/pprof/goroutine').text, 'Unknown profile\n');
  assert.equal(model.ask('GET', '/debug/pprof/profile?seconds=x').text, 'profile 30');
  assert.equal(model.ask('GET', '/debug/pprof').status, 302);
  assert.equal(model.ask('GET', '/debug/pprof/heap', undefined, 'joe').status, 403);
});

const frame = (functionName: string) => ({ functionName, url: 'a.ts', lineNumber: 4 });

test('a stack of a profile begins with what ran, and idle time is none', () => {
  const nodes = [
    { id: 1, callFrame: frame('(root)'), children: [2, 4] },
    { id: 2, callFrame: frame('outer'), children: [3] },
    { id: 3, callFrame: frame('inner') },
    { id: 4, callFrame: frame('(idle)') },
  ];
  const taken = { nodes, startTime: 0, endTime: 5e4, samples: [3, 4, 3], timeDeltas: [0, 10, 20] };
  const profile = cpuProfileOf(taken, STARTED_MS, 100);
  const outer = { name: 'outer', file: 'a.ts', line: 5 };
  const stack = [{ ...outer, name: 'inner' }, outer];
  assert.deepEqual(profile.samples, [{ stack, values: [2, 110_000] }]);
  const head = { callFrame: frame('(root)'), selfSize: 0, children: [] };
  const inner = { callFrame: frame('inner'), selfSize: 30, children: [] };
  const heap = {
    ...head,
    children: [{ callFrame: frame('outer'), selfSize: 0, children: [inner] }],
  };
  const other = { 'objects from before': 100, arrays: 7 };
  const { samples } = heapProfileOf(heap, other, 0, 1, 1);
  assert.deepEqual(
    samples.map(({ values }) => values[0]),
    [30, 70, 7],
    'what was sampled is part of the heap',
  );
});

test('a profile has the bytes that its format wants', () => {
  const stack = [{ name: 'f', file: 'a', line: 300 }];
  const bytes = encodeProfile({
    types: [['cpu', 'ns']],
    samples: [{ stack, values: [5] }],
    startedMs: 1,
    durationMs: 2,
    periodType: ['cpu', 'ns'],
    period: 9,
  });
  const fields = ['0a0408031004', '12060a0101120105', '220908012205080110ac02'];
  fields.push('2a0b080110011801200228ac02', '48c0843d', '5080897a', '5a0408031004', '6009');
  fields.push('3200', '320166', '320161', '3203637075', '32026e73');
  assert.equal(gunzipSync(bytes).toString('hex'), fields.join(''));
});

test('component statuses are asked for, not stored', () => {
  const model = serverWith();
  const condition = { type: 'Healthy', status: 'True', message: 'ok' };
  assert.deepEqual(json(model, `${STATUSES}/scheduler`), {
    kind: 'ComponentStatus',
    apiVersion: 'v1',
    metadata: { name: 'scheduler' },
    conditions: [condition],
  });
  const list = json(model, STATUSES);
  assert.deepEqual(list['metadata'], {});
  assert.deepEqual(list['items'], [
    {
      metadata: { name: 'controller-manager' },
      conditions: [{ type: 'Healthy', status: 'False', message: 'dial tcp: refused' }],
    },
    { metadata: { name: 'etcd-0' }, conditions: [condition] },
    { metadata: { name: 'scheduler' }, conditions: [condition] },
  ]);
  const one = `${STATUSES}?fieldSelector=metadata.name%3Detcd-0`;
  assert.equal((json(model, one)['items'] as unknown[]).length, 1);
  const table = json(model, STATUSES, 'application/json;as=Table;v=v1;g=meta.k8s.io');
  const [row] = table['rows'] as JsonObject[];
  assert.deepEqual(row?.['cells'], ['controller-manager', 'Unhealthy', 'dial tcp: refused', '']);
  const watched = model.ask('GET', `${STATUSES}?watch=1`);
  assert.match(watched.text, /watch is not supported on resources of kind .*"code":405/);
  const none = json(model, `${STATUSES}/x`);
  assert.equal(none['message'], 'componentstatus "x" not found');
});
