import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { ClusterCapacityNeedsSchema } from '../contract/tables/capacity.ts';
import {
  CapacityType,
  MachineListSchema,
  MachineSchema,
  MachineState,
  TransitionAckSchema,
} from '../contract/tables/provider.ts';
import type { Machine } from '../contract/tables/provider.ts';
import { OperatorMessageSchema } from '../contract/tables/shard.ts';
import type { OperatorMessage } from '../contract/tables/shard.ts';
import { SHARD_DEFAULTS } from '../engine/shard.ts';
import { ShardCore } from './core.ts';
import { Domains } from './domains.ts';
import type { Effect } from './effects.ts';
import { stateWord } from './machine-words.ts';

/** `id:STATE`, and `:cluster` where it has one. */
function machine(text: string): Machine {
  const [id = '', word = '', cluster = ''] = text.split(':');
  const state = MachineState[word as keyof typeof MachineState];
  const isMade = word !== 'SPECULATIVE' && word !== 'CREATING';
  return create(MachineSchema, {
    ...{ id, state, cluster, instanceType: 'm4', zone: 'a', pricePerHour: 1 },
    capacityType: CapacityType.ON_DEMAND,
    resources: { resources: { cpu: '4' } },
    ...(isMade ? { host: { provider: 'p', ref: `h-${id}` } } : {}),
    lastError: word === 'FAILED' ? 'broken' : '',
  });
}

function payloadOf(words: readonly string[]): OperatorMessage {
  const [kind = '', first = '', second = ''] = words;
  if (kind === 'hello') {
    const payload = { case: 'hello' as const, value: { clusterId: first } };
    return create(OperatorMessageSchema, { payload });
  }
  if (kind === 'blob') {
    const value = { requestId: first, error: second, userData: new Uint8Array([7]) };
    return create(OperatorMessageSchema, { payload: { case: 'bootstrapResponse', value } });
  }
  const need = { aggregateResources: { cpu: second }, minUnit: { cpu: '1' }, priority: 5 };
  const needs = second === '' ? [] : [need];
  const value = create(ClusterCapacityNeedsSchema, { clusterId: first, needs });
  return create(OperatorMessageSchema, { payload: { case: 'rollup', value } });
}

function shown(effect: Effect): string {
  switch (effect.kind) {
    case 'log':
      return `${effect.level}: ${effect.message}`;
    case 'close':
      return `close ${effect.session} ${effect.code} ${effect.message}`;
    case 'list':
      return `list ${effect.provider} ${effect.list}`;
    case 'call': {
      const { method, request } = effect.change;
      const token = `${request.shardId}/${request.shardEpoch}/${request.sequenceNumber}`;
      return `call ${effect.call} ${method} ${request.machineId} ${token}`;
    }
    case 'send': {
      const { payload, session } = effect;
      const { value } = payload;
      if (payload.case === 'nodeStateUpdate') {
        const { machineId, state } = payload.value;
        return `to ${session} node ${machineId} ${stateWord(state)}`;
      }
      if (payload.case === 'availableCapacity') {
        return `to ${session} available ${payload.value.availableCount}`;
      }
      if (payload.case === 'ack') return `to ${session} ack epoch=${payload.value.shardEpoch}`;
      const isAsk = payload.case === 'bootstrapRequest';
      const id = isAsk
        ? payload.value.requestId
        : (value as { instructionId: string }).instructionId;
      return `to ${session} ${payload.case} ${id}`;
    }
  }
}

function shard(providers: readonly string[] = ['p']): ShardCore {
  let ids = 0;
  return new ShardCore({
    ...{ shardId: 's', epoch: 3n, concurrency: 4, newId: () => `id${++ids}` },
    ...{ providers, isIncremental: false, engine: SHARD_DEFAULTS },
    domains: new Domains(),
    ...{ cycleMs: 10_000, listWaitMs: 1000, joinMs: 60_000 },
  });
}

/** Plays lines `time verb …`; answers what came of each, below it. */
function play(core: ShardCore, script: string): string {
  const lines: string[] = [];
  const ids = new Map<string, string>();
  for (const line of script.trim().split('\n')) {
    const [at = '', verb = '', target = '', ...rest] = line.trim().split(' ');
    const nowMs = Number(at);
    const number = Number(target);
    if (verb === 'tick') core.tick(nowMs);
    else if (verb === 'open') core.opened(number, rest[0], nowMs);
    else if (verb === 'gone') core.closed(number);
    else if (verb === 'say') core.received(number, payloadOf(rest), nowMs);
    else if (verb === 'listed') {
      const [provider = '', ...machines] = rest;
      const answer = create(MachineListSchema, { machines: machines.map(machine) });
      core.listed(Number(provider), number, answer, nowMs);
    } else if (verb === 'acked') {
      const facts = { machine: machine(`${ids.get(target) ?? ''}:${rest.join(':')}`) };
      core.called(number, create(TransitionAckSchema, facts), nowMs);
    } else core.called(number, { code: Number(rest[0]) as 13, message: 'no' }, nowMs);
    lines.push(line.trim());
    for (const effect of core.takeEffects()) {
      if (effect.kind === 'call') ids.set(String(effect.call), effect.change.request.machineId);
      lines.push(`  ${shown(effect)}`);
    }
  }
  return lines.join('\n');
}

/** A script is the lines of a transcript that are not indented. */
function replays(core: ShardCore, transcript: string): void {
  const lines = transcript.trim().split('\n');
  const indent = /^ */.exec(transcript.replace(/^\n/, ''))?.[0].length ?? 0;
  const expected = lines.map((line, index) => (index === 0 ? line.trim() : line.slice(indent)));
  const script = expected.filter((line) => !line.startsWith(' ')).join('\n');
  assert.equal(play(core, script), expected.join('\n'));
}

test('a machine is made, bound, kept, given up and deleted', () => {
  replays(
    shard(),
    `
    0 tick
      list 0 1
    10 listed 1 0 m1:SPECULATIVE
    20 open 1
    20 say 1 hello c1
      to 1 ack epoch=3
    30 say 1 rollup c1 2
      to 1 ack epoch=3
    110 tick
      list 0 2
    120 listed 2 0 m1:SPECULATIVE
      to 1 available 1
      call 1 create m1 s/3/1
    130 acked 1 CREATING
    10120 tick
      list 0 3
    10130 listed 3 0 m1:IDLE
      to 1 available 1
      to 1 bootstrapRequest id1
    10140 say 1 blob id1
      call 2 configure m1 s/3/2
    10150 acked 2 CONFIGURING c1
      to 1 node m1 Configuring
    20130 tick
      list 0 4
    20140 listed 4 0 m1:CONFIGURED:c1
      to 1 node m1 Configured
      to 1 available 0
    20150 say 1 rollup c1
      to 1 ack epoch=3
    20240 tick
      list 0 5
    20250 listed 5 0 m1:CONFIGURED:c1
      to 1 reclaimInstruction id2
      to 1 node m1 Draining
      call 3 drain m1 s/3/3
    20260 acked 3 DRAINING c1
    30250 tick
      list 0 6
    30260 listed 6 0 m1:IDLE
      to 1 node m1 Idle
    640250 tick
      list 0 7
    640260 listed 7 0 m1:IDLE
      call 4 delete m1 s/3/4
    640270 acked 4 SPECULATIVE`,
  );
});

test('nothing is decided before each provider has told its machines, and then without one', () => {
  replays(
    shard(['p', 'q']),
    `
    0 tick
      list 0 1
      list 1 2
    5 open 1
    5 say 1 hello c1
      to 1 ack epoch=3
    5 say 1 rollup c1 2
      to 1 ack epoch=3
    10 listed 1 0 m1:IDLE
    1000 tick
    11000 tick
      list 0 3
    11010 listed 3 0 m1:IDLE
    11020 listed 2 1 n1:CONFIGURED:c1
      to 1 node n1 Configured
      to 1 available 1
    21020 tick
      list 0 4
      list 1 5
    21030 listed 4 0 m1:IDLE n1:IDLE
    22020 tick`,
  );
});

test('a stream speaks for one cluster, the newest for each, and only after Hello', () => {
  replays(
    shard(),
    `
    0 open 1
    0 say 1 rollup c1 2
      close 1 3 the first message is no Hello
    0 say 1 hello c1
    0 open 2
    0 say 2 hello
      close 2 3 cluster_id is empty
    0 open 3 bigfleet://cluster/c2
    0 say 3 hello c1
      close 3 7 the certificate is not of this cluster
    0 open 4 bigfleet://cluster/c1
    0 say 4 hello c1
      to 4 ack epoch=3
    0 say 4 hello c1
      to 4 ack epoch=3
    0 open 5
    0 say 5 hello c1
      warn: cluster c1 has a newer session: are there two operators?
      close 4 10 a newer session speaks for this cluster
      to 5 ack epoch=3
    0 say 4 rollup c1 9
    0 gone 4
    0 say 5 rollup c1 2
      to 5 ack epoch=3
    0 say 5 rollup c2 2
      warn: roll-up of cluster c1 refused: it is of another cluster
    0 say 5 rollup c1 lots
      warn: roll-up of cluster c1 refused: an amount is no quantity
    0 say 5 hello c2
      close 5 3 a session speaks for one cluster
    0 open 6
    30000 tick
      close 6 4 no Hello came
      list 0 1`,
  );
});

const BEGUN = `
    0 tick
      list 0 1
    0 open 1
    0 say 1 hello c1
      to 1 ack epoch=3
    0 say 1 rollup c1 2
      to 1 ack epoch=3
    10 listed 1 0 m1:IDLE
      to 1 available 1
      to 1 bootstrapRequest id1`;

test('a machine whose blob does not come, or is refused, is idle again', () => {
  replays(
    shard(),
    `${BEGUN}
    20 say 1 blob other
    30 say 1 blob id1 unknown-zone
      warn: cluster c1 has no bootstrap blob: unknown-zone
    10010 tick
      list 0 2
    10020 listed 2 0 m1:IDLE
      to 1 bootstrapRequest id2
    10030 open 2
    10030 say 2 hello c1
      warn: cluster c1 has a newer session: are there two operators?
      close 1 10 a newer session speaks for this cluster
      to 2 ack epoch=3
      to 2 bootstrapRequest id2
    40020 tick
      list 0 3
    40030 listed 3 0 m1:IDLE
      to 2 bootstrapRequest id3`,
  );
});

test('a call that is fenced is an incident, one that is refused is tried later', () => {
  replays(
    shard(),
    `${BEGUN}
    20 say 1 blob id1
      call 1 configure m1 s/3/1
    30 failed 1 9
      error: Bootstrap of machine m1: no (code 9): fenced, is there another shard of this name?
      to 1 node m1 Failed
    10010 tick
      list 0 2
    10020 listed 2 0 m1:IDLE m2:IDLE
      to 1 bootstrapRequest id2
    10030 say 1 blob id2
      call 2 configure m2 s/3/2
    10040 failed 2 8
      warn: Bootstrap of machine m2: no (code 8)
      to 1 node m2 Failed
    20020 tick
      list 0 3
    20030 listed 3 0 m1:IDLE m2:IDLE
      to 1 available 0
    80020 tick
      list 0 4
    80030 listed 4 0 m1:IDLE m2:IDLE
      to 1 node m2 Idle
      to 1 available 1
      to 1 bootstrapRequest id3`,
  );
});

test('a List older than a change says nothing of it, nor does an answer of long ago', () => {
  replays(
    shard(),
    `${BEGUN}
    20 say 1 rollup c1 2
      to 1 ack epoch=3
    110 tick
      list 0 2
    120 say 1 blob id1
      call 1 configure m1 s/3/1
    130 acked 1 CONFIGURED c1
      to 1 node m1 Configured
    140 listed 2 0 m1:IDLE
    150 acked 1 CONFIGURING c1
    160 say 1 blob id1
    10140 tick
      list 0 3
    10150 listed 3 0 m1:CONFIGURED:c1
      to 1 available 0`,
  );
});

test('a machine that goes by itself leaves its cluster step by step', () => {
  replays(
    shard(),
    `
    0 tick
      list 0 1
    0 listed 1 0 m1:CONFIGURED:c1
    0 open 1
    0 say 1 hello c1
      to 1 ack epoch=3
      to 1 node m1 Configured
    10000 tick
      list 0 2
    10010 listed 2 0 m1:SPECULATIVE
      to 1 node m1 Draining
    20010 tick
      list 0 3
    20020 listed 3 0 m1:SPECULATIVE
      to 1 node m1 Idle
    30020 tick
      list 0 4
    30030 listed 4 0`,
  );
});

test('a machine that never joins counts for nothing until it has joined', () => {
  replays(
    shard(),
    `
    0 tick
      list 0 1
    0 listed 1 0 m1:CONFIGURING:c1
    0 open 1
    0 say 1 hello c1
      to 1 ack epoch=3
      to 1 node m1 Configuring
    0 say 1 rollup c1 2
      to 1 ack epoch=3
    60000 tick
      list 0 2
    60010 listed 2 0 m1:CONFIGURING:c1
      to 1 node m1 Failed
      warn: machine m1 has not joined in time and counts no more
      to 1 available 0
    70010 tick
      list 0 3
    70020 listed 3 0 m1:CONFIGURING:c1
    80020 tick
      list 0 4
    80030 listed 4 0 m1:CONFIGURED:c1
      to 1 node m1 Configured`,
  );
});
