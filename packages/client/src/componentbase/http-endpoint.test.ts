import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serveHttp, type Page, type PageRequest } from './http-endpoint.ts';

async function* pieces(): AsyncGenerator<string> {
  yield 'two ';
  await Promise.resolve();
  yield 'three';
}

function pageAt({ path, query, accept }: PageRequest): Page | null {
  if (path === '/metrics') return { contentType: accept, text: `${query.get('a')}\n` };
  if (path === '/metrics/slis')
    return { contentType: 'text/plain', text: 'one ', pieces: pieces() };
  return null;
}

test('pages are told what was asked for, and everything else is not there', async () => {
  const endpoint = await serveHttp('127.0.0.1:0', pageAt);
  try {
    const headers = { accept: 'text/x' };
    const asked = await fetch(new URL('/metrics?a=b', endpoint.url), { headers });
    assert.equal(await asked.text(), 'b\n');
    assert.equal(asked.headers.get('content-type'), 'text/x');
    assert.equal(
      await (await fetch(new URL('/metrics/slis', endpoint.url))).text(),
      'one two three',
    );
    assert.equal((await fetch(new URL('/healthz/none', endpoint.url))).status, 404);
    for (const path of ['/configz', '/flagz', '/statusz', '/debug/graph', '/metrics/resources']) {
      const refused = await fetch(new URL(path, endpoint.url));
      assert.equal(refused.status, 403, path);
      assert.match(await refused.text(), /^forbidden: without a credential there are /);
    }
    const { host } = new URL(endpoint.url);
    await assert.rejects(serveHttp(host, pageAt), /--metrics-address: .* the port is taken/);
  } finally {
    await endpoint.close();
  }
  await assert.rejects(serveHttp('nowhere', pageAt), /is not host:port/);
});
