import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { corpus } from '@megaplane/base/corpus.sim';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { isObject } from '../json/json-value.ts';
import { objectAt, stringAt } from '../json/json.ts';
import { resources } from '../scheme/kinds.ts';
import { applyMergePatch } from '../patch/patch-merge.ts';
import { humanDuration } from './printing-age.ts';
import {
  columnsText,
  customPrinter,
  parseIncludeObject,
  printerOf,
  rowText,
  tableOf,
} from './printing.ts';

const NOW_MS = Date.parse('2026-06-01T12:00:00Z');

function cells(kind: string, object: JsonObject, group = ''): readonly JsonValue[] {
  return printerOf(group, kind).row(object, NOW_MS).cells;
}

test('durations get coarser as they grow', () => {
  const second = 1000;
  const minute = 60 * second;
  const hour = 60 * minute;
  const day = 24 * hour;
  const cases: readonly (readonly [number, string])[] = [
    [-2 * second, '<invalid>'],
    [-second, '0s'],
    [0, '0s'],
    [119 * second, '119s'],
    [120 * second, '2m'],
    [125 * second, '2m5s'],
    [10 * minute + 5 * second, '10m'],
    [179 * minute, '179m'],
    [3 * hour, '3h'],
    [3 * hour + minute, '3h1m'],
    [8 * hour + minute, '8h'],
    [47 * hour, '47h'],
    [48 * hour, '2d'],
    [49 * hour, '2d1h'],
    [8 * day, '8d'],
    [729 * day, '729d'],
    [730 * day, '2y'],
    [731 * day, '2y1d'],
    [3000 * day, '8y'],
  ];
  for (const [ms, text] of cases) assert.equal(humanDuration(ms), text);
});

test('every built-in kind prints any object with at least a cell per column', () => {
  const junk = fc.letrec<{ value: JsonValue; object: JsonObject }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<JsonValue>('x', 1, true, null),
      fc.array(tie('value'), { maxLength: 2 }),
      tie('object'),
    ),
    object: fc.dictionary(
      fc.constantFrom('metadata', 'spec', 'status', 'name', 'conditions', 'ports', 'template'),
      tie('value'),
      { maxKeys: 4 },
    ),
  }));
  for (const { group, kind } of resources()) {
    const printer = printerOf(group, kind);
    fc.assert(
      fc.property(junk.object, (object) => {
        const row = printer.row(object, NOW_MS);
        assert(row.cells.length >= printer.columns.length, kind);
        assert(
          row.cells.every((cell) => ['string', 'number', 'boolean'].includes(typeof cell)),
          kind,
        );
      }),
      { numRuns: 20 },
    );
    assert(printer.columns.every((column) => column.description !== ''));
  }
});

test('what a digest keeps of stored bytes gives the same row as the whole object', () => {
  const value = fc.letrec<{ value: JsonValue; object: JsonObject }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom<JsonValue>(
        'x',
        'é"\\',
        '2026-05-01T00:00:00Z',
        'True',
        'Ready',
        1,
        true,
        null,
      ),
      fc.array(tie('value'), { maxLength: 3 }),
      tie('object'),
    ),
    object: fc.dictionary(
      fc.constantFrom(
        'metadata',
        'spec',
        'status',
        'name',
        'labels',
        'creationTimestamp',
        'deletionTimestamp',
        'containers',
        'initContainers',
        'readinessGates',
        'conditions',
        'containerStatuses',
        'state',
        'phase',
        'type',
        'addresses',
        'nodeInfo',
        'unschedulable',
        'volumes',
      ),
      tie('value'),
      { maxKeys: 6 },
    ),
  }));
  for (const kind of ['Pod', 'Node']) {
    const printer = printerOf('', kind);
    fc.assert(
      fc.property(value.object, fc.constantFrom(0, 1), (object, indent) => {
        const bytes = Buffer.from(`xx${JSON.stringify(object, null, indent)}`);
        const digest = printer.digest?.(bytes, 2, bytes.length);
        assert(digest !== undefined);
        assert.deepEqual(printer.row(digest, NOW_MS), printer.row(object, NOW_MS));
      }),
      { numRuns: 1500 },
    );
  }
});

function pod(status: JsonObject, spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject {
  return {
    metadata: { name: 'p', creationTimestamp: '2026-06-01T11:00:00Z', ...metadata },
    spec: { containers: [{ name: 'a' }, { name: 'b' }], ...spec },
    status,
  };
}

const running = { state: { running: {} }, ready: true, restartCount: 0 };
const completed = { state: { terminated: { exitCode: 0, reason: 'Completed' } }, restartCount: 0 };

test('the status of a pod is the word that its containers add up to', () => {
  const init = { initContainers: [{ name: 'i' }, { name: 's', restartPolicy: 'Always' }] };
  const deleted = { deletionTimestamp: '2026-06-01T11:59:00Z' };
  const waitingInit = (state: JsonObject): JsonObject =>
    pod({ phase: 'Pending', initContainerStatuses: [{ name: 'i', state }] }, init);
  const cases: readonly (readonly [JsonObject, string, string])[] = [
    [pod({ phase: 'Pending' }), '0/2', 'Pending'],
    [pod({ phase: 'Running', containerStatuses: [running, running] }), '2/2', 'Running'],
    [pod({ phase: 'Running', containerStatuses: [running, completed] }), '1/2', 'NotReady'],
    [
      pod({
        phase: 'Running',
        containerStatuses: [running, completed],
        conditions: [{ type: 'Ready', status: 'True' }],
      }),
      '1/2',
      'Running',
    ],
    [
      pod({
        phase: 'Failed',
        containerStatuses: [completed, { state: { terminated: { exitCode: 137, signal: 9 } } }],
      }),
      '0/2',
      'Signal:9',
    ],
    [pod({ phase: 'Running', reason: 'NodeLost' }, {}, deleted), '0/2', 'Unknown'],
    [pod({ phase: 'Running' }, {}, deleted), '0/2', 'Terminating'],
    [pod({ phase: 'Succeeded' }, {}, deleted), '0/2', 'Succeeded'],
    [
      pod({ phase: 'Pending', conditions: [{ type: 'PodScheduled', reason: 'SchedulingGated' }] }),
      '0/2',
      'SchedulingGated',
    ],
    [waitingInit({ waiting: { reason: 'PodInitializing' } }), '0/3', 'Init:0/2'],
    [waitingInit({ waiting: { reason: 'ImagePullBackOff' } }), '0/3', 'Init:ImagePullBackOff'],
    [waitingInit({ terminated: { exitCode: 2 } }), '0/3', 'Init:ExitCode:2'],
    [
      pod(
        {
          phase: 'Running',
          initContainerStatuses: [
            { name: 'i', state: { terminated: { exitCode: 0 } } },
            { name: 's', started: true, ready: true },
          ],
          containerStatuses: [running, running],
        },
        init,
      ),
      '3/3',
      'Running',
    ],
  ];
  for (const [object, ready, status] of cases) {
    assert.deepEqual(cells('Pod', object).slice(1, 3), [ready, status], JSON.stringify(object));
  }
});

test('restarts tell how long ago the last one was', () => {
  const lastState = { terminated: { finishedAt: '2026-06-01T11:55:00Z' } };
  const status = {
    phase: 'Running',
    containerStatuses: [{ ...running, restartCount: 3, lastState }],
  };
  assert.equal(cells('Pod', pod(status))[3], '3 (5m ago)');
});

test('an event shows its series, its source and what it is about', () => {
  const event: JsonObject = {
    metadata: { name: 'e' },
    involvedObject: { kind: 'Pod', name: 'p' },
    reason: 'Pulled',
    type: 'Normal',
    message: ' done \n',
    eventTime: '2026-06-01T11:00:00.000000Z',
    reportingComponent: 'kubelet',
    reportingInstance: 'n1',
    series: { count: 4, lastObservedTime: '2026-06-01T11:59:50.000000Z' },
  };
  assert.deepEqual(cells('Event', event), [
    '10s',
    'Normal',
    'Pulled',
    'pod/p',
    '',
    'kubelet, n1',
    'done',
    '60m',
    4,
    'e',
  ]);
});

test('long lists say how much more there is', () => {
  const addresses = ['10.0.0.1', '10.0.0.2', 'fd00::1', '10.0.0.4'].map((ip) => ({ ip }));
  const endpoints = { metadata: { name: 'e' }, subsets: [{ addresses, ports: [{ port: 80 }] }] };
  assert.equal(
    cells('Endpoints', endpoints)[1],
    '10.0.0.1:80,10.0.0.2:80,[fd00::1]:80 + 1 more...',
  );
});

test('autoscalers of either version show their targets', () => {
  const v2: JsonObject = {
    spec: {
      scaleTargetRef: { kind: 'Deployment', name: 'd' },
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { averageUtilization: 80 } } },
        { type: 'Pods', pods: { target: { averageValue: '1k' } } },
        { type: 'External', external: { target: { value: '5' } } },
      ],
    },
    status: {
      currentMetrics: [{ type: 'Resource', resource: { current: { averageUtilization: 12 } } }],
    },
  };
  const group = 'autoscaling';
  const kind = 'HorizontalPodAutoscaler';
  assert.equal(cells(kind, v2, group)[2], 'cpu: 12%/80%, <unknown>/1k + 1 more...');
  const v1 = { spec: { targetCPUUtilizationPercentage: 50 } };
  assert.equal(cells(kind, v1, group)[2], 'cpu: <unknown>/50%');
});

test('tables carry the object, its metadata or nothing', () => {
  const object = { kind: 'ConfigMap', metadata: { name: 'a' }, data: { k: 'v' } };
  const printer = printerOf('', 'ConfigMap');
  const frame = { version: 'v1beta1', nowMs: NOW_MS, metadata: {}, hasColumns: false } as const;
  const table = tableOf(printer, [object], { ...frame, include: 'Metadata' });
  assert.deepEqual(table, {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1beta1',
    metadata: {},
    columnDefinitions: null,
    rows: [
      {
        cells: ['a', 1, '<unknown>'],
        object: {
          kind: 'PartialObjectMetadata',
          apiVersion: 'meta.k8s.io/v1beta1',
          metadata: { name: 'a' },
        },
      },
    ],
  });
  assert.equal(rowText({ cells: ['a', 1] }, 'null'), '{"cells":["a",1],"object":null}');
  assert.equal(columnsText(printer), JSON.stringify(printer.columns));
  const wrong = parseIncludeObject('x');
  assert(!wrong.ok && wrong.status.code === 400);
  assert.deepEqual(customPrinter.row(object, NOW_MS).cells, ['a', '<unknown>']);
});

const TABLES = `${corpus('apiserver-transcripts')}/representations`;

interface Step {
  readonly request: { readonly method: string; readonly path: string; readonly body?: JsonObject };
  readonly expect: { readonly status: number; readonly body?: JsonValue };
}

/** What the server fills in and the printer reads. */
const DEFAULTS: Readonly<Record<string, JsonObject>> = {
  Pod: { status: { phase: 'Pending' } },
  Deployment: { spec: { replicas: 1 } },
  Service: { spec: { type: 'ClusterIP' } },
  Secret: { type: 'Opaque', data: { a: 'Yg==' } },
};

function unwrapped(value: JsonValue | undefined): JsonObject {
  const object = isObject(value) ? value : {};
  return isObject(object['$subset']) ? object['$subset'] : object;
}

function expectCells(found: readonly JsonValue[], expected: JsonValue | undefined): void {
  assert(Array.isArray(expected));
  assert.equal(found.length, expected.length);
  for (const [index, cell] of expected.entries()) {
    const pattern = isObject(cell) ? stringAt(cell, '$match') : '';
    if (pattern === '') assert.deepEqual(found[index], cell);
    else assert.match(JSON.stringify(found[index]).replaceAll('"', ''), new RegExp(pattern));
  }
}

function replayTables(steps: readonly Step[]): number {
  const objects = new Map<string, JsonObject>();
  let compared = 0;
  for (const { request, expect } of steps) {
    const { body, method } = request;
    if (body !== undefined && method === 'POST') {
      const full = applyMergePatch(DEFAULTS[stringAt(body, 'kind')] ?? {}, body);
      objects.set(stringAt(body, 'metadata', 'name'), full);
    } else if (body !== undefined && method === 'PATCH') {
      const name =
        request.path
          .replace(/\/status$/, '')
          .split('/')
          .at(-1) ?? '';
      objects.set(name, applyMergePatch(objects.get(name) ?? {}, body));
    }
    const table = unwrapped(expect.body);
    const rows = table['rows'];
    if (!Array.isArray(rows)) continue;
    for (const row of rows) compared += replayRow(unwrapped(row), table, objects);
  }
  return compared;
}

function replayRow(
  row: JsonObject,
  table: JsonObject,
  objects: ReadonlyMap<string, JsonObject>,
): number {
  const expected = row['cells'];
  const name = Array.isArray(expected) ? expected[0] : undefined;
  const object = objects.get(typeof name === 'string' ? name : '');
  if (object === undefined) return 0;
  const apiVersion = stringAt(object, 'apiVersion').split('/');
  const printer = printerOf(
    apiVersion.length > 1 ? (apiVersion[0] ?? '') : '',
    stringAt(object, 'kind'),
  );
  const found = printer.row(object, NOW_MS);
  expectCells(found.cells, expected);
  assert.deepEqual(found.conditions, row['conditions']);
  const columns = table['columnDefinitions'];
  if (Array.isArray(columns)) {
    const plain = (list: readonly unknown[]): unknown[] =>
      list.map((column) => ({ ...objectAt(column as JsonValue), description: '' }));
    assert.deepEqual(plain([...printer.columns]), plain(columns));
  }
  return 1;
}

test('recorded tables have these columns and cells', () => {
  let compared = 0;
  const names = 'deployments include-object leases node-states nodes pod-status pods services';
  for (const name of names.split(' ')) {
    const text = readFileSync(`${TABLES}/table-${name}.json`, 'utf8');
    compared += replayTables((JSON.parse(text) as { readonly steps: readonly Step[] }).steps);
  }
  assert(compared >= 18, `only ${compared} rows were compared`);
});

test('a row has a cell for each column of its table', () => {
  const named: JsonObject = { metadata: { name: 'x' } };
  for (const { group, kind } of resources()) {
    const printer = printerOf(group, kind);
    // upstream's rows of addresses have an age for which its table has no column
    const length = printer.columns.length + (kind === 'IPAddress' ? 1 : 0);
    assert.equal(printer.row(named, NOW_MS).cells.length, length, `${group}/${kind}`);
  }
});

test('policies count what they have, and capacities of storage have no own columns', () => {
  const namesOf = (group: string, kind: string): string[] =>
    printerOf(group, kind).columns.map(({ name, type }) => `${name} ${type}`);
  const group = 'admissionregistration.k8s.io';
  const rest = ['ParamKind string', 'Age string'];
  for (const [kind, column] of [
    ['ValidatingAdmissionPolicy', 'Validations'],
    ['MutatingAdmissionPolicy', 'Mutations'],
  ] as const) {
    assert.deepEqual(namesOf(group, kind), ['Name string', `${column} integer`, ...rest]);
  }
  const capacity = namesOf('storage.k8s.io', 'CSIStorageCapacity');
  assert.deepEqual(capacity, ['Name string', 'Created At date']);
});

test('the architecture of a node stands behind the version of its kernel, known or not', () => {
  const nodeInfo = { architecture: 'arm64' };
  const row = printerOf('', 'Node').row({ metadata: { name: 'n' }, status: { nodeInfo } }, 0);
  assert.equal(row.cells.at(-2), '<unknown> (arm64)');
});
