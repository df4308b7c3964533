// shell: sockets and timers
/**
 * Connections to webhooks, kept open: one of HTTP/2 for any number of calls where the webhook
 * speaks it, else as many of HTTP/1.1 as there are calls at the same time.
 */
import { afterMs } from '@megaplane/base/deferred';
import { prepareFields } from '@megaplane/wire/client';
import type {
  ClientConnection,
  ClientStream,
  PreparedFields,
  ResponseSink,
} from '@megaplane/wire/client';
import { connect, type ConnectTls } from '@megaplane/wire/connect';
import { goWords } from './dial-text.ts';
import type { WebhookCaller, WebhookResponse, WebhookTarget } from './webhook-call.ts';
import { ClientRequests } from './client-requests.ts';
import type { FieldList } from '@megaplane/wire/fields';

/** Longer answers are refused. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
/** Webhooks that connections are kept for; the one that waited longest goes first. */
const ORIGINS_MAX = 500;
/** Connections of HTTP/1.1 to one webhook; further calls wait their turn on one of them. */
const CONNECTIONS_MAX = 64;
/** Calls that wait for their answers, all webhooks together. */
const CALLS_MAX = 20_000;

const FIELD_LIST: readonly string[] = [
  'content-type',
  'application/json',
  'accept',
  'application/json, */*',
  'user-agent',
  'kube-apiserver-admission',
];
const FIELDS = prepareFields(FIELD_LIST);
const NOTHING = Buffer.alloc(0);

/** A server without HTTP/2 takes another protocol, or ends the handshake. */
const NO_HTTP2 = /does not offer HTTP\/2|alert no application protocol/;

type Done = (response: WebhookResponse) => void;

interface Origin {
  readonly target: WebhookTarget;
  readonly fields: PreparedFields;
  /** Unknown until the first connection was made. */
  protocol: 'h2' | 'h1';
  connections: ClientConnection[];
}

export class WebhookPool implements WebhookCaller {
  readonly #origins = new Map<string, Origin>();
  readonly requests: ClientRequests = new ClientRequests();
  #calls = 0;

  call(target: WebhookTarget, body: Buffer, timeoutMs: number, then: Done): void {
    if (this.#calls >= CALLS_MAX) {
      then({ ok: false, why: `more than ${CALLS_MAX} calls of webhooks are under way` });
      return;
    }
    this.#calls++;
    const sinceMs = performance.now();
    let isDone = false;
    const call = new PooledCall(ANSWER_BYTES_MAX, (response) => {
      if (isDone) return;
      isDone = true;
      this.#calls--;
      this.requests.count(target.authority, response, performance.now() - sinceMs);
      clearTimeout(timer);
      then(response);
    });
    const timer = afterMs(timeoutMs, () => call.expire());
    this.#send(this.#originOf(target), target, body, call, 1);
  }

  /** Closes all connections; calls under way fail. */
  close(): void {
    for (const { connections } of this.#origins.values()) {
      for (const connection of connections) connection.destroy();
    }
    this.#origins.clear();
  }

  #originOf(target: WebhookTarget): Origin {
    const { host, port, serverName, caBundle, credential } = target;
    const token = credential?.token ?? '';
    const ways = `${target.isPlain === true} ${target.isInsecure === true}`;
    const name = `${host} ${port} ${serverName} ${caBundle} ${ways}`;
    const key = `${name} ${credential?.certificate} ${token}`;
    let origin = this.#origins.get(key);
    if (origin === undefined) {
      const fields =
        token === '' ? FIELDS : prepareFields([...FIELD_LIST, 'authorization', `Bearer ${token}`]);
      // without TLS nobody can say that they speak HTTP/2
      const protocol = target.isPlain === true ? 'h1' : 'h2';
      origin = { target, fields, protocol, connections: [] };
      if (this.#origins.size >= ORIGINS_MAX) this.#dropOldest();
    } else {
      this.#origins.delete(key);
    }
    this.#origins.set(key, origin);
    return origin;
  }

  #dropOldest(): void {
    const [first] = this.#origins;
    if (first === undefined) return;
    this.#origins.delete(first[0]);
    for (const connection of first[1].connections) connection.drain();
  }

  #send(
    origin: Origin,
    target: WebhookTarget,
    body: Buffer,
    call: PooledCall,
    attempt: number,
  ): void {
    const { protocol } = origin;
    const connection = this.#connectionOf(origin);
    call.start(connection, target, origin.fields, body, (message) => {
      // all calls that were sent this way learn it at once, and each is sent anew
      if (protocol === 'h2' && NO_HTTP2.test(message)) {
        origin.protocol = 'h1';
        this.#send(origin, target, body, call, attempt);
        return true;
      }
      // the webhook closed a connection that was idle: it has seen nothing of this call
      const isStale = attempt < 3 && !message.includes('cannot connect');
      if (isStale) this.#send(origin, target, body, call, attempt + 1);
      return isStale;
    });
  }

  #connectionOf(origin: Origin): ClientConnection {
    const usable = origin.connections.filter(
      ({ state }) => state === 'open' || state === 'connecting',
    );
    origin.connections = usable;
    const [shared] = usable;
    if (origin.protocol === 'h2' && shared?.protocol === 'h2') return shared;
    const serial = usable.filter(({ protocol }) => protocol === 'http/1.1');
    const free = serial.find(({ inFlight }) => inFlight === 0);
    if (free !== undefined) return free;
    if (origin.protocol === 'h1' && serial.length >= CONNECTIONS_MAX) {
      return serial.reduce((best, one) => (one.inFlight < best.inFlight ? one : best));
    }
    const { host, port, authority, isPlain } = origin.target;
    const made = connect({
      host,
      port,
      authority,
      protocol: origin.protocol,
      ...(isPlain === true ? {} : { tls: tlsOf(origin.target) }),
    });
    origin.connections.push(made);
    return made;
  }
}

function tlsOf({ serverName, caBundle, credential, isInsecure }: WebhookTarget): ConnectTls {
  const hasOwn = credential !== undefined && credential.certificate !== '';
  return {
    servername: serverName,
    insecure: isInsecure === true,
    ...(caBundle === '' ? {} : { ca: caBundle }),
    ...(hasOwn ? { cert: credential.certificate, key: credential.key } : {}),
  };
}

/** One call: collects the answer, and gives up when told. */
class PooledCall implements ResponseSink {
  readonly #bytesMax: number;
  readonly #done: Done;
  #chunks: Buffer[] = [];
  #length = 0;
  #status = 0;
  #contentType = '';
  #retryAfter = '';
  #location = '';
  #stream: ClientStream | null = null;
  #again: (message: string) => boolean = () => false;
  #isExpired = false;

  constructor(bytesMax: number, done: Done) {
    this.#bytesMax = bytesMax;
    this.#done = done;
  }

  start(
    connection: ClientConnection,
    { path, isGet }: WebhookTarget,
    fields: PreparedFields,
    body: Buffer,
    again: (message: string) => boolean,
  ): void {
    this.#again = again;
    const [method, sent] = isGet === true ? ['GET', NOTHING] : ['POST', body];
    this.#stream = connection.request(method, path, fields, sent, this);
  }

  expire(): void {
    this.#isExpired = true;
    this.#done({ ok: false, why: 'context deadline exceeded', isCut: this.#status !== 0 });
    this.#stream?.cancel();
  }

  onHead(_stream: ClientStream, status: number, fields: FieldList): void {
    this.#status = status;
    for (let at = 0; at < fields.length; at += 2) {
      if (fields[at] === 'content-type') this.#contentType = fields[at + 1] ?? '';
      else if (fields[at] === 'retry-after') this.#retryAfter = fields[at + 1] ?? '';
      else if (fields[at] === 'location') this.#location = fields[at + 1] ?? '';
    }
  }

  onData(stream: ClientStream, bytes: Buffer, start: number, end: number): void {
    this.#length += end - start;
    if (this.#length > this.#bytesMax) {
      this.#done({ ok: false, why: `the answer is longer than ${this.#bytesMax} bytes` });
      stream.cancel();
      return;
    }
    this.#chunks.push(Buffer.from(bytes.subarray(start, end)));
  }

  onEnd(_stream: ClientStream, failure: { kind: string; message: string } | null): void {
    if (this.#isExpired) return;
    if (failure === null) {
      const body = Buffer.concat(this.#chunks);
      const [status, contentType] = [this.#status, this.#contentType];
      const seconds = /^[+-]?\d+$/.test(this.#retryAfter) ? Number(this.#retryAfter) : undefined;
      const again = seconds === undefined ? {} : { retryAfterS: seconds };
      const location = this.#location === '' ? {} : { location: this.#location };
      this.#done({ ok: true, status, contentType, body, ...again, ...location });
      return;
    }
    if (failure.kind === 'refused' && this.#again(failure.message)) return;
    const isCut = this.#status !== 0;
    this.#done({ ok: false, why: isCut ? 'unexpected EOF' : goWords(failure.message), isCut });
  }
}
