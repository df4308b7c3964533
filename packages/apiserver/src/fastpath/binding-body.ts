// data plane
/** The body of a binding as schedulers send it, read where it stands. */
import { MemberCursor } from '@megaplane/machinery/scan';

const NAMES = {
  kind: Buffer.from('kind'),
  apiVersion: Buffer.from('apiVersion'),
  metadata: Buffer.from('metadata'),
  target: Buffer.from('target'),
  name: Buffer.from('name'),
  namespace: Buffer.from('namespace'),
  uid: Buffer.from('uid'),
  creationTimestamp: Buffer.from('creationTimestamp'),
} as const;

/** Members that are known, a bit each. */
const KIND = 1;
const VERSION = 2;
const METADATA = 4;
const TARGET = 8;
const NAME = 16;
const NAMESPACE = 32;
const UID = 64;
const CREATED = 128;

const BINDING = Buffer.from('"Binding"');
const NODE = Buffer.from('"Node"');
const V1 = Buffer.from('"v1"');
const NULL = Buffer.from('null');
const NEWLINE = 0x0a;
const QUOTE = 0x22;

const top = new MemberCursor();
const inner = new MemberCursor();
let name = '';
let namespace = '';
let uid = '';
let target = '';

/** What a binding says. */
export interface BindingBody {
  readonly name: string;
  /** '' where it is not said. */
  readonly namespace: string;
  /** Likewise. */
  readonly uid: string;
  readonly target: string;
}

/** What a binding says that says nothing but which pod is bound to which node; null of others. */
export function readBinding(body: Buffer): BindingBody | null {
  return readMembers(body) ? { name, namespace, uid, target } : null;
}

function readMembers(body: Buffer): boolean {
  const end = body[body.length - 1] === NEWLINE ? body.length - 1 : body.length;
  // without any white space, so that the cursors need not know which of it JSON has
  for (let at = 0; at < end; at++) if (body[at]! <= 0x20) return false;
  name = namespace = uid = target = '';
  let seen = 0;
  if (!top.open(body, 0, end)) return false;
  while (top.nextKey()) {
    const member = memberOf(top);
    if (member === 0 || (seen & member) !== 0) return false;
    seen |= member;
    if (member === METADATA || member === TARGET) {
      const isRead = member === METADATA ? readMetadata(body, end) : readTarget(body, end);
      if (!isRead) return false;
      top.resume(inner.closeEnd);
    } else if (!top.skip() || !isValue(top, body, member === KIND ? BINDING : V1)) return false;
  }
  return top.isClosed && top.closeEnd === end && seen === (KIND | VERSION | METADATA | TARGET);
}

function memberOf(cursor: MemberCursor): number {
  if (cursor.is(NAMES.kind)) return KIND;
  if (cursor.is(NAMES.apiVersion)) return VERSION;
  if (cursor.is(NAMES.metadata)) return METADATA;
  if (cursor.is(NAMES.target)) return TARGET;
  if (cursor.is(NAMES.name)) return NAME;
  if (cursor.is(NAMES.namespace)) return NAMESPACE;
  if (cursor.is(NAMES.uid)) return UID;
  return cursor.is(NAMES.creationTimestamp) ? CREATED : 0;
}

function readMetadata(body: Buffer, end: number): boolean {
  if (!inner.open(body, top.valueStart, end)) return false;
  let seen = 0;
  while (inner.next()) {
    const member = memberOf(inner);
    if ((seen & member) !== 0) return false;
    seen |= member;
    if (member === NAME) name = plainText(body);
    else if (member === NAMESPACE) namespace = plainText(body);
    else if (member === UID) uid = plainText(body);
    else if (member !== CREATED || !isValue(inner, body, NULL)) return false;
  }
  const isTold =
    ((seen & NAMESPACE) === 0 || namespace !== '') && ((seen & UID) === 0 || uid !== '');
  return inner.isClosed && name !== '' && isTold;
}

function readTarget(body: Buffer, end: number): boolean {
  if (!inner.open(body, top.valueStart, end)) return false;
  let seen = 0;
  while (inner.next()) {
    const member = memberOf(inner);
    if ((seen & member) !== 0) return false;
    seen |= member;
    if (member === NAME) target = plainText(body);
    else if (member === KIND ? !isValue(inner, body, NODE) : member !== VERSION) return false;
    if (member === VERSION && !isValue(inner, body, V1)) return false;
  }
  return inner.isClosed && target !== '';
}

function isValue(cursor: MemberCursor, body: Buffer, value: Buffer): boolean {
  const { valueStart, valueEnd } = cursor;
  if (valueEnd - valueStart !== value.length) return false;
  for (let at = 0; at < value.length; at++) {
    if (body[valueStart + at] !== value[at]) return false;
  }
  return true;
}

/** The string that `inner` is at, of the characters that names have; '' where it is none. */
function plainText(body: Buffer): string {
  const { valueStart, valueEnd } = inner;
  if (body[valueStart] !== QUOTE || body[valueEnd - 1] !== QUOTE) return '';
  for (let at = valueStart + 1; at < valueEnd - 1; at++) if (!isPlain(body[at]!)) return '';
  return body.latin1Slice(valueStart + 1, valueEnd - 1);
}

/** Lower-case letters, digits, dashes and dots. */
function isPlain(byte: number): boolean {
  const isLetter = byte >= 0x61 && byte <= 0x7a;
  return isLetter || (byte >= 0x30 && byte <= 0x39) || byte === 0x2d || byte === 0x2e;
}
