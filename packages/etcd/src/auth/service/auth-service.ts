// data plane: the Auth service
/** Handlers around `AuthState`; a thread hashes passwords, and those calls are answered later. */
import { isUtf8 } from 'node:buffer';
import { decodeBase64 } from '@megaplane/base/base64';
import {
  GRPC_CODES,
  type GrpcCall,
  type GrpcMethods,
  type InPlaceCall,
  type InPlaceHandler,
} from '@megaplane/wire/grpc';
import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import {
  closeMessage,
  openMessage,
  writeBytesField,
  writeInt64Field,
  writeTextField,
} from '@megaplane/wire/protobuf-write';
import { type EtcdContext, unlessMalformed } from '../../call/context.ts';
import { ETCD, type EtcdFailure } from '../../codec/failures.ts';
import { isMessage } from '../../codec/whole-message.ts';
import { answer } from '../../kv/put.ts';
import { AUTH } from '../auth-failures.ts';
import { type AuthState, ROOT } from '../auth-state.ts';
import { PASSWORD_BYTES_MAX, SALT_BYTES, type PasswordThread } from '../password-thread.ts';
import { type Permission, READ_WRITE } from '../permissions.ts';
import type { Now, Tokens } from '../tokens.ts';

/** Passwords being hashed or checked at once; more are refused. */
const PASSWORDS_UNDER_WAY_MAX = 64;

export interface AuthParts {
  readonly context: EtcdContext;
  readonly state: AuthState;
  readonly tokens: Tokens;
  readonly now: () => Now;
  readonly bcryptCost: number;
  readonly drawBytes: (count: number) => Buffer;
  readonly passwords: Pick<PasswordThread, 'hash' | 'check'>;
}

/** Which fields of a request are texts, and which are messages: one bit for each number. */
interface Shape {
  readonly texts: number;
  readonly messages: number;
}

const NO_FIELDS: Shape = { texts: 0, messages: 0 };
const NAME: Shape = { texts: 0b10, messages: 0 };
const TWO_TEXTS: Shape = { texts: 0b110, messages: 0 };
const NEW_USER: Shape = { texts: 0b1_0110, messages: 0b1000 };
const NEW_PASSWORD: Shape = { texts: 0b1110, messages: 0 };
const NEW_PERMISSION: Shape = { texts: 0b10, messages: 0b100 };

/** Fields of a request by number: texts, numbers and messages as bytes. */
class Request {
  readonly #bytes: Map<number, Buffer> = new Map();
  readonly #kinds: Map<number, number> = new Map();
  readonly #flags: Set<number> = new Set();
  /** What is wrong with the bytes themselves. */
  readonly invalid: EtcdFailure | null;

  /** Texts have to be UTF-8: two names must not become one by what is none. */
  constructor(bytes: Buffer, start: number, end: number, { texts, messages }: Shape) {
    const reader = new ProtobufReader().reset(bytes, start, end);
    while (reader.next()) {
      if (reader.wireType === 0) {
        if (reader.bool()) this.#flags.add(reader.field);
        else this.#flags.delete(reader.field);
        this.#kinds.set(reader.field, reader.low | 0);
      } else if (reader.wireType === WIRE_BYTES) {
        reader.chunk();
        const content = Buffer.from(bytes.subarray(reader.chunkStart, reader.chunkEnd));
        const bit = reader.field < 8 ? 1 << reader.field : 0;
        // A message that comes in parts is all of them, anything else is the last one.
        const before = (messages & bit) === 0 ? undefined : this.#bytes.get(reader.field);
        const whole = before === undefined ? content : Buffer.concat([before, content]);
        this.#bytes.set(reader.field, whole);
        const isText = (texts & bit) === 0 || isUtf8(content);
        if (isText && ((messages & bit) === 0 || isMessage(content, 0, content.length))) continue;
        this.invalid = isText ? ETCD.malformed : ETCD.notText;
        return;
      } else reader.skip();
    }
    this.invalid = reader.failure === FAILURE_NONE ? null : ETCD.malformed;
  }

  text(field: number): string {
    return this.#bytes.get(field)?.toString('utf8') ?? '';
  }

  raw(field: number): Buffer {
    return this.#bytes.get(field) ?? Buffer.alloc(0);
  }

  latin1(field: number): string {
    return this.raw(field).toString('latin1');
  }

  /** Of an enumeration, which has 32 bits. */
  kind(field: number): number {
    return this.#kinds.get(field) ?? 0;
  }

  flag(field: number): boolean {
    return this.#flags.has(field);
  }

  message(field: number): Request | null {
    const content = this.#bytes.get(field);
    return content === undefined ? null : new Request(content, 0, content.length, NO_FIELDS);
  }
}

type Change = (request: Request) => EtcdFailure | null;
type Body = (out: Buffer, at: number) => number;

export class AuthService {
  readonly #parts: AuthParts;
  #underWay = 0;

  constructor(parts: AuthParts) {
    this.#parts = parts;
  }

  register(methods: GrpcMethods): void {
    const { state, tokens } = this.#parts;
    const unary = (name: string, handler: InPlaceHandler): void =>
      methods.unary(`/etcdserverpb.Auth/${name}`, handler);
    unary(
      'AuthEnable',
      this.#change(() => state.enable(), NO_FIELDS),
    );
    unary(
      'AuthDisable',
      this.#change(() => {
        tokens.forgetAll();
        return state.disable();
      }, NO_FIELDS),
    );
    unary('AuthStatus', unlessMalformed(this.#parts.context, this.#status()));
    unary(
      'Authenticate',
      this.#later((request, call) => this.#authenticate(request, call), TWO_TEXTS),
    );
    unary(
      'UserAdd',
      this.#later((request, call) => this.#addUser(request, call), NEW_USER),
    );
    unary(
      'UserChangePassword',
      this.#later((request, call) => this.#changePassword(request, call), NEW_PASSWORD),
    );
    unary(
      'UserDelete',
      this.#change((request) => this.#deleteUser(request.text(1))),
    );
    unary(
      'UserGrantRole',
      this.#change((r) => state.grantRole(r.text(1), r.text(2)), TWO_TEXTS),
    );
    unary(
      'UserRevokeRole',
      this.#change((r) => state.revokeRole(r.text(1), r.text(2)), TWO_TEXTS),
    );
    unary(
      'UserList',
      this.#texts(() => state.userNames()),
    );
    unary(
      'UserGet',
      this.#texts((r) => state.user(r.text(1))?.roles ?? AUTH.userNotFound),
    );
    this.#registerRoles(unary);
  }

  #registerRoles(unary: (name: string, handler: InPlaceHandler) => void): void {
    const { state } = this.#parts;
    unary(
      'RoleAdd',
      this.#change((request) => state.addRole(request.text(1))),
    );
    unary(
      'RoleDelete',
      this.#change((request) => state.deleteRole(request.text(1))),
    );
    unary(
      'RoleGrantPermission',
      this.#change(
        (r) => state.grantPermission(r.text(1), permissionOf(r.message(2))),
        NEW_PERMISSION,
      ),
    );
    unary(
      'RoleRevokePermission',
      this.#change((r) =>
        state.revokePermission(r.text(1), { key: r.latin1(2), rangeEnd: r.latin1(3) }),
      ),
    );
    unary(
      'RoleList',
      this.#texts(() => state.roleNames()),
    );
    unary('RoleGet', this.#getRole());
  }

  /** A header and a body of at most `size` bytes. */
  #answer(call: InPlaceCall, out: Buffer, offset: number, size: number, body: Body): number {
    const { context } = this.#parts;
    context.guard(call.connection);
    return answer(call, out, offset, size + context.headerRoom, (target, at) =>
      body(target, context.writeHeader(target, at, context.store.appliedRevision)),
    );
  }

  #change(change: Change, shape: Shape = NAME): InPlaceHandler {
    return (bytes, start, end, out, offset, call) => {
      const { context } = this.#parts;
      const request = new Request(bytes, start, end, shape);
      const refused = request.invalid ?? change(request);
      if (refused !== null) return context.fail(call, refused);
      return this.#answer(call, out, offset, 0, (_target, at) => at);
    };
  }

  #texts(list: (request: Request) => readonly string[] | EtcdFailure): InPlaceHandler {
    return (bytes, start, end, out, offset, call) => {
      const request = new Request(bytes, start, end, NAME);
      const texts = request.invalid ?? list(request);
      if ('code' in texts) return this.#parts.context.fail(call, texts);
      const size = texts.reduce((sum, text) => sum + text.length * 3 + 8, 0);
      return this.#answer(call, out, offset, size, (target, start) => {
        let at = start;
        for (const text of texts) at = writeTextField(target, at, 2, text);
        return at;
      });
    };
  }

  #status(): InPlaceHandler {
    const { state } = this.#parts;
    return (_bytes, _start, _end, out, offset, call) =>
      this.#answer(call, out, offset, 32, (target, start) => {
        let at = start;
        if (state.enabled) at = writeInt64Field(target, at, 2, 1);
        return writeInt64Field(target, at, 3, state.revision);
      });
  }

  #getRole(): InPlaceHandler {
    const { state, context } = this.#parts;
    return (bytes, start, end, out, offset, call) => {
      const request = new Request(bytes, start, end, NAME);
      if (request.invalid !== null) return context.fail(call, request.invalid);
      const name = request.text(1);
      const found = state.role(name);
      if (found === undefined) return context.fail(call, AUTH.roleNotFound);
      const everything = { type: READ_WRITE, key: '', rangeEnd: '\0' };
      const permissions = name === ROOT ? [everything] : found;
      const size = permissions.reduce((sum, one) => sum + one.key.length + one.rangeEnd.length, 0);
      const room = size + permissions.length * 40;
      return this.#answer(call, out, offset, room, (target, at) =>
        permissions.reduce((place, one) => writePermission(target, place, one), at),
      );
    };
  }

  #deleteUser(name: string): EtcdFailure | null {
    const { state, tokens } = this.#parts;
    const refused = state.deleteUser(name);
    if (refused === null) tokens.forget(name);
    return refused;
  }

  /** A method whose work takes more than a turn. */
  #later(serve: (request: Request, call: GrpcCall) => Promise<void>, shape: Shape): InPlaceHandler {
    return (bytes, start, end, _out, _offset, call) => {
      const { context } = this.#parts;
      const request = new Request(bytes, start, end, shape);
      if (request.invalid !== null) return context.fail(call, request.invalid);
      if (this.#underWay >= PASSWORDS_UNDER_WAY_MAX)
        return context.fail(call, ETCD.tooManyRequests);
      this.#underWay++;
      return call.defer((taken) => {
        void serve(request, taken)
          .catch((error: unknown) => {
            taken.finish(GRPC_CODES.internal, `the thread of passwords failed: ${String(error)}`);
          })
          .finally(() => this.#underWay--);
      });
    };
  }

  #finish(call: GrpcCall, refused: EtcdFailure | null, token = ''): void {
    const { context } = this.#parts;
    if (refused !== null) {
      call.finish(refused.code, refused.text);
      return;
    }
    const out = Buffer.alloc(context.headerRoom + token.length * 3 + 16);
    let at = context.writeHeader(out, 0, context.store.appliedRevision);
    if (token !== '') at = writeTextField(out, at, 2, token);
    context.guard(call.connection);
    call.send(out, 0, at);
    call.finish(0);
  }

  async #authenticate(request: Request, call: GrpcCall): Promise<void> {
    const { state, tokens, passwords, now } = this.#parts;
    const name = request.text(1);
    const password = request.raw(2);
    // A change of users while the password was checked makes the check worth nothing.
    for (;;) {
      if (!state.enabled) {
        this.#finish(call, AUTH.notEnabled);
        return;
      }
      const { revision } = state;
      const user = state.user(name);
      if (user?.noPassword === true) {
        this.#finish(call, AUTH.noPasswordUser);
        return;
      }
      const isGood = user !== undefined && (await passwords.check(password, user.hash));
      if (revision !== state.revision) continue;
      if (!isGood) {
        this.#finish(call, AUTH.failed);
        return;
      }
      const token = tokens.assign(name, state.revision, now());
      this.#finish(call, token === null ? AUTH.verifyOnly : null, token ?? '');
      return;
    }
  }

  /** The hash of a request's password; a failure when it is too long. */
  async #hash(password: Buffer): Promise<string | EtcdFailure> {
    const { passwords, bcryptCost, drawBytes } = this.#parts;
    if (password.length > PASSWORD_BYTES_MAX) return AUTH.passwordTooLong;
    return passwords.hash(password, bcryptCost, drawBytes(SALT_BYTES));
  }

  async #addUser(request: Request, call: GrpcCall): Promise<void> {
    const { state } = this.#parts;
    const name = request.text(1);
    const noPassword = request.message(3)?.flag(1) === true;
    const hash = noPassword ? '' : await this.#hash(request.raw(2));
    if (typeof hash !== 'string') this.#finish(call, hash);
    else this.#finish(call, state.addUser(name, hash, noPassword));
  }

  async #changePassword(request: Request, call: GrpcCall): Promise<void> {
    const { state, tokens } = this.#parts;
    const name = request.text(1);
    const password = request.raw(2);
    const hash = password.length > 0 ? await this.#hash(password) : sentHash(request.text(3));
    if (hash !== null && typeof hash !== 'string') {
      this.#finish(call, hash);
      return;
    }
    const refused = state.changePassword(name, hash);
    if (refused === null) tokens.forget(name);
    this.#finish(call, refused);
  }
}

/** The hash that a request brings along: none fits no password at all. Null: it is no base64. */
function sentHash(base64: string): string | null {
  const hash = decodeBase64(base64);
  return typeof hash === 'number' ? null : hash.toString('utf8');
}

function permissionOf(request: Request | null): Permission | null {
  if (request === null) return null;
  return { type: request.kind(1), key: request.latin1(2), rangeEnd: request.latin1(3) };
}

function writePermission(out: Buffer, start: number, permission: Permission): number {
  const inner = openMessage(out, start, 2);
  let at = inner;
  if (permission.type !== 0) at = writeInt64Field(out, at, 1, permission.type);
  const key = Buffer.from(permission.key, 'latin1');
  const end = Buffer.from(permission.rangeEnd, 'latin1');
  if (key.length > 0) at = writeBytesField(out, at, 2, key, 0, key.length);
  if (end.length > 0) at = writeBytesField(out, at, 3, end, 0, end.length);
  return closeMessage(out, inner, at);
}
