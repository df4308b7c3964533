// shell
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { corpus } from '@megaplane/base/corpus.sim';
import { applyDefaults } from '../defaults/defaulting.ts';
import { fieldErrorText, type FieldError } from '../meta/fielderrors.ts';
import { listAt, objectAt, stringAt, valueAt } from '../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { findKind, findResource, type Resource } from '../scheme/kinds.ts';
import { dns1035LabelErrors } from '../meta/names.ts';
import { applyMergePatch } from '../patch/patch-merge.ts';
import { decodeJsonBody, refit } from '../codec/request-body.ts';
import { findTypeOfKind } from '../scheme/schema.ts';
import { validateCreate, validateUpdate } from './validation.ts';

const TRANSCRIPTS = corpus('apiserver-transcripts');

function prepared(apiVersion: string, kind: string, fields: JsonObject): JsonObject {
  const bytes = Buffer.from(JSON.stringify({ apiVersion, kind, ...fields }));
  const body = decodeJsonBody(bytes, 0, bytes.length, { apiVersion, kind }, false);
  assert(body.ok, body.ok ? '' : body.message);
  applyDefaults(body.object);
  return body.object;
}

function faultsOf(apiVersion: string, kind: string, fields: JsonObject): string[] {
  const resource = findKind(apiVersion, kind);
  assert(resource !== undefined);
  const metadata = { name: 'x', ...(resource.namespaced ? { namespace: 'n' } : {}) };
  const object = prepared(apiVersion, kind, { metadata, ...fields });
  return validateCreate(resource, object).map(fieldErrorText);
}

test('names have the form of their kind', () => {
  const named = (apiVersion: string, kind: string, name: string): string[] => {
    const resource = findKind(apiVersion, kind);
    assert(resource !== undefined);
    const namespace = resource.namespaced ? { namespace: 'n' } : {};
    const object = { apiVersion, kind, metadata: { name, ...namespace } };
    const found = validateCreate(resource, object).map(fieldErrorText);
    return found.filter((text) => text.startsWith('metadata.name'));
  };
  assert.deepEqual(named('v1', 'ConfigMap', 'a.b-c'), []);
  assert.match(
    named('v1', 'ConfigMap', 'A')[0] ?? '',
    /a lowercase RFC 1123 subdomain must consist/,
  );
  assert.deepEqual(named('v1', 'Namespace', 'a.b'), [
    'metadata.name: Invalid value: "a.b": must not contain dots',
  ]);
  assert.deepEqual(named('v1', 'Service', '1a'), []);
  assert.match(dns1035LabelErrors('1a')[0] ?? '', /^a DNS-1035 label must consist of/);
  const rbac = 'rbac.authorization.k8s.io/v1';
  assert.deepEqual(named(rbac, 'ClusterRole', 'system:Any Thing'), []);
  assert.deepEqual(named(rbac, 'ClusterRole', 'a/b'), [
    `metadata.name: Invalid value: "a/b": may not contain '/'`,
  ]);
  const long = 'a'.repeat(254);
  assert.match(named('v1', 'Node', long)[0] ?? '', /must be no more than 253 characters$/);
});

test('every finding of a pod is listed, at its path', () => {
  const container = {
    name: 'C',
    image: ' i',
    ports: [{ containerPort: 70000, name: 'a--b' }],
    env: [{ name: 'A=B' }],
    volumeMounts: [{ name: 'none', mountPath: '' }],
    resources: { requests: { cpu: '2' }, limits: { cpu: '1' } },
    livenessProbe: {},
  };
  const spec = {
    containers: [container],
    restartPolicy: 'Sometimes',
    tolerations: [{ operator: 'Equal' }],
    volumes: [{ name: 'v', emptyDir: {}, hostPath: { path: '/' } }],
  };
  const fields = faultsOf('v1', 'Pod', { spec }).map((text) => text.split(': ').slice(0, 2));
  assert.deepEqual(fields, [
    ['spec.volumes[0].hostPath', 'Forbidden'],
    ['spec.containers[0].name', 'Invalid value'],
    ['spec.containers[0].ports[0].name', 'Invalid value'],
    ['spec.containers[0].ports[0].containerPort', 'Invalid value'],
    ['spec.containers[0].env[0].name', 'Invalid value'],
    ['spec.containers[0].volumeMounts[0].name', 'Not found'],
    ['spec.containers[0].volumeMounts[0].mountPath', 'Required value'],
    ['spec.containers[0].resources.requests', 'Invalid value'],
    ['spec.containers[0].livenessProbe', 'Required value'],
    ['spec.restartPolicy', 'Unsupported value'],
    ['spec.tolerations[0].operator', 'Invalid value'],
    ['spec.containers[0].image', 'Invalid value'],
  ]);
});

test('amounts are compared as amounts, not as text', () => {
  const resources = {
    requests: { cpu: '1000m', memory: '1Gi' },
    limits: { cpu: '1', memory: '1024Mi' },
  };
  const spec = { containers: [{ name: 'c', image: 'i', resources }] };
  assert.deepEqual(faultsOf('v1', 'Pod', { spec }), []);
});

test('a change that changes nothing is fine, for every kind', () => {
  const metadata = { name: 'x', namespace: 'n', uid: 'u', labels: { a: 'b' } };
  const spec = { containers: [{ name: 'c', image: 'i' }], tolerations: [{ operator: 'Exists' }] };
  const pod = prepared('v1', 'Pod', { metadata, spec });
  const resource = findKind('v1', 'Pod');
  assert(resource !== undefined);
  assert.deepEqual(validateUpdate(resource, structuredClone(pod), pod, ''), []);
});

/** One step of a recorded case, played against the rules alone. */
interface Step {
  readonly request?: {
    readonly method?: string;
    readonly path?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: JsonObject;
  };
  readonly expect?: { readonly status?: JsonValue; readonly body?: JsonValue };
}

const PATH =
  /^\/(?:api\/(v1)|apis\/([^/]+)\/([^/]+))(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/?]+))?$/;

/**
 * Cases that fail or pass for what happens outside of the rules: address allocation, type changes.
 */
const OTHER_REASONS = ['defaults/service-errors.json', 'kinds/service-update.json'];

class Player {
  readonly #stored = new Map<string, JsonObject>();

  /** What the rules find; undefined where the step is not about them. */
  play(step: Step): FieldError[] | undefined {
    const { method, path = '', headers, body } = step.request ?? {};
    const match = PATH.exec(path);
    if (match === null || !isObject(body)) return undefined;
    const [, core, group = '', version = '', namespace = '', plural = '', name = ''] = match;
    const resource = findResource(group, core ?? version, plural);
    if (resource?.served !== true || /review/.test(plural)) return undefined;
    const key = `${namespace}/${plural}/${name || stringAt(body, 'metadata', 'name')}`;
    if (method === 'POST') return this.#create(resource, key, namespace, body, step);
    const isMerge = (headers?.['content-type'] ?? '').startsWith('application/merge-patch');
    const stored = this.#stored.get(key);
    if (stored === undefined || !(method === 'PUT' || isMerge)) return undefined;
    const next = isMerge ? applyMergePatch(stored, body) : body;
    const type = findTypeOfKind(resource.apiVersion, resource.kind);
    const fitted = type === undefined ? undefined : refit(type, next, false);
    if (fitted?.ok !== true) return undefined;
    this.#complete(resource, fitted.object, namespace);
    const found = validateUpdate(resource, fitted.object, stored, '');
    if (step.expect?.status === 200) this.#stored.set(key, fitted.object);
    return found;
  }

  #create(
    resource: Resource,
    key: string,
    namespace: string,
    body: JsonObject,
    step: Step,
  ): FieldError[] | undefined {
    const bytes = Buffer.from(JSON.stringify(body));
    const decoded = decodeJsonBody(bytes, 0, bytes.length, resource, false);
    if (!decoded.ok) return undefined;
    this.#complete(resource, decoded.object, namespace);
    if (step.expect?.status === 201) this.#stored.set(key, decoded.object);
    return validateCreate(resource, decoded.object);
  }

  #complete(resource: Resource, object: JsonObject, namespace: string): void {
    const metadata = objectAt(object, 'metadata') ?? {};
    object['metadata'] = metadata;
    if (resource.namespaced) metadata['namespace'] = namespace;
    metadata['uid'] ??= 'u';
    const prefix = stringAt(metadata, 'generateName');
    if (prefix !== '') metadata['name'] ??= `${prefix}abcde`;
    applyDefaults(object);
    const spec = objectAt(object, 'spec');
    const address = stringAt(spec, 'clusterIP');
    if (spec !== undefined && address !== '') spec['clusterIPs'] ??= [address];
    if (resource.kind === 'Job') selectOwnPods(object);
    if (resource.kind !== 'Pod' || spec === undefined) return;
    spec['serviceAccountName'] ??= 'default';
    spec['serviceAccount'] ??= 'default';
  }
}

/** What a job gets when it is made, before it is judged. */
function selectOwnPods(job: JsonObject): void {
  const spec = objectAt(job, 'spec') ?? {};
  if (spec['manualSelector'] === true || spec['selector'] !== undefined) return;
  const uid = stringAt(job, 'metadata', 'uid');
  const name = stringAt(job, 'metadata', 'name');
  const owner = { 'controller-uid': uid, 'batch.kubernetes.io/controller-uid': uid };
  const labels = { ...owner, 'job-name': name, 'batch.kubernetes.io/job-name': name };
  const template = objectAt(spec, 'template') ?? {};
  const metadata = objectAt(template, 'metadata') ?? {};
  spec['selector'] = { matchLabels: owner };
  const all = { ...labels, ...objectAt(metadata, 'labels') };
  spec['template'] = { ...template, metadata: { ...metadata, labels: all } };
}

function expectedCauses(step: Step): string[] | undefined {
  const body = step.expect?.body;
  const causes = valueAt(objectAt(body, '$subset') ?? body, 'details', 'causes');
  const items = isObject(causes) ? listAt(causes, 'items') : listAt({ causes }, 'causes');
  if (items.length === 0) return undefined;
  return items.map((cause) => `${stringAt(cause, 'field')}: ${stringAt(cause, 'message') || '*'}`);
}

test('recorded refusals and acceptances come out of the rules', () => {
  let compared = 0;
  const differing: string[] = [];
  for (const file of globSync('*/*.json', { cwd: TRANSCRIPTS }).sort()) {
    if (file.startsWith('crd/') || OTHER_REASONS.includes(file)) continue;
    const text = readFileSync(join(TRANSCRIPTS, file), 'utf8');
    const known = text.replaceAll('${ns}', 't-ns').replaceAll('${id}', 'abc');
    const player = new Player();
    for (const step of (JSON.parse(known) as { steps: Step[] }).steps) {
      if (/"\$(object|repeat|list)"/.test(JSON.stringify(step.request?.body ?? ''))) continue;
      const found = player.play(step);
      const status = step.expect?.status;
      const wanted = status === 422 ? expectedCauses(step) : status === 201 ? [] : undefined;
      if (found === undefined || (wanted === undefined && status !== 200)) continue;
      const texts = found.map((error) => {
        const isOpen = wanted?.includes(`${error.field}: *`) === true;
        return isOpen ? `${error.field}: *` : fieldErrorText(error);
      });
      const place = `${file} ${step.request?.method ?? ''} ${step.request?.path ?? ''}`;
      const [got, recorded] = [texts.sort(), (wanted ?? []).sort()].map((list) => list.join('\n'));
      if (got !== recorded) differing.push(`${place}\n${recorded ?? ''}\n--- got\n${got ?? ''}`);
      compared++;
    }
  }
  assert.deepEqual(differing, []);
  assert.ok(compared > 300, `only ${compared} answers compared`);
});

test('storage kinds are checked to the last driver', () => {
  const storage = 'storage.k8s.io/v1';
  const driver = faultsOf(storage, 'CSIDriver', {
    spec: {
      fsGroupPolicy: 'X',
      volumeLifecycleModes: ['Y'],
      tokenRequests: [{ audience: 'a', expirationSeconds: 5 }, { audience: 'a' }],
    },
  });
  for (const text of [
    'spec.fsGroupPolicy: Unsupported value: "X": supported values: "File", "None", ' +
      '"ReadWriteOnceWithFSType"',
    'spec.tokenRequests[0].expirationSeconds: Invalid value: 5: ' +
      'may not specify a duration less than 10 minutes',
    'spec.tokenRequests[1].audience: Duplicate value: "a"',
    'spec.volumeLifecycleModes: Unsupported value: "Y": supported values: "Persistent", ' +
      '"Ephemeral"',
  ]) {
    assert.ok(driver.includes(text), `${text} in ${driver.join('; ')}`);
  }
  assert.deepEqual(
    faultsOf(storage, 'CSINode', {
      spec: { drivers: [{ name: 'd', nodeID: '', topologyKeys: ['a', 'a'] }] },
    }),
    ['spec.drivers[0].nodeID: Required value', 'spec.drivers[0]: Duplicate value: "a"'],
  );
  assert.deepEqual(
    faultsOf('v1', 'PersistentVolume', {
      spec: { capacity: { storage: '-1' }, accessModes: ['ReadWriteOnce'], volumeMode: 'Z' },
    }),
    [
      'spec.capacity[storage]: Invalid value: -1: must be a valid resource quantity',
      'spec.capacity[storage]: Invalid value: "-1": must be greater than zero',
      'spec: Required value: must specify a volume type',
      'spec.volumeMode: Unsupported value: "Z": supported values: "Block", "Filesystem"',
    ],
  );
  assert.deepEqual(
    faultsOf('v1', 'PersistentVolume', {
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce', 'ReadWriteOncePod'],
        local: { path: '/x' },
        nfs: { server: 's', path: 'x' },
      },
    }),
    [
      'spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes',
      'spec.nfs.path: Invalid value: "x": must be an absolute path',
      'spec.local: Forbidden: may not specify more than 1 volume type',
    ],
  );
  assert.deepEqual(faultsOf(storage, 'VolumeAttributesClass', { driverName: 'd' }), [
    'parameters: Required value: must contain at least one key/value pair',
  ]);
});

test('requests for certificates say what they ask, of whom, and for how long', () => {
  const faults = faultsOf('certificates.k8s.io/v1', 'CertificateSigningRequest', {
    spec: { request: 'eA==', signerName: 'foo', usages: ['any', 'x', 'any'], expirationSeconds: 5 },
    status: { certificate: 'eA==', conditions: [{ type: 'Approved', status: 'False' }] },
  });
  for (const text of [
    'spec.request: Invalid value: "eA==": PEM block type must be CERTIFICATE REQUEST',
    'spec.usages[2]: Duplicate value: "any"',
    'spec.signerName: Invalid value: "foo": must be a fully qualified domain and path of the ' +
      `form 'example.com/signer-name'`,
    'spec.expirationSeconds: Invalid value: 5: may not specify a duration less than 600 seconds ' +
      '(10 minutes)',
    'status.conditions[0].status: Unsupported value: "False": supported values: "True"',
    'status.certificate: Invalid value: "<certificate data>": must contain at least one ' +
      'CERTIFICATE PEM block',
  ]) {
    assert.ok(faults.includes(text), `${text} in ${faults.join('; ')}`);
  }
});

test('a runtime class schedules as pods do', () => {
  const faults = faultsOf('node.k8s.io/v1', 'RuntimeClass', {
    handler: 'h',
    scheduling: {
      tolerations: [{ operator: 'X' }, { operator: 'Exists' }, { operator: 'Exists' }],
    },
  });
  assert.match(faults.join('; '), /scheduling.tolerations\[0\].operator: Unsupported/);
  assert.match(faults.join('; '), /scheduling.tolerations\[2\]: Duplicate value/);
});

test('what containers learn of their pod is there to be learnt', () => {
  const pod = (env: JsonObject, file: JsonObject): string[] =>
    faultsOf('v1', 'Pod', {
      spec: {
        containers: [{ name: 'c', image: 'i', env: [{ name: 'A', valueFrom: env }] }],
        volumes: [{ name: 'v', downwardAPI: { items: [{ path: 'p', ...file }] } }],
      },
    });
  const name = { fieldRef: { fieldPath: 'metadata.name' } };
  assert.deepEqual(pod(name, name), []);
  const labels = { fieldRef: { fieldPath: "metadata.labels['a/b']" } };
  const cpu = { resourceFieldRef: { containerName: 'c', resource: 'limits.cpu', divisor: '1m' } };
  assert.deepEqual(pod(labels, cpu), []);
  const env = 'spec.containers[0].env[0].valueFrom';
  const file = 'spec.volumes[0].downwardAPI';
  assert.deepEqual(
    pod(
      { fieldRef: { fieldPath: 'foo' } },
      { resourceFieldRef: { containerName: 'c', resource: 'limits.gpu' } },
    ),
    [
      `${file}.resourceFieldRef.resource: Unsupported value: "limits.gpu": supported values: ` +
        '"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", ' +
        '"requests.ephemeral-storage", "requests.memory"',
      `${env}.fieldRef.fieldPath: Invalid value: "foo": error converting fieldPath: ` +
        'field label not supported: foo',
    ],
  );
  assert.match(
    pod({ fieldRef: { fieldPath: 'status.phase' } }, {}).join('; '),
    /one of fieldRef and resourceFieldRef is required; .*Unsupported value: "status.phase"/,
  );
});

test('an autoscaler may scale the one scalable kind of the core group, and no other there', () => {
  const of = (kind: string): string[] =>
    faultsOf('autoscaling/v2', 'HorizontalPodAutoscaler', {
      spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: 'v1', kind, name: 'web' } },
    });
  assert.deepEqual(of('ReplicationController'), []);
  assert.deepEqual(of('ConfigMap'), [
    'spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group',
  ]);
});

test('what Go prints as JSON has its signs of HTML escaped', () => {
  const found = createTexts('', 'pods', {
    metadata: { name: 'x', namespace: 'y' },
    spec: {
      containers: [{ name: 'c', image: 'i', imagePullPolicy: 'a&b' }],
      tolerations: [{ key: 'k', operator: 'Lt', value: '1' }],
    },
  });
  const told = (field: string): string | undefined =>
    found.find((text) => text.startsWith(`${field}: `));
  assert.match(told('spec.containers[0].imagePullPolicy') ?? '', /Unsupported value: "a\\u0026b"/);
  assert.equal(
    told('spec.tolerations[0].operator'),
    'spec.tolerations[0].operator: Unsupported value: "Lt": supported values: "Equal", ' +
      '"Exists", "Lt", "Gt"',
  );
});

test('operators of selectors are of a type of their own', () => {
  const texts = createTexts('apps', 'deployments', {
    metadata: { name: 'x', namespace: 'y' },
    spec: { selector: { matchExpressions: [{ key: 'k', operator: '<' }] } },
  });
  const path = 'spec.selector.matchExpressions[0].operator';
  assert.ok(texts.includes(`${path}: Invalid value: "\\u003c": not a valid selector operator`));
});

test('a job is of a controller with a domain and a path, both short', () => {
  const job = (managedBy: string): string[] =>
    createTexts('batch', 'jobs', {
      metadata: { name: 'x', namespace: 'y' },
      spec: { managedBy },
    }).filter((text) => text.startsWith('spec.managedBy'));
  assert.deepEqual(job('a.b/c'), []);
  assert.deepEqual(job(`a.b/${'c'.repeat(60)}`), [
    'spec.managedBy: Too long: may not be more than 63 bytes',
  ]);
  assert.deepEqual(job('a.b/c d'), [
    'spec.managedBy: Invalid value: "c d": Invalid path (regex used for validation is ' +
      "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')",
  ]);
});

function createTexts(group: string, plural: string, object: JsonObject): string[] {
  const resource = findResource(group, 'v1', plural);
  assert.ok(resource !== undefined, plural);
  return validateCreate(resource, object).map(fieldErrorText);
}

test('pods beyond the number may be more than all, pods that are missing may not', () => {
  const rolling = (maxUnavailable: string, maxSurge: string): string[] =>
    createTexts('apps', 'deployments', {
      metadata: { name: 'x', namespace: 'y' },
      spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable, maxSurge } } },
    }).filter((text) => text.startsWith('spec.strategy'));
  assert.deepEqual(rolling('1%', '200%'), []);
  assert.deepEqual(rolling('101%', '1%'), [
    'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater ' +
      'than 100%',
  ]);
});

test('fields that are plain strings in Go are quoted as they are', () => {
  const texts = createTexts('rbac.authorization.k8s.io', 'clusterrolebindings', {
    metadata: { name: 'x' },
    roleRef: { apiGroup: 'a&b', kind: 'ClusterRole', name: 'r' },
  });
  assert.deepEqual(texts, [
    'roleRef.apiGroup: Unsupported value: "a&b": supported values: "rbac.authorization.k8s.io"',
  ]);
});

test('what pulls images is a map in JSON', () => {
  const resource = findResource('', 'v1', 'secrets');
  assert.ok(resource !== undefined);
  const textsOf = (json: string): string[] => {
    const data = { '.dockerconfigjson': Buffer.from(json).toString('base64') };
    const metadata = { name: 'a', namespace: 'n' };
    const secret = { metadata, type: 'kubernetes.io/dockerconfigjson', data };
    return validateCreate(resource, secret).map(fieldErrorText);
  };
  const refused = 'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>"';
  for (const fine of ['{}', 'null', '{"auths":{}}']) assert.deepEqual(textsOf(fine), []);
  assert.deepEqual(textsOf('['), [`${refused}: unexpected end of JSON input`]);
  assert.deepEqual(textsOf('[]'), [
    `${refused}: json: cannot unmarshal array into Go value of type map[string]interface {}`,
  ]);
});

test('a new ingress names one class; one that is there may come to name two', () => {
  const resource = findResource('networking.k8s.io', 'v1', 'ingresses');
  assert.ok(resource !== undefined);
  const annotations = { 'kubernetes.io/ingress.class': 'a' };
  const ingress = (ingressClassName: string, more: object = {}): JsonObject => ({
    metadata: { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1', annotations, ...more },
    spec: { ingressClassName, defaultBackend: { service: { name: 's', port: { number: 1 } } } },
  });
  assert.deepEqual(validateCreate(resource, ingress('a')), []);
  assert.deepEqual(validateCreate(resource, ingress('b')).map(fieldErrorText), [
    'annotations.kubernetes.io/ingress.class: Invalid value: "a": ' +
      'must match `ingressClassName` when both are specified',
  ]);
  assert.deepEqual(validateUpdate(resource, ingress('b'), ingress('a'), ''), []);
});
