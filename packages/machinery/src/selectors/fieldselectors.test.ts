import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseFieldSelector } from './fieldselectors.ts';

test('each kind refuses fields that it does not offer in its own words', () => {
  const said = (group: string, kind: string, text: string): string => {
    const parsed = parseFieldSelector(text, group, kind);
    return 'error' in parsed ? parsed.error : '';
  };
  assert.equal(said('', 'Pod', 'spec.foo=1'), 'field label not supported: spec.foo');
  assert.equal(
    said('', 'Node', 'metadata.namespace='),
    'field label not supported: metadata.namespace',
  );
  assert.equal(said('batch', 'Job', 'spec.foo=1'), 'field label "spec.foo" not supported for Job');
  assert.equal(
    said('resource.k8s.io', 'ResourceSlice', 'metadata.namespace=x'),
    'field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: metadata.namespace',
  );
  assert.equal(
    said('apps', 'Deployment', 'spec.replicas=1'),
    '"spec.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
  );
  assert.equal(said('batch', 'Job', 'status.successful=1,metadata.name!=x'), '');
});

test('a condition on no field with no value holds for everything', () => {
  for (const text of ['=', '==', '!=', '==,!=']) {
    assert.deepEqual(parseFieldSelector(text, '', 'Pod'), { value: { requirements: [] } }, text);
  }
  assert.ok('error' in parseFieldSelector('=a', '', 'Pod'));
  assert.ok('error' in parseFieldSelector('a=', '', 'Pod'));
});
