import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { stageSetText } from '../stages/set-texts.ts';
import { readDocuments } from '../yaml/yaml-fields.ts';
import { PortConfig } from './port-config.ts';
import { nodeOfPage, renderPage, type MetricPage } from './metric-pages.ts';
import { statsSummary } from './stats-summary.ts';

const START_MS = Date.parse('2026-01-02T00:00:00Z');
let nowMs = START_MS;

function configOf(text: string): PortConfig {
  const config = new PortConfig({
    nowMs: () => nowMs,
    random: () => 0.25,
    startedContainers: () => 7,
  });
  for (const document of readDocuments('a.yaml', text)) {
    config.put(document.kindInside, document.nameInside, document);
  }
  return config;
}

function document(kind: string, name: string, spec: string): string {
  const head = 'apiVersion: kwok.x-k8s.io/v1alpha1';
  return `${head}\nkind: ${kind}\nmetadata: ${name}\nspec: ${spec}\n---\n`;
}

function pod(name: string, annotations: JsonObject, ...containers: string[]): JsonObject {
  const creationTimestamp = '2026-01-01T23:59:00Z';
  return {
    kind: 'Pod',
    metadata: { name, namespace: 'default', creationTimestamp, annotations },
    spec: { nodeName: 'n', containers: containers.map((container) => ({ name: container })) },
  };
}

const NODE: JsonObject = { kind: 'Node', metadata: { name: 'n' } };

test("a pod's own rule is asked alone; of the cluster's the first that fits", () => {
  const { logs } = configOf(
    document('Logs', '{name: own}', '{logs: [{containers: [a], logsFile: /own}]}') +
      document(
        'ClusterLogs',
        '{name: x}',
        '{selector: {matchNames: [x]}, logs: [{logsFile: /x}]}',
      ) +
      document(
        'ClusterLogs',
        '{name: all}',
        '{selector: {matchNamespaces: [default]}, ' +
          'logs: [{logsFile: /all}, {containers: [b], logsFile: /b}]}',
      ),
  );
  const find = (name: string, container: string, namespace = 'default'): string => {
    const found = logs.find(namespace, name, (item) => item.containers, container);
    return found.kind === 'found' ? found.item.logsFile : found.kind;
  };
  assert.equal(find('own', 'a'), '/own');
  assert.equal(find('own', 'b'), 'unnamed');
  assert.equal(find('x', 'b'), '/x');
  assert.equal(find('other', 'b'), '/b');
  assert.equal(find('other', 'c'), '/all');
  assert.equal(find('other', 'c', 'elsewhere'), 'none');
});

test('the page of resource metrics that comes along tells what annotations say', () => {
  nowMs = START_MS;
  const config = configOf(stageSetText('metrics'));
  const [page] = config.pages;
  assert(page !== undefined);
  const busy = { 'kwok.x-k8s.io/usage-cpu': '500m', 'kwok.x-k8s.io/usage-memory': '2Mi' };
  const pods = [pod('idle', {}, 'c'), pod('busy', busy, 'c', 'd')];
  const render = (): string =>
    renderPage(page, config.usage, { node: NODE, pods, pod: null, container: null }, (text) =>
      assert.fail(text),
    );
  render();
  nowMs += 10_000;
  const lines = render().split('\n');
  const value = (sample: string): string | undefined =>
    lines.find((line) => line.startsWith(`${sample} `))?.slice(sample.length + 1);
  const of = (metric: string, name: string): string =>
    `${metric}{namespace="default",pod="${name}"}`;
  assert.equal(value(of('pod_cpu_usage_seconds_total', 'busy')), '10');
  assert.equal(value(of('pod_memory_working_set_bytes', 'busy')), '4.194304e+06');
  assert.equal(value(of('pod_memory_working_set_bytes', 'idle')), '1.048576e+06');
  const container = 'container="d",namespace="default",pod="busy"';
  assert.equal(value(`container_cpu_usage_seconds_total{${container}}`), '5');
  assert.equal(value('node_memory_working_set_bytes'), '5.24288e+06');
  const started = String(Date.parse('2026-01-01T23:59:00Z') / 1000);
  assert.equal(Number(value(`container_start_time_seconds{${container}}`)), Number(started));
});

test('a summary tells of a node and its pods what they use, and have used', () => {
  nowMs = START_MS;
  const { usage } = configOf(stageSetText('metrics'));
  const busy = { 'kwok.x-k8s.io/usage-cpu': '500m', 'kwok.x-k8s.io/usage-memory': '2Mi' };
  const pods = [pod('busy', busy, 'c', 'd')];
  const node = { ...NODE, status: { capacity: { memory: '10Mi' } } };
  statsSummary(node, pods, usage, nowMs);
  nowMs += 10_000;
  const summary = statsSummary(node, pods, usage, nowMs);
  const time = '2026-01-02T00:00:10Z';
  const [first] = listAt(summary, 'pods');
  assert.deepEqual(objectAt(summary, 'node', 'memory'), {
    ...{ time, usageBytes: 2 ** 22, workingSetBytes: 2 ** 22, rssBytes: 2 ** 22 },
    availableBytes: 6 * 2 ** 20,
  });
  const cpu = (cores: number): object => ({
    ...{ time, usageNanoCores: cores * 1e9, usageCoreNanoSeconds: cores * 1e10 },
  });
  assert.deepEqual(objectAt(summary, 'node', 'cpu'), cpu(1));
  assert.deepEqual(objectAt(first, 'cpu'), cpu(1));
  const containers = listAt(first, 'containers');
  assert.deepEqual(
    containers.map((one) => [stringAt(one, 'name'), objectAt(one, 'cpu')]),
    [
      ['c', cpu(0.5)],
      ['d', cpu(0.5)],
    ],
  );
});

test('histograms add up, hide buckets, and expressions know time, chance and quantities', () => {
  nowMs = START_MS;
  const config = configOf(
    document(
      'Metric',
      '{name: m}',
      `{path: "/metrics/nodes/{nodeName}/m", metrics: [
        {name: h, kind: histogram, buckets: [{le: 1, value: "2"}, {le: 5, value: "3", hidden: true},
          {le: .inf, value: "1"}]},
        {name: g, kind: gauge, dimension: pod, labels: [{name: p, value: pod.metadata.name}],
          value: 'Quantity("1Ki") + Rand() * 4 + SinceSecond(pod)'},
        {name: s, kind: counter, value: node.StartedContainersTotal()}]}`,
    ),
  );
  const [page] = config.pages;
  assert(page !== undefined);
  const subject = { node: NODE, pods: [pod('a"b', {}, 'c')], pod: null, container: null };
  const text = renderPage(page, config.usage, subject, (why) => assert.fail(why));
  assert.equal(
    text,
    '# HELP g \n# TYPE g gauge\ng{p="a\\"b"} 1085\n# HELP h \n# TYPE h histogram\n' +
      'h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 6\nh_sum +Inf\nh_count 6\n' +
      '# HELP s \n# TYPE s counter\ns 7\n',
  );
});

test('expressions of metrics see structs of Go: what is left out has its zero value', () => {
  nowMs = START_MS;
  const values = [
    ['node.spec.unschedulable', 0],
    ['node.status.allocatable["pods"]', 110],
    ['node.status.allocatable["nosuch"]', 0],
    ['node.status.capacity["cpu"] - Quantity("500m")', 1.5],
    ['size(node.metadata.labels)', 0],
    ['"x" in node.metadata.annotations', 0],
    ['node.status.phase == ""', 1],
  ] as const;
  const metrics = values.map(([value], index) =>
    JSON.stringify({ name: `m${index}`, kind: 'gauge', value }),
  );
  const config = configOf(
    document(
      'Metric',
      '{name: m}',
      `{path: /metrics/m, metrics: [${metrics.join(',')}, {name: r, kind: gauge,
        dimension: container, value: 'container.resources.requests["cpu"]', labels: [
        {name: pod, value: pod.metadata.name}, {name: a, value: container.name}]}]}`,
    ),
  );
  const [page] = config.pages;
  assert(page !== undefined);
  const status = { allocatable: { pods: '110' }, capacity: { cpu: '2' } };
  const pods = [pod('p', {}, 'c', 'd'), pod('q', {}, 'c')];
  const subject = { node: { ...NODE, status }, pods, pod: null, container: null };
  const text = renderPage(page, config.usage, subject, (why) => assert.fail(why));
  for (const [index, [, value]] of values.entries()) {
    assert.match(text, new RegExp(`^m${index} ${value}$`, 'm'));
  }
  // as Prometheus' library writes them: in the order of their labels
  const samples = text.split('\n').filter((line) => line.startsWith('r{'));
  assert.deepEqual(samples, ['r{a="c",pod="p"} 0', 'r{a="c",pod="q"} 0', 'r{a="d",pod="p"} 0']);
});

test('a page is found by its path, wherever the node stands in it; numbers are those of Go', () => {
  const page = (path: string): MetricPage | undefined =>
    configOf(
      document(
        'Metric',
        '{name: m}',
        `{path: "${path}", metrics: [{name: g, kind: gauge, value:
        "1234567.0"}, {name: h, kind: gauge, value: "123456.5"}]}`,
      ),
    ).pages[0];
  const cases: readonly (readonly [string, string, string | null])[] = [
    ['/metrics/nodes/{nodeName}/own', '/metrics/nodes/a.b/own', 'a.b'],
    ['/metrics/own/{nodeName}', '/metrics/own/a', 'a'],
    ['/metrics/own/{nodeName}', '/metrics/own/', null],
    ['/metrics/own/{nodeName}', '/metrics/own/a/b', null],
    ['/metrics/own/{nodeName}.x', '/metrics/own/a%20b.x', 'a b'],
    ['/metrics/own/{nodeName}.x', '/metrics/own/a-x', null],
    ['/metrics/own', '/metrics/own', 'm'],
  ];
  for (const [path, asked, node] of cases) {
    const found = page(path);
    assert(found !== undefined);
    assert.equal(nodeOfPage(found, asked), node, `${path} ${asked}`);
  }
  const found = page('/metrics/x');
  const subject = { node: NODE, pods: [], pod: null, container: null };
  const { usage } = configOf('');
  const text = found === undefined ? '' : renderPage(found, usage, subject, assert.fail);
  assert.match(text, /^g 1\.234567e\+06\n/m);
  assert.match(text, /^h 123456\.5\n/m);
});

test('what is wrong with a document is told with its line and column', () => {
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ['ClusterLogs', '{logs: [{logFile: /a}]}', /a\.yaml:4:\d+: spec\.logs\[0\]\.?.*logFile/],
    ['Exec', '{execs: [{mapping: {}}]}', /a\.yaml:4:\d+: .*mapping.*not supported/],
    ['PortForward', '{forwards: [{ports: [80]}]}', /one of target, command, httpRoutes/],
    ['PortForward', '{forwards: [{ports: [99999], command: [a]}]}', /a port from 0 to 65535/],
    ['Metric', '{path: /m, metrics: []}', /must begin with \/metrics\//],
    ['Metric', '{path: /metrics/m, metrics: [{name: a, kind: gauge, value: "1 +"}]}', /CEL/],
    ['Metric', '{path: /metrics/m, metrics: [{name: a b, kind: gauge, value: "1"}]}', /no name/],
    ['ResourceUsage', '{usages: [{usage: {cpu: {value: lots}}}]}', /a quantity is expected/],
    ['ResourceUsage', '{usages: [{usage: {cpu: {expression: pod.nosuch}}}]}', /undefined field/],
  ];
  for (const [kind, spec, expected] of cases) {
    assert.throws(() => configOf(document(kind, '{name: a}', spec)), expected, `${kind} ${spec}`);
  }
});
