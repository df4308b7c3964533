import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { parse } from 'yaml';
import { eventually, kubectlOf, kubectls, NO_KUBECTL, startCluster } from './cluster.ts';
import type { Cluster } from './cluster.ts';

// one that speaks SPDY and one that speaks WebSocket; all of them take longer
const found = kubectls().slice(1);
const isLong = process.env['MEGAPLANE_LONG'] === '1';
const programs = isLong || found.length < 3 ? kubectls() : [found[0] ?? '', found.at(-1) ?? ''];
const skip = programs.length === 0 ? NO_KUBECTL : false;
const folder = mkdtempSync(join(tmpdir(), 'megaplane-port-'));
const FAILING = ['sh', '-c', 'echo oops >&2; exit 3'];
const attached = join(folder, 'attached.log');
let cluster: Cluster;
let far: Server;

const rule = (kind: string, spec: object): string =>
  `${JSON.stringify({ apiVersion: 'kwok.x-k8s.io/v1alpha1', kind, metadata: { name: 'a' }, spec })}\n---\n`;

before(async () => {
  if (skip !== false) return;
  far = createServer((request, response) => response.end(`far ${request.url}`));
  far.listen(0, '127.0.0.1');
  await once(far, 'listening');
  const log = join(folder, 'a.log');
  writeFileSync(attached, '2026-01-01T00:00:00Z stdout F old\n');
  writeFileSync(log, '2026-01-01T00:00:00.5Z stdout F one\n2026-01-01T00:00:01Z stderr F two\n');
  const { port } = far.address() as AddressInfo;
  const target = { address: '127.0.0.1', port };
  const own = join(folder, 'own.yaml');
  writeFileSync(
    own,
    rule('ClusterLogs', { logs: [{ containers: ['main'], logsFile: log }] }) +
      rule('ClusterAttach', { attaches: [{ logsFile: attached }] }) +
      rule('ClusterExec', {
        execs: [{ local: { workDir: folder, envs: [{ name: 'COLOR', value: 'blue' }] } }],
      }) +
      rule('ClusterPortForward', {
        forwards: [
          { ports: [8080], target },
          { ports: [8081], command: FAILING },
        ],
      }),
  );
  cluster = await startCluster(['--nodes', '2', '--stages', 'fast', own]);
  const kubectl = kubectlOf(programs[0] ?? '', cluster);
  const containers = ['main', 'side'].map((name) => ({ name, image: 'i' }));
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers } };
  const file = join(folder, 'pod.json');
  writeFileSync(file, JSON.stringify(pod));
  await eventually('the account of pods', () => {
    const found = kubectl('get', 'sa', 'default', '--ignore-not-found', '-o', 'name');
    return found === '' ? undefined : found;
  });
  kubectl('apply', '-f', file);
  kubectl('wait', '--for=condition=Ready', 'pod/p', '--timeout=90s');
});
after(async () => {
  far?.close();
  await cluster?.remove();
  rmSync(folder, { recursive: true, force: true });
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a kubectl with input to its end, however it ends. */
function run(
  program: string,
  args: readonly string[],
  input: string | Buffer = '',
): Promise<Ended> {
  const env = { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: cluster.kubeconfig };
  return new Promise((resolve) => {
    const options = { env, timeout: 90_000, maxBuffer: 2 ** 27, encoding: 'latin1' } as const;
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code ?? -1);
      resolve({ code, stdout, stderr });
    });
    child.stdin?.end(input);
  });
}

for (const program of programs.length > 0 ? programs : ['kubectl']) {
  const name = basename(program);

  test(`${name}: logs are those of the file`, { skip }, async () => {
    assert.equal((await run(program, ['logs', 'p', '-c', 'main'])).stdout, 'one\ntwo\n');
    const last = await run(program, ['logs', 'p', '-c', 'main', '--timestamps', '--tail=1']);
    assert.equal(last.stdout, '2026-01-01T00:00:01.000000000Z two\n');
    const none = await run(program, ['logs', 'p', '-c', 'side']);
    assert.match(none.stderr, /no logs found for container "side" in pod "default\/p"/);
    assert.equal(none.code, 1);
  });

  test(`${name}: commands run where the file says`, { skip }, async () => {
    const script = 'echo out; echo err >&2; echo $COLOR; pwd; exit 3';
    const ran = await run(program, ['exec', 'p', '-c', 'main', '--', 'sh', '-c', script]);
    assert.equal(ran.stdout, `out\nblue\n${folder}\n`);
    assert.match(ran.stderr, /^err\n/m);
    assert.match(ran.stderr, /command terminated with exit code 3/);
    assert.equal(ran.code, 3);
    const bytes = Buffer.alloc(3_000_000, 'some text that is long enough ');
    const echoed = await run(program, ['exec', '-i', 'p', '-c', 'main', '--', 'cat'], bytes);
    assert.equal(Buffer.from(echoed.stdout, 'latin1').compare(bytes), 0);
    const killed = await run(program, ['exec', 'p', '-c', 'main', '--', 'sh', '-c', 'kill -9 $$']);
    assert.equal(killed.code, 137);
    const missing = await run(program, ['exec', 'p', '-c', 'main', '--', 'nosuch']);
    assert.match(missing.stderr, /exec: "nosuch": executable file not found in \$PATH/);
  });

  test(`${name}: ports lead where the file says`, { skip }, async () => {
    const env = { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: cluster.kubeconfig };
    const child = spawn(program, ['port-forward', 'pod/p', ':8080'], { env });
    let text = '';
    child.stdout.on('data', (part: Buffer) => (text += part.toString()));
    const at = await eventually('a forwarded port', () => /127\.0\.0\.1:(\d+)/.exec(text)?.[1]);
    const answers = await Promise.all(
      ['a', 'b', 'c'].map(async (path) => {
        const answer = await fetch(`http://127.0.0.1:${at}/${path}`);
        return answer.text();
      }),
    );
    assert.deepEqual(answers, ['far /a', 'far /b', 'far /c']);
    child.kill();
    await once(child, 'exit');
    const other = spawn(program, ['port-forward', 'pod/p', ':8081'], { env });
    let told = '';
    for (const pipe of [other.stdout, other.stderr]) {
      pipe.on('data', (part: Buffer) => (told += part.toString()));
    }
    const port = await eventually('a port', () => /127\.0\.0\.1:(\d+)/.exec(told)?.[1]);
    await assert.rejects(() => fetch(`http://127.0.0.1:${port}/`));
    const why = /uid : cmd wait: sh -c echo oops >&2; exit 3: exit status 3\s+oops/;
    await eventually('the reason', () => (why.test(told) ? told : undefined));
    other.kill();
    if (other.exitCode === null) await once(other, 'exit');
  });

  test(`${name}: attaching shows what the file gets`, { skip }, async () => {
    const env = { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: cluster.kubeconfig };
    const child = spawn(program, ['attach', 'p', '-c', 'side'], { env });
    let text = '';
    child.stdout.on('data', (part: Buffer) => (text += part.toString()));
    let count = 0;
    await eventually('what it gets', () => {
      appendFileSync(attached, `2026-01-01T00:00:02Z stdout F more ${count++}\n`);
      return text === '' ? undefined : text;
    });
    assert.match(text, /^more \d/);
    child.kill();
    await once(child, 'exit');
  });
}

for (const program of programs.length > 0 ? programs : ['kubectl']) {
  test(`${basename(program)}: top tells what annotations claim`, { skip }, async () => {
    const kubectl = kubectlOf(program, cluster);
    kubectl('annotate', '--overwrite', 'pod', 'p', 'kwok.x-k8s.io/usage-cpu=250m');
    kubectl('annotate', '--overwrite', 'pod', 'p', 'kwok.x-k8s.io/usage-memory=64Mi');
    await eventually('the metrics API', () => {
      const path = '{.status.conditions[?(@.type=="Available")].status}';
      const name = 'v1beta1.metrics.k8s.io';
      const status = kubectl('get', 'apiservice', name, '-o', `jsonpath=${path}`);
      return status === 'True' ? status : undefined;
    });
    await eventually('what the annotations claim', () => {
      const pods = kubectl('top', 'pods').replaceAll(/ +/g, ' ');
      return /^p 500m 128Mi/m.test(pods) ? pods : undefined;
    });
    assert.match(kubectl('top', 'pod', 'p', '--containers'), /^p +main +250m +64Mi/m);
    assert.equal(kubectl('top', 'nodes').match(/^node-\d +\d+m +\d+% +/gm)?.length, 2);
    const none = await run(program, ['top', 'pod', 'nope']);
    assert.match(none.stderr, /pods.metrics.k8s.io "default\/nope" not found/);
    const stranger = await run(program, ['top', 'pods', '--as=joe']);
    assert.equal(stranger.code, 1);
  });
}

interface Forwards {
  /** All bytes of the answer's head. */
  readonly head: string;
  /** What came on a channel, behind the number of the port. */
  readonly told: (channel: number) => string;
  readonly send: (channel: number, text: string) => void;
  readonly close: () => void;
}

/** Asks the API server, as the administrator, for forwarded ports over plain WebSocket. */
async function forwards(query: string, protocol: string): Promise<Forwards> {
  const { clusters, users } = parse(readFileSync(cluster.kubeconfig, 'utf8'));
  const decode = (text: string): string => Buffer.from(text, 'base64').toString();
  const socket = connectTls({
    host: '127.0.0.1',
    port: Number(new URL(clusters[0].cluster.server).port),
    ca: decode(clusters[0].cluster['certificate-authority-data']),
    cert: decode(users[0].user['client-certificate-data']),
    key: decode(users[0].user['client-key-data']),
    ALPNProtocols: ['http/1.1'],
  });
  let bytes = Buffer.alloc(0);
  socket.on('data', (piece: Buffer) => (bytes = Buffer.concat([bytes, piece])));
  socket.on('error', () => socket.destroy());
  const path = `/api/v1/namespaces/default/pods/p/portforward?${query}`;
  socket.write(
    `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
      'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
      `sec-websocket-protocol: ${protocol}\r\n\r\n`,
  );
  const at = await eventually('an answer', () => {
    const end = bytes.indexOf('\r\n\r\n');
    return end < 0 ? undefined : end + 4;
  });
  const head = bytes.toString('latin1', 0, at);
  const isText = protocol.includes('base64');
  const told = (channel: number): string => {
    const found: Buffer[] = [];
    for (const payload of payloads(bytes.subarray(at))) {
      if ((payload[0] ?? 0) - (isText ? 0x30 : 0) !== channel) continue;
      const rest = payload.subarray(1);
      found.push(isText ? Buffer.from(rest.toString('latin1'), 'base64') : rest);
    }
    const all = Buffer.concat(found);
    if (all.length < 2) return '';
    return `${all.readUInt16LE(0)} ${all.toString('latin1', 2)}`;
  };
  const send = (channel: number, text: string): void => {
    const payload = isText
      ? Buffer.from(String.fromCharCode(0x30 + channel) + Buffer.from(text).toString('base64'))
      : Buffer.from(String.fromCharCode(channel) + text);
    assert.ok(payload.length < 126);
    const start = [0x80 | (isText ? 1 : 2), 0x80 | payload.length, 0, 0, 0, 0];
    socket.write(Buffer.concat([Buffer.from(start), payload]));
  };
  // what is refused says why behind its head
  const text = head.startsWith('HTTP/1.1 101 ') ? head : await refusal();
  return { head: text, told, send, close: () => socket.destroy() };

  function refusal(): Promise<string> {
    return eventually('a reason', () => {
      const all = bytes.toString('latin1');
      return /"code":\d+\}/.test(all) ? all : undefined;
    });
  }
}

/** Payloads of whole frames that a server sent. */
function payloads(bytes: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at + 4 <= bytes.length;) {
    const short = (bytes[at + 1] ?? 0) & 0x7f;
    const start = at + (short < 126 ? 2 : 4);
    const end = start + (short < 126 ? short : bytes.readUInt16BE(at + 2));
    if (end > bytes.length) break;
    found.push(bytes.subarray(start, end));
    at = end;
  }
  return found;
}

for (const protocol of ['v4.channel.k8s.io', 'v4.base64.channel.k8s.io']) {
  test(`ports are forwarded through the server over ${protocol}`, { skip }, async () => {
    const one = await forwards('ports=8080,8081', protocol);
    try {
      assert.match(one.head, /^HTTP\/1\.1 101 /);
      const answered = new RegExp(`^sec-websocket-protocol: ${protocol}\r$`, 'im');
      assert.match(one.head, answered);
      one.send(0, 'GET /a HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n');
      const answer = await eventually('what is far', () => {
        const text = one.told(0);
        return text.includes('far /a') ? text : undefined;
      });
      assert.match(answer, /^8080 HTTP\/1\.1 200 OK/);
      const why = /^8081 .*cmd wait: sh -c echo oops >&2; exit 3: exit status 3\s+oops/;
      await eventually('the reason of the other', () => why.test(one.told(3)) || undefined);
      assert.deepEqual([one.told(1), one.told(2)], ['8080 ', '8081 ']);
    } finally {
      one.close();
    }
  });

  test(`ports that there are not are refused over ${protocol}`, { skip }, async () => {
    for (const [query, why] of [
      ['ports=70000', /strconv\.ParseUint: parsing \\"70000\\": value out of range/],
      ['ports=80,70000', /strconv\.ParseUint: parsing \\"70000\\": value out of range/],
      ['ports=80,x', /strconv\.ParseUint: parsing \\"x\\": invalid syntax/],
    ] as const) {
      const { head, close } = await forwards(query, protocol);
      close();
      assert.match(head, /^HTTP\/1\.1 400 /, query);
      assert.match(head, why, query);
    }
  });
}

test('only those who may use nodes get in', { skip }, async () => {
  const log = readFileSync(join(cluster.dataDir, 'logs', 'nodes.log'), 'utf8');
  const address = /kubelets (https:\S+);/.exec(log)?.[1] ?? '';
  const kubectl = kubectlOf(programs[0] ?? '', cluster);
  const token = kubectl('create', 'token', 'default').trim();
  const ask = async (path: string, ...headers: string[]): Promise<string> => {
    const args = ['-sk', '-w', ' %{http_code}', ...headers.flatMap((one) => ['-H', one])];
    return new Promise((resolve) => {
      execFile('curl', [...args, `${address}${path}`], (_error, stdout) => resolve(stdout));
    });
  };
  assert.equal(await ask('/healthz'), 'ok 200');
  const logs = '/containerLogs/default/p/main';
  assert.equal(await ask(logs), 'Unauthorized 401');
  assert.equal(await ask(logs, 'authorization: Bearer nope'), 'Unauthorized 401');
  assert.match(await ask(logs, `authorization: Bearer ${token}`), /^Forbidden \(user=[^]* 403$/);
  kubectl('create', 'clusterrole', 'kubelets', '--verb=get', '--resource=nodes/proxy');
  const subject = ['--clusterrole=kubelets', '--serviceaccount=kube-system:default'];
  kubectl('create', 'clusterrolebinding', 'kubelets', ...subject);
  const other = kubectl('create', 'token', 'default', '-n', 'kube-system').trim();
  assert.equal(await ask(logs, `authorization: Bearer ${other}`), 'one\ntwo\n 200');
});
