/** What is sent is what is stored: integers of 64 bits, through each way in and out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { wholeNumber } from '@megaplane/machinery/json-text';
import { decodeProtobuf, encodeProtobuf } from '@megaplane/machinery/protobuf';
import { admittingModel, messageOf, type AdmittingModel } from '../src/testing/admitting.sim.ts';

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const WIDGETS = '/apis/x.io/v1/namespaces/n/widgets';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/n/deployments';
const PODS = '/api/v1/namespaces/n/pods';
const APPLY = 'application/apply-patch+yaml';
const MERGE = 'application/merge-patch+json';
const STRATEGIC = 'application/strategic-merge-patch+json';
const PATCHES = 'application/json-patch+json';
const PROTOBUF = 'application/vnd.kubernetes.protobuf';

const SPEC = `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{
  "id":{"type":"integer","format":"int64"},
  "filled":{"type":"integer","default":9007199254740993},
  "listed":{"type":"integer","enum":[9007199254740993,5]},
  "even":{"type":"integer","multipleOf":2},
  "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}},
  "map":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
    "items":{"type":"object","required":["k"],"properties":{"k":{"type":"integer"}}}},
  "ruled":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 9007199254740992"}]}}}`;

/** A server with a definition, and ways to ask with texts as they are. */
async function widgets(): Promise<AdmittingModel & { send: Send }> {
  const model = admittingModel();
  const columns = ['integer', 'string', 'number'].map(
    (type) => `{"name":"${type}","type":"${type}","jsonPath":".spec.id"}`,
  );
  const version =
    `{"name":"v1","served":true,"storage":true,"additionalPrinterColumns":[${columns.join()}],` +
    `"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":${SPEC}}}}}`;
  const names = '{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"}';
  const spec = `{"group":"x.io","scope":"Namespaced","names":${names},"versions":[${version}]}`;
  const body = Buffer.from(`{"metadata":{"name":"widgets.x.io"},"spec":${spec}}`);
  const made = model.expect(201, 'POST', DEFINITIONS, body);
  assert.match(made.text, /"default":9007199254740993/);
  await new Promise((resolve) => void setTimeout(resolve, 20));
  const send: Send = (method, path, text, type = 'application/json', accept = '') => {
    const bytes = text === null ? undefined : Buffer.from(text);
    return model.ask(method, path, bytes, { 'content-type': type, accept });
  };
  return { ...model, send };
}

type Send = (
  method: string,
  path: string,
  text: string | Buffer | null,
  type?: string,
  accept?: string,
) => ReturnType<AdmittingModel['ask']>;

function widget(name: string, spec: string, of = ''): string {
  const head = '"apiVersion":"x.io/v1","kind":"Widget"';
  const revision = of === '' ? '' : `,"resourceVersion":${member(of, 'resourceVersion')}`;
  return `{${head},"metadata":{"name":"${name}"${revision}},"spec":${spec}}`;
}

function deployment(grace: string, more = ''): string {
  const head = '"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"}';
  const containers = '"containers":[{"name":"c","image":"i"}]';
  const pod = `{"terminationGracePeriodSeconds":${grace}${more},${containers}}`;
  const template = `{"metadata":{"labels":{"a":"b"}},"spec":${pod}}`;
  return `{${head},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":${template}}}`;
}

/** The text of a member, wherever it stands first. */
function member(text: string, name: string): string {
  return new RegExp(`"${name}":("[^"]*"|[^,}\\]]*)`).exec(text)?.[1] ?? 'none';
}

test('a custom resource keeps its digits, and floats are written as Go does', async () => {
  const { send } = await widgets();
  const free =
    '{"a":9223372036854775807,"b":9223372036854775808,"c":1e3,"e":1e21,"f":0.0000001,' +
    '"g":-9223372036854775808,"h":9007199254740993.0}';
  const made = send('POST', WIDGETS, widget('a', `{"id":9007199254740993,"free":${free}}`));
  assert.equal(made.status, 201, made.text);
  const expected =
    '"spec":{"id":9007199254740993,"free":{"a":9223372036854775807,"b":9223372036854776000,' +
    '"c":1000,"e":1e+21,"f":1e-7,"g":-9223372036854775808,"h":9007199254740992},' +
    '"filled":9007199254740993}';
  assert.ok(made.text.includes(expected), made.text);
  const got = send('GET', `${WIDGETS}/a`, null);
  assert.ok(got.text.includes(expected), got.text);
  const yaml = send('GET', `${WIDGETS}/a`, null, '', 'application/yaml');
  assert.match(yaml.text, /^ {2}id: 9007199254740993$/m);
  const form = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const table = send('GET', `${WIDGETS}/a`, null, '', form);
  const cells = '"cells":["a",9007199254740993,"9007199254740993",9007199254740992]';
  assert.ok(table.text.includes(cells), table.text);
});

test('schemas judge integers by all their digits', async () => {
  const { send } = await widgets();
  const fine =
    '{"listed":9007199254740993,"even":9007199254740994,"ruled":9007199254740993,' +
    '"set":[9007199254740992,9007199254740993],' +
    '"map":[{"k":9007199254740992},{"k":9007199254740993}]}';
  assert.equal(send('POST', WIDGETS, widget('fine', fine)).status, 201);
  const refusals: readonly (readonly [spec: string, text: string])[] = [
    ['{"listed":9007199254740992}', 'Unsupported value: 9007199254740992: supported values: "90'],
    ['{"even":9007199254740993}', 'spec.even in body should be a multiple of 2'],
    ['{"ruled":9007199254740992}', 'Invalid value: 9007199254740992: failed rule: self > 9007'],
    ['{"set":[9007199254740993,9007199254740993]}', 'Duplicate value: 9007199254740993'],
    ['{"map":[{"k":9007199254740993},{"k":9007199254740993}]}', '{"k":9007199254740993}'],
    ['{"id":9223372036854775808}', 'spec.id in body must be of type int64: "float64"'],
    ['{"id":1e400}', 'json: cannot unmarshal number 1e400 into Go value of type float64'],
  ];
  for (const [spec, text] of refusals) {
    const answer = send('POST', WIDGETS, widget('bad', spec));
    assert.ok(messageOf(answer).includes(text), `${spec}: ${answer.text}`);
  }
});

test('patches and applies of custom resources change integers by a single digit', async () => {
  const { send } = await widgets();
  const path = `${WIDGETS}/a`;
  send('POST', WIDGETS, widget('a', '{"id":9007199254740993}'));
  const merged = send('PATCH', path, '{"spec":{"id":9007199254740995}}', MERGE);
  assert.equal(member(merged.text, 'id'), '9007199254740995');
  const found = (value: string): string => `{"op":"test","path":"/spec/id","value":${value}}`;
  const replace = '{"op":"replace","path":"/spec/id","value":9007199254740997}';
  assert.equal(
    send('PATCH', path, `[${found('9007199254740996')},${replace}]`, PATCHES).status,
    422,
  );
  const patched = send('PATCH', path, `[${found('9007199254740995')},${replace}]`, PATCHES);
  assert.equal(member(patched.text, 'id'), '9007199254740997');
  const put = send('PUT', path, widget('a', '{"id":-9007199254740993}', patched.text));
  assert.equal(member(put.text, 'id'), '-9007199254740993');
  const mine = `${WIDGETS}/b?fieldManager=me`;
  const first = '{"id":9007199254740993,"set":[9007199254740993],"map":[{"k":9007199254740993}]}';
  const applied = send('PATCH', mine, widget('b', first), APPLY);
  assert.equal(applied.status, 201, applied.text);
  const fields = '"f:map":{"k:{\\"k\\":9007199254740993}":{".":{},"f:k":{}}}';
  assert.ok(applied.text.includes(fields), applied.text);
  assert.ok(applied.text.includes('"f:set":{"v:9007199254740993":{}}'), applied.text);
  const yaml = widget('b', '{id: 9007199254740995, "set": [9007199254740992]}');
  assert.match(
    send('PATCH', mine, yaml, APPLY).text,
    /"id":9007199254740995,"set":\[9007199254740992]/,
  );
  const other = send(
    'PATCH',
    `${WIDGETS}/b?fieldManager=you`,
    widget('b', '{"id":9007199254740994}'),
    APPLY,
  );
  assert.equal(other.status, 409);
});

test('apply bodies are YAML, also those that are written in JSON', async () => {
  const { send } = await widgets();
  const path = `${WIDGETS}/a?fieldManager=me`;
  const half = send('PATCH', path, widget('a', '{"x":"\\ud83d\\udd53"}'), APPLY);
  assert.equal(half.status, 400);
  assert.equal(
    messageOf(half),
    'error decoding YAML: error converting YAML to JSON: yaml: ' +
      'found invalid Unicode character escape code',
  );
  const octet = widget('a', '{"x":"#"}').replace('#', '\u00ff');
  const raw = send('PATCH', path, Buffer.from(octet, 'latin1'), APPLY);
  assert.match(messageOf(raw), /yaml: invalid leading UTF-8 octet$/);
  const whole = send(
    'PATCH',
    path,
    widget('a', '{"x":"\u{1f553}","y":"\\\\ud83d","z":1e400}'),
    APPLY,
  );
  assert.equal(whole.status, 201, whole.text);
  assert.ok(whole.text.includes('"spec":{"x":"\u{1f553}","y":"\\\\ud83d","z":"1e400"'), whole.text);
});

test('typed fields keep digits by each patch, and fit what was untyped as Go does', async () => {
  const { send } = await widgets();
  const grace = (text: string): string => member(text, 'terminationGracePeriodSeconds');
  const path = `${DEPLOYMENTS}/d`;
  const made = send('POST', DEPLOYMENTS, deployment('9223372036854775807'));
  assert.equal(grace(made.text), '9223372036854775807');
  const patch = (text: string): string =>
    `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":${text}}}}}`;
  for (const [type, text, stored] of [
    [MERGE, '9007199254740995', '9007199254740995'],
    [STRATEGIC, '9007199254740997', '9007199254740997'],
    [STRATEGIC, '3e1', '30'],
    [STRATEGIC, '1e20', '-9223372036854775808'],
  ] as const) {
    const answer = send('PATCH', path, patch(text), type);
    assert.equal(grace(answer.text), stored, `${type} ${text}: ${answer.text}`);
  }
  const mine = `${path}?fieldManager=me&force=true`;
  for (const [text, stored] of [
    ['9007199254740999', '9007199254740999'],
    ['1.0', '1'],
    ['1e20', '-9223372036854775808'],
  ] as const) {
    assert.equal(grace(send('PATCH', mine, deployment(text), APPLY).text), stored, text);
  }
  const wrapped = send('PATCH', mine, deployment('5', ',"priority":2147483648'), APPLY);
  assert.equal(member(wrapped.text, 'priority'), '-2147483648', wrapped.text);
  const beyond = send('PUT', path, deployment('9223372036854775808'));
  assert.match(
    messageOf(beyond),
    /cannot unmarshal number 9223372036854775808 into Go struct field/,
  );
});

test('pods keep long integers in JSON and in protobuf, and their rules read them', async () => {
  const { send } = await widgets();
  const pod = (more: string): string =>
    `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}],${more}}}`;
  const toleration =
    '{"key":"k","operator":"Exists","effect":"NoExecute","tolerationSeconds":9007199254740993}';
  const made = send(
    'POST',
    PODS,
    pod(`"terminationGracePeriodSeconds":9223372036854775807,"tolerations":[${toleration}]`),
  );
  assert.equal(member(made.text, 'tolerationSeconds'), '9007199254740993');
  const { bytes } = send('GET', `${PODS}/p`, null, '', PROTOBUF);
  const read = decodeProtobuf(bytes, 0, bytes.length);
  assert.ok(read.ok);
  const text = JSON.stringify(read.object);
  assert.equal(member(text, 'terminationGracePeriodSeconds'), '9223372036854775807');
  assert.equal(member(text, 'tolerationSeconds'), '9007199254740993');
  for (const [more, why] of [
    ['"activeDeadlineSeconds":9007199254740993', '9007199254740993: must be between 1 and 21474'],
    ['"securityContext":{"runAsUser":9007199254740993}', '9007199254740993: must be between 0 a'],
    ['"priority":9007199254740993', 'number 9007199254740993 into Go struct field PodSpec.spec.p'],
  ] as const) {
    const answer = send('POST', PODS, pod(more));
    assert.ok(messageOf(answer).includes(why), answer.text);
  }
});

test('half a character is U+FFFD in JSON and in protobuf', async () => {
  const { send } = await widgets();
  const maps = '/api/v1/namespaces/n/configmaps';
  const text = '{"metadata":{"name":"m"},"data":{"a":"\\ud800\\u0041"}}';
  const made = send('POST', maps, text);
  assert.equal(member(made.text, 'a'), '"\ufffdA"');
  const { bytes } = send('GET', `${maps}/m`, null, '', PROTOBUF);
  const read = decodeProtobuf(bytes, 0, bytes.length);
  assert.ok(read.ok);
  assert.deepEqual(read.object['data'], { a: '\ufffdA' });
  const patched = send('PATCH', `${maps}/m`, '{"data":{"a":"\\udd53x"}}', MERGE);
  assert.equal(member(patched.text, 'a'), '"\ufffdx"');
  const raw = Buffer.concat([
    Buffer.from('{"data":{"a":"'),
    Buffer.from('f09f98', 'hex'),
    Buffer.from('"}}'),
  ]);
  assert.equal(member(send('PATCH', `${maps}/m`, raw, MERGE).text, 'a'), '"\ufffd\ufffd\ufffd"');
});

test('what Go keeps as raw octets stays as it was sent, through each way in and out', async () => {
  const { send } = await widgets();
  const revisions = '/apis/apps/v1/namespaces/n/controllerrevisions';
  const data = '{"n":[1.0,1e2,-0.0],"a":123456789012345678901,"a":1,"x":"\\ud800<","10":1,"2":{}}';
  const stored = data.replace('<', '\\u003c');
  const metadata = '{"name":"r","labels":{"a":"b"}}';
  const body = (text: string): string => `{"revision":1,"data":${text},"metadata":${metadata}}`;
  const raw = ({ text }: { text: string }): string | undefined =>
    /"data":(.*),"revision":|"revision":1,"data":(.*)\}\n$/s.exec(text)?.slice(1).join('');
  const strict = `${revisions}?fieldValidation=Strict`;
  const made = send('POST', strict, body(data.replaceAll(',', ' ,\n')));
  assert.equal(made.status, 201, made.text);
  assert.equal(raw(made), stored);
  const path = `${revisions}/r`;
  assert.equal(raw(send('GET', path, null)), stored);
  const merged = send('PATCH', path, '{"metadata":{"labels":{"c":"d"}}}', MERGE);
  assert.equal(merged.status, 200, merged.text);
  assert.equal(raw(merged), stored);
  const { bytes } = send('GET', path, null, '', PROTOBUF);
  assert.ok(bytes.includes(stored));
  const put = send('PUT', path, bytes, PROTOBUF);
  assert.equal(put.status, 200, put.text);
  assert.ok(send('GET', path, null, '', PROTOBUF).bytes.includes(stored));
  assert.equal(raw(send('GET', path, null)), stored);
  const parameters = '{"n":1.0,"n":2.50}';
  const config = `[{"opaque":{"driver":"d.io","parameters":${parameters}}}]`;
  const classes = '/apis/resource.k8s.io/v1/deviceclasses';
  const device = `{"metadata":{"name":"c"},"spec":{"config":${config}}}`;
  const given = send('POST', classes, device);
  assert.equal(given.status, 201, given.text);
  assert.ok(given.text.includes(`"parameters":${parameters}`), given.text);
});

/** Integers around the ends of what doubles and 64 bits hold. */
const LONG = fc
  .tuple(
    fc.constantFrom(2n ** 53n, -(2n ** 53n), 2n ** 63n - 9n, -(2n ** 63n) + 9n, 0n),
    fc.integer({ min: -9, max: 8 }),
  )
  .map(([near, by]) => wholeNumber(near + BigInt(by)));

test('any integer of 64 bits goes through every way in and out', async () => {
  const { send } = await widgets();
  send('POST', WIDGETS, widget('w', '{"id":0}'));
  send('POST', DEPLOYMENTS, deployment('0'));
  fc.assert(
    fc.property(
      LONG,
      fc.array(fc.oneof(LONG, fc.double({ noNaN: true }), fc.string())),
      (id, free) => {
        const spec = JSON.stringify({
          id,
          filled: 1,
          free: free.filter((one) => Number.isFinite(one) || typeof one !== 'number'),
        });
        const path = `${WIDGETS}/w`;
        for (const answer of [
          send('PUT', path, widget('w', spec, send('GET', path, null).text)),
          send('GET', path, null),
          send('PATCH', path, `{"spec":{"id":1}}`, MERGE) &&
            send('PATCH', path, `{"spec":${spec}}`, MERGE),
          send('PATCH', path, `[{"op":"replace","path":"/spec","value":${spec}}]`, PATCHES),
          send('PATCH', `${path}?fieldManager=me&force=true`, widget('w', spec), APPLY),
          send('GET', path, null),
        ]) {
          assert.equal(answer.status, 200, answer.text);
          assert.equal(/"spec":(.*)\}\n$/.exec(answer.text)?.[1], spec);
        }
        const text = String(id);
        const body = JSON.parse(deployment('0')) as { spec: { template: { spec: object } } };
        Object.assign(body.spec.template.spec, { terminationGracePeriodSeconds: id });
        const message = encodeProtobuf(body as never);
        assert.ok(message !== undefined);
        for (const answer of [
          send('PUT', `${DEPLOYMENTS}/d`, deployment(text)),
          send('PUT', `${DEPLOYMENTS}/d`, message, PROTOBUF),
          send('PATCH', `${DEPLOYMENTS}/d?fieldManager=me&force=true`, deployment(text), APPLY),
          send('PATCH', `${DEPLOYMENTS}/d`, deployment(text), STRATEGIC),
          send('PATCH', `${DEPLOYMENTS}/d`, deployment(text), MERGE),
        ]) {
          assert.equal(member(answer.text, 'terminationGracePeriodSeconds'), text, answer.text);
        }
      },
    ),
    { seed: 25, numRuns: process.env['MEGAPLANE_LONG'] === '1' ? 300 : 12 },
  );
});
