// shell: a TLS server, clients and timers
/**
 * The secure port of upstream's components: pages over TLS, by HTTP/2 and HTTP/1.1, for who may see
 * them.
 */
import { constants } from 'node:crypto';
import { guarded, unawaited } from '@megaplane/base/deferred';
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { clientAuthority, isPeerTrusted, trustPartialChains } from '@megaplane/base/tls-parts';
import { stringAt } from '@megaplane/machinery/json';
import type { Client } from '../rest/client.ts';
import { DelegatedAccess, type PageCredentials } from './delegated-access.ts';
import { COMPONENT_CONNECTIONS_MAX, PATIENCE } from './http-endpoint.ts';
import { createKubeClient, type KubeClient } from '../rest/kube-client.ts';

export interface SecureAddress {
  /** '' for all addresses of the machine. */
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  /** Paths that anybody may ask for. */
  readonly openPaths: readonly string[];
  /** Authorities of client certificates, PEM; '' for none but those that are looked up. */
  readonly clientCa: string;
  /** Whether authorities are looked up where none is given. */
  readonly looksUp: boolean;
  /** How to reach who knows tokens and authorities; '' for the program's own API server. */
  readonly authenticationKubeconfig: string;
  /** How to reach who knows what is allowed; likewise. */
  readonly authorizationKubeconfig: string;
  /** How long answers are kept. */
  readonly tokenMs: number;
  readonly allowedMs: number;
  readonly deniedMs: number;
}

export interface SecureEndpoint {
  readonly url: string;
  close(): Promise<void>;
}

/** Answers a request that is allowed. */
export type Listener = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

/** Where API servers tell the authority of client certificates. */
const AUTHORITIES = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';
const LOOK_UP_MS = 60_000;
const HANDSHAKE_MS = 10_000;
/** A connection over which nothing was said for so long is closed. */
const IDLE_MS = 300_000;
/** While nothing was found. */
const TRY_MS = 5000;

/** Listens; rejects with a text for people. */
export async function serveSecurely(
  address: SecureAddress,
  own: Client,
  listener: Listener,
): Promise<SecureEndpoint> {
  const made: KubeClient[] = [];
  const clientBy = async (kubeconfig: string): Promise<Client> => {
    if (kubeconfig === '') return own;
    const client = await createKubeClient({ kubeconfig });
    made.push(client);
    return client;
  };
  const { authenticationKubeconfig: first, authorizationKubeconfig: second } = address;
  const authentication = await clientBy(first);
  const authorization = first === second ? authentication : await clientBy(second);
  const access = new DelegatedAccess({
    authentication,
    authorization,
    alwaysAllowed: address.openPaths,
    tokenMs: address.tokenMs,
    allowedMs: address.allowedMs,
    deniedMs: address.deniedMs,
    nowMs: () => own.timers.nowMs(),
  });
  const server = createSecureServer({
    ...identityOf(address, address.clientCa),
    ...PATIENCE,
    allowHTTP1: true,
    handshakeTimeout: HANDSHAKE_MS,
  });
  server.maxConnections = COMPONENT_CONNECTIONS_MAX;
  server.setTimeout(IDLE_MS);
  trustPartialChains(server);
  server.on(
    'request',
    guarded((request, response) => unawaited(answer(request, response, access, listener))),
  );
  await listen(server, address);
  const stop = lookUp(address, authentication, (ca) => {
    server.setSecureContext(identityOf(address, ca));
    trustPartialChains(server);
  });
  const bound = server.address() as AddressInfo;
  const shown = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  const end = closer(server);
  return {
    url: `https://${shown}:${bound.port}`,
    close: async () => {
      stop();
      await end();
      for (const client of made) client.close();
    },
  };
}

function identityOf({ certificate: cert, key }: SecureAddress, ca: string): object {
  // a handshake is the server's work: none after the first
  const secureOptions = constants.SSL_OP_NO_RENEGOTIATION;
  // whose certificate nobody knows is nobody in particular
  return { cert, key, secureOptions, ...clientAuthority(ca === '' ? [] : ca) };
}

/** Ends the server with whatever is connected to it. */
function closer(server: Http2SecureServer): () => Promise<void> {
  const open = new Set<{ destroy(): unknown }>();
  server.on(
    'secureConnection',
    guarded((socket) => {
      open.add(socket);
      socket.once(
        'close',
        guarded(() => open.delete(socket)),
      );
    }),
  );
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of open) socket.destroy();
    });
}

async function listen(server: Http2SecureServer, { host, port }: SecureAddress): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once(
      'error',
      guarded((error: NodeJS.ErrnoException) => {
        const reason = error.code === 'EADDRINUSE' ? 'the port is taken' : error.message;
        reject(new Error(`--secure-port: cannot listen on ${host}:${port}: ${reason}`));
      }),
    );
    if (host === '') server.listen(port, resolve);
    else server.listen(port, host, resolve);
  });
}

async function answer(
  request: Http2ServerRequest,
  response: Http2ServerResponse,
  access: DelegatedAccess,
  listener: Listener,
): Promise<void> {
  const [path = ''] = request.url.split('?', 1);
  const decision = await access.decide(credentialsOf(request), request.method, path);
  if (decision.kind === 'allowed') {
    listener(request, response);
    return;
  }
  const { status } = decision;
  response.writeHead(status.code, { 'content-type': 'application/json' });
  response.end(JSON.stringify(status, null, 2));
}

function credentialsOf({ headers, socket }: Http2ServerRequest): PageCredentials {
  const authorization = headers.authorization ?? '';
  const nobody = { certificate: null, authorization };
  const tls = socket as TLSSocket;
  if (!isPeerTrusted(tls, Date.now())) return nobody;
  const { subject } = tls.getPeerCertificate();
  const list = (value: string | readonly string[] | undefined): readonly string[] =>
    value === undefined ? [] : typeof value === 'string' ? [value] : value;
  const commonName = list(subject?.CN).at(-1);
  if (commonName === undefined) return nobody;
  return { certificate: { commonName, groups: list(subject.O) }, authorization };
}

/** Authorities change, and the API server may come up after the program. Returns what ends it. */
function lookUp(
  { clientCa, looksUp }: SecureAddress,
  client: Client,
  trust: (ca: string) => void,
): () => void {
  let known = clientCa;
  let cancel: (() => void) | null = null;
  let isOver = !looksUp || clientCa !== '';
  const look = async (): Promise<void> => {
    const found = await client.request({ method: 'GET', path: AUTHORITIES });
    const ca = found.ok ? stringAt(found.object, 'data', 'client-ca-file') : '';
    if (isOver) return;
    if (ca !== '' && ca !== known) trust((known = ca));
    cancel = client.timers.after(known === '' ? TRY_MS : LOOK_UP_MS, () => unawaited(look()));
  };
  if (!isOver) unawaited(look());
  return () => {
    isOver = true;
    cancel?.();
  };
}
