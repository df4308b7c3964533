/**
 * Users and roles in etcd's database file, both ways: buckets `auth` (enabled, revision),
 * `authUsers` (authpb.User: name 1, password 2, roles 3, options 4) and `authRoles` (authpb.Role:
 * name 1, keyPermission 2: permType 1, key 2, range_end 3). Passwords are bcrypt hashes in both.
 */
import { parseNested } from '@megaplane/base/nested-json';
import { ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import {
  closeMessage,
  openMessage,
  writeBytesField,
  writeTextField,
  writeVarintField,
} from '@megaplane/wire/protobuf-write';
import type { StoredAuth, User } from '../auth/auth-state.ts';
import type { Permission } from '../auth/permissions.ts';
import type { BboltFile, Entry } from '../bbolt/reader.ts';

const MESSAGE_OVERHEAD_BYTES = 64;

export interface AuthBuckets {
  readonly auth: readonly Entry[];
  readonly authRoles: readonly Entry[];
  readonly authUsers: readonly Entry[];
}

/** `document` is what the store keeps of users, undefined when there were never any. */
export function authBuckets(document: Buffer | undefined): AuthBuckets {
  if (document === undefined) return { auth: [], authRoles: [], authUsers: [] };
  const stored = parseNested(document.toString('utf8')) as StoredAuth;
  const revision = Buffer.alloc(8);
  revision.writeBigUInt64BE(BigInt(stored.revision));
  return {
    auth: [
      [Buffer.from('authEnabled'), Buffer.from([stored.enabled ? 1 : 0])],
      [Buffer.from('authRevision'), revision],
    ],
    authRoles: sorted(stored.roles.map((role) => [Buffer.from(role.name), encodeRole(role)])),
    authUsers: sorted(stored.users.map((user) => [Buffer.from(user.name), encodeUser(user)])),
  };
}

function sorted(entries: Entry[]): readonly Entry[] {
  return entries.sort(([a], [b]) => a.compare(b));
}

function encodeUser({ name, hash, noPassword, roles }: User): Buffer {
  const texts = [name, hash, ...roles];
  const size = texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 8, 0);
  const out = Buffer.alloc(size + MESSAGE_OVERHEAD_BYTES);
  let at = writeTextField(out, 0, 1, name);
  if (hash !== '') at = writeTextField(out, at, 2, hash);
  for (const role of roles) at = writeTextField(out, at, 3, role);
  const options = openMessage(out, at, 4);
  at = closeMessage(out, options, writeVarintField(out, options, 1, noPassword ? 1 : 0));
  return out.subarray(0, at);
}

function encodeRole({ name, permissions }: StoredAuth['roles'][number]): Buffer {
  const size = permissions.reduce(
    (sum, { key, rangeEnd }) => sum + key.length + rangeEnd.length + MESSAGE_OVERHEAD_BYTES,
    Buffer.byteLength(name) + MESSAGE_OVERHEAD_BYTES,
  );
  const out = Buffer.alloc(size);
  let at = writeTextField(out, 0, 1, name);
  for (const { type, key, rangeEnd } of permissions) {
    const start = openMessage(out, at, 2);
    at = writeVarintField(out, start, 1, type);
    const [keyBytes, endBytes] = [Buffer.from(key, 'latin1'), Buffer.from(rangeEnd, 'latin1')];
    at = writeBytesField(out, at, 2, keyBytes, 0, keyBytes.length);
    if (endBytes.length > 0) at = writeBytesField(out, at, 3, endBytes, 0, endBytes.length);
    at = closeMessage(out, start, at);
  }
  return out.subarray(0, at);
}

/** The store's document from a file, null when no users or roles are in it. Throws on damage. */
export function authDocument(file: BboltFile): Buffer | null {
  const revision = file.value('auth', 'authRevision');
  const users = [...file.entries('authUsers')].map(([key, value]) => decodeUser(file, key, value));
  const roles = [...file.entries('authRoles')].map(([key, value]) => decodeRole(file, key, value));
  const enabled = file.value('auth', 'authEnabled')?.[0] === 1;
  if (users.length === 0 && roles.length === 0 && !enabled) return null;
  const stored: StoredAuth = {
    enabled,
    revision: revision?.length === 8 ? Number(revision.readBigUInt64BE(0)) : 1,
    users,
    roles,
  };
  return Buffer.from(JSON.stringify(stored));
}

/** Each length-delimited field as text, latin1 for keys; numbers and messages go to `other`. */
function fieldsOf(
  file: BboltFile,
  bytes: Buffer,
  visit: (field: number, start: number, end: number) => void,
  number: (field: number, value: number) => void = () => {},
): void {
  const reader = new ProtobufReader().reset(bytes, 0, bytes.length);
  while (reader.next()) {
    if (reader.wireType === WIRE_BYTES) {
      reader.chunk();
      visit(reader.field, reader.chunkStart, reader.chunkEnd);
    } else if (reader.wireType === 0) number(reader.field, reader.int64());
    else reader.skip();
  }
  if (reader.failure !== 0)
    throw new Error(`${file.path} is damaged: a user or role is no message`);
}

function decodeUser(file: BboltFile, key: Buffer, bytes: Buffer): User {
  let hash = '';
  let noPassword = false;
  const roles: string[] = [];
  fieldsOf(file, bytes, (field, start, end) => {
    if (field === 2) hash = bytes.toString('utf8', start, end);
    if (field === 3) roles.push(bytes.toString('utf8', start, end));
    if (field !== 4) return;
    const options = bytes.subarray(start, end);
    fieldsOf(
      file,
      options,
      () => {},
      (option, value) => {
        if (option === 1) noPassword = value !== 0;
      },
    );
  });
  return { name: key.toString('utf8'), hash, noPassword, roles };
}

function decodeRole(file: BboltFile, name: Buffer, bytes: Buffer): StoredAuth['roles'][number] {
  const permissions: Permission[] = [];
  fieldsOf(file, bytes, (field, start, end) => {
    if (field !== 2) return;
    const inner = bytes.subarray(start, end);
    let [type, key, rangeEnd] = [0, '', ''];
    fieldsOf(
      file,
      inner,
      (part, from, to) => {
        if (part === 2) key = inner.toString('latin1', from, to);
        if (part === 3) rangeEnd = inner.toString('latin1', from, to);
      },
      (part, value) => {
        if (part === 1) type = value;
      },
    );
    permissions.push({ type, key, rangeEnd });
  });
  return { name: name.toString('utf8'), permissions };
}
