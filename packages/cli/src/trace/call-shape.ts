/** What kind of call a message to etcd is, and about which keys (etcd's rpc.proto, v3). */
import { Message } from '@megaplane/etcd/message';

/** A call as it is counted: the same shape means the same work. */
export interface CallShape {
  readonly shape: string;
  readonly prefix: string;
}

const PREFIX_CHARS_MAX = 80;
const TARGETS = ['VERSION', 'CREATE', 'MOD', 'VALUE', 'LEASE'] as const;
const RESULTS = ['=', '>', '<', '!='] as const;
const OPS_MAX = 4;

/** The shape of a request by the path of its call. */
export function callShape(path: string, bytes: Buffer): CallShape {
  const method = path.slice(path.lastIndexOf('/') + 1);
  const message = new Message(bytes);
  switch (path) {
    case '/etcdserverpb.KV/Range':
      return { shape: rangeShape(message), prefix: prefixOf(message.bytes(1)) };
    case '/etcdserverpb.KV/Put':
      return { shape: putShape(message), prefix: prefixOf(message.bytes(1)) };
    case '/etcdserverpb.KV/DeleteRange':
      return { shape: `Delete${keysOf(message)}`, prefix: prefixOf(message.bytes(1)) };
    case '/etcdserverpb.KV/Txn':
      return txnShape(message);
    case '/etcdserverpb.Watch/Watch':
      return watchShape(message);
    default:
      return { shape: method, prefix: '' };
  }
}

/** One key, a range, all with a prefix, or all. */
function keysOf(message: Message): string {
  const end = message.bytes(2);
  if (end.length === 0) return '';
  const key = message.bytes(1);
  if (end.length === 1 && end[0] === 0) return key.length === 1 && key[0] === 0 ? ' all' : ' from';
  const next = Buffer.from(key);
  for (let at = next.length - 1; at >= 0; at--) {
    if ((next[at] ?? 0) === 0xff) continue;
    next[at] = (next[at] ?? 0) + 1;
    return next.subarray(0, at + 1).equals(end) ? ' prefix' : ' range';
  }
  return ' range';
}

function rangeShape(message: Message): string {
  const words = [`Range${keysOf(message)}`];
  const limit = message.number(3);
  if (limit > 0n) words.push(`limit=${limit}`);
  if (message.number(4) > 0n) words.push('at a revision');
  if (message.number(7) > 0n) words.push('serializable');
  if (message.number(8) > 0n) words.push('keys only');
  if (message.number(9) > 0n) words.push('count only');
  return words.join(' ');
}

function putShape(message: Message): string {
  const lease = message.number(3) > 0n ? ' with lease' : '';
  return `Put${lease}${message.number(4) > 0n ? ' prev' : ''}`;
}

function txnShape(message: Message): CallShape {
  const compares = message.messages(1);
  const conditions = compares.slice(0, OPS_MAX).map((compare) => {
    const target = TARGETS[Number(compare.number(2))] ?? '?';
    return `${target}${RESULTS[Number(compare.number(1))] ?? '?'}`;
  });
  const first = compares[0]?.bytes(3) ?? firstKey(message);
  const then = opsOf(message.messages(2));
  const other = opsOf(message.messages(3));
  const when = conditions.length === 0 ? '' : ` if ${conditions.join(', ')}`;
  const otherwise = other === '' ? '' : ` else ${other}`;
  return {
    shape: `Txn${when} then ${then === '' ? 'nothing' : then}${otherwise}`,
    prefix: prefixOf(first),
  };
}

function firstKey(message: Message): Buffer {
  const [op] = message.messages(2);
  for (const field of [1, 2, 3]) if (op?.has(field) === true) return op.message(field).bytes(1);
  return Buffer.alloc(0);
}

/** Operations in the branch of a transaction. */
function opsOf(ops: readonly Message[]): string {
  const words = ops.slice(0, OPS_MAX).map((op) => {
    if (op.has(1)) return rangeShape(op.message(1));
    if (op.has(2)) return putShape(op.message(2));
    if (op.has(3)) return `Delete${keysOf(op.message(3))}`;
    return 'Txn';
  });
  if (ops.length > OPS_MAX) words.push(`and ${ops.length - OPS_MAX} more`);
  return words.join(' + ');
}

function watchShape(message: Message): CallShape {
  if (message.has(2)) return { shape: 'Watch cancel', prefix: '' };
  if (message.has(3)) return { shape: 'Watch progress', prefix: '' };
  const create = message.message(1);
  const words = [`Watch${keysOf(create)}`];
  if (create.number(3) > 0n) words.push('from a revision');
  if (create.number(4) > 0n) words.push('with progress');
  if (create.number(6) > 0n) words.push('prev');
  if (create.number(8) > 0n) words.push('in fragments');
  return { shape: words.join(' '), prefix: prefixOf(create.bytes(1)) };
}

/** `/registry/pods/`, or with the group where a custom kind has one. */
export function prefixOf(key: Buffer): string {
  const text = key.toString('utf8').replaceAll(/[^\x20-\x7e]/g, '?');
  const words = text.split('/');
  if (words[0] !== '' || words.length < 3) return text.slice(0, PREFIX_CHARS_MAX);
  const count = words[2]?.includes('.') === true ? 4 : 3;
  const prefix = words.slice(0, count).join('/');
  return `${prefix}${words.length > count ? '/' : ''}`.slice(0, PREFIX_CHARS_MAX);
}
