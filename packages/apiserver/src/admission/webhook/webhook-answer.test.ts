import assert from 'node:assert/strict';
import { test } from 'node:test';
import { httpFailure } from '../../webhook/client-failure.ts';
import { readAnswer } from './webhook-answer.ts';
import { denialOf, readReview } from './webhook-review.ts';

function why(text: string): string {
  const answer = readAnswer(Buffer.from(text), 'v1');
  return answer.ok ? '' : answer.why;
}

function review(response: object): string {
  return JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response });
}

test('an answer of another kind is refused in the words of the decoder', () => {
  const scheme = 'in scheme "pkg/runtime/scheme.go:111"';
  assert.equal(
    why('{"apiVersion":"admission.k8s.io/v2","kind":"AdmissionReview"}'),
    `no kind "AdmissionReview" is registered for version "admission.k8s.io/v2" ${scheme}`,
  );
  assert.equal(
    why('{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}'),
    'converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion',
  );
  assert.equal(
    why('{"apiVersion":"v1","kind":"Status"}'),
    'converting (v1.Status) to (v1.AdmissionReview): unknown conversion',
  );
});

test('members of wrong types are told with the path to them', () => {
  const field = 'json: cannot unmarshal string into Go struct field';
  assert.equal(
    why(review({ allowed: 'yes' })),
    `${field} AdmissionResponse.response.allowed of type bool`,
  );
  assert.equal(
    why(review({ status: { code: 'x' } })),
    `${field} Status.response.status.code of type int32`,
  );
  assert.equal(
    why(review({ warnings: 'x' })),
    `${field} AdmissionResponse.response.warnings of type []string`,
  );
  assert.equal(why(review({ patch: '###' })), 'illegal base64 data at input byte 0');
});

test('YAML is read, and text that is neither is a string', () => {
  const yaml =
    'apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse: {allowed: true}\n';
  const answer = readAnswer(Buffer.from(yaml), 'v1');
  assert.ok(answer.ok);
  assert.deepEqual(answer.response, { allowed: true });
  assert.match(
    why('garbage'),
    /^couldn't get version\/kind; json parse error: json: cannot unmarshal/,
  );
  assert.match(why('{"kind":'), /json parse error: unexpected end of JSON input$/);
});

test('a validating webhook may send no patch, and every one has to name its kind', () => {
  const patched = review({ uid: 'u', allowed: true, patch: 'W10=', patchType: 'JSONPatch' });
  const read = readReview(Buffer.from(patched), 'v1', 'u', false);
  assert.equal(
    read.ok ? '' : read.why,
    'received invalid webhook response: validating webhook may not return response.patch',
  );
  const unnamed = readReview(Buffer.from('{"response":{"uid":"u"}}'), 'v1', 'u', true);
  assert.match(unnamed.ok ? '' : unnamed.why, /got \/, Kind=$/);
});

test('a denial with a code that no answer can have is a failure of the server', () => {
  assert.equal(denialOf('w', { code: 1000 }).code, 500);
  assert.equal(denialOf('w', { code: 200 }).code, 400);
  assert.equal(denialOf('w', { code: 999 }).code, 999);
});

test('what an answer in text says is shown, and of other types nothing', () => {
  assert.equal(httpFailure(403, Buffer.from(' no '), ''), 'no');
  assert.equal(httpFailure(409, Buffer.from('x'), 'text/plain'), 'the server reported a conflict');
  assert.equal(
    httpFailure(500, Buffer.from('{}'), 'application/json'),
    'an error on the server ("unknown") has prevented the request from succeeding',
  );
  assert.equal(
    httpFailure(402, Buffer.from('x'), ''),
    'the server responded with the status code 402 but did not return more information',
  );
});

test('answers of brackets are refused before they are read', () => {
  for (const bracket of ['[', '{"a":', '- ', '? ']) {
    const answer = readAnswer(Buffer.from(bracket.repeat(400_000)), 'v1');
    assert(!answer.ok);
    assert.match(answer.why, /yaml: more than 4096 characters|exceeded max depth/);
  }
});
