import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAt, objectAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { admittingModel, messageOf } from '../testing/admitting.sim.ts';

const MAPS = '/api/v1/namespaces/n/configmaps';

function asked() {
  const { ask, expect } = admittingModel();
  expect(201, 'POST', MAPS, { metadata: { name: 'a' } });
  return (path: string, accept: string) => ask('GET', path, undefined, { accept });
}

test('tables have no form in protobuf, and are printed as YAML and indented', () => {
  const get = asked();
  const table = 'as=Table;g=meta.k8s.io;v=v1';
  assert.equal(get(MAPS, `application/vnd.kubernetes.protobuf;${table}`).status, 406);
  const next = get(MAPS, `application/vnd.kubernetes.protobuf;${table},application/json`);
  assert.match(next.text, /^\{"kind":"ConfigMapList"/);
  for (const path of [MAPS, `${MAPS}/a`]) {
    const yaml = get(path, `application/yaml;${table}`);
    assert.equal(yaml.contentType, 'application/yaml');
    assert.match(yaml.text, /^apiVersion: meta\.k8s\.io\/v1\ncolumnDefinitions:\n/);
    assert.match(yaml.text, /\nkind: Table\n/);
    assert.match(get(`${path}?pretty=1`, `application/json;${table}`).text, /^\{\n {2}"kind": "T/);
  }
});

test('parameters of a type are taken as upstream takes them', () => {
  const get = asked();
  const json = (parameters: string): string => `application/json;${parameters}`;
  assert.match(get(`${MAPS}/a`, json('pretty=1')).text, /^\{\n {2}"kind"/);
  assert.match(get(`${MAPS}/a?pretty=x`, json('charset=x')).text, /^\{"kind"/);
  assert.match(get(`${MAPS}/zz?pretty=x`, json('pretty=true')).text, /^\{"kind"/);
  assert.equal(get(`${MAPS}/a`, json('sv=v1')).status, 200);
  for (const odd of ['stream=x', 'g=meta.k8s.io;v=v1', 'v=v1', 'sv=v2']) {
    assert.equal(get(`${MAPS}/a`, json(odd)).status, 406, odd);
  }
  assert.equal(get(`${MAPS}/a`, 'application/yaml;stream=watch').status, 406);
  const watch = get(`${MAPS}?watch=1&timeoutSeconds=-1`, json('stream=watch'));
  assert.equal(watch.contentType, 'application/json');
});

test('the bookmark that ends a state is an object of which nothing is set', () => {
  const get = asked();
  const ended = (accept: string): JsonObject => {
    const path = '/api/v1/namespaces/n/pods?watch=1&allowWatchBookmarks=true';
    const event = JSON.parse(get(path, accept).text) as JsonObject;
    assert.equal(event['type'], 'BOOKMARK');
    return objectAt(event, 'object') ?? {};
  };
  const whole = ended('application/json');
  assert.deepEqual(Object.keys(whole), ['kind', 'apiVersion', 'metadata', 'spec', 'status']);
  assert.deepEqual(whole['spec'], { containers: null });
  const table = ended('application/json;as=Table;g=meta.k8s.io;v=v1');
  assert.deepEqual(Object.keys(objectAt(table, 'metadata') ?? {}), ['resourceVersion']);
  const [row] = listAt(table, 'rows') as JsonObject[];
  assert.deepEqual(listAt(row ?? {}, 'cells').slice(0, 3), ['', '0/0', '']);
  assert.deepEqual(objectAt(row ?? {}, 'object', 'metadata', 'annotations'), {
    'k8s.io/initial-events-end': 'true',
  });
});

test('a list is had before the way it is to be shown is looked at', () => {
  const get = asked();
  const one = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
  const late = get(`${MAPS}?limit=1&resourceVersion=18446744073709551615`, one);
  assert.equal(late.status, 504);
  assert.match(messageOf(late), /resource version: 18446744073709551615, current/);
});

test('an empty list of metadata has no items at all', () => {
  const get = asked();
  const list = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
  assert.match(get('/api/v1/namespaces/n/secrets', list).text, /,"items":null\}\n$/);
  assert.match(get(MAPS, list).text, /,"items":\[\{"kind":"PartialObjectMetadata".*\}\]\}\n$/);
});

test('who asks for the metadata of the wrong number of objects is told their type', () => {
  const get = asked();
  const of = (as: string): string => `application/json;as=${as};g=meta.k8s.io;v=v1`;
  const list = messageOf(get(MAPS, of('PartialObjectMetadata')));
  assert.match(list, /is a list \(\*core\.ConfigMapList\)$/);
  const one = messageOf(get(`${MAPS}/a`, of('PartialObjectMetadataList')));
  assert.match(one, /is not a list \(\*core\.ConfigMap\)$/);
});

test('that a kind is deprecated is told with refusals too', () => {
  const get = asked();
  const path = '/api/v1/namespaces/n/endpoints';
  const refused = get(path, 'application/json;as=Table;g=meta.k8s.io;v=v2');
  assert.equal(refused.status, 406);
  assert.ok(refused.headers.some((one) => one.includes('v1 Endpoints is deprecated')));
  assert.ok(!get(path, 'text/plain').headers.includes('warning'));
});

test('an object that is not there is missed before it is shown in an impossible way', () => {
  const get = asked();
  const list = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
  const table = 'application/json;as=Table;g=meta.k8s.io;v=v1';
  assert.equal(get(`${MAPS}/zz`, list).status, 404);
  assert.equal(get(`${MAPS}/zz?includeObject=x`, table).status, 404);
  assert.equal(get(`${MAPS}/a?includeObject=x`, table).status, 400);
});

test('a route that built-in kinds do not have is missed before its media type', () => {
  const get = asked();
  assert.equal(get(`${MAPS}/a/foo`, 'text/plain').status, 404);
  assert.equal(get(`${MAPS}/a`, 'text/plain').status, 406);
  const { ask } = admittingModel();
  const post = ask('POST', `${MAPS}/a`, {}, { accept: 'text/plain' });
  assert.equal(post.status, 405);
  for (const [request, code] of [
    ['GET /api/v1/namespaces/n/pods/..', 400],
    ['GET /api/v1/namespaces/n/pods/../status', 400],
    ['GET /api/v1/pods/..', 404],
    ['POST /api/v1/namespaces/n/pods/..', 405],
    ['HEAD /api/v1/pods', 405],
    ['HEAD /api/v1/pods/a', 404],
    ['HEAD /api/v1/watch/namespaces/n/pods/a', 405],
    ['GET /api/v1/watch/namespaces/n/pods/a/status', 404],
    ['GET /api/v1/watch?a=1&b=2', 500],
  ] as const) {
    const [method = '', path = ''] = request.split(' ');
    assert.equal(ask(method, path).status, code, request);
  }
  assert.match(
    ask('GET', '/api/v1/watch?a=1&b=2').text,
    /^Internal Server Error: "[^"]+&amp;b=2": /,
  );
});

test('a table without rows has none where upstream has no printer for the kind', () => {
  const get = asked();
  const table = 'application/json;as=Table;g=meta.k8s.io;v=v1';
  assert.match(get('/api/v1/namespaces/n/limitranges', table).text, /"rows":null\}\n$/);
  assert.match(get('/api/v1/namespaces/n/secrets', table).text, /"rows":\[\]\}\n$/);
  const bare = '/apis/resource.k8s.io/v1/namespaces/n/resourceclaims/x/status';
  assert.equal(get(bare, table).status, 406);
});

test('rehearsed writes and deleted collections are shown as they were asked for', () => {
  const { ask } = admittingModel();
  const as = (kind: string) => ({ accept: `application/json;as=${kind};g=meta.k8s.io;v=v1` });
  const made = { metadata: { name: 'a' } };
  const table = ask('POST', `${MAPS}?dryRun=All`, made, as('Table'));
  assert.match(table.text, /^\{"kind":"Table".*"rows":\[\{"cells":\["a",0,"0s"\]/);
  const one = ask('POST', `${MAPS}?dryRun=All`, made, as('PartialObjectMetadata'));
  assert.match(one.text, /^\{"kind":"PartialObjectMetadata"/);
  ask('POST', MAPS, made);
  const list = ask('DELETE', `${MAPS}?labelSelector=a`, undefined, as('PartialObjectMetadataList'));
  assert.match(list.text, /^\{"kind":"PartialObjectMetadataList".*"items":null\}\n$/);
  const gone = ask('DELETE', MAPS, undefined, as('Table'));
  assert.match(gone.text, /^\{"kind":"Table".*"cells":\["a",0,"0s"\]/);
});

test('flow schemas are printed in the order in which they are asked', () => {
  const { ask, expect } = admittingModel();
  const path = '/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas';
  for (const [name, matchingPrecedence] of [
    ['a', 900],
    ['b', 100],
    ['c', 900],
    ['d', 500],
  ] as const) {
    const spec = { priorityLevelConfiguration: { name: 'exempt' }, matchingPrecedence };
    expect(201, 'POST', path, { metadata: { name }, spec });
  }
  const accept = 'application/json;as=Table;g=meta.k8s.io;v=v1';
  const table = JSON.parse(ask('GET', path, undefined, { accept }).text) as {
    rows: { cells: unknown[]; object: { metadata: { name: string } } }[];
  };
  const names = table.rows.map(({ cells: [name] }) => name);
  const own = names.filter((name) => /^[abcd]$/.test(String(name)));
  assert.deepEqual(own, ['b', 'd', 'a', 'c']);
  assert.deepEqual(
    table.rows.map(({ object }) => object.metadata.name),
    names,
  );
});

test('reviews and parts of objects are no tables, and made objects show their metadata', () => {
  const { ask, expect } = admittingModel();
  const containers = [{ name: 'c', image: 'i' }];
  expect(201, 'POST', '/api/v1/namespaces/n/pods', {
    metadata: { name: 'p' },
    spec: { containers },
  });
  const accept = (as: string): string => `application/json;as=${as};g=meta.k8s.io;v=v1`;
  const reviews = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
  const review = (type: string) => ask('POST', reviews, {}, { accept: type });
  assert.equal(review(accept('Table')).status, 406);
  assert.match(review(`${accept('Table')},application/json`).text, /^{"kind":"SelfSubjectReview"/);
  assert.match(review(accept('PartialObjectMetadata')).text, /^{"kind":"PartialObjectMetadata"/);
  const list = messageOf(review(accept('PartialObjectMetadataList')));
  assert.match(list, /is not a list \(\*authentication\.SelfSubjectReview\)$/);
  const part = (path: string, type: string) => ask('GET', path, undefined, { accept: type });
  for (const name of ['resize', 'ephemeralcontainers']) {
    const path = `/api/v1/namespaces/n/pods/p/${name}`;
    assert.equal(part(path, accept('Table')).status, 406);
    assert.match(part(path, accept('PartialObjectMetadata')).text, /"PartialObjectMetadata"/);
  }
});

test('a scale is a table in YAML, too, and metadata where that is asked for', () => {
  const { ask, expect } = admittingModel();
  const template = {
    metadata: { labels: { a: 'b' } },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  };
  const spec = { selector: { matchLabels: { a: 'b' } }, template };
  const path = '/apis/apps/v1/namespaces/n/deployments';
  expect(201, 'POST', path, { metadata: { name: 'd' }, spec });
  const scale = (accept: string) => ask('GET', `${path}/d/scale`, undefined, { accept });
  const meta = 'g=meta.k8s.io;v=v1';
  assert.match(scale(`application/yaml;as=Table;${meta}`).text, /\nkind: Table\n/);
  const metadata = scale(`application/json;as=PartialObjectMetadata;${meta}`).text;
  assert.match(metadata, /^{"kind":"PartialObjectMetadata".*"name":"d"/);
});
