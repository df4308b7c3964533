// shell: connections to an API server
/**
 * How a machine that knows nothing but a token and a hash comes to trust a cluster.
 *
 * It reads `kube-public/cluster-info` from whoever answers, and believes it when it is signed with
 * the token and the authority in it has the hash. Then it reads it once more from a server whose
 * certificate that authority has signed.
 */
import { guarded } from '@megaplane/base/deferred';
import { clientTls } from '@megaplane/base/tls-parts';
import { request } from 'node:https';
import { parseJson } from '@megaplane/machinery/json-text';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { parse } from 'yaml';
import { authorityHash, isSignedBy, type Token } from './token.ts';

const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
const ANSWER_MS_MAX = 15_000;
const INFO_PATH = '/api/v1/namespaces/kube-public/configmaps/cluster-info';
/** A clock that is wrong by more than it is told of. */
const SKEW_MS_MAX = 60_000;

export interface DiscoveryRequest {
  /** `host:port`; IPv6 in brackets. */
  readonly address: string;
  readonly token: Token;
  /** Hashes one of which the authority has; empty: whatever the token has signed. */
  readonly hashes: readonly string[];
  readonly nowMs: () => number;
}

/** Where the cluster is, and whom to trust. */
export interface Cluster {
  readonly server: string;
  readonly authority: string;
  /** By which of its addresses this machine reaches it. */
  readonly localAddress: string;
}

interface Answer {
  readonly code: number;
  readonly object: JsonObject;
  /** By how much the server's clock is ahead of ours; 0 where it does not say. */
  readonly aheadMs: number;
  readonly localAddress: string;
}

/** Resolves with the cluster; rejects with an Error that says what is wrong and what to do. */
export async function discover(asked: DiscoveryRequest): Promise<Cluster> {
  const { address, token, hashes, nowMs } = asked;
  const first = await get(`https://${address}`, INFO_PATH, { nowMs });
  if (first.code === 401 || first.code === 403 || first.code === 404) {
    throw new Error(
      `${address} says nothing of its cluster (${first.code}): run "megaplane join-command" there`,
    );
  }
  const text = signedInfo(first, asked);
  const cluster = clusterIn(text, address);
  if (hashes.length > 0 && !hashes.includes(authorityHash(cluster.authority))) {
    const own = authorityHash(cluster.authority);
    throw new Error(
      `the authority of ${address} is another one than the hash says (${own}): a new command of ` +
        '"megaplane join-command" has the right one, or somebody is between you and the cluster',
    );
  }
  const second = await get(`https://${address}`, INFO_PATH, { nowMs, ca: cluster.authority }).catch(
    (error: Error) => {
      throw new Error(`${error.message}${skewText(first.aheadMs)}`, { cause: error });
    },
  );
  if (stringAt(second.object, 'data', 'kubeconfig') !== text) {
    throw new Error(
      `${address} gave two different answers: somebody is between you and the cluster`,
    );
  }
  if (token.id === '') throw new Error('the token has no id');
  return { ...cluster, localAddress: second.localAddress };
}

function signedInfo({ object, aheadMs }: Answer, { address, token }: DiscoveryRequest): string {
  const text = stringAt(object, 'data', 'kubeconfig');
  const signature = stringAt(object, 'data', `jws-kubeconfig-${token.id}`);
  if (text === '')
    throw new Error(`${address} has no cluster-info: run "megaplane join-command" there`);
  if (signature === '') {
    throw new Error(
      `the token ${token.id} is not known at ${address}: it has run out or was removed; ` +
        `"megaplane join-command" makes a new one${skewText(aheadMs)}`,
    );
  }
  if (!isSignedBy(signature, text, token)) {
    throw new Error(`the secret of the token ${token.id} is wrong: copy the whole command again`);
  }
  return text;
}

function skewText(aheadMs: number): string {
  if (Math.abs(aheadMs) <= SKEW_MS_MAX) return '';
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  const how = aheadMs > 0 ? 'behind' : 'ahead of';
  return `; the clock of this machine is ${seconds} s ${how} the cluster's: set it first`;
}

function clusterIn(text: string, address: string): Omit<Cluster, 'localAddress'> {
  let parsed: unknown;
  try {
    parsed = parse(text);
  } catch (error) {
    throw new Error(`the cluster-info of ${address} is no kubeconfig`, { cause: error });
  }
  const clusters = (parsed as { clusters?: unknown } | null)?.clusters;
  const [first] = Array.isArray(clusters) ? (clusters as ({ cluster?: object } | null)[]) : [];
  const cluster = (first?.cluster ?? {}) as Record<string, unknown>;
  const server = cluster['server'];
  const data = cluster['certificate-authority-data'];
  if (typeof server !== 'string' || typeof data !== 'string') {
    throw new Error(`the cluster-info of ${address} names no server and authority`);
  }
  return { server, authority: Buffer.from(data, 'base64').toString('utf8') };
}

/** Reads an object as who has the token; undefined where there is none of that name. */
export async function read(
  { server, authority }: Cluster,
  path: string,
  { id, secret }: Token,
  nowMs: () => number,
): Promise<JsonObject | undefined> {
  const bearer = `${id}.${secret}`;
  const answer = await get(server, path, { nowMs, ca: authority, bearer });
  if (answer.code === 404) return undefined;
  if (answer.code === 200) return answer.object;
  const message = stringAt(answer.object, 'message');
  if (answer.code === 401) {
    throw new Error(
      `${server} does not take the token: is --enable-bootstrap-token-auth on there?`,
    );
  }
  throw new Error(`${server}${path}: ${answer.code} ${message}`);
}

interface GetOptions {
  readonly nowMs: () => number;
  /** PEM; undefined: any certificate is taken. */
  readonly ca?: string;
  readonly bearer?: string;
}

function get(server: string, path: string, { nowMs, ca, bearer }: GetOptions): Promise<Answer> {
  const tls =
    ca === undefined ? clientTls({ isInsecure: true }) : clientTls({ ca, isInsecure: false });
  const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => reject(new Error(`${server} cannot be reached: ${why}`));
    const sent = request(new URL(path, server), {
      ...tls,
      headers,
      timeout: ANSWER_MS_MAX,
      agent: false,
    });
    sent.on(
      'timeout',
      guarded(() => sent.destroy(new Error('no answer in 15 s'))),
    );
    sent.on(
      'error',
      guarded((error) => fail(error.message)),
    );
    sent.on(
      'response',
      guarded((answer) => {
        const pieces: Buffer[] = [];
        // the socket has none any more when the answer has ended
        const localAddress = answer.socket.localAddress ?? '';
        let bytes = 0;
        answer.on(
          'data',
          guarded((piece: Buffer) => {
            bytes += piece.length;
            if (bytes > ANSWER_BYTES_MAX) sent.destroy(new Error('the answer has no end'));
            else pieces.push(piece);
          }),
        );
        answer.on(
          'end',
          guarded(() => {
            const sentMs = Date.parse(answer.headers.date ?? '');
            const aheadMs = Number.isNaN(sentMs) ? 0 : sentMs - nowMs();
            const code = answer.statusCode ?? 0;
            resolve({ code, object: objectOf(pieces), aheadMs, localAddress });
          }),
        );
      }),
    );
    sent.end();
  });
}

function objectOf(pieces: readonly Buffer[]): JsonObject {
  try {
    const parsed: unknown = parseJson(Buffer.concat(pieces).toString('utf8'));
    return typeof parsed === 'object' && parsed !== null ? (parsed as JsonObject) : {};
  } catch {
    return {};
  }
}
