import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApiServer } from './assembly.ts';
import { ExchangeModel } from './exchange-model.sim.ts';
import { StorageModel } from './storage-model.sim.ts';

function server() {
  const edge = {
    nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5),
    below: () => 0,
    uuid: () => '00000000-0000-4000-8000-000000000001',
    defer: () => undefined,
    deferPiece: () => undefined,
  };
  const api = createApiServer({ storage: new StorageModel(), edge, address: '' });
  return (path: string): ExchangeModel => {
    const exchange = new ExchangeModel('GET', path);
    api.handle(exchange);
    return exchange;
  };
}

test('requests are counted by what they ask for, and made-up paths do not grow memory', () => {
  const ask = server();
  ask('/api/v1/pods');
  for (let index = 0; index < 6000; index++) ask(`/apis/g${index}.example.com/v1/a/b/c`);
  const { text } = ask('/metrics');
  assert.match(
    text,
    /apiserver_request_total\{code="200",component="apiserver",.*resource="pods".*\} 1\n/,
  );
  const series = text.match(/^apiserver_request_duration_seconds_count/gm) ?? [];
  assert.ok(series.length <= 4097, `${series.length} series`);
  assert.match(text, /resource="other"/);
});
