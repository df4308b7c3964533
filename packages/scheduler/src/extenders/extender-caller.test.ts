import assert from 'node:assert/strict';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { Extender } from './extender.ts';
import type { ExtenderTls } from '../config/configuration.ts';
import type { ResultName, Answer } from './extender-answer.ts';
import { ExtenderCaller } from './extender-caller.ts';

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function ask(
  urlPrefix: string,
  verb: string,
  httpTimeout = '2s',
  result: ResultName = 'ExtenderFilterResult',
): Promise<Answer> {
  const configuration = { urlPrefix, httpTimeout };
  const caller = new ExtenderCaller([configuration]);
  const extender = new Extender(configuration);
  const answer = await caller.call({ extender, verb, result, body: { Pod: { a: 1 } } });
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

/** Says that there is more to come, and goes. */
function cut(response: ServerResponse, text: string): void {
  response.writeHead(200, { 'content-length': 100 });
  response.write(text, () => response.socket?.destroySoon());
}

test('redirects are followed as Go follows them', async () => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    if (request.url === '/kept') response.writeHead(307, { location: '/there' }).end();
    else if (request.url === '/lost') response.writeHead(302, { location: '/there' }).end();
    else if (request.url === '/nowhere') response.writeHead(302).end();
    else if (request.url === '/round') response.writeHead(307, { location: '/round' }).end();
    else response.writeHead(request.method === 'POST' ? 200 : 405).end('{}');
  });
  const url = await listen(server);
  assert.deepEqual(await ask(url, 'kept'), { ok: true, value: {} });
  const code = (verb: string, status: number): Answer => ({
    ok: false,
    text: `failed ${verb} with extender at URL ${url}/${verb}, code ${status}`,
  });
  assert.deepEqual(await ask(url, 'lost'), code('lost', 405));
  assert.deepEqual(await ask(url, 'nowhere'), code('nowhere', 302));
  assert.deepEqual(seen.slice(0, 4), ['POST /kept', 'POST /there', 'POST /lost', 'GET /there']);
  const text = `Post "${url}/round": stopped after 10 redirects`;
  assert.deepEqual(await ask(url, 'round'), { ok: false, text });
  server.closeAllConnections();
  server.close();
});

test('codes, broken answers, silence and closed doors are told in words', async () => {
  const server = createServer((request, response) => {
    if (request.url === '/code') response.writeHead(503).end();
    else if (request.url === '/text') response.end('hello');
    else if (request.url === '/cut') request.socket.destroy();
    else if (request.url === '/reset') request.socket.resetAndDestroy();
    else if (request.url === '/slow') response.write('{');
    else if (request.url === '/half') cut(response, '{"Error":');
    else if (request.url === '/whole') cut(response, '{"Error":""} and so');
  });
  const url = await listen(server);
  const text = async (verb: string, timeout?: string): Promise<string> => {
    const answer = await ask(url, verb, timeout);
    return answer.ok ? 'an answer' : answer.text;
  };
  assert.equal(await text('code'), `failed code with extender at URL ${url}/code, code 503`);
  const start = 'looking for beginning of value';
  assert.equal(await text('text'), `invalid character 'h' ${start}`);
  assert.equal(await text('half'), 'unexpected EOF');
  assert.equal(await text('whole'), 'an answer');
  const body = '(Client.Timeout or context cancellation while reading body)';
  assert.equal(await text('slow', '1s'), `context deadline exceeded ${body}`);
  const where = url.slice('http://'.length);
  const reset = `read: connection reset by peer`;
  assert.match(await text('reset'), new RegExp(`read tcp 127.0.0.1:\\d{4,5}->${where}: ${reset}`));
  assert.equal(await text('cut'), `Post "${url}/cut": EOF`);
  const late = 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)';
  assert.equal(await text('never', '50ms'), `Post "${url}/never": ${late}`);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  const refused = `dial tcp ${where}: connect: connection refused`;
  assert.equal(await text('code'), `Post "${url}/code": ${refused}`);
  const wrong = await ask('not a url', 'x');
  assert.deepEqual(wrong, { ok: false, text: 'parse "not a url/x": invalid URI for request' });
});

test('certificates that contradict the flags are refused at the start', () => {
  const tlsConfig = { insecure: true, caData: 'eA==' };
  const make = (): ExtenderCaller =>
    new ExtenderCaller([{ urlPrefix: 'https://x', enableHTTPS: true, tlsConfig }]);
  const text =
    "couldn't build extenders: specifying a root certificates file with the insecure flag";
  assert.throws(make, new RegExp(`^Error: ${text} is not allowed$`));
  const odd = { certData: 'eA==', keyData: 'eA==' };
  const read = (): ExtenderCaller => new ExtenderCaller([{ urlPrefix: 'x', tlsConfig: odd }]);
  assert.throws(read, /^Error: couldn't build extenders: tls: failed to find any PEM data in /);
});

test('certificates that cannot be read are told as kube-scheduler v1.36.1 tells them', () => {
  const faultOf = (tlsConfig: ExtenderTls): string => {
    try {
      new ExtenderCaller([{ urlPrefix: 'http://x', tlsConfig }]).close();
      return '';
    } catch (error) {
      return (error as Error).message.replace("couldn't build extenders: ", '');
    }
  };
  const none = '/nowhere/at-all';
  const missing = `open ${none}: no such file or directory`;
  assert.equal(faultOf({ caFile: none }), missing);
  assert.equal(faultOf({ certFile: none, keyFile: none }), missing);
  assert.equal(faultOf({ caFile: '/' }), 'read /: is a directory');
  const noPem = 'unable to load root certificates: unable to parse bytes as PEM block';
  assert.equal(faultOf({ caData: 'eHg=' }), noPem);
  const noCertificate = 'tls: failed to find any PEM data in certificate input';
  assert.equal(faultOf({ certData: 'eA==', keyData: 'eA==' }), noCertificate);
  // Half a certificate is none.
  assert.equal(faultOf({ certFile: none }), '');
  assert.equal(faultOf({ keyData: 'eA==' }), '');
});
