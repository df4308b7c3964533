import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { Extender, type Answer } from './extender.ts';
import { ExtenderCaller } from './extender-caller.ts';

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function ask(urlPrefix: string, verb: string, httpTimeout = '2s'): Promise<Answer> {
  const configuration = { urlPrefix, httpTimeout };
  const caller = new ExtenderCaller([configuration]);
  const extender = new Extender(configuration);
  const answer = await caller.call({ extender, verb, body: { Pod: { a: 1 } } });
  caller.close();
  return answer;
}

test('an extender is sent JSON and its JSON comes back', async () => {
  const server = createServer((request, response) => {
    assert.equal(request.method, 'POST');
    assert.equal(request.url, '/base/filter');
    assert.equal(request.headers['content-type'], 'application/json');
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => response.end(`{"got":${text}}`));
  });
  const url = await listen(server);
  const answer = await ask(`${url}/base//`, 'filter');
  assert.deepEqual(answer, { ok: true, value: { got: { Pod: { a: 1 } } } });
  server.closeAllConnections();
  server.close();
});

test('codes, broken answers, silence and closed doors are told in words', async () => {
  const server = createServer((request, response) => {
    if (request.url === '/code') response.writeHead(503).end();
    else if (request.url === '/text') response.end('hello');
    else if (request.url === '/cut') request.socket.destroy();
  });
  const url = await listen(server);
  const text = async (verb: string, timeout?: string): Promise<string> => {
    const answer = await ask(url, verb, timeout);
    return answer.ok ? 'an answer' : answer.text;
  };
  assert.equal(await text('code'), `failed code with extender at URL ${url}/code, code 503`);
  assert.equal(await text('text'), `the answer of ${url}/text is no JSON`);
  assert.equal(await text('cut'), `Post "${url}/cut": EOF`);
  const late = 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)';
  assert.equal(await text('never', '50ms'), `Post "${url}/never": ${late}`);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  const refused = `dial tcp ${url.slice('http://'.length)}: connect: connection refused`;
  assert.equal(await text('code'), `Post "${url}/code": ${refused}`);
  const wrong = await ask('not a url', 'x');
  assert.deepEqual(wrong, { ok: false, text: 'parse "not a url/x": invalid URI for request' });
});

test('certificates that contradict the flags are refused at the start', () => {
  const tlsConfig = { insecure: true, caData: 'eA==' };
  const make = (): ExtenderCaller =>
    new ExtenderCaller([{ urlPrefix: 'https://x', enableHTTPS: true, tlsConfig }]);
  assert.throws(make, /root certificates file with the insecure flag is not allowed/);
});
