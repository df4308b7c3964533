// shell: randomness and the clock
/** Makes a cluster ready for machines that join, and says what to run on them. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { isLoopback } from '@megaplane/base/loopback';
import { pauseMs } from '@megaplane/base/deferred';
import type { Client } from '@megaplane/client/client';
import { CONTENT } from '@megaplane/client/client';
import { createKubeClient } from '@megaplane/client/kube-client';
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import { joinObjects, tokenSecret, type Wanted } from '@megaplane/network/join/join-objects';
import { authorityHash, newToken, parseToken } from '@megaplane/network/join/token';
import { addressText, parsePrefix } from '@megaplane/network/plan/prefix';
import { parse } from 'yaml';

export interface PrepareFlags {
  readonly kubeconfig: string;
  readonly server?: string;
  /** 0: the token never ends. */
  readonly ttl: number;
  readonly description: string;
  readonly clusterDomain: string;
}

const SLICES =
  '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices' +
  '?labelSelector=kubernetes.io%2Fservice-name%3Dkubernetes';
const CIDRS = '/apis/networking.k8s.io/v1/servicecidrs/kubernetes';
const CLUSTER_INFO = '/api/v1/namespaces/kube-public/configmaps/cluster-info';
const SIGNED_LOOKS = 300;
const SIGNED_LOOK_MS = 100;
/** Of the range of Services, as kubeadm has it. */
const DNS_NUMBER = 10n;

/** Resolves with what to print. Rejects with an Error that says what to do. */
export async function prepareJoin(flags: PrepareFlags): Promise<string> {
  const authority = authorityOf(flags.kubeconfig);
  const client = await createKubeClient({ kubeconfig: flags.kubeconfig });
  try {
    const server = flags.server ?? (await advertised(client));
    const url = serverUrl(server);
    const ranges = await read(client, CIDRS);
    const services = listAt(ranges, 'spec', 'cidrs').filter((one) => typeof one === 'string');
    const version = await read(client, '/version');
    const objects = joinObjects({
      ...{ server: url, authority, services: services.join(',') },
      kubernetesVersion: stringAt(version, 'gitVersion').replace(/[-+].*$/, ''),
      clusterDomain: flags.clusterDomain,
      clusterDns: services.flatMap(dnsAddress),
    });
    for (const object of objects) await apply(client, object);
    const text = newToken(() => randomBytes(1)[0] ?? 0);
    const token = parseToken(text);
    if (token === undefined) throw new Error('no token was made');
    const endMs = flags.ttl === 0 ? NaN : Date.now() + flags.ttl;
    const expiration = Number.isNaN(endMs) ? '' : `${new Date(endMs).toISOString().slice(0, 19)}Z`;
    await create(client, tokenSecret(token, expiration, flags.description));
    await signed(client, token.id);
    return commandsFor(url, text, authorityHash(authority), expiration);
  } finally {
    client.close();
  }
}

/** Controllers sign `cluster-info` with a new token; a machine that joins earlier knows none. */
async function signed(client: Client, id: string): Promise<void> {
  for (let look = 0; look < SIGNED_LOOKS; look++) {
    const info = await read(client, CLUSTER_INFO);
    if (stringAt(info, 'data', `jws-kubeconfig-${id}`) !== '') return;
    await pauseMs(SIGNED_LOOK_MS);
  }
  const seconds = (SIGNED_LOOKS * SIGNED_LOOK_MS) / 1000;
  throw new Error(
    `nobody has signed ${CLUSTER_INFO} with the new token in ${seconds} s: do controllers run, ` +
      'with bootstrap-signer-controller?',
  );
}

function commandsFor(url: string, token: string, hash: string, expiration: string): string {
  const address = url.replace('https://', '');
  const flags = `--token ${token} --discovery-token-ca-cert-hash ${hash}`;
  const end = expiration === '' ? 'The token never ends.' : `The token ends at ${expiration}.`;
  return `# On the machine that is to join, as root. ${end}
megaplane node join ${address} ${flags}

# Or by kubeadm:
# kubeadm join ${address} ${flags}
`;
}

/** The authority that the kubeconfig trusts; machines trust the same one. */
function authorityOf(file: string): string {
  if (!existsSync(file)) {
    throw new Error(`--kubeconfig: there is no ${file}: name the one that "megaplane up" has told`);
  }
  const config = parse(readFileSync(file, 'utf8')) as {
    readonly clusters?: readonly { readonly cluster?: Readonly<Record<string, string>> }[];
  } | null;
  const cluster = config?.clusters?.[0]?.cluster ?? {};
  const data = cluster['certificate-authority-data'];
  const path = cluster['certificate-authority'];
  if (data !== undefined) return Buffer.from(data, 'base64').toString('utf8');
  if (path !== undefined) return readFileSync(path, 'utf8');
  throw new Error(`--kubeconfig: ${file} names no authority that machines could trust`);
}

/** Where the Service `kubernetes` leads to. */
async function advertised(client: Client): Promise<string> {
  const { items = [] } = (await read(client, SLICES)) as { items?: JsonObject[] };
  for (const slice of items) {
    const [port] = listAt(slice, 'ports');
    for (const end of listAt(slice, 'endpoints').filter(isObject)) {
      const [address] = listAt(end, 'addresses');
      if (typeof address !== 'string' || isLoopback(address)) continue;
      const host = address.includes(':') ? `[${address}]` : address;
      return `https://${host}:${isObject(port) ? numberAt(port, 'port') : 6443}`;
    }
  }
  throw new Error(
    'the API server tells no address that other machines reach: start it with --join (up) or ' +
      '--bind-address and --advertise-address (apiserver), or name one by --server',
  );
}

function serverUrl(text: string): string {
  const url = URL.parse(text.includes('://') ? text : `https://${text}`);
  if (url === null || url.protocol !== 'https:') {
    throw new Error(`--server: ${text} is no address such as https://10.0.0.1:6443`);
  }
  return `https://${url.hostname}:${url.port === '' ? '443' : url.port}`;
}

function dnsAddress(range: string): string[] {
  const prefix = parsePrefix(range);
  return typeof prefix === 'string' ? [] : [addressText(prefix.base + DNS_NUMBER, prefix.bits)];
}

async function read(client: Client, path: string): Promise<JsonObject> {
  const answer = await client.request({ method: 'GET', path });
  if (answer.ok) return answer.object;
  throw new Error(`${path}: ${answer.status.message ?? answer.code}`);
}

async function create(client: Client, { path, object }: Wanted): Promise<void> {
  const answer = await client.request({ method: 'POST', path, body: object });
  if (!answer.ok) throw new Error(`${path}: ${answer.status.message ?? answer.code}`);
}

/** Made where it is missing; data, rules and subjects of one that is there are made so. */
async function apply(client: Client, { path, object }: Wanted): Promise<void> {
  const made = await client.request({ method: 'POST', path, body: object });
  if (made.ok) return;
  if (made.code !== 409) throw new Error(`${path}: ${made.status.message ?? made.code}`);
  const answer = await client.request({
    method: 'PATCH',
    path: `${path}/${encodeURIComponent(stringAt(object, 'metadata', 'name'))}`,
    contentType: CONTENT.mergePatch,
    body: object,
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status.message ?? answer.code}`);
}
