import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serveHttp, type Page, type PageRequest } from './http-endpoint.ts';

async function* pieces(): AsyncGenerator<string> {
  yield 'two ';
  await Promise.resolve();
  yield 'three';
}

function pageAt({ path, query, accept }: PageRequest): Page | null {
  if (path === '/asked') return { contentType: accept, text: `${query.get('a')}\n` };
  if (path === '/whole') return { contentType: 'text/plain', text: 'one ', pieces: pieces() };
  return null;
}

test('pages are told what was asked for, and everything else is not there', async () => {
  const endpoint = await serveHttp('127.0.0.1:0', pageAt);
  try {
    const headers = { accept: 'text/x' };
    const asked = await fetch(new URL('/asked?a=b', endpoint.url), { headers });
    assert.equal(await asked.text(), 'b\n');
    assert.equal(asked.headers.get('content-type'), 'text/x');
    assert.equal(await (await fetch(new URL('/whole', endpoint.url))).text(), 'one two three');
    assert.equal((await fetch(new URL('/secrets', endpoint.url))).status, 404);
    const { host } = new URL(endpoint.url);
    await assert.rejects(serveHttp(host, pageAt), /--metrics-address: .* the port is taken/);
  } finally {
    await endpoint.close();
  }
  await assert.rejects(serveHttp('nowhere', pageAt), /is not host:port/);
});
