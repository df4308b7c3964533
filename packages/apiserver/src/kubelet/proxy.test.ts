// shell
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { runApiserver, type ApiserverService } from '../server/run.ts';
import { issue, KubeletModel } from '../testing/kubelet.sim.ts';
import { binaryFrame } from '@megaplane/machinery/streams/websocket-frames';

const dir = mkdtempSync(join(tmpdir(), 'megaplane-proxy-'));
const socketPath = join(dir, 'api.sock');
const authority = issue('kubelets', 'authority', null);
const kubelet = new KubeletModel(issue('node-1', 'server', authority), authority.certificate);
const PODS = '/api/v1/namespaces/default/pods';
let service: ApiserverService | null = null;

interface Answer {
  readonly code: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

async function ask(method: string, path: string, body?: object | string): Promise<Answer> {
  const headers = {
    authorization: 'Basic secret',
    ...(typeof body === 'object' ? { 'content-type': 'application/json' } : {}),
  };
  const sent = request({ socketPath, method, path, headers });
  sent.end(typeof body === 'object' ? JSON.stringify(body) : body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  let text = '';
  for await (const piece of answer) text += String(piece);
  return { code: answer.statusCode ?? 0, text, headers: answer.headers };
}

async function make(path: string, object: object): Promise<void> {
  const { code, text } = await ask('POST', path, object);
  assert.equal(code, 201, text);
}

function pod(name: string, nodeName: string, containers: readonly string[]): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      automountServiceAccountToken: false,
      nodeName,
      containers: containers.map((container) => ({ name: container, image: 'i' })),
    },
  };
}

function node(name: string, port: number): object {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    status: {
      addresses: port === 0 ? [] : [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
    },
  };
}

before(async () => {
  const port = await kubelet.listen();
  const client = issue('the-apiserver', 'client', authority);
  const file = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text);
    return join(dir, name);
  };
  service = await runApiserver({
    dataDir: join(dir, 'data'),
    bindAddress: '127.0.0.1',
    securePort: 0,
    unixSocket: socketPath,
    kubeletClientCertificate: file('client.crt', client.certificate),
    kubeletClientKey: file('client.key', client.key),
    kubeletCertificateAuthority: file('ca.crt', authority.certificate),
    kubeletPreferredAddressTypes: 'InternalIP',
    log: () => {},
  });
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  await make('/api/v1/namespaces/default/serviceaccounts', account);
  await make('/api/v1/nodes', node('n', port));
  await make('/api/v1/nodes', node('nowhere', 0));
  await make('/api/v1/nodes', node('dead', 1));
  await make(PODS, pod('p', 'n', ['c']));
  await make(PODS, pod('two', 'n', ['a', 'b']));
  await make(PODS, pod('lost', 'nowhere', ['c']));
  await make(PODS, pod('down', 'dead', ['c']));
});

after(async () => {
  await service?.stop();
  await kubelet.close();
  rmSync(dir, { recursive: true, force: true });
});

test('logs come from the kubelet, by the server’s certificate alone', async () => {
  const log = await ask('GET', `${PODS}/p/log?tailLines=5&timestamps=true`);
  assert.deepEqual([log.code, log.text], [200, 'one\ntwo\n']);
  assert.equal(
    kubelet.seen.at(-1),
    'GET /containerLogs/default/p/c?tailLines=5&timestamps=true the-apiserver no authorization',
  );
});

test('a kubelet without a serving certificate is told of, with what to do', async () => {
  // what Go's server sends where it has no certificate: an alert of number 80, and nothing else
  const mute = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(Uint8Array.of(0x15, 3, 3, 0, 2, 2, 80)));
  });
  mute.listen(0, '127.0.0.1');
  await once(mute, 'listening');
  const { port } = mute.address() as AddressInfo;
  await make('/api/v1/nodes', node('mute', port));
  await make(PODS, pod('silent', 'mute', ['c']));
  const log = await ask('GET', `${PODS}/silent/log`);
  const { message } = JSON.parse(log.text) as { message: string };
  const told =
    /: remote error: tls: internal error \(the kubelet has no serving certificate: .*csr/;
  assert.match(message, told);
  const exec = await ask('POST', `${PODS}/silent/exec?command=a&stdout=true`);
  assert.notEqual(exec.code, 200);
  mute.close();
});

test('a followed log streams, and ends at the kubelet when the client goes', async () => {
  const sent = request({ socketPath, path: `${PODS}/p/log?follow=true` });
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const first = (await once(answer, 'data')) as [Buffer];
  assert.equal(first[0].toString(), 'first\n');
  kubelet.say('second\n');
  const second = (await once(answer, 'data')) as [Buffer];
  assert.equal(second[0].toString(), 'second\n');
  answer.destroy();
});

test('what goes nowhere is refused in upstream’s words', async () => {
  const refused = async (path: string, code: number, words: RegExp | string): Promise<void> => {
    const answer = await ask('GET', path);
    const { message } = JSON.parse(answer.text) as { message: string };
    if (typeof words === 'string') assert.equal(message, words);
    else assert.match(message, words);
    assert.equal(answer.code, code, answer.text);
  };
  const choose = 'a container name must be specified for pod two, choose one of: [a b]';
  await refused(`${PODS}/two/log`, 400, choose);
  await refused(`${PODS}/two/exec?command=x`, 400, choose);
  await refused(`${PODS}/p/log?container=x`, 400, 'container x is not valid for pod p');
  await refused(`${PODS}/none/log`, 404, 'pods "none" not found');
  await refused(
    `${PODS}/two/log?container=a`,
    404,
    'the server could not find the requested resource ( pods/log two)',
  );
  await refused(
    `${PODS}/p/log?tailLines=-1`,
    422,
    /tailLines: Invalid value: -1: must be greater than or equal to 0/,
  );
  await refused(
    `${PODS}/p/log?tailLines=1&stream=All`,
    422,
    'PodLogOptions "p" is invalid: stream: Forbidden: may not be specified',
  );
  await refused(
    `${PODS}/p/log?sinceSeconds=0&sinceTime=2026-01-01T00:00:00Z`,
    422,
    'PodLogOptions "p" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` ' +
      'may be specified',
  );
  await refused(
    `${PODS}/p/log?sinceTime=noon`,
    400,
    'parsing time "noon" as "2006-01-02T15:04:05Z07:00": cannot parse "noon" as "2006"',
  );
  await refused(`${PODS}/lost/log`, 500, 'no preferred addresses found; known addresses: []');
  await refused(
    `${PODS}/down/log`,
    500,
    'Get "https://127.0.0.1:1/containerLogs/default/down/c": ' +
      'dial tcp 127.0.0.1:1: connect: connection refused',
  );
  await refused(`${PODS}/p/exec?command=x`, 400, 'Upgrade request required');
  await refused(`${PODS}/p/proxy/`, 400, 'address not allowed');
  await refused('/api/v1/nodes/none/proxy/', 404, 'nodes "none" not found');
});

test('a proxied node gets method, path, query and body, and answers as it likes', async () => {
  const answer = await ask('POST', '/api/v1/nodes/n/proxy/echo/a%20b?x=y', 'some words');
  assert.deepEqual([answer.code, answer.text], [201, 'some words']);
  assert.equal(answer.headers['content-type'], 'text/x-echo');
  assert.equal(answer.headers['x-kubelet'], 'yes');
  assert.match(kubelet.seen.at(-1) ?? '', /^POST \/echo\/a%20b\?x=y the-apiserver/);
  const pods = await ask('GET', '/api/v1/nodes/n/proxy/pods');
  assert.equal(pods.text, 'path /pods');
  assert.equal((await ask('GET', '/api/v1/nodes/n/proxy/')).text, 'path /');
  const sent = await ask('GET', '/api/v1/nodes/n/proxy?a=b');
  assert.deepEqual([sent.code, sent.headers['location']], [301, '/api/v1/nodes/n/proxy/?a=b']);
});

test('600 requests with a field named constructor are passed on, all of them', async () => {
  const head =
    'GET /api/v1/nodes/n/proxy/stats HTTP/1.1\r\nhost: a\r\nconstructor: x\r\n__proto__: y\r\n\r\n';
  const socket = connect(socketPath);
  let text = '';
  socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')));
  socket.write(head.repeat(600));
  while (text.split('HTTP/1.1 200 OK').length <= 600) await once(socket, 'data');
  socket.destroy();
  assert.equal((await ask('GET', '/readyz')).code, 200);
});

test('a port that there is not leads nowhere, and takes no place', async () => {
  const status = { podIP: '10.1.2.3', phase: 'Running' };
  const there = await ask('GET', `${PODS}/p`);
  const stored = JSON.parse(there.text) as Record<string, unknown>;
  const put = await ask('PUT', `${PODS}/p/status`, { ...stored, status });
  assert.equal(put.code, 200, put.text);
  const words = async (path: string): Promise<string> => {
    const { code, text } = await ask('GET', path);
    assert.equal(code, 503, text);
    return (JSON.parse(text) as { message: string }).message;
  };
  const prefix = 'error trying to reach service: dial tcp: ';
  assert.equal(await words(`${PODS}/p:99999/proxy/`), `${prefix}address 99999: invalid port`);
  assert.equal(await words(`${PODS}/p:http/proxy/`), `${prefix}lookup tcp/http: unknown port`);
});

test('services lead to pods alone, whatever addresses somebody has written', async () => {
  // nobody is sent to a multicast address, which tells that it was chosen
  const address = '239.1.1.1';
  await make(PODS, pod('served', 'n', ['c']));
  const status = { podIP: address, podIPs: [{ ip: address }], phase: 'Running' };
  const made = JSON.parse((await ask('GET', `${PODS}/served`)).text) as object;
  const put = await ask('PUT', `${PODS}/served/status`, { ...made, status });
  assert.equal(put.code, 200, put.text);
  const spec = { ports: [{ port: 80, targetPort: 1 }] };
  await make('/api/v1/namespaces/default/services', { metadata: { name: 's' }, spec });
  const slice = (targetRef: object | null): object => ({
    metadata: { name: 's-1', labels: { 'kubernetes.io/service-name': 's' } },
    addressType: 'IPv4',
    ports: [{ name: '', port: 1, protocol: 'TCP' }],
    endpoints: [{ addresses: [address], ...(targetRef === null ? {} : { targetRef }) }],
  });
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
  await make(slices, slice(null));
  const path = '/api/v1/namespaces/default/services/s:80/proxy/x';
  const message = ({ text }: Answer): string => (JSON.parse(text) as { message: string }).message;
  const none = await ask('GET', path);
  assert.equal(message(none), 'no endpoints available for service "s:80"');
  const led = async (name: string): Promise<string> => {
    const targetRef = { kind: 'Pod', namespace: 'default', name };
    assert.equal((await ask('PUT', `${slices}/s-1`, slice(targetRef))).code, 200);
    return message(await ask('GET', path));
  };
  assert.equal(await led('lost'), 'no endpoints available for service "s:80"');
  assert.equal(await led('served'), 'address not allowed');
});

async function upgrade(
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ readonly answer: IncomingMessage; readonly socket: Socket; readonly head: Buffer }> {
  const sent = request({ socketPath, path, headers: { connection: 'Upgrade', ...headers } });
  sent.end();
  const event = await Promise.race([
    once(sent, 'upgrade') as Promise<[IncomingMessage, Socket, Buffer]>,
    once(sent, 'response').then(([answer]) => [answer as IncomingMessage, null, null] as const),
  ]);
  const [answer, socket, head] = event;
  return { answer, socket: socket as Socket, head: head as Buffer };
}

const WEBSOCKET = {
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

/** A frame as clients send it. */
function masked(data: Buffer): Buffer {
  const frame = binaryFrame(data);
  const head = frame.length - data.length;
  frame[1] = (frame[1] ?? 0) | 0x80;
  return Buffer.concat([frame.subarray(0, head), Buffer.alloc(4), data]);
}

test('exec goes through as bytes, whatever is spoken in them', async () => {
  const headers = { ...WEBSOCKET, 'sec-websocket-protocol': 'v5.channel.k8s.io' };
  const path = `${PODS}/p/exec?command=ls&command=-l&stdin=true&stdout=true`;
  const { answer, socket } = await upgrade(path, headers);
  assert.equal(answer.statusCode, 101);
  assert.equal(answer.headers['sec-websocket-protocol'], 'v5.channel.k8s.io');
  assert.equal(answer.headers['sec-websocket-accept'], 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
  assert.match(
    kubelet.seen.at(-1) ?? '',
    /^GET \/exec\/default\/p\/c\?input=1&output=1&command=ls&command=-l /,
  );
  let received = 0;
  const long = Buffer.alloc(300_000, 'x');
  long[0] = 0;
  socket.on('data', (bytes: Buffer) => {
    received += bytes.length;
  });
  socket.write(masked(long));
  while (received < long.length + 10) await new Promise((resolve) => setTimeout(resolve, 5));
  socket.write(masked(Buffer.from([255, 0])));
  const goodbye = masked(Buffer.from([0x03, 0xe8]));
  goodbye[0] = 0x88;
  socket.write(goodbye);
  await once(socket, 'end');
  socket.destroy();
  const old = await upgrade(path, { ...WEBSOCKET, 'sec-websocket-protocol': 'v1' });
  assert.equal(old.answer.statusCode, 400);
});

test('port-forward over WebSocket becomes SPDY for a kubelet that wants that', async () => {
  const headers = { ...WEBSOCKET, 'sec-websocket-protocol': 'SPDY/3.1+portforward.k8s.io' };
  const { answer, socket, head } = await upgrade(`${PODS}/p/portforward`, headers);
  assert.equal(answer.statusCode, 101);
  assert.equal(answer.headers['sec-websocket-protocol'], 'SPDY/3.1+portforward.k8s.io');
  let text = '';
  const take = (bytes: Buffer): void => {
    // frames of a server are short here: two bytes of head
    for (let at = 0; at < bytes.length;) {
      const length = (bytes[at + 1] ?? 0) & 0x7f;
      text += bytes.toString('latin1', at + 2, at + 2 + length);
      at += 2 + length;
    }
  };
  take(head);
  socket.on('data', take);
  socket.write(masked(Buffer.from('some bytes')));
  while (!text.includes('SOME BYTES')) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(text, 'hello SOME BYTES');
  assert.match(kubelet.seen.at(-1) ?? '', /^GET \/portForward\/default\/p the-apiserver/);
  socket.destroy();
});

const kubectls = ((): string[] => {
  const found = spawnSync('which', ['kubectl'], { encoding: 'utf8' }).stdout.trim();
  if (found === '') return [];
  const beside = dirname(realpathSync(found));
  const named = ['1.27', '1.33'].map((minor) => join(beside, `kubectl.${minor}`));
  return named.every((path) => existsSync(path)) ? named : [found];
})();

function run(file: string, args: readonly string[], input = ''): Promise<string> {
  const env = { ...process.env, HOME: dir, KUBECONFIG: join(dir, 'data', 'kubeconfig') };
  return new Promise((done) => {
    const child = execFile(file, args, { env }, (_, stdout, stderr) => done(stdout + stderr));
    child.stdin?.end(input);
  });
}

test(
  'kubectl reads logs and runs commands',
  {
    skip: kubectls.length > 0 ? false : 'needs kubectl: apt-get install kubernetes-client',
  },
  async () => {
    for (const kubectl of kubectls) {
      assert.equal(await run(kubectl, ['logs', 'p']), 'one\ntwo\n');
      assert.match(await run(kubectl, ['logs', 'two']), /NotFound|could not find|defaulted/i);
    }
    const newest = kubectls.at(-1) ?? '';
    if (!newest.endsWith('1.33')) return;
    assert.equal(await run(newest, ['exec', '-i', 'p', '--', 'cat'], 'hello\n'), 'hello\n');
  },
);

test('a request that looks at no certificate ends nobody else’s', async () => {
  const followed = request({ socketPath, path: `${PODS}/p/log?follow=true` });
  followed.end();
  const [answer] = (await once(followed, 'response')) as [IncomingMessage];
  let text = '';
  answer.on('data', (bytes: Buffer) => (text += bytes.toString('utf8')));
  await once(answer, 'data');
  const insecure = await ask('GET', `${PODS}/p/log?insecureSkipTLSVerifyBackend=true`);
  assert.equal(insecure.code, 200);
  assert.equal((await ask('GET', `${PODS}/p/log`)).code, 200);
  kubelet.say('second\n');
  while (!text.includes('second')) await once(answer, 'data');
  assert.equal(text, 'first\nsecond\n');
  followed.destroy();
});

test('proxies lead to no address of this machine, by whatever name', async () => {
  for (const [index, address] of [
    ...['127.0.0.1', 'localhost', 'LOCALHOST', 'a.LocalHost.', '2130706433', '0x7f.1', '127.1'],
    ...['::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '169.254.169.254', '0.0.0.0', 'fe80::1'],
  ].entries()) {
    const name = `near-${index}`;
    const status = { addresses: [{ type: 'InternalIP', address }] };
    await make('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name }, status });
    const refused = await ask('GET', `/api/v1/nodes/http:${name}:1/proxy/`);
    assert.equal(refused.code, 400, `${address}: ${refused.text}`);
    assert.match(refused.text, /address not allowed|no such host/, address);
  }
});
