import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { listen, type Listener } from '@megaplane/wire/listener';
import { issueCertificate, type KeyAndCertificate } from './certificates.ts';
import { ticketKeysOf } from './ticket-keys.ts';

const NOW_MS = Date.now();
const times = { notBeforeMs: NOW_MS - 60_000, notAfterMs: NOW_MS + 86_400_000 };
const issue = (
  commonName: string,
  use: 'authority' | 'server' | 'client',
  issuer: KeyAndCertificate | null,
): KeyAndCertificate =>
  issueCertificate(
    {
      commonName,
      use,
      names: use === 'server' ? ['127.0.0.1'] : [],
      serial: randomBytes(16),
      ...times,
    },
    issuer,
  );
const authority = issue('authority', 'authority', null);
const serving = issue('server', 'server', authority);
const client = issue('somebody', 'client', authority);

function serve(clientCa: readonly string[]): Promise<Listener> {
  const ticketKeys = ticketKeysOf(authority, clientCa);
  const tls = {
    key: serving.key,
    cert: serving.certificate,
    clientCa,
    ticketKeys,
    sessionSeconds: 60,
  };
  return listen({
    port: 0,
    tls,
    handler: (exchange) => {
      const who = String(exchange.connection.peerCertificate()?.commonName ?? 'nobody');
      exchange.respond(200, null, Buffer.from(who));
    },
  });
}

/** Connects, asks who it is, and keeps the session that it was given. */
async function visit(
  port: number,
  session: Buffer | undefined,
): Promise<{ text: string; isReused: boolean; session: Buffer | undefined }> {
  const { key, certificate: cert } = client;
  const socket = connect({
    ...{ host: '127.0.0.1', port, ca: authority.certificate, key, cert },
    ALPNProtocols: ['http/1.1'],
    ...(session === undefined ? {} : { session }),
  });
  let given: Buffer | undefined;
  socket.on('session', (one: Buffer) => (given = one));
  await once(socket, 'secureConnect');
  const isReused = socket.isSessionReused();
  socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  let text = '';
  for await (const piece of socket) text += String(piece);
  return { text, isReused, session: given };
}

test('a client goes on with its session at another server, as who it was', async () => {
  const first = await serve([authority.certificate]);
  const visited = await visit(first.address.port, undefined);
  await first.close();
  assert.equal(visited.isReused, false);
  const second = await serve([authority.certificate]);
  const again = await visit(second.address.port, visited.session);
  await second.close();
  assert.equal(again.isReused, true);
  assert.match(again.text, /somebody$/);
  // where others are trusted than then, it begins anew
  const other = await serve([authority.certificate, issue('other', 'authority', null).certificate]);
  const anew = await visit(other.address.port, visited.session);
  await other.close();
  assert.equal(anew.isReused, false);
});
