import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readListOptions } from './list-options.ts';
import { Query } from '../query.ts';
import type { Served } from '../../storage/served.ts';

function refusalOf(query: string, watch: boolean): string {
  const asked = new Query(`/x?watch=${watch}&${query}`);
  const options = readListOptions(asked, watch);
  return options.ok ? '' : (options.status.message ?? '');
}

const FIELD = 'resourceVersionMatch';
const CONTINUED = `${FIELD}: Forbidden: ${FIELD} is forbidden when continue is provided`;

test('every option of a watch that does not fit is told', () => {
  const forbidden = `${FIELD}: Forbidden`;
  const bare = `${forbidden}: ${FIELD} is forbidden for watch unless sendInitialEvents is provided`;
  const needed = `${FIELD}: Forbidden: sendInitialEvents requires setting ${FIELD} to NotOlderThan`;
  const unknown = `${FIELD}: Unsupported value: "Exact": supported values: "NotOlderThan"`;
  const told = (...texts: string[]): string =>
    `ListOptions.meta.k8s.io "" is invalid: ` +
    (texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`);
  assert.equal(refusalOf(`${FIELD}=NotOlderThan`, true), told(bare));
  assert.equal(refusalOf(`${FIELD}=Exact&continue=x`, true), told(bare, unknown, CONTINUED));
  assert.equal(refusalOf('sendInitialEvents=true', true), told(needed));
  assert.equal(refusalOf(`sendInitialEvents=1&${FIELD}=Exact`, true), told(needed, unknown));
  assert.equal(refusalOf(`sendInitialEvents=1&${FIELD}=NotOlderThan`, true), '');
});

test('a page needs no match, and a limit is of 64 bits', () => {
  const bare = `${FIELD}: Forbidden: ${FIELD} is forbidden unless resourceVersion is provided`;
  assert.ok(refusalOf(`${FIELD}=Exact&continue=x`, false).endsWith(`[${bare}, ${CONTINUED}]`));
  assert.equal(refusalOf('limit=9223372036854775807', false), '');
  assert.match(refusalOf('limit=9223372036854775808', false), /value out of range$/);
  assert.match(refusalOf('continue=zzz', false), /invalid character 'Ï' looking for beginning/);
});

test('options are read before they are compared, all of that before a place is sought', () => {
  assert.match(refusalOf('timeoutSeconds=x&limit=y', false), /parsing "x"/);
  assert.match(refusalOf(`${FIELD}=bogus&labelSelector=%3D%3D`, false), /^found '=='/);
  assert.match(refusalOf(`${FIELD}=bogus&fieldSelector=a`, true), /can't understand 'a'/);
  const kind = { resource: { group: '', kind: 'Secret' }, custom: null } as unknown as Served;
  const odd = new Query('/x?fieldSelector=spec.x%3Dy&continue=zzz');
  const refused = readListOptions(odd, false, kind);
  assert(!refused.ok);
  assert.equal(refused.status.message, 'field label not supported: spec.x');
});

test('a watch from no revision or "0" asks for the state and its end, however it says so', () => {
  const initial = (query: string): boolean => {
    const options = readListOptions(new Query(`/x?watch=1&${query}`), true);
    return options.ok && options.value.sendInitialEvents;
  };
  assert(initial('a=b') && initial('resourceVersion=0'));
  assert(!initial('resourceVersion=00') && !initial('resourceVersion=5'));
  const page = `ListOptions.meta.k8s.io "" is invalid: ${CONTINUED}`;
  assert.equal(refusalOf('continue=x', true), page);
  assert.equal(refusalOf('continue=x&resourceVersion=1', true), '');
  // the old path of watches asks for none, and the rules of lists hold there
  const old = readListOptions(new Query('/x?sendInitialEvents=true'), true);
  assert(!old.ok && old.status.message?.endsWith('sendInitialEvents is forbidden for list'));
});

test('a shard that is none is told before a place that is none', () => {
  const refused = readListOptions(new Query('/x?shardSelector=x&resourceVersion=abc'), false);
  assert(!refused.ok);
  assert.equal(refused.status.code, 500);
  assert.match(refused.status.message ?? '', /^invalid shard selector/);
});
