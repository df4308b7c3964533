/** An exchange over plain values, for tests that talk to the server without a socket. */
import type {
  CloseReason,
  Connection,
  Exchange,
  PeerCertificate,
  Rest,
  SharedBytes,
  UpgradedStream,
} from '@megaplane/wire/exchange';
import type { FieldList } from '@megaplane/wire/fields';

type Respond = Exchange['respondCopy'];

/** Fields by name; those that are sent several times have a list. */
export type Headers = Readonly<Record<string, string | readonly string[]>>;

let connections = 0;

/** A connection that holds what `hold` asks it to. */
export class ConnectionModel implements Connection {
  readonly id: number = ++connections;
  readonly protocol: 'h2' | 'http/1.1';
  readonly secure = true;
  readonly unix: boolean;
  readonly remoteAddress = '127.0.0.1';
  slot: unknown = undefined;
  rest: Rest = 'late';
  held = 0;
  readonly #certificate: PeerCertificate | null;

  constructor(
    unix = true,
    certificate: PeerCertificate | null = null,
    protocol: 'h2' | 'http/1.1' = 'h2',
  ) {
    this.unix = unix;
    this.protocol = protocol;
    this.#certificate = certificate;
  }

  peerCertificate(): PeerCertificate | null {
    return this.#certificate;
  }

  hold(): void {
    this.held++;
  }

  release(): void {
    this.held--;
  }

  abort(): void {
    // a model has no peer
  }

  drain(): void {
    // nothing is queued in a model
  }

  onceClosed(): void {
    // a model never closes by itself
  }
}

/** One request; the answer is collected in `status`, `headers` and `text`. */
export class ExchangeModel implements Exchange {
  readonly connection: ConnectionModel;
  readonly method: string;
  readonly path: string;
  readonly authority = 'localhost';
  body: Buffer;
  #isBodyKept = false;
  readonly #fields: ReadonlyMap<string, string | readonly string[]>;
  onBody: Exchange['onBody'] = null;
  onBodyEnd: (() => void) | null = null;
  onWritable: (() => void) | null = null;
  onClose: ((reason: CloseReason) => void) | null = null;
  onHalfClose: (() => void) | null = null;
  readonly upgradeProtocol: undefined = undefined;
  status = 0;
  contentType: string | null = null;
  headers: FieldList = [];
  isEnded = false;
  isReset = false;
  /** What the peer takes before it stops reading; tests lower it. */
  room: number = Infinity;
  readonly #chunks: Buffer[] = [];

  constructor(
    method: string,
    path: string,
    body?: unknown,
    headers: Headers = {},
    connection: ConnectionModel = new ConnectionModel(),
  ) {
    this.method = method;
    this.path = path;
    this.connection = connection;
    this.body = bodyBytes(body);
    this.#fields = new Map(Object.entries(headers));
  }

  header(name: string): string | undefined {
    const value = this.#fields.get(name);
    return typeof value === 'object' ? value.join(', ') : value;
  }

  fields(): FieldList {
    return [...this.#fields].flatMap(([name, values]) =>
      [values].flat().flatMap((one) => [name, one]),
    );
  }

  keepBody(): Buffer {
    this.#isBodyKept = true;
    return this.body;
  }

  /** As the wire does when the handler has returned: a body that nobody kept is gone. */
  endTurn(): void {
    if (!this.#isBodyKept) this.body = Buffer.alloc(0);
  }

  pauseBody(): void {
    // the body is there as a whole
  }

  resumeBody(): void {
    // the body is there as a whole
  }

  respond(
    status: number,
    contentType: string | null,
    bytes: Uint8Array | string | null,
    headers: FieldList = [],
    lasting: FieldList = [],
  ): void {
    this.open(status, contentType, [...headers, ...lasting]);
    if (bytes !== null) this.#chunks.push(Buffer.from(bytes as Uint8Array));
    this.isEnded = true;
  }

  respondCopy(...[status, type, bytes, length, ...lists]: Parameters<Respond>): void {
    this.respond(status, type, bytes.subarray(0, length), ...lists);
  }

  open(status: number, contentType: string | null, headers: FieldList = []): void {
    if (this.status !== 0) throw new Error(`answered twice: ${this.status}, then ${status}`);
    this.status = status;
    this.contentType = contentType;
    this.headers = headers;
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length, shared?: SharedBytes): void {
    const isShared = shared !== undefined && this.connection.protocol === 'h2';
    this.#chunks.push(isShared ? shared.kept() : Buffer.from(bytes.subarray(start, end)));
    this.room -= end - start;
  }

  end(): void {
    this.isEnded = true;
  }

  writable(): number {
    return Math.max(0, this.room);
  }

  get closed(): boolean {
    return this.isEnded || this.isReset;
  }

  reset(): void {
    this.isReset = true;
  }

  upgrade(): UpgradedStream {
    throw new Error('a model cannot be upgraded');
  }

  /** Everything answered so far. */
  get text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  /** The pieces that were written; those that are shared are the same for all. */
  get pieces(): readonly Buffer[] {
    return this.#chunks;
  }

  /** The value of an answer's header, or undefined. */
  answerHeader(name: string): string | undefined {
    const at = this.headers.indexOf(name);
    return at < 0 ? undefined : this.headers[at + 1];
  }

  /** Lets the peer read `bytes` more. */
  read(bytes: number): void {
    this.room = bytes;
    this.onWritable?.();
  }

  /** The peer goes away. */
  cancel(): void {
    this.isReset = true;
    this.onClose?.('cancelled');
  }
}

function bodyBytes(body: unknown): Buffer {
  if (body === undefined) return Buffer.alloc(0);
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}
