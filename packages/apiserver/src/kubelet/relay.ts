// shell: sockets to kubelets and pods
/**
 * Passes requests on. Plain ones go by Node's own HTTP client, answers stream back as the client
 * reads them. Upgrades (exec, attach, port-forward) are a request line and bytes both ways: what is
 * spoken inside (SPDY/3.1, WebSocket v4 or v5) is between kubectl and the kubelet. Only
 * port-forward
 * over WebSocket to a kubelet that speaks SPDY is unpacked here, see `spdy-tunnel.ts`.
 */
import { isIP } from 'node:net';
import { afterMs, guarded, unawaited } from '@megaplane/base/deferred';
import { addToMember } from '@megaplane/base/members';
import { Agent as PlainAgent, request as plainRequest, type IncomingMessage } from 'node:http';
import { Agent as TlsAgent, request as tlsRequest, type RequestOptions } from 'node:https';
import { clientTls } from '@megaplane/base/tls-parts';
import {
  badRequest,
  internalError,
  serviceUnavailable,
  tooManyRequests,
  unclassified,
  type Status,
} from '@megaplane/machinery/status';
import type { Call } from '../request/call.ts';
import { unsendableField } from '../request/header-text.ts';
import { goText, requestText } from '../webhook/dial-text.ts';
import { hostFor, passedFields, returnedFields } from './passed-head.ts';
import { resolveProxyable } from './proxyable-address.ts';
import type { Fetched, KubeletFlags, Relay, Target } from '../webhook/target.ts';
import { openUpgrade, type UpgradeTls } from './upgrade.ts';
import type { FieldList } from '@megaplane/wire/fields';

/** Requests that are being passed on; more get 429. */
const RELAYED_MAX = 4096;
const PORT_MAX = 65_535;
/** Bytes of a kubelet's words that a Status carries. */
const FAILURE_BYTES_MAX = 50_000;
/** A target that cannot be reached by then is not. */
const CONNECT_MS_MAX = 30_000;
/** Longer answers to what this server asks by itself are refused. */
const FETCH_BYTES_MAX: number = 16 * 1024 * 1024;
/** What Go's client adds where the request was sent. */
const AWAITED = ' (Client.Timeout exceeded while awaiting headers)';
/** Extensions that connections are kept for; the oldest goes first. */
const EXTENSIONS_MAX = 200;
/** Where extensions send clients away, which they may not. */
const REDIRECTED = 'the backend attempted to redirect this request, which is not permitted';

export interface RelayOptions {
  readonly kubelets: KubeletFlags;
  /** The server's own credential at kubelets, and who signs theirs; read anew when they change. */
  readonly kubeletTls: () => UpgradeTls;
  /** The front proxy's credential at extensions. */
  readonly proxyTls: () => Pick<UpgradeTls, 'cert' | 'key'>;
}

export class SocketRelay implements Relay {
  readonly kubelets: KubeletFlags;
  readonly #kubeletTls: () => UpgradeTls;
  readonly #proxyTls: RelayOptions['proxyTls'];
  readonly #extensions = new Map<string, TlsAgent>();
  readonly #plain = new PlainAgent({ keepAlive: true });
  /** One per set of credentials: connections of old ones are not used again. */
  #tls: KubeletAgent | null = null;
  /** Of requests that ask not to look at certificates: those of others go on meanwhile. */
  #unverified: KubeletAgent | null = null;
  readonly #insecure = new TlsAgent({ keepAlive: true, ...clientTls({ isInsecure: true }) });
  #relayed = 0;

  constructor({ kubelets, kubeletTls, proxyTls }: RelayOptions) {
    this.#proxyTls = proxyTls;
    this.kubelets = kubelets;
    this.#kubeletTls = kubeletTls;
  }

  pass(call: Call, target: Target): void {
    if (this.#relayed >= RELAYED_MAX) {
      call.fail(tooManyRequests('Too many requests, please try again later.', 1));
      return;
    }
    if (target.port > PORT_MAX) {
      const why = `dial tcp: address ${target.port}: invalid port`;
      call.fail(serviceUnavailable(`error trying to reach service: ${why}`));
      return;
    }
    if (target.peer !== 'workload' || isIP(target.host) !== 0) {
      this.#pass(call, target);
      return;
    }
    call.keepBody();
    const go = guarded((found: { readonly address: string } | { readonly why: string }) => {
      if (call.exchange.closed || call.code !== 0) return;
      if ('why' in found) call.fail(badRequest(found.why));
      else this.#pass(call, { ...target, host: found.address, serverName: target.host });
    });
    resolveProxyable(target.host, go);
  }

  #pass(call: Call, target: Target): void {
    this.#relayed++;
    let isOver = false;
    const ended = (): void => {
      if (!isOver) this.#relayed--;
      isOver = true;
    };
    const isUpgrade = call.exchange.upgradeProtocol !== undefined;
    try {
      const fields = passedFields(call, target);
      const unsendable = unsendableField(fields);
      if (unsendable !== undefined) {
        // what Go's transport says of it, as its proxies tell it
        const why = `net/http: invalid header field value for ${JSON.stringify(unsendable)}`;
        call.fail(serviceUnavailable(`error trying to reach service: ${why}`));
        ended();
      } else if (target.needsUpgrade && !isUpgrade) {
        call.fail(badRequest('Upgrade request required'));
        ended();
      } else if (isUpgrade) {
        openUpgrade(call, target, fields, this.#tlsOf(target), ended);
      } else this.#request(call, target, fields, ended);
    } catch (error) {
      // what Node refuses to send it refuses at once
      ended();
      throw error;
    }
  }

  /** Requests that are being passed on. */
  get relayed(): number {
    return this.#relayed;
  }

  #tlsOf(target: Target): UpgradeTls {
    const insecure = target.isInsecure || target.peer === 'workload';
    if (target.peer === 'workload') return { isInsecure: true };
    if (target.peer === 'extension') {
      const { ca, isInsecure } = target;
      return { ...this.#proxyTls(), ...(ca ? { ca } : {}), isInsecure };
    }
    const own = this.#kubeletTls();
    return insecure ? { ...own, isInsecure: true } : own;
  }

  #request(call: Call, target: Target, fields: FieldList, ended: () => void): void {
    const { exchange } = call;
    const options: RequestOptions = {
      host: target.host,
      servername: target.serverName,
      port: target.port,
      method: exchange.method,
      path: target.path,
      headers: { ...grouped(fields), host: hostFor(call, target), ...lengthOf(call.body) },
      timeout: CONNECT_MS_MAX,
    };
    const sent = target.isTls
      ? tlsRequest({ ...options, agent: this.#agentOf(target) })
      : plainRequest({ ...options, agent: this.#plain });
    let isOver = false;
    const finish = (): void => {
      if (isOver) return;
      isOver = true;
      ended();
    };
    sent.on(
      'socket',
      guarded((socket) => {
        // an answer may take its time; only the way to it may not. A kept socket connects no more
        if (socket.connecting)
          socket.once(
            'connect',
            guarded(() => socket.setTimeout(0)),
          );
        else socket.setTimeout(0);
      }),
    );
    sent.on(
      'timeout',
      guarded(() => sent.destroy(new Error('dial timeout'))),
    );
    sent.on(
      'error',
      guarded((error) => {
        const isAnswered = call.code !== 0;
        finish();
        if (exchange.closed) return;
        if (isAnswered) exchange.reset();
        else if (target.peer === 'extension') {
          const why = goText(error, `${target.host}:${target.port}`);
          call.sendText(503, `error trying to reach service: ${why}\n`);
        } else if (target.isWrapped === true) {
          const why = goText(error, `${target.host}:${target.port}`);
          call.fail(serviceUnavailable(`error trying to reach service: ${why}`));
        } else call.fail(unclassified(requestText(exchange.method, target, error)));
      }),
    );
    sent.on(
      'response',
      guarded((answer) => {
        answer.on('close', guarded(finish));
        if (target.wrapsFailures && (answer.statusCode ?? 0) > 206) {
          unawaited(explain(call, target, answer));
        } else if (target.peer === 'extension' && isRedirect(answer)) {
          answer.destroy();
          call.send(502, 'text/plain; charset=utf-8', REDIRECTED);
        } else stream(call, target, answer);
      }),
    );
    exchange.onClose = () => sent.destroy();
    // it leaves when there is a connection, later than this turn perhaps
    call.keepBody();
    sent.end(call.body);
  }

  fetch(target: Target, timeoutMs: number, done: (answer: Fetched) => void): void {
    const { host, port, path, serverName: servername } = target;
    const { fields = [] } = target;
    const asked = fields.includes('accept') ? [] : ['accept', 'application/json'];
    const headers = grouped([...fields, ...asked]);
    let isOver = false;
    const finish = (answer: Fetched): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      sent.destroy();
      done(answer);
    };
    const agent = this.#agentOf(target);
    const sent = tlsRequest({ host, port, path, servername, headers, agent });
    let late = (): void => finish({ why: 'context deadline exceeded' });
    const timer = afterMs(timeoutMs, () => late());
    const reached = (): void => {
      late = () => finish({ why: `context deadline exceeded${AWAITED}` });
    };
    sent.on(
      'socket',
      guarded((socket) => {
        if (socket.connecting) socket.once('secureConnect', guarded(reached));
        else reached();
      }),
    );
    sent.on(
      'error',
      guarded((error) => finish({ why: goText(error, `${host}:${port}`) })),
    );
    sent.on(
      'response',
      guarded((answer) => {
        const status = answer.statusCode ?? 502;
        const pieces: Buffer[] = [];
        let bytes = 0;
        // who has begun to answer is there, whatever comes of the rest
        late = () => finish({ status, body: null, type: '', etag: '' });
        answer.on(
          'data',
          guarded((piece: Buffer) => {
            pieces.push(piece);
            bytes += piece.length;
            if (bytes > FETCH_BYTES_MAX) late();
          }),
        );
        answer.on(
          'error',
          guarded(() => late()),
        );
        answer.on(
          'end',
          guarded(() => {
            const { 'content-type': type = '', etag = '' } = answer.headers;
            finish({ status, body: Buffer.concat(pieces), type, etag });
          }),
        );
      }),
    );
    sent.end();
  }

  #extensionAgent(target: Target, tls: UpgradeTls): TlsAgent {
    const key = `${target.serverName} ${tls.isInsecure} ${tls.cert} ${tls.ca}`;
    let agent = this.#extensions.get(key);
    if (agent !== undefined) return agent;
    const [oldest] = this.#extensions;
    if (this.#extensions.size >= EXTENSIONS_MAX && oldest !== undefined) {
      retire(oldest[1]);
      this.#extensions.delete(oldest[0]);
    }
    const { ca, cert, key: secret, isInsecure } = tls;
    const options = { keepAlive: true, ...clientTls({ ca, cert, key: secret, isInsecure }) };
    this.#extensions.set(key, (agent = new TlsAgent(options)));
    return agent;
  }

  #agentOf(target: Target): TlsAgent {
    if (target.peer === 'extension') return this.#extensionAgent(target, this.#tlsOf(target));
    const tls = this.#tlsOf(target);
    if (tls.isInsecure && target.peer === 'workload') return this.#insecure;
    if (target.isInsecure) return (this.#unverified = renewed(this.#unverified, tls)).agent;
    return (this.#tls = renewed(this.#tls, tls)).agent;
  }
}

interface KubeletAgent {
  readonly of: UpgradeTls;
  readonly agent: TlsAgent;
}

/** The agent of these credentials; one of others serves what it has begun, and nothing more. */
function renewed(kept: KubeletAgent | null, tls: UpgradeTls): KubeletAgent {
  if (kept !== null && isSame(kept.of, tls)) return kept;
  if (kept !== null) retire(kept.agent);
  const { ca, cert, key, isInsecure } = tls;
  const options = { keepAlive: true, ...clientTls({ ca, cert, key, isInsecure }) };
  return { of: tls, agent: new TlsAgent(options) };
}

/** Connections that serve nobody end now, the others when they are free. */
function retire(agent: TlsAgent): void {
  agent.maxFreeSockets = 0;
  for (const sockets of Object.values(agent.freeSockets)) {
    for (const socket of sockets ?? []) socket.destroy();
  }
}

/** Node tells the length of no body that comes with GET or DELETE. */
function lengthOf({ length }: Buffer): Record<string, string> {
  return length === 0 ? {} : { 'content-length': String(length) };
}

function isSame(left: UpgradeTls, right: UpgradeTls): boolean {
  const { ca, cert, key, isInsecure } = left;
  return (
    ca === right.ca && cert === right.cert && key === right.key && isInsecure === right.isInsecure
  );
}

function grouped(fields: FieldList): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  for (let at = 0; at + 1 < fields.length; at += 2) {
    addToMember(found, fields[at] ?? '', fields[at + 1] ?? '');
  }
  return found;
}

/** A kubelet's refusal, as a Status in upstream's words. */
async function explain(call: Call, target: Target, answer: IncomingMessage): Promise<void> {
  let text = '';
  for await (const piece of answer) {
    if (text.length < FAILURE_BYTES_MAX) text += String(piece);
  }
  if (call.exchange.closed) return;
  const code = answer.statusCode ?? 500;
  if (code === 500) call.fail(internalError(text));
  else if (code === 400) call.fail(badRequest(text));
  else call.fail(serverResponse(code, target, text));
}

const REASONS: Readonly<Record<number, readonly [string, string]>> = {
  401: ['Unauthorized', 'the server has asked for the client to provide credentials'],
  403: ['Forbidden', ''],
  404: ['NotFound', 'the server could not find the requested resource'],
  405: ['MethodNotAllowed', 'the server does not allow this method on the requested resource'],
  429: [
    'TooManyRequests',
    'the server has received too many requests and has asked us to try again later',
  ],
  503: ['ServiceUnavailable', 'the server is currently unable to handle the request'],
};

function serverResponse(code: number, { resource, name }: Target, text: string): Status {
  const [reason, words] = REASONS[code] ?? [
    'InternalError',
    'an error on the server has prevented the request from succeeding',
  ];
  const message = words === '' ? text : `${words} ( ${resource} ${name})`;
  const status = unclassified(message);
  return {
    ...status,
    reason,
    code,
    details: {
      name,
      kind: resource,
      causes: [{ reason: 'UnexpectedServerResponse', message: text }],
    },
  };
}

function isRedirect({ statusCode = 0, headers }: IncomingMessage): boolean {
  return statusCode >= 300 && statusCode < 400 && (headers.location ?? '') !== '';
}

/** Hands the answer over as fast as the client takes it. */
function stream(call: Call, target: Target, answer: IncomingMessage): void {
  const { exchange } = call;
  if (exchange.closed) {
    answer.destroy();
    return;
  }
  const { type, fields } = returnedFields(call, target, answer.rawHeaders);
  call.code = answer.statusCode ?? 502;
  exchange.open(call.code, type, fields);
  answer.on(
    'data',
    guarded((bytes: Buffer) => {
      exchange.write(bytes);
      if (exchange.writable() <= 0) answer.pause();
    }),
  );
  exchange.onWritable = () => answer.resume();
  answer.on(
    'end',
    guarded(() => exchange.end()),
  );
  answer.on(
    'error',
    guarded(() => exchange.reset()),
  );
  exchange.onClose = () => answer.destroy();
}
