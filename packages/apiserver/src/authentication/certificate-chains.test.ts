import assert from 'node:assert/strict';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { after, test } from 'node:test';
import { CERTIFICATE_FAULT, clientTls } from '@megaplane/base/tls-parts';
import { prepareFields } from '@megaplane/wire/client';
import { connect } from '@megaplane/wire/connect';
import type { Exchange } from '@megaplane/wire/exchange';
import { listen, type ListenTls } from '@megaplane/wire/listener';
import { authenticate, isUnknown } from './authentication.ts';
import { issueCertificate, type CertificateRequest } from '../pki/certificates.ts';
import { FrontProxy } from './front-proxy.ts';

const DAY_MS = 86_400_000;
const FROM_MS = Date.now() - DAY_MS;
let serials = 0;

type Issued = ReturnType<typeof issueCertificate>;

function issue(
  commonName: string,
  use: CertificateRequest['use'],
  issuer: Issued | null,
  { names = [], days = 10 }: { names?: readonly string[]; days?: number } = {},
): Issued {
  const serial = Buffer.alloc(8, ++serials);
  const notAfterMs = FROM_MS + days * DAY_MS;
  return issueCertificate(
    { commonName, use, names, serial, notBeforeMs: FROM_MS, notAfterMs },
    issuer,
  );
}

const NAMES = ['127.0.0.1', 'localhost', '*.example.com'];
const root = issue('root', 'authority', null);
const middle = issue('middle', 'authority', root, { days: 5 });
const server = issue('server', 'server', middle, { names: NAMES });
const nameless = issue('localhost', 'server', middle);
const client = issue('jane', 'client', middle);
const stranger = issue('stranger', 'authority', null);

const closers: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const close of closers) await close();
});

async function serve(tls: ListenTls, handler: (exchange: Exchange) => void) {
  const listener = await listen({ tls, handler });
  closers.push(() => listener.close());
  return listener;
}

/** Connects and says '' or why not. */
function reach(port: number, ca: string, host = 'localhost', servername = host): Promise<string> {
  return new Promise((resolve) => {
    const socket: TLSSocket = connectTls({
      ...{ port, host: '127.0.0.1', servername },
      ...clientTls({ ca, serverName: host }),
    });
    socket.once('secureConnect', () => {
      socket.destroy();
      resolve('');
    });
    socket.once('error', (error) => resolve(error.message));
  });
}

test('any certificate of a bundle is an anchor, whoever has signed it', async () => {
  const { address } = await serve({ key: server.key, cert: server.certificate }, () => {});
  const { port } = address;
  assert.equal(await reach(port, middle.certificate), '');
  assert.equal(await reach(port, server.certificate), '');
  assert.equal(await reach(port, `${stranger.certificate}${middle.certificate}`), '');
  assert.match(await reach(port, stranger.certificate), /unable to (?:get|verify)|issuer/i);
  // the server has not sent what stands between
  assert.match(await reach(port, root.certificate), /unable to verify|issuer/i);
});

test('names of servers are alternative names, as Go reads them', async () => {
  const words = (text: string): string => text.replace(CERTIFICATE_FAULT, '');
  const named = await serve({ key: server.key, cert: server.certificate }, () => {});
  const { port } = named.address;
  const ca = middle.certificate;
  for (const [host, text] of [
    ['LocalHost', ''],
    ['a.example.com', ''],
    ['localhost.', ''],
    ['127.0.0.1', ''],
    ['a.b.example.com', `certificate is valid for localhost, *.example.com, not a.b.example.com`],
    ['example.com', `certificate is valid for localhost, *.example.com, not example.com`],
    ['server', `certificate is valid for localhost, *.example.com, not server`],
    ['127.0.0.2', `certificate is valid for 127.0.0.1, not 127.0.0.2`],
  ] as const) {
    assert.equal(words(await reach(port, ca, host, 'localhost')), text, host);
  }
  const bare = await serve({ key: nameless.key, cert: nameless.certificate }, () => {});
  const legacy = 'certificate relies on legacy Common Name field, use SANs instead';
  assert.equal(words(await reach(bare.address.port, ca)), legacy);
  const none = 'certificate is not valid for any names, but wanted to match other';
  assert.equal(words(await reach(bare.address.port, ca, 'other', 'localhost')), none);
  const ips = "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs";
  assert.equal(words(await reach(bare.address.port, ca, '127.0.0.1', 'localhost')), ips);
});

/** A server that tells each request who it is from, by a clock and authorities of the test. */
async function identifying(clientCa: string) {
  const clock = { nowMs: Date.now() };
  const proxy = new FrontProxy({
    ...{ authorities: [], userAuthorities: [clientCa], names: [] },
    ...{ userFields: [], uidFields: [], groupFields: [], extraPrefixes: [] },
  });
  const tls = { key: server.key, cert: server.certificate, clientCa };
  const listener = await serve(tls, (exchange) => {
    const found = authenticate(
      exchange,
      () => null,
      proxy,
      () => clock.nowMs,
    );
    assert.ok(!isUnknown(found));
    exchange.respond(found === null ? 401 : 200, 'text/plain', found?.user ?? 'nobody');
  });
  const own = { ca: middle.certificate, cert: client.certificate, key: client.key };
  const open = () => {
    const connection = connect({ port: listener.address.port, tls: own });
    closers.push(() => connection.destroy());
    const ask = (): Promise<string> =>
      new Promise((resolve) => {
        let text = '';
        connection.request('GET', '/', prepareFields([]), Buffer.alloc(0), {
          onHead: () => {},
          onData: (_, bytes, start, end) => (text += bytes.toString('utf8', start, end)),
          onEnd: (_, failure) => resolve(failure === null ? text : failure.message),
        });
      });
    return ask;
  };
  return { clock, proxy, listener, tls, open };
}

test('clients are known by an authority without its root, after a reload too', async () => {
  const { open, listener, tls } = await identifying(middle.certificate);
  assert.equal(await open()(), 'jane');
  listener.reloadTls({ ...tls });
  assert.equal(await open()(), 'jane');
  const other = await identifying(stranger.certificate);
  assert.equal(await other.open()(), 'nobody');
});

test('open connections end to be somebody when a certificate of the chain expires', async () => {
  const { clock, open } = await identifying(middle.certificate);
  const ask = open();
  assert.equal(await ask(), 'jane');
  // her own certificate is good for ten days, its issuer's for five
  clock.nowMs = FROM_MS + 6 * DAY_MS;
  assert.equal(await ask(), 'nobody');
});

test('open connections are judged anew when the authorities change', async () => {
  const { proxy, open } = await identifying(middle.certificate);
  const ask = open();
  assert.equal(await ask(), 'jane');
  proxy.trust([], [stranger.certificate]);
  assert.equal(await ask(), 'nobody');
  proxy.trust([], [middle.certificate]);
  assert.equal(await ask(), 'jane');
});
