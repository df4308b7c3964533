import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { applyPatch } from '@megaplane/machinery/patch';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import fc from 'fast-check';
import { completePatch, podStage, readyPatch } from '../pod/pod-stages.ts';
import { stageFunctions, type StageWorld } from '../gotemplate/stage-functions.ts';
import { durationMs } from '../yaml/go-numbers.ts';
import { readStageFile } from './stage-file.ts';
import { judgeKwokFiles, readKwokFiles } from './kwok-files.ts';
import {
  deleteRequest,
  finalizersRequest,
  patchRequest,
  type StageResource,
} from './stage-requests.ts';
import { stageSetText } from './set-texts.ts';
import { STAGE_SETS } from './stage-sets.ts';
import { chooseStage, delayOf, StageSubject, weightOf, type Stage } from './stage.ts';

const KWOK = 'apiVersion: kwok.x-k8s.io/v1alpha1\n';
const HOST_IPS = ['10.0.0.1', 'fd00::1'];
const POD_IPS = ['fd00:1::1', '10.1.0.1'];
const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5);
const NOW = '2026-01-02T03:04:05Z';
const WORLD: StageWorld = {
  nowMs: () => NOW_MS,
  random: () => 0,
  version: 'v1',
  nodePort: 0,
  nodeName: '',
  nodeIp: '',
  nodeAddresses: () => HOST_IPS,
  podAddresses: ({ isHostNetwork }) => (isHostNetwork ? HOST_IPS : POD_IPS),
  anyAddress: () => '10.1.0.9',
};
const LANGUAGES = {
  functions: stageFunctions(WORLD),
  clock: { nowMs: () => NOW_MS, random: () => 0 },
};
const PODS: StageResource = { apiVersion: 'v1', kind: 'Pod', resource: 'pods', namespaced: true };

function read(text: string): readonly Stage[] {
  return readStageFile('stages.yaml', text, LANGUAGES).stages;
}

function stage(spec: string): string {
  const head = 'apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: { name: s }\nspec:\n';
  return `${head}  resourceRef: { apiGroup: v1, kind: Pod }\n${spec}`;
}

function only(text: string): Stage {
  const [first] = read(text);
  assert(first);
  return first;
}

const container = fc.record({
  name: fc.constantFrom('a', 'b'),
  image: fc.constantFrom('x:1', 'y'),
});
const sidecar = fc.record(
  { name: fc.constant('i'), image: fc.constant('z'), restartPolicy: fc.constant('Always') },
  { requiredKeys: ['name', 'image'] },
);
const pod: fc.Arbitrary<JsonObject> = fc
  .record({
    phase: fc.constantFrom('Pending', 'Running', 'Succeeded', undefined),
    podIP: fc.constantFrom(undefined, '10.1.0.9'),
    isDeleted: fc.boolean(),
    graceSeconds: fc.constantFrom(0, 1, 30),
    isOfJob: fc.boolean(),
    hostNetwork: fc.constantFrom(true, undefined),
    containers: fc.array(container, { minLength: 1, maxLength: 2 }),
    initContainers: fc.array(sidecar, { maxLength: 2 }),
    gates: fc.array(fc.record({ conditionType: fc.constantFrom('g/one', 'g/two') }), {
      maxLength: 2,
    }),
  })
  .map((made) => {
    const object = {
      metadata: {
        name: 'p',
        namespace: 'd',
        uid: 'u',
        ...(made.isDeleted
          ? { deletionTimestamp: NOW, deletionGracePeriodSeconds: made.graceSeconds }
          : {}),
        ...(made.isOfJob ? { ownerReferences: [{ kind: 'Job', name: 'j' }] } : {}),
      },
      spec: {
        nodeName: 'n',
        containers: made.containers,
        initContainers: made.initContainers.length > 0 ? made.initContainers : undefined,
        readinessGates: made.gates,
        hostNetwork: made.hostNetwork,
      },
      status: { phase: made.phase, podIP: made.podIP },
    };
    return JSON.parse(JSON.stringify(object)) as JsonObject;
  });

/** The pod as a stage leaves it, or `deleted`. */
function played(object: JsonObject, stages: readonly Stage[]): JsonObject | 'deleted' | 'none' {
  const random = new Random(1);
  const chosen = chooseStage(stages, new StageSubject(object), (n) => random.below(n));
  const step = chosen?.steps[0];
  if (step?.kind === 'delete') {
    assert.equal(deleteRequest(PODS, object).path, '/api/v1/namespaces/d/pods/p');
    return 'deleted';
  }
  if (step?.kind !== 'patch') return 'none';
  const request = patchRequest(step, PODS, object);
  assert.equal(request?.path, '/api/v1/namespaces/d/pods/p/status');
  return merged(object, JSON.parse(request.body) as JsonObject);
}

function merged(object: JsonObject, body: JsonObject): JsonObject {
  const patched = applyPatch({ kind: 'strategic', body }, object, findTypeOfKind('v1', 'Pod'));
  assert(patched.ok);
  return patched.value;
}

/** The same by the compiled stages. */
function compiled(object: JsonObject): JsonObject | 'deleted' | 'none' {
  const due = podStage(object);
  if (due === 'delete') return 'deleted';
  if (due === 'none') return 'none';
  const patch = due === 'ready' ? readyPatch(object, HOST_IPS, POD_IPS, NOW) : null;
  return merged(object, patch ?? completePatch(object, NOW));
}

test('the fast stages do the same interpreted as compiled', () => {
  const stages = read(stageSetText('fast'));
  fc.assert(
    fc.property(pod, (object) => {
      assert.deepEqual(played(object, stages), compiled(object));
    }),
    { numRuns: 300 },
  );
});

test('every set that comes along can be read', () => {
  for (const set of STAGE_SETS) {
    const stages = read(stageSetText(set));
    // what metrics say needs no stage
    assert(stages.length >= 3 || set === 'metrics', set);
  }
});

test('a pod goes through the general stages to its end', () => {
  const stages = read(stageSetText('general'));
  let object: JsonObject = {
    metadata: { name: 'p', namespace: 'd', uid: 'u', ownerReferences: [{ kind: 'Job' }] },
    spec: {
      nodeName: 'n',
      containers: [{ name: 'c', image: 'i' }],
      initContainers: [{ name: 'first', image: 'i' }],
    },
    status: { phase: 'Pending' },
  };
  const names: string[] = [];
  for (let turn = 0; turn < 8; turn++) {
    const chosen = chooseStage(stages, new StageSubject(object), () => 0);
    if (chosen === undefined) break;
    names.push(chosen.name);
    for (const step of chosen.steps) {
      if (step.kind !== 'patch') continue;
      const request = patchRequest(step, PODS, object);
      assert(request);
      object = merged(object, JSON.parse(request.body) as JsonObject);
    }
  }
  const life = ['pod-create', 'pod-init-container-running', 'pod-init-container-completed'];
  assert.deepEqual(names, [...life, 'pod-ready', 'pod-complete']);
});

test('delays lie between duration and jitter, and a shorter jitter is the delay itself', () => {
  const delay = (spec: string, object: JsonObject = {}): number => {
    const one = only(stage(`  selector: {}\n  delay: ${spec}\n`));
    return delayOf(one, new StageSubject(object), NOW_MS, () => 0.5);
  };
  assert.equal(delay('{ durationMilliseconds: 5000 }'), 5000);
  assert.equal(delay('{ durationMilliseconds: 5000, jitterDurationMilliseconds: 3000 }'), 3000);
  assert.equal(delay('{ durationMilliseconds: 1000, jitterDurationMilliseconds: 5000 }'), 3000);
  const from = (name: string): string =>
    `{ durationMilliseconds: 7, durationFrom: { expressionFrom: .metadata.annotations.${name} } }`;
  const annotated = {
    metadata: { annotations: { a: '1m30s', b: 'no', c: '2026-01-02T03:04:15Z' } },
  };
  assert.equal(delay(from('a'), annotated), 90_000);
  assert.equal(delay(from('b'), annotated), 7);
  assert.equal(delay(from('c'), annotated), 10_000);
  assert.equal(delay(from('d'), annotated), 7);
  const cel = `{ durationFrom: { cel: { expression: "duration('2s')" } } }`;
  assert.equal(delay(cel, annotated), 2000);
});

test('weights decide by chance, and stages without one are left out', () => {
  const text = [1, 3, 0].map((weight, index) =>
    stage(`  selector: {}\n  weight: ${weight}\n`).replace('name: s', `name: s${index}`),
  );
  const stages = read(text.join('\n---\n'));
  const random = new Random(7);
  const counts = [0, 0, 0];
  for (let i = 0; i < 4000; i++) {
    const chosen = chooseStage(stages, new StageSubject({}), (n) => random.below(n));
    const index = stages.findIndex((one) => one === chosen);
    counts[index] = (counts[index] ?? 0) + 1;
  }
  assert.equal(counts[2], 0);
  assert(Math.abs((counts[0] ?? 0) - 1000) < 150, counts.join());
});

test('an error names file, line, column and field', () => {
  const cases: readonly (readonly [text: string, message: RegExp])[] = [
    [
      stage('  selector: {}\n  nxt: {}\n'),
      /^stages\.yaml:7:8: spec\.nxt: unknown field "nxt"; known are resourceRef, /,
    ],
    [
      stage("  selector: {}\n  next: { statusTemplate: '{{ nosuch }}' }\n"),
      /stages\.yaml:7:27: spec\.next\.statusTemplate: .*function "nosuch" not defined/,
    ],
    [
      stage('  selector: { matchExpressions: [{ key: ".a | nosuch", operator: Exists }] }\n'),
      /matchExpressions\[0\]\.key: jq: function not defined: nosuch\/0/,
    ],
    [
      stage('  selector: { matchExpressions: [{ key: .a, operator: Equals }] }\n'),
      /operator: "Equals" is none of In, NotIn/,
    ],
    [
      stage('  selector: { matchExpressions: [{ key: .a, operator: In }] }\n'),
      /operator In needs values/,
    ],
    [
      stage('  selector: { matchExpressions: [{ cel: { expression: "self.+" } }] }\n'),
      /expression: CEL: /,
    ],
    [stage('  selector: {}\n  steps: [{}]\n'), /one of event, finalizers, delete, patch, apply/],
    [stage('  selector: {}\n  steps: [{ event: { type: Odd } }]\n'), /"Odd" is none of Normal/],
    [stage('  selector: {}\n  weight: heavy\n'), /spec\.weight: a whole number is expected/],
    ['kind: Stage\napiVersion: kwok.x-k8s.io/v1alpha1\nmetadata: [', /stages\.yaml:3:12: /],
    [stage('').replace('name: s', ''), /metadata\.name: is required/],
    [stage('').replace(/kind: Pod/, 'kind: ""'), /spec\.resourceRef\.kind: is required/],
  ];
  for (const [text, message] of cases) {
    assert.throws(
      () => read(text),
      (error: Error) => {
        assert.match(error.message, message);
        return true;
      },
    );
  }
});

test('durations are read as Go reads them', () => {
  assert.equal(durationMs('1h2m3.5s'), 3_723_500);
  assert.equal(durationMs('-1.5ms'), -1.5);
  assert.equal(durationMs('0'), 0);
  for (const none of ['', '5', 's', '1 s', '1d', 'PT1S']) assert.equal(durationMs(none), undefined);
});

/** What a patch of `template` sends about a ConfigMap; null where it changes nothing. */
function patched(template: string, of: string = 'root: data'): string | null {
  const text = [
    ...['apiVersion: kwok.x-k8s.io/v1alpha1', 'kind: Stage', 'metadata: { name: s }', 'spec:'],
    ...['  resourceRef: { apiGroup: v1, kind: ConfigMap }', '  selector: {}', '  next:'],
    ...['    patches:', `      - ${of}`, `        template: ${JSON.stringify(template)}`],
  ].join('\n');
  const [step] = only(text).steps;
  assert(step?.kind === 'patch');
  const of_ = { apiVersion: 'v1', kind: 'ConfigMap', resource: 'configmaps', namespaced: true };
  return patchRequest(step, of_, { metadata: { name: 'c' }, data: { a: 'b' } })?.body ?? null;
}

test('what a template gives is read as kwok reads it', () => {
  assert.equal(patched('x: |\n  one\n  two'), '{"data":{"x":"one\\ntwo"}}');
  assert.equal(patched('x: |\n  one\n\nw: z'), '{"data":{"x":"one\\n","w":"z"}}');
  assert.equal(patched('x: 1\n---\nx: 2'), '{"data":{"x":1}}');
  assert.equal(patched('x: 12:30:45'), '{"data":{"x":"12:30:45"}}');
  assert.throws(() => patched('x: .inf'), /no infinite numbers/);
  assert.equal(patched(''), '{"data":null}');
  assert.equal(patched('a: b'), null);
  assert.equal(
    patched('- { op: test, path: /a, value: b }', 'type: json\n        root: data'),
    null,
  );
});

test('a patch is sent as another user, of pods and nodes too', () => {
  const as = 'impersonation: { username: u }\n        root: data';
  assert.equal(patched('x: w', as), '{"data":{"x":"w"}}');
  const next = '    patches: [{ template: x, impersonation: { username: u } }]';
  const [step] = only(stage(`  selector: {}\n  next:\n${next}`)).steps;
  assert.equal(step?.kind === 'patch' && step.user, 'u');
});

test('the older form plays patches before the deletion, and a status without patches only', () => {
  const kinds = (next: string): string =>
    only(stage(`  selector: {}\n  next: ${next}`))
      .steps.map((step) => (step.kind === 'patch' ? `patch ${step.subresource}` : step.kind))
      .join();
  const event = 'event: { type: Normal, reason: R }';
  assert.equal(
    kinds(`{ delete: true, patches: [{ template: x }], ${event} }`),
    'event,patch ,delete',
  );
  assert.equal(kinds('{ statusTemplate: z, patches: [{ template: x }] }'), 'patch ');
  assert.equal(kinds('{ statusTemplate: z, statusSubresource: scale }'), 'patch scale');
  assert.equal(kinds('{ event: { reason: R } }'), '', 'without a type no event is told');
});

test('finalizers are compared as they were before anything is removed', () => {
  const after = (finalizers: string, held: readonly string[]): string => {
    const [step] = only(stage(`  selector: {}\n  next: { finalizers: ${finalizers} }`)).steps;
    assert(step?.kind === 'finalizers');
    return finalizersRequest(step, PODS, { metadata: { finalizers: [...held] } })?.body ?? '';
  };
  const both = '{ add: [{ value: a }], remove: [{ value: a }] }';
  assert.equal(after(both, ['a', 'b']), '[{"op":"remove","path":"/metadata/finalizers/0"}]');
  const anew = '{"op":"add","path":"/metadata/finalizers","value":["a"]}';
  assert.equal(after(both, ['a']), `[{"op":"remove","path":"/metadata/finalizers"},${anew}]`);
  assert.equal(after(both, []), `[${anew}]`);
  assert.equal(after('{ remove: [{ value: z }] }', ['a']), '');
});

test('weights from the object are read as Go reads whole numbers', () => {
  const from = (weightFrom: string, annotation = ''): number | undefined => {
    const one = only(stage(`  selector: {}\n  weight: 7\n  weightFrom: ${weightFrom}`));
    return weightOf(one, new StageSubject({ metadata: { annotations: { w: annotation } } }));
  };
  const jq = '{ jq: { expression: .metadata.annotations.w } }';
  const texts = ['12', '010', '0x_1F', '-0b11', '1_000', '08', '1.5', ''];
  assert.deepEqual(
    texts.map((text) => from(jq, text)),
    [12, 8, 31, -3, 1000, undefined, undefined, undefined],
  );
  const cel = (expression: string): string => `{ cel: { expression: '${expression}' } }`;
  assert.deepEqual(
    ['1 + 1', '2.9', '3u', 'true'].map((text) => from(cel(text))),
    [2, 2, 3, 1],
  );
});

test('aliases and merged mappings are read as YAML 1.1 has them', () => {
  const text = stage(`  selector: &any { matchLabels: { a: b } }
  delay: { <<: &slow { durationMilliseconds: 5 }, jitterDurationMilliseconds: 9 }
  next: { patches: [{ template: &one "x: 1" }, { template: *one, root: r }] }
---
${stage('  selector: {}\n').replace('name: s', 'name: t')}`);
  const [first] = read(text);
  assert.deepEqual([first?.delay?.durationMs, first?.delay?.jitterMs], [5, 9]);
  assert.equal(first?.place, 'stages.yaml:5:38', 'for a kind that the server has not');
  assert.deepEqual(
    first?.steps.map(({ kind }) => kind),
    ['patch', 'patch'],
  );
});

test('a stage without selector stands for its kind, and for no object', () => {
  const [idle] = read(stage('  next: { delete: true }\n'));
  assert.ok(idle?.isIdle);
  assert.equal(
    chooseStage([idle], new StageSubject({}), () => 0),
    undefined,
  );
  const warnings = readStageFile('a.yaml', stage(''), LANGUAGES).warnings.join();
  assert.match(warnings, /^a\.yaml:\d+:\d+: spec\.selector: without it no object has the stage$/);
  assert.throws(() => read(stage('  selector: *x\n')), /:13: unknown anchor x$/);
});

test('what is no file of kwok is refused with its place, before anything is played', () => {
  const judge = (...texts: readonly string[]): void =>
    judgeKwokFiles(texts.map((text, index) => ({ name: `f${index}.yaml`, text, isSet: false })));
  const fine = stage('  selector: {}\n  next: { delete: true }\n');
  const cases: readonly (readonly [texts: readonly string[], message: RegExp])[] = [
    [[''], /^f0\.yaml:1:1: the file holds no document; kind: Stage is expected/],
    [['# nothing\n---\n'], /^f0\.yaml:1:1: the file holds no document/],
    [[fine, fine], /^f1\.yaml:3:19: .*: a stage s for Pod is there already, at f0\.yaml:3:19$/],
    [
      [fine.replace('kwok.x-k8s.io/v1alpha1', 'kwok.sigs.k8s.io/v1')],
      /^f0\.yaml:1:13: apiVersion: "kwok\..*" has no Stage; write kwok\.x-k8s\.io\/v1alpha1$/,
    ],
    [['- a\n'], /^f0\.yaml:1:1: a mapping is expected$/],
    [['kind: Stag'], /^f0\.yaml:1:7: kind: "Stag" is no kind of kwok; known are Stage, Logs, /],
    [
      ['apiVersion: storage.k8s.io/v1\nkind: StorageClass\nprovisioner: x'],
      /^f0\.yaml:2:7: kind: "StorageClass" is no kind of kwok; known are Stage, Logs, /,
    ],
    [
      [`${KWOK}kind: Logs\nmetadata: { name: p }\nspecs: {}`],
      /^f0\.yaml:4:8: specs: unknown field "specs"; known are apiVersion, kind, /,
    ],
    [
      ['apiVersion: v1\nkind: KwokConfiguration'],
      /has no KwokConfiguration; write config\.kwok\.x-k8s\.io\/v1alpha1$/,
    ],
    [
      [`${KWOK}kind: Logs\nmetadata: { name: p }\nspec: { logs: [{ file: x }] }`],
      /^f0\.yaml:4:24: spec\.logs\[0\]\.file: unknown field "file"; known are containers, /,
    ],
  ];
  for (const [texts, message] of cases) {
    assert.throws(
      () => judge(...texts),
      (error: Error) => message.test(error.message) || assert.fail(error.message),
    );
  }
  judge(fine, fine.replace('name: s', 'name: t'));
  judge(`${fine}---\nkind: KwokctlResource\nparameters: {}\ntemplate: x`);
  judge(`apiVersion: storage.k8s.io/v1\nkind: StorageClass\nprovisioner: x\n---\n${fine}`);
});

test('directories of kustomize stand for the files that they list, as with kwok', (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'megaplane-stages-'));
  context.after(() => rmSync(directory, { recursive: true }));
  const put = (name: string, text: string): void => writeFileSync(join(directory, name), text);
  for (const name of ['set', 'stages', 'roles', 'odd', 'bare']) mkdirSync(join(directory, name));
  const fine = stage('  selector: {}\n  next: { delete: true }\n');
  put('stages/a.yaml', fine);
  put('stages/kustomization.yaml', 'resources: [a.yaml]');
  put('roles/role.yaml', 'apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole');
  put('roles/kustomization.yml', 'kind: Kustomization\nresources:\n- role.yaml\n');
  put('set/Kustomization', 'resources: [../stages, ../roles]');
  put('odd/kustomization.yaml', 'namePrefix: a-');
  const read = (...names: readonly string[]): string[] => {
    const files = readKwokFiles(
      '--config',
      names.map((name) => join(directory, name)),
    );
    judgeKwokFiles(files);
    return files.map(({ name }) => name.replace(directory, ''));
  };
  assert.deepEqual(read('set'), ['/stages/a.yaml', '/roles/role.yaml']);
  assert.deepEqual(read(`stages,${directory}/roles`), ['/stages/a.yaml', '/roles/role.yaml']);
  assert.throws(() => read('odd'), /kustomization\.yaml:1:13: namePrefix: only resources are read/);
  assert.throws(() => read('bare'), /bare: it is a directory without kustomization\.yaml/);
  put('odd/kustomization.yaml', 'resources: [../odd]');
  assert.throws(() => read('odd'), /:1:13: resources\[0\]: leads back to a directory/);
  put('odd/kustomization.yaml', 'resources: [nosuch.yaml]');
  assert.throws(() => read('odd'), /:1:13: resources\[0\]: .*nosuch\.yaml is not there/);
});

test('a file that cannot be read, or is no text, is told with its name', (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'megaplane-stages-'));
  context.after(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'a.yaml');
  const refusal = (bytes: Uint8Array): string => {
    writeFileSync(file, bytes);
    try {
      readKwokFiles('--config', [file]);
    } catch (error) {
      return (error as Error).message.replace(directory, '');
    }
    return '';
  };
  const noText = 'this is no text in UTF-8; a YAML file is expected';
  assert.equal(refusal(Buffer.from('a: 1\nb: \0')), `/a.yaml:2:4: ${noText}`);
  assert.equal(refusal(Buffer.from([0x61, 0xff])), `/a.yaml:1:2: ${noText}`);
  assert.equal(refusal(Buffer.from('\uFEFFa: \u00e9\n')), '');
  const name = (one: string) => (): unknown => readKwokFiles('--config', [one]);
  assert.throws(
    name(directory),
    /^Error: --config: cannot read .*: it is a directory without kustomization\.yaml; name the/,
  );
  assert.throws(name('nosuch'), /cannot read nosuch: ENOENT.* \(and it is none of the sets fast, /);
});

test('expressions see pods as structs of Go: what is left out is zero, and not there', () => {
  const holds = (expression: string, object: JsonObject): boolean => {
    const cel = JSON.stringify(expression);
    const selector = `  selector: { matchExpressions: [{ cel: { expression: ${cel} } }] }`;
    const own = { apiVersion: 'v1', kind: 'Pod', ...object };
    return chooseStage(read(stage(selector)), new StageSubject(own), () => 0) !== undefined;
  };
  const requests = { cpu: '100m' };
  const made: JsonObject = {
    metadata: { name: 'p', creationTimestamp: '2026-01-02T03:04:00Z', labels: { a: 'b' } },
    spec: { nodeName: 'n', containers: [{ name: 'c', image: 'i', resources: { requests } }] },
  };
  for (const expression of [
    'self.status.podIP == ""',
    '!has(self.status.podIP)',
    'self.spec.priority == null && self.spec.activeDeadlineSeconds == null',
    'self.spec.affinity == null && self.spec.hostnameOverride == null',
    'self.spec.containers.all(c, c.livenessProbe == null && c.resources != null)',
    'self.spec.containers[0].resources.limits["cpu"] == 0.0',
    '!("cpu" in self.spec.containers[0].resources.limits)',
    '!has(self.metadata.deletionTimestamp)',
    '!("z" in self.metadata.annotations) && self.metadata.labels["a"] == "b"',
    'self.spec.initContainers.size() == 0 && !self.spec.hostNetwork',
    'self.spec.containers[0].resources.requests["cpu"] == Quantity("0.1")',
    'Now() - self.metadata.creationTimestamp == duration("5s")',
    'self.SinceSecond() == 5.0 && UnixSecond(Now()) > 1.0 && Rand() < 1.0',
  ]) {
    assert.ok(holds(expression, made), expression);
  }
  assert.throws(() => holds('self.spec.nope == ""', made), /no such key: nope/);
});
