import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createKubeClient, type KubeClient } from '@megaplane/client/kube-client';
import { chromiumProgram, NO_CHROMIUM, startChromium } from './chromium.ts';
import type { Browser, Tab } from './chromium.ts';
import { startCluster } from './cluster.ts';
import type { Cluster } from './cluster.ts';
import { freePort } from '@megaplane/base/free-port.sim';

const NODES = 40;
const PODS = 30;
/** All files of the page together. */
const PAGE_BYTES_MAX = 300 * 1024;

let cluster: Cluster;
let client: KubeClient;
let link = '';
let token = '';
let origin = '';

before(async () => {
  const port = await freePort();
  const sizes = ['--nodes', `${NODES}`, '--pods', `${PODS}`, '--page-port', `${port}`];
  cluster = await startCluster(sizes);
  link = cluster.page ?? '';
  const url = new URL(link);
  token = url.searchParams.get('token') ?? '';
  origin = url.origin;
  client = await createKubeClient({ kubeconfig: cluster.kubeconfig });
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'too-large' },
    spec: { containers: [{ name: 'a', image: 'x', resources: { requests: { cpu: '500' } } }] },
  };
  const path = '/api/v1/namespaces/default/pods';
  const made = await client.request({ method: 'POST', path, body: pod });
  assert(made.ok);
});

after(async () => {
  client.close();
  await cluster.remove();
});

function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${origin}${path}`, { headers, redirect: 'manual' });
}

const bearer = (): Record<string, string> => ({ authorization: `Bearer ${token}` });

test('who has no token gets nothing of the page and nothing of the cluster', async () => {
  for (const path of ['/', '/page.js', '/page.css', '/icon.svg', '/index.html', '/none']) {
    const answer = await get(path);
    assert.equal(answer.status, 401, path);
    assert.match(await answer.text(), /^open the link that megaplane printed/);
  }
  for (const path of ['/api/stream', '/api/kinds', '/api/field?by=ready', '/api/x']) {
    assert.equal((await get(path)).status, 401, path);
    assert.equal((await get(path, { authorization: 'Bearer wrong' })).status, 401, path);
    assert.equal((await get(`${path}?token=${token}`)).status, 401, path);
  }
});

test('the link gives the page and a cookie, which opens files and no data', async () => {
  const answer = await get(`/?token=${token}`);
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get('content-security-policy') ?? '', /default-src 'none'/);
  const [cookie = ''] = (answer.headers.get('set-cookie') ?? '').split(';');
  assert(!cookie.includes(token));
  let bytes = 0;
  for (const path of ['/', '/page.js', '/page.css', '/icon.svg']) {
    const file = await get(path, { cookie });
    assert.equal(file.status, 200);
    const text = await file.text();
    // nothing is loaded from elsewhere
    assert.doesNotMatch(text.replaceAll('http://www.w3.org/', ''), /(?:src|href)="https?:/);
    bytes += text.length;
  }
  assert(bytes > 50_000 && bytes < PAGE_BYTES_MAX, `${bytes} bytes`);
  assert.equal((await get('/api/kinds', { cookie })).status, 401);
});

test('foreign hosts, origins and ways into things are refused with the token, too', async () => {
  assert.equal(
    (await get('/api/kinds', { ...bearer(), origin: 'http://evil.example' })).status,
    403,
  );
  assert.equal(
    (await get('/api/kinds', { ...bearer(), 'sec-fetch-site': 'cross-site' })).status,
    403,
  );
  const raw = await rawAnswer(`GET /?token=${token} HTTP/1.1\r\nHost: evil.example\r\n\r\n`);
  assert.match(raw, /^HTTP\/1\.1 421 /);
  for (const path of ['/api/v1/nodes/node-0/proxy', '/api/v1/secrets/../pods', '/metrics']) {
    const asked = await get(`/api/object?path=${encodeURIComponent(path)}`, bearer());
    assert.equal(asked.status, 400, path);
  }
  const large = await fetch(`${origin}/api/chaos`, {
    method: 'POST',
    headers: bearer(),
    body: 'x'.repeat(5 * 1024 * 1024),
  });
  assert.equal(large.status, 413);
});

function rawAnswer(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(origin).port), '127.0.0.1', () => socket.write(text));
    socket.once('data', (data: Buffer) => {
      resolve(data.toString('latin1'));
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

test('a reader that reads nothing costs a bounded memory, and others go on', async () => {
  const streams = Array.from({ length: 40 }, () => {
    const socket = connect(Number(new URL(origin).port), '127.0.0.1');
    socket.on('error', () => {});
    socket.pause();
    const host = new URL(origin).host;
    const head = `GET /api/stream HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    socket.write(head);
    return socket;
  });
  const field = await get('/api/field?by=ready', bearer());
  assert.equal(field.status, 200);
  assert.equal((await field.arrayBuffer()).byteLength, NODES);
  for (const socket of streams) socket.destroy();
});

test('an object is read, applied and deleted, and refusals say why', async () => {
  const path = '/api/v1/namespaces/default/configmaps/of-page';
  const asked = `${origin}/api/object?path=${encodeURIComponent(path)}`;
  const headers = { ...bearer(), 'content-type': 'application/json' };
  const apply = (text: string): Promise<Response> =>
    fetch(asked, { method: 'POST', headers, body: JSON.stringify({ text }) });
  const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-page}\ndata: {a: "1"}\n';
  assert.equal((await apply(yaml)).status, 200);
  const read = (await (await fetch(asked, { headers })).json()) as Record<string, unknown>;
  assert.match(String(read['text']), /^ {2}a: "1"$/m);
  assert.doesNotMatch(String(read['text']), /managedFields/);
  assert.match(String(read['managedFields']), /manager: megaplane-page/);
  assert.equal(read['mayDelete'], true);
  assert.equal((await apply('{')).status, 400);
  assert.equal((await apply('a: &a [*a]')).status, 400);
  const wrong = await apply(yaml.replace('of-page', 'other'));
  assert.equal(wrong.status, 400);
  assert.equal((await fetch(asked, { method: 'DELETE', headers })).status, 200);
  assert.equal((await fetch(asked, { headers })).status, 404);
});

const program = chromiumProgram();

test(
  'in Chromium each view shows real figures, and the browser complains of nothing',
  { skip: program === '' ? NO_CHROMIUM : false, timeout: 240_000 },
  async () => {
    const browser = await startChromium(program);
    try {
      await visit(await opened(browser));
    } finally {
      await browser.close();
    }
  },
);

async function opened(browser: Browser): Promise<Tab> {
  const tab = await browser.tab();
  await tab.size(1280, 800);
  await tab.open(link);
  return tab;
}

/** A picture for who wants to see, where `MEGAPLANE_SCREENSHOTS` names a folder. */
async function pictured(tab: Tab, name: string): Promise<void> {
  const folder = process.env['MEGAPLANE_SCREENSHOTS'];
  if (folder !== undefined) await tab.picture(join(folder, `${name}.png`), true);
}

async function visit(tab: Tab): Promise<void> {
  const shows = (text: string): Promise<void> =>
    tab.until(`document.querySelector('main')?.innerText.includes(${JSON.stringify(text)})`);
  await shows('Nodes ready');
  await shows(`ready ${NODES}`);
  await tab.until(`document.querySelectorAll('.plot canvas').length >= 6`);
  await shows('apiserver');
  await tab.until(`document.querySelectorAll('.events li').length > 3`);
  assert.equal(await tab.value<string>('location.search'), '', 'the token leaves the address');
  await pictured(tab, 'cluster');
  await tab.value(`document.querySelectorAll('.choice')[3].click()`);
  await shows('zone 1:');
  // the field leads to the node under the pointer
  await tab.value(`document.querySelector('.field canvas').focus()`);
  for (const key of ['ArrowRight', 'Enter']) {
    const code = key === 'Enter' ? 13 : 39;
    const options = { type: 'keyDown', key, windowsVirtualKeyCode: code };
    await tab.call('Input.dispatchKeyEvent', options);
  }
  await tab.until(`/path=.*nodes&name=node-/.test(location.hash)`);
  await shows('kind: Node');
  for (const [key, view, text] of [
    ['2', 'store', 'configmaps'],
    ['3', 'apiserver', 'node-high'],
    ['4', 'scheduler', 'default/too-large'],
    ['5', 'nodes', 'zone-a'],
  ] as const) {
    await tab.call('Input.dispatchKeyEvent', { type: 'keyDown', key, text: key });
    await shows(text);
    await pictured(tab, view);
  }
  await tab.value(`location.hash = '#/scheduler'`);
  await shows('default/too-large');
  await tab.value(`document.querySelector('.explain button').click()`);
  await shows('Insufficient cpu');
  await browseObjects(tab, shows);
  await tab.size(380, 760);
  await tab.value(`location.hash = '#/cluster'`);
  await shows('Pods running');
  const isWide = 'document.documentElement.scrollWidth > innerWidth';
  assert.equal(await tab.value<boolean>(isWide), false, 'a narrow screen needs no sideways way');
  await pictured(tab, 'narrow');
  assert.deepEqual(tab.complaints, []);
}

async function browseObjects(tab: Tab, shows: (text: string) => Promise<void>): Promise<void> {
  const path = '/api/v1/namespaces/default/configmaps';
  await tab.value(`location.hash = '#/browse?path=/api/v1/configmaps&namespace=default'`);
  await shows('kube-root-ca.crt');
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'comes-later' } };
  assert((await client.request({ method: 'POST', path, body })).ok);
  await shows('comes-later');
  assert((await client.request({ method: 'DELETE', path: `${path}/comes-later` })).ok);
  await tab.until(`!document.querySelector('main').innerText.includes('comes-later')`);
  const query = `namespace=default&name=kube-root-ca.crt&of=default`;
  await tab.value(`location.hash = '#/browse?path=/api/v1/configmaps&${query}'`);
  await shows('BEGIN CERTIFICATE');
  await shows('Managed fields');
  await pictured(tab, 'browse');
}
