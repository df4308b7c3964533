import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Look, Seen } from '../observe/sources.ts';
import { readFamilies } from '../observe/exposition.ts';
import { WANTED_FAMILIES } from '../observe/figures.ts';
import { graphsOf } from './graphs.ts';
import { reportPage } from './report-page.ts';
import { RunRecorder } from './run-record.ts';

const POD = 'apiserver_request_total{resource="pods",subresource="",verb="POST",code="201"}';

function look(second: number, ready: number, created: number, bound: number, run: number): Look {
  const seen = (name: string, text: string, cpuSeconds: number): [string, Seen] => {
    const families = readFamilies(text, WANTED_FAMILIES);
    return [name, { name, families, rssMib: 100, rssPeakMib: 100 + second, cpuSeconds }];
  };
  const nodes =
    `megaplane_nodes 10\nmegaplane_nodes_ready ${ready}\nmegaplane_pods_bound ${bound}\n` +
    `megaplane_pods_running ${run}\nmegaplane_lease_renewals_total ${second * 5}\n`;
  return {
    timeMs: 1_000_000 + second * 1000,
    steadyMs: second * 1000,
    seen: new Map([
      seen('apiserver', `${POD} ${created}\n`, second * 0.5),
      seen('nodes', nodes, second * 0.25),
    ]),
    troubles: [],
  };
}

const ABOUT = { machine: '2 x <core>', command: 'megaplane bench million' };

test('a run is told by its phases, marks and costs', () => {
  const recorder = new RunRecorder(10, 4);
  for (const one of [
    look(0, 0, 0, 0, 0),
    look(1, 10, 0, 0, 0),
    look(2, 10, 2, 1, 0),
    look(3, 10, 4, 4, 2),
    look(4, 10, 4, 4, 4),
  ]) {
    assert.equal(recorder.isDone, false);
    recorder.add(one);
  }
  assert.equal(recorder.isDone, true);
  const record = recorder.record(ABOUT);
  assert.equal(record.isWhole, true);
  assert.equal(record.nodesReadySeconds, 1);
  assert.equal(record.boundSeconds, 2);
  assert.equal(record.runningSeconds, 3);
  assert.deepEqual(
    record.phases.map(({ name, count }) => [name, count]),
    [
      ['nodes', 10],
      ['pods', 4],
    ],
  );
  const [, pods] = record.phases;
  assert.equal(pods?.processes[0]?.cpuSeconds, 1.5);
  assert.equal(pods?.processes[0]?.usPerObject, 375_000);
  assert.deepEqual(pods?.requests, [{ verb: 'POST', resource: 'pods', count: 4 }]);
  assert.equal(record.peakMib, 200);
  const [graph] = graphsOf(record);
  assert.deepEqual(
    graph?.plot.marks?.map(({ x }) => x),
    [0, 2],
  );
  const html = reportPage(record, ['<svg></svg>']);
  assert.match(html, /10 nodes, 4 pods/);
  assert(html.includes('2 x &lt;core&gt;') && !html.includes('<core>'));
  assert.doesNotMatch(html, /(?:src|href)=/);
});

test('what ended early is reported as far as it came', () => {
  const recorder = new RunRecorder(10, 4);
  assert.deepEqual(recorder.record(ABOUT).phases, []);
  recorder.add(look(0, 0, 0, 0, 0));
  recorder.add(look(1, 3, 0, 0, 0));
  const record = recorder.record(ABOUT);
  assert.equal(record.isWhole, false);
  assert.equal(record.boundSeconds, null);
  assert.match(reportPage(record, []), /ended before it was whole/);
});
