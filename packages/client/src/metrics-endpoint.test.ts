import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serveMetrics } from './metrics-endpoint.ts';

test('metrics and health are told, everything else is not there', async () => {
  const endpoint = await serveMetrics('127.0.0.1:0', () => 'up 1\n');
  try {
    const metrics = await fetch(endpoint.url);
    assert.equal(await metrics.text(), 'up 1\n');
    assert.match(metrics.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
    assert.equal(await (await fetch(new URL('/healthz', endpoint.url))).text(), 'ok');
    assert.equal((await fetch(new URL('/secrets', endpoint.url))).status, 404);
    const { host } = new URL(endpoint.url);
    await assert.rejects(
      serveMetrics(host, () => ''),
      /--metrics-address: .* the port is taken/,
    );
  } finally {
    await endpoint.close();
  }
  await assert.rejects(
    serveMetrics('nowhere', () => ''),
    /is not host:port/,
  );
});
