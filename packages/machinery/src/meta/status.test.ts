import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { corpus } from '@megaplane/base/corpus.sim';
import * as fields from './fielderrors.ts';
import { isObject, type JsonValue } from '../json/json-value.ts';
import { quoted } from '../json/quoting.ts';
import * as status from './status.ts';

const LEASES = { group: 'coordination.k8s.io', name: 'leases' };

test('a qualified resource stands in the text and unqualified in the details', () => {
  assert.deepEqual(status.notFound(LEASES, 'none'), {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'leases.coordination.k8s.io "none" not found',
    reason: 'NotFound',
    details: { name: 'none', group: 'coordination.k8s.io', kind: 'leases' },
    code: 404,
  });
});

test('an invalid object lists its errors once in the text and all of them as causes', () => {
  const twice = fields.required('spec.containers');
  const found = status.invalid({ group: 'apps', name: 'Deployment' }, 'd', [
    twice,
    twice,
    fields.notSupported('spec.type', 'x', ['A', 'B']),
  ]);
  assert.equal(
    found.message,
    'Deployment.apps "d" is invalid: [spec.containers: Required value, ' +
      'spec.type: Unsupported value: "x": supported values: "A", "B"]',
  );
  assert.equal(found.details?.causes?.length, 3);
  assert.deepEqual(found.details?.causes?.[0], {
    reason: 'FieldValueRequired',
    message: 'Required value',
    field: 'spec.containers',
  });
});

test('field errors print numbers bare, strings quoted, composites as JSON', () => {
  assert.equal(fields.invalidValue('a', -1, 'no').body, 'Invalid value: -1: no');
  assert.equal(fields.invalidValue('a', { b: ['c'] }, 'no').body, 'Invalid value: {"b":["c"]}: no');
  assert.equal(fields.invalidValue('a', 'x"\n', 'no').body, 'Invalid value: "x\\"\\n": no');
  assert.equal(fields.invalidValue('a', undefined, 'no').body, 'Invalid value: null: no');
  assert.equal(fields.invalidValue('a', fields.printed('1Gi'), '').body, 'Invalid value: 1Gi');
  assert.equal(fields.tooMany('a', 2, 1).body, 'Too many: 2: must have at most 1 item');
});

test('quoting keeps letters of any script and escapes what does not print', () => {
  assert.equal(quoted('käse 日本 😀'), '"käse 日本 😀"');
  assert.equal(quoted('a\u0000b\u2028\u007f'), '"a\\x00b\\u2028\\x7f"');
});

test('several apply conflicts are grouped by manager', () => {
  const found = status.applyConflict([
    { manager: '"m1"', field: '.data.a' },
    { manager: '"m1"', field: '.data.b' },
    { manager: '"m3"', field: '.data.c' },
  ]);
  assert.equal(
    found.message,
    'Apply failed with 3 conflicts: conflicts with "m1":\n- .data.a\n- .data.b\n' +
      'conflicts with "m3":\n- .data.c',
  );
});

test('bytes are one line of JSON with fields in the order of upstream', () => {
  assert.equal(
    status.statusBytes(status.badRequest('no')).toString(),
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",' +
      '"message":"no","reason":"BadRequest","code":400}\n',
  );
});

const TRANSCRIPTS = corpus('apiserver-transcripts');

/** Builds the same Status from the reason, details and the free part of a recorded text. */
function rebuilt(recorded: status.Status): status.Status | undefined {
  const { message = '', details = {}, reason } = recorded;
  const resource = { group: details.group ?? '', name: details.kind ?? '' };
  const name = details.name ?? '';
  if (reason === 'NotFound' && name !== '') return status.notFound(resource, name);
  if (reason === 'AlreadyExists') return status.alreadyExists(resource, name);
  if (reason === 'Conflict' && name !== '') {
    return status.conflict(resource, name, message.slice(message.indexOf('": ') + 3));
  }
  if (reason === 'Forbidden') {
    const why = message.slice(message.indexOf('forbidden: ') + 11);
    return status.forbidden(resource, name, why, details.causes);
  }
  if (reason === 'Unauthorized') return status.unauthorized();
  if (reason === 'Expired') return undefined;
  if (reason === 'MethodNotAllowed' && details.kind === undefined) {
    return status.generic('MethodNotAllowed');
  }
  return undefined;
}

test('recorded failures are rebuilt to the byte from resource, name and cause', () => {
  let compared = 0;
  for (const path of globSync(`${TRANSCRIPTS}/*/*.json`)) {
    for (const recorded of statuses(JSON.parse(readFileSync(path, 'utf8')) as JsonValue)) {
      const again = rebuilt(recorded);
      if (again === undefined) continue;
      compared++;
      assert.equal(JSON.stringify(again), JSON.stringify(recorded), path);
    }
  }
  assert(compared > 40, `only ${compared} recorded failures were compared`);
});

function* statuses(value: JsonValue): Generator<status.Status> {
  if (Array.isArray(value)) for (const item of value) yield* statuses(item);
  if (!isObject(value)) return;
  const found = status.asStatus(value);
  if (found?.status === 'Failure' && typeof found.message === 'string') yield found;
  else for (const item of Object.values(value)) yield* statuses(item ?? null);
}

test('what has a meaning in HTML is escaped in the JSON of a Status', () => {
  const text = status.statusBytes(status.badRequest('<&>')).toString();
  assert.ok(text.includes('"message":"\\u003c\\u0026\\u003e"'));
  assert.ok(
    status.statusBytes(status.badRequest('<'), true).toString().includes('"message": "\\u003c"'),
  );
});
