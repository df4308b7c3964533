import assert from 'node:assert/strict';
import { test } from 'node:test';
import { objectAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { applyPatch } from '@megaplane/machinery/patch';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import { stageFunctions } from '../gotemplate/stage-functions.ts';
import { readStageFile } from './stage-file.ts';
import { deleteRequest, patchRequest, type StageResource } from './stage-requests.ts';
import { stageSetText } from './set-texts.ts';
import type { StageSet } from './stage-sets.ts';
import { chooseStage, delayOf, StageSubject } from './stage.ts';

const PODS: StageResource = { apiVersion: 'v1', kind: 'Pod', resource: 'pods', namespaced: true };
const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5);
const NOW = '2026-01-02T03:04:05Z';
const END = 'pod-end.stage.kwok.x-k8s.io';

function stagesOf(set: StageSet) {
  const functions = stageFunctions({
    nowMs: () => NOW_MS,
    random: () => 0,
    version: 'v1',
    nodePort: 0,
    nodeName: '',
    nodeIp: '',
    nodeAddresses: () => ['10.0.0.1'],
    podAddresses: () => ['10.1.0.1'],
    anyAddress: () => '10.1.0.9',
  });
  const clock = { nowMs: () => NOW_MS, random: () => 0 };
  const text = stageSetText(set);
  return readStageFile(set, text, { functions, clock }).stages;
}

interface Played {
  /** Stages in their order, with the time that each waited. */
  readonly names: readonly string[];
  readonly pod: JsonObject;
  readonly isDeleted: boolean;
}

/** Plays until nothing is due any more. */
function play(set: StageSet, begin: JsonObject, below: (n: number) => number = () => 0): Played {
  const stages = stagesOf(set);
  const names: string[] = [];
  let pod = begin;
  for (let turn = 0; turn < 9; turn++) {
    const stage = chooseStage(stages, new StageSubject(pod), below);
    if (stage === undefined) return { names, pod, isDeleted: false };
    names.push(`${stage.name} ${delayOf(stage, new StageSubject(pod), NOW_MS, () => 0)}`);
    const [step] = stage.steps;
    if (step?.kind === 'delete') {
      assert.equal(deleteRequest(PODS, pod).method, 'DELETE');
      return { names, pod, isDeleted: true };
    }
    assert(step?.kind === 'patch');
    const request = patchRequest(step, PODS, pod);
    assert(request);
    const body = JSON.parse(request.body) as JsonObject;
    const patched = applyPatch({ kind: 'strategic', body }, pod, findTypeOfKind('v1', 'Pod'));
    assert(patched.ok);
    pod = patched.value;
  }
  throw new Error(`no end: ${names.join(', ')}`);
}

function podOf(annotations: JsonObject, restartPolicy = 'Never', metadata: JsonObject = {}) {
  return {
    metadata: {
      ...{ name: 'p', namespace: 'd', uid: 'u', annotations },
      ownerReferences: [{ kind: 'Job', name: 'j' }],
      ...metadata,
    },
    spec: {
      nodeName: 'n',
      restartPolicy,
      containers: [
        { name: 'a', image: 'x' },
        { name: 'b', image: 'y' },
      ],
    },
    status: { phase: 'Pending' },
  };
}

/** Of each container, how it ended. */
function ends(pod: JsonObject): unknown[] {
  const statuses = objectAt(pod, 'status')?.['containerStatuses'] as JsonObject[];
  return statuses.map(({ name, state }) => {
    const ended = objectAt(state, 'terminated');
    return [name, ended?.['exitCode'], ended?.['reason'], ended?.['message']];
  });
}

const phaseOf = (pod: JsonObject): unknown => objectAt(pod, 'status')?.['phase'];

test('a pod of a Job runs until it is told to end', () => {
  for (const restartPolicy of ['Never', 'OnFailure']) {
    const running = play('jobs', podOf({}, restartPolicy));
    assert.deepEqual([running.names, phaseOf(running.pod)], [['pod-ready 0'], 'Running']);
    const ended = (annotations: JsonObject): Played =>
      play('jobs', { ...running.pod, metadata: podOf(annotations).metadata });
    const well = ended({ [`${END}/exit-code`]: '0' });
    assert.deepEqual([well.names, phaseOf(well.pod)], [['pod-end 0'], 'Succeeded']);
    assert.deepEqual(ends(well.pod), [
      ['a', 0, 'Completed', ''],
      ['b', 0, 'Completed', ''],
    ]);
    const ill = ended({
      [`${END}/exit-code`]: '42',
      [`${END}/container-name`]: 'b',
      [`${END}/reason`]: 'OOMKilled',
      [`${END}/message`]: 'no room: "left"',
    });
    assert.equal(phaseOf(ill.pod), 'Failed');
    assert.deepEqual(ends(ill.pod), [
      ['a', 0, 'Completed', undefined],
      ['b', 42, 'OOMKilled', 'no room: "left"'],
    ]);
    assert.deepEqual(ends(ended({ [`${END}/exit-code`]: '1' }).pod)[1], ['b', 1, 'Error', '']);
  }
});

test('a pod of a Job runs as long as it is told to', () => {
  const delays: [JsonObject, string][] = [
    [{ [`${END}/delay`]: '1m30s' }, 'Succeeded'],
    [{ [`${END}/delay`]: '2026-01-02T03:05:35Z', [`${END}/exit-code`]: '3' }, 'Failed'],
  ];
  for (const [annotations, phase] of delays) {
    const { names, pod } = play('jobs', podOf(annotations));
    assert.deepEqual([names, phaseOf(pod)], [['pod-ready 0', 'pod-end 90000'], phase]);
  }
});

test('a pod of a Job that is deleted has failed before it goes', () => {
  const { pod } = play('jobs', podOf({}));
  const deleted = (graceSeconds: number): Played => {
    const metadata = podOf({ [`${END}/delay`]: '1h' }, 'Never', {
      deletionTimestamp: NOW,
      deletionGracePeriodSeconds: graceSeconds,
    }).metadata;
    return play('jobs', { ...pod, metadata }, (n) => n - 1);
  };
  const gone = deleted(30);
  assert.deepEqual(gone.names, ['pod-terminate 0', 'pod-delete 0']);
  assert.deepEqual([phaseOf(gone.pod), gone.isDeleted], ['Failed', true]);
  assert.deepEqual(ends(gone.pod)[0], ['a', 143, 'Error', undefined]);
  // the server removes it when its last finalizer goes
  const held = deleted(0);
  assert.deepEqual([held.names, held.isDeleted], [['pod-terminate 0'], false]);
  assert.equal(phaseOf(held.pod), 'Failed');
});

test('pods that are always restarted live by the set jobs as by the set fast', () => {
  const about = { [`${END}/exit-code`]: '1', [`${END}/delay`]: '1s' };
  const owner = { ownerReferences: [{ kind: 'ReplicaSet', name: 'r' }] };
  const terminating = { deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 };
  for (const metadata of [owner, { ...owner, ...terminating }]) {
    const begin = podOf(about, 'Always', metadata);
    assert.deepEqual(play('jobs', begin), play('fast', begin));
  }
  const running = play('jobs', podOf(about, 'Always', owner)).pod;
  const ending = { ...running, metadata: podOf(about, 'Always', terminating).metadata };
  assert.deepEqual(play('jobs', ending), play('fast', ending));
});

test('pods of Jobs end at once by the set fast', () => {
  const { names, pod } = play('fast', podOf({}));
  assert.deepEqual(names, ['pod-ready 0', 'pod-complete 0']);
  assert.equal(phaseOf(pod), 'Succeeded');
});
