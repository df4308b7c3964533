import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forbidden } from '@megaplane/machinery/status';
import { createApiServer } from '../server/assembly.ts';
import { ConnectionModel, ExchangeModel } from '../testing/exchange-model.sim.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';
import type { AdmissionPlugin } from './admission-plugin.ts';

/** A server on whose clock `slow` takes two seconds, and `lines` of its metrics. */
function measured() {
  let nowMs = 0;
  const late: (() => void)[] = [];
  const slow: AdmissionPlugin = {
    name: 'Slow',
    validate: ({ object, served }) => {
      nowMs += 2000;
      if (object?.['kind'] !== 'Secret') return null;
      return (then) =>
        void late.push(() => {
          nowMs += 30;
          then(forbidden(served.plural, 's', 'no'));
        });
    },
  };
  const api = createApiServer({
    storage: new StorageModel(),
    plugins: [slow],
    edge: {
      nowMs: () => 1_000_000,
      below: () => 0,
      uuid: () => '00000000-0000-4000-8000-000000000001',
      defer: (work) => work(),
      deferPiece: (work) => work(),
    },
    address: '',
    clockMs: null,
    stopwatchMs: () => nowMs,
  });
  const ask = (method: string, path: string, body?: unknown): ExchangeModel => {
    const exchange = new ExchangeModel(method, path, body, {}, new ConnectionModel(true));
    api.handle(exchange);
    for (const work of late.splice(0)) work();
    return exchange;
  };
  const lines = (start: string): string[] =>
    ask('GET', '/metrics')
      .text.split('\n')
      .filter((line) => line.startsWith(start) && /_(?:count|sum)\{/.test(line));
  ask('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  return { ask, lines, api };
}

const SECRETS = '/api/v1/namespaces/default/secrets';

test('plugins and steps are measured, the late ones too, by what came of them', () => {
  const { ask, lines } = measured();
  const step = 'apiserver_admission_step_admission_duration_seconds';
  const created = 'operation="CREATE",rejected="false",type="validate"';
  assert.deepEqual(lines(step), [
    `${step}_sum{operation="CREATE",rejected="false",type="admit"} 0`,
    `${step}_count{operation="CREATE",rejected="false",type="admit"} 1`,
    `${step}_sum{${created}} 2`,
    `${step}_count{${created}} 1`,
  ]);
  assert.equal(ask('POST', SECRETS, { kind: 'Secret', metadata: { name: 's' } }).status, 403);
  const controller = 'apiserver_admission_controller_admission_duration_seconds';
  assert.deepEqual(
    lines(controller).filter((line) => line.includes('name="Slow"')),
    [
      `${controller}_sum{name="Slow",${created}} 2`,
      `${controller}_count{name="Slow",${created}} 1`,
      `${controller}_sum{name="Slow",operation="CREATE",rejected="true",type="validate"} 2.03`,
      `${controller}_count{name="Slow",operation="CREATE",rejected="true",type="validate"} 1`,
    ],
  );
});

test('answers to reads and events of watches are counted by their bytes', () => {
  const { ask, lines } = measured();
  const { text } = ask('GET', '/api/v1/namespaces/default');
  const list = ask('GET', '/api/v1/namespaces').text;
  const [, ofOne, , ofList] = lines('apiserver_response_sizes').filter((line) =>
    line.includes('resource="namespaces"'),
  );
  const labels = (scope: string, verb: string): string =>
    `{component="apiserver",group="",resource="namespaces",scope="${scope}",subresource="",` +
    `verb="${verb}",version="v1"} 1`;
  assert.equal(ofOne, `apiserver_response_sizes_count${labels('resource', 'GET')}`);
  assert.equal(ofList, `apiserver_response_sizes_count${labels('cluster', 'LIST')}`);
  const sums = lines('apiserver_response_sizes_sum').filter((line) => /namespaces/.test(line));
  assert.deepEqual(
    sums.map((line) => Number(line.split(' ').at(-1))),
    [text.length, list.length],
  );
  const watch = ask('GET', '/api/v1/namespaces?watch=true');
  const of = '{group="",resource="namespaces",version="v1"}';
  const initial = lines('apiserver_watch_events_sizes');
  assert.deepEqual(initial, [
    `apiserver_watch_events_sizes_sum${of} ${watch.text.length}`,
    `apiserver_watch_events_sizes_count${of} 1`,
  ]);
  const all = ask('GET', '/metrics').text;
  assert.match(
    all,
    /^apiserver_watch_events_total\{group="",resource="namespaces",version="v1"\} 1$/m,
  );
  assert.match(all, /^apiserver_init_events_total\{group="",resource="namespaces"\} 1$/m);
});
