import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { admittingModel, messageOf, podOf } from '../../testing/admitting.sim.ts';
import { NO_CONFIGURATIONS, readPluginConfigurations } from '../plugin-configuration.ts';
import type { WebhookCaller } from '../../webhook/webhook-call.ts';

const PODS = '/api/v1/namespaces/n/pods';
const ONE = { containers: [{ name: 'c', image: 'i' }] };

function configured(name: string, value: JsonValue): object {
  return {
    enabledPlugins: [name],
    pluginConfigurations: { ...NO_CONFIGURATIONS, of: new Map([[name, value]]) },
  };
}

function specIn(answer: { readonly text: string }): JsonObject {
  return (JSON.parse(answer.text) as { spec: JsonObject }).spec;
}

test('names of plugins that are unknown or on both lists are refused in upstream words', () => {
  assert.throws(() => admittingModel({ enabledPlugins: ['X'], disabledPlugins: ['Y', 'Z'] }), {
    message:
      '[enable-admission-plugins plugin "X" is unknown, ' +
      'disable-admission-plugins plugin "Y" is unknown, ' +
      'disable-admission-plugins plugin "Z" is unknown]',
  });
  const both = ['Priority', 'LimitRanger'];
  assert.throws(() => admittingModel({ enabledPlugins: both, disabledPlugins: both }), {
    message:
      '[LimitRanger Priority] in enable-admission-plugins and disable-admission-plugins overlapped',
  });
});

test('AlwaysPullImages changes new pods, and updates that bring an image', () => {
  const model = admittingModel({ enabledPlugins: ['AlwaysPullImages'] });
  const containers = [{ name: 'c', image: 'i', imagePullPolicy: 'Never' }];
  const volumes = [{ name: 'v', image: { reference: 'r', pullPolicy: 'IfNotPresent' } }];
  const made = specIn(model.expect(201, 'POST', PODS, podOf('p', {}, { containers, volumes })));
  assert.equal((made['containers'] as JsonObject[])[0]?.['imagePullPolicy'], 'Always');
  assert.match(JSON.stringify(made['volumes']), /"image":{"reference":"r","pullPolicy":"Always"}/);
});

test('LimitPodHardAntiAffinityTopology and AlwaysDeny refuse', () => {
  const model = admittingModel({ enabledPlugins: ['LimitPodHardAntiAffinityTopology'] });
  const labelSelector = { matchLabels: { a: 'b' } };
  const affinityOf = (topologyKey: string): object => ({
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector }],
      },
    },
  });
  model.expect(201, 'POST', PODS, podOf('p', {}, affinityOf('kubernetes.io/hostname')));
  assert.equal(
    messageOf(model.expect(403, 'POST', PODS, podOf('q', {}, affinityOf('zone')))),
    'pods "q" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey ' +
      'zone but only key kubernetes.io/hostname is allowed',
  );
  assert.throws(
    () => admittingModel({ enabledPlugins: ['AlwaysDeny'] }),
    /namespaces \\"n\\" is forbidden: admission control is denying all modifications/,
  );
});

test('NamespaceAutoProvision makes a namespace for what comes in, but not for dry runs', () => {
  const model = admittingModel({ enabledPlugins: ['NamespaceAutoProvision'] });
  const maps = '/api/v1/namespaces/new/configmaps';
  model.expect(404, 'POST', `${maps}?dryRun=All`, { metadata: { name: 'm' } });
  model.expect(201, 'POST', maps, { metadata: { name: 'm' } });
  const wrong = model.expect(403, 'POST', '/api/v1/namespaces/Bad/configmaps', {
    metadata: { name: 'm' },
  });
  assert.match(messageOf(wrong), /^configmaps "m" is forbidden: Namespace "Bad" is invalid: /);
  const made = JSON.parse(model.expect(200, 'GET', '/api/v1/namespaces/new').text) as JsonObject;
  assert.deepEqual(made['spec'], { finalizers: ['kubernetes'] });
  assert.deepEqual(made['status'], { phase: 'Active' });
});

test('NamespaceExists wants the namespace where nobody else does', () => {
  const model = admittingModel({
    enabledPlugins: ['NamespaceExists'],
    disabledPlugins: ['NamespaceLifecycle'],
  });
  const refused = model.expect(404, 'POST', '/api/v1/namespaces/x/configmaps', {
    metadata: { name: 'm' },
  });
  assert.equal(messageOf(refused), 'namespaces "x" not found');
});

test('PodNodeSelector adds labels of the namespace and refuses others', () => {
  const settings = { clusterDefaultNodeSelector: 'pool=a', n: 'pool=a,zone=z' };
  const model = admittingModel(
    configured('PodNodeSelector', { podNodeSelectorPluginConfig: settings }),
  );
  const made = model.expect(201, 'POST', PODS, podOf('p', {}, { nodeSelector: { zone: 'z' } }));
  assert.deepEqual(specIn(made)['nodeSelector'], { pool: 'a', zone: 'z' });
  const refusalOf = (nodeSelector: object): string =>
    messageOf(model.expect(403, 'POST', PODS, podOf('q', {}, { nodeSelector })));
  assert.equal(
    refusalOf({ pool: 'b' }),
    'pods "q" is forbidden: pod node label selector conflicts with its namespace node label ' +
      'selector',
  );
  assert.equal(
    refusalOf({ disk: 'ssd' }),
    'pods "q" is forbidden: pod node label selector labels conflict with its namespace whitelist',
  );
  const annotate = (text: string): void =>
    void model.expect(200, 'PATCH', '/api/v1/namespaces/n', {
      metadata: { annotations: { 'scheduler.alpha.kubernetes.io/node-selector': text } },
    });
  annotate('zone=z');
  const own = model.expect(201, 'POST', PODS, podOf('r'));
  assert.deepEqual(specIn(own)['nodeSelector'], { zone: 'z' });
  annotate('a=b=c');
  assert.equal(messageOf(model.expect(500, 'POST', PODS, podOf('s'))), 'invalid selector: [a b c]');
});

test('PodTolerationRestriction merges defaults of the namespace, keeps to its whitelist', () => {
  const toleration = (key: string): JsonObject => ({ key, operator: 'Exists' });
  const whitelist = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable', 'd', 'w'];
  const model = admittingModel(
    configured('PodTolerationRestriction', {
      apiVersion: 'podtolerationrestriction.admission.k8s.io/v1alpha1',
      kind: 'Configuration',
      default: [toleration('d')],
      whitelist: whitelist.map(toleration),
    }),
  );
  const made = model.expect(201, 'POST', PODS, podOf('p'));
  const last = (specIn(made)['tolerations'] as JsonObject[]).at(-1);
  assert.deepEqual(last, toleration('d'));
  const other = podOf('q', {}, { tolerations: [toleration('x')] });
  assert.equal(
    messageOf(model.expect(500, 'POST', PODS, other)),
    'pod tolerations (possibly merged with namespace default tolerations) conflict with its ' +
      'cluster whitelist',
  );
  model.expect(200, 'PATCH', '/api/v1/namespaces/n', {
    metadata: {
      annotations: {
        'scheduler.alpha.kubernetes.io/defaultTolerations': '[{"key":"m","operator":"Exists"}]',
        'scheduler.alpha.kubernetes.io/tolerationsWhitelist': '',
      },
    },
  });
  const say = (text: string): void =>
    void model.expect(200, 'PATCH', '/api/v1/namespaces/n', {
      metadata: { annotations: { 'scheduler.alpha.kubernetes.io/defaultTolerations': text } },
    });
  const told = (): string => messageOf(model.expect(500, 'POST', PODS, podOf('z')));
  say('{');
  assert.equal(told(), 'unexpected end of JSON input');
  say('[{"key":5}]');
  assert.equal(
    told(),
    'json: cannot unmarshal number into Go struct field Toleration.key of type string',
  );
  say('[{"key":"m","operator":"Exists"}]');
  const burstable = podOf('q', { requests: { cpu: '1' } }, { tolerations: [toleration('x')] });
  const keys = (specIn(model.expect(201, 'POST', PODS, burstable))['tolerations'] as JsonObject[])
    .map(({ key }) => key)
    .slice(-2);
  assert.deepEqual(keys, ['m', 'node.kubernetes.io/memory-pressure']);
  assert.throws(
    () => admittingModel(configured('PodTolerationRestriction', { apiVersion: 'v1' })),
    /couldn't init admission plugin "PodTolerationRestriction": no kind/,
  );
});

test('EventRateLimit gives as many events as its buckets hold', () => {
  const limit = (type: string, burst: number): JsonObject => ({ type, qps: 1, burst });
  const apiVersion = 'eventratelimit.admission.k8s.io/v1alpha1';
  const limits = [limit('Namespace', 2), limit('SourceAndObject', 1)];
  const model = admittingModel(configured('EventRateLimit', { apiVersion, limits }));
  const create = (code: number, about: string): string => {
    const involvedObject = { namespace: 'n', kind: 'Pod', name: about };
    const metadata = { generateName: 'e' };
    const path = '/api/v1/namespaces/n/events';
    const body = { metadata, involvedObject, source: { component: 's' } };
    return model.expect(code, 'POST', path, { ...body, metadata: { name: `${about}${code}` } })
      .text;
  };
  create(201, 'a');
  assert.deepEqual(JSON.parse(create(429, 'a')), {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'Too many requests: limit reached on type SourceAndObject for key sPodna',
    reason: 'TooManyRequests',
    code: 429,
  });
  const both = (JSON.parse(create(429, 'a')) as { message: string }).message;
  assert.equal(
    both,
    'Too many requests: [limit reached on type Namespace for key n, ' +
      'limit reached on type SourceAndObject for key sPodna]',
  );
  const wrong = { apiVersion, limits: [limit('Cluster', 0)] };
  assert.throws(() => admittingModel(configured('EventRateLimit', wrong)), {
    message:
      'failed to initialize admission: couldn\'t init admission plugin "EventRateLimit": ' +
      '[limits[0].type: Unsupported value: "Cluster": supported values: "Namespace", "Server", ' +
      '"SourceAndObject", "User", limits[0].burst: Invalid value: 0: must be positive]',
  });
});

const KUBECONFIG = `
clusters: [{ name: c, cluster: { server: 'https://images.example/policy' } }]
contexts: [{ name: x, context: { cluster: c } }]
current-context: x`;

test('ImagePolicyWebhook asks about images once, and refuses in the words of the answer', () => {
  const asked: JsonObject[] = [];
  let answer: JsonObject | null = { allowed: false, reason: 'no' };
  const webhooks: WebhookCaller = {
    call: (_, body, __, then) => {
      asked.push(JSON.parse(body.toString()) as JsonObject);
      const review = Buffer.from(JSON.stringify({ kind: 'ImageReview', status: answer }));
      const contentType = 'application/json';
      if (answer === null) then({ ok: false, why: 'EOF' });
      else then({ ok: true, status: 200, contentType, body: review });
    },
  };
  const start = (defaultAllow: boolean) =>
    admittingModel({
      enabledPlugins: ['ImagePolicyWebhook'],
      webhooks,
      pluginConfigurations: {
        of: new Map([
          ['ImagePolicyWebhook', { imagePolicy: { kubeConfigFile: 'k', defaultAllow } }],
        ]),
        readFile: () => KUBECONFIG,
      },
    });
  const model = start(false);
  const annotations = { 'x.image-policy.k8s.io/break-glass': '1', other: '2' };
  for (const name of ['p', 'q']) {
    const pod = { metadata: { name, annotations }, spec: ONE };
    assert.equal(
      messageOf(model.expect(403, 'POST', PODS, pod)),
      `pods "${name}" is forbidden: image policy webhook backend denied one or more images: no`,
    );
  }
  assert.deepEqual(asked, [
    {
      kind: 'ImageReview',
      apiVersion: 'imagepolicy.k8s.io/v1alpha1',
      metadata: {},
      spec: {
        containers: [{ image: 'i' }],
        annotations: { 'x.image-policy.k8s.io/break-glass': '1' },
        namespace: 'n',
      },
      status: { allowed: false },
    },
  ]);
  answer = null;
  assert.equal(
    messageOf(model.expect(403, 'POST', PODS, podOf('p'))),
    'pods "p" is forbidden: Post "https://images.example/policy?timeout=30s": EOF',
  );
  start(true).expect(201, 'POST', PODS, podOf('p'));
  assert.throws(
    () => admittingModel({ enabledPlugins: ['ImagePolicyWebhook'] }),
    /couldn't init admission plugin "ImagePolicyWebhook": no config specified/,
  );
});

test('a configuration file holds settings of plugins, names their files, or is an old one', () => {
  const files: Record<string, string> = {
    '/c/new': `
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- { name: EventRateLimit, path: limits }
- { name: PodSecurity, configuration: { a: 1 } }`,
    '/c/limits': 'limits: []',
    '/c/old': 'podNodeSelectorPluginConfig: { n: a=b }',
    '/c/other': 'a: b',
  };
  const read = (file: string): string => files[file] ?? '';
  const made = readPluginConfigurations('/c/new', read);
  assert.deepEqual(Object.fromEntries(made.of), {
    EventRateLimit: { limits: [] },
    PodSecurity: { a: 1 },
  });
  const old = readPluginConfigurations('/c/old', read);
  assert.deepEqual(old.of.get('PodNodeSelector'), { podNodeSelectorPluginConfig: { n: 'a=b' } });
  assert.throws(
    () => readPluginConfigurations('/c/other', read),
    /--admission-control-config-file: \/c\/other holds no apiVersion, no kind, not apiserver/,
  );
});

test('a pod that runs is resized as far as its node can follow', () => {
  const model = admittingModel();
  const bound = { nodeName: 'm' };
  const asked = { requests: { cpu: '1' } };
  model.expect(201, 'POST', PODS, podOf('p', asked, bound));
  const resize = (code: number, cpu: string): string => {
    const containers = [{ name: 'c', image: 'i', resources: { requests: { cpu } } }];
    const answer = model.expect(code, 'PATCH', `${PODS}/p/resize`, { spec: { containers } });
    return code === 200 ? '' : messageOf(answer);
  };
  assert.equal(resize(403, '2'), 'pods "p" is forbidden: node "m" not found');
  const nodes = '/api/v1/nodes';
  const labels = { 'kubernetes.io/os': 'linux' };
  const status = { allocatable: { cpu: '3', memory: '1Gi' } };
  model.expect(201, 'POST', nodes, { metadata: { name: 'm', labels }, status });
  resize(200, '2');
  assert.equal(
    resize(403, '3500m'),
    'pods "p" is forbidden: node didn\'t have enough allocatable resources: cpu, requested: ' +
      '3500, allocatable: 3000',
  );
  model.expect(200, 'PATCH', `${nodes}/m`, {
    metadata: { labels: { 'kubernetes.io/os': 'windows' } },
  });
  assert.equal(
    resize(403, '1'),
    'pods "p" is forbidden: pod resize is only supported on linux nodes, node "m" is "windows"',
  );
});

test('a configuration of PodSecurity tightens namespaces that say nothing, exempts others', () => {
  const apiVersion = 'pod-security.admission.config.k8s.io/v1';
  const kind = 'PodSecurityConfiguration';
  const settings = {
    apiVersion,
    kind,
    defaults: { enforce: 'baseline', 'enforce-version': 'v1.30' },
    exemptions: { namespaces: ['free'], runtimeClasses: ['odd'] },
  };
  const model = admittingModel(configured('PodSecurity', settings));
  const host = podOf('p', {}, { hostPID: true });
  assert.match(
    messageOf(model.expect(403, 'POST', PODS, host)),
    /violates PodSecurity "baseline:v1.30": host namespaces \(hostPID=true\)/,
  );
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  const made = model.expect(201, 'POST', '/api/v1/namespaces', {
    metadata: { name: 'free', labels },
  });
  assert.deepEqual(
    made.headers.filter((field) => field.startsWith('299 ')),
    [
      '299 - "namespace \\"free\\" is exempt from Pod Security, and the policy ' +
        '(enforce=restricted:v1.30) will be ignored"',
    ],
  );
  const wrong = {
    apiVersion,
    kind,
    defaults: { warn: 'x' },
    exemptions: { usernames: ['', 'a', 'a'] },
  };
  assert.throws(() => admittingModel(configured('PodSecurity', wrong)), {
    message:
      'failed to initialize admission: couldn\'t init admission plugin "PodSecurity": ' +
      '[defaults.warn: Invalid value: "x": must be one of privileged, baseline, restricted, ' +
      'exemptions.usernames[0]: Invalid value: "": username must not be empty, ' +
      'exemptions.usernames[2]: Duplicate value: "a"]',
  });
});

test('who enforces a level of PodSecurity hears what violates it, unless warnings are set', () => {
  const model = admittingModel();
  const PREFIX = 'pod-security.kubernetes.io/';
  const label = (labels: object): number =>
    model.ask('PATCH', '/api/v1/namespaces/n', { metadata: { labels } }).status;
  const warnings = (name: string): string[] => {
    const template = { metadata: { labels: { a: 'b' } }, spec: { ...ONE, hostPID: true } };
    const spec = { selector: { matchLabels: { a: 'b' } }, template };
    const path = '/apis/apps/v1/namespaces/n/deployments';
    const made = model.expect(201, 'POST', path, { metadata: { name }, spec });
    return made.headers.filter((field) => field.startsWith('299 '));
  };
  assert.equal(label({ [`${PREFIX}enforce`]: 'baseline' }), 200);
  assert.deepEqual(warnings('a'), [
    '299 - "would violate PodSecurity \\"baseline:latest\\": host namespaces (hostPID=true)"',
  ]);
  assert.equal(label({ [`${PREFIX}warn`]: 'privileged' }), 200);
  assert.deepEqual(warnings('b'), []);
  assert.equal(label({ [`${PREFIX}enforce`]: '' }), 422);
  assert.equal(label({ [`${PREFIX}audit-version`]: 'v1.01' }), 422);
});
