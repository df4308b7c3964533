/** Who may not write is told before the body is there. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { listen } from '@megaplane/wire/listener';
import { createApiServer } from './assembly.ts';
import { identityOf } from '../request/identity.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';

async function serve() {
  const api = createApiServer({
    storage: new StorageModel(),
    address: '127.0.0.1:6443',
    edge: {
      nowMs: () => 0,
      below: () => 0,
      uuid: () => '',
      defer: setImmediate,
      deferPiece: setImmediate,
    },
    tokenReaders: () => [(token) => KNOWN.get(token) ?? null],
  });
  const { handle: handler, ownerOfBody: bodyOwner } = api;
  return listen({ handler, bodyOwner });
}

const KNOWN = new Map([
  ['jane', identityOf('jane', [])],
  ['root', identityOf('root', ['system:masters'])],
]);

/** Sends the start of a large body, and no more until it is answered; then the rest. */
function post(port: number, path: string, token: string): Promise<string> {
  const credential = token === '' ? '' : `Authorization: Bearer ${token}\r\n`;
  const type = 'Content-Type: application/json\r\nContent-Length: 200000\r\n';
  return new Promise((resolve) => {
    let told = '';
    const socket = connect(port, '127.0.0.1');
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\n${credential}${type}\r\n{`);
    if (token === 'root') socket.write(' '.repeat(199_998) + '}');
    socket.on('data', (bytes) => {
      told += bytes.toString('latin1');
      if (/\r\n\r\n.+/s.test(told)) socket.destroy();
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => resolve(told));
  });
}

test('strangers, bad tokens and users without the right are answered before a body', async (t) => {
  const listener = await serve();
  t.after(() => listener.close());
  const { port } = listener.address;
  const anonymous = await post(port, MAPS, '');
  assert.match(anonymous, /^HTTP\/1\.1 403 .*connection: close/s);
  assert.match(anonymous, /system:anonymous.* cannot create resource .*configmaps/s);
  assert.match(await post(port, MAPS, 'wrong'), /^HTTP\/1\.1 401 /);
  assert.match(await post(port, MAPS, 'jane'), /^HTTP\/1\.1 403 .*jane.* cannot create resource/s);
  assert.match(await post(port, '/nowhere', 'jane'), /^HTTP\/1\.1 403 /);
  const root = await post(port, MAPS, 'root');
  assert.match(root, /^HTTP\/1\.1 (?:422|404|400) /, 'its body is read');
});
