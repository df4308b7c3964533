import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { InstructAck_Outcome as Outcome, ReportAckSchema } from '../contract/tables/coordinator.ts';
import { SHARD_DEFAULTS, Shard } from '../engine/shard.ts';
import { Coordination } from './coordination.ts';
import { Domains } from './domains.ts';

type Instruction = NonNullable<MessageInitShape<typeof ReportAckSchema>['instructions']>[number];

function instruction(
  term: bigint,
  sequenceNumber: bigint,
  payload: NonNullable<Instruction['payload']>,
): Instruction {
  const instructionId = `${term}-${sequenceNumber}`;
  return { coordinatorTerm: term, sequenceNumber, instructionId, payload };
}

function domain(
  kind: 'assignDomain' | 'unassignDomain',
  topologyValue: string,
): NonNullable<Instruction['payload']> {
  return { case: kind, value: { topologyKey: 'rack', topologyValue } };
}

test('instructions count once, in their order, of the newest term; others are told so', () => {
  const domains = new Domains();
  const coordination = new Coordination({
    ...{ shardId: 's1', epoch: 3n, address: 'h:1', domains, term: 5n },
  });
  const { inventory } = new Shard(SHARD_DEFAULTS);
  const reported = { cycle: 7, shortfalls: [], inventory };
  const hear = (term: bigint, ...instructions: Instruction[]): boolean => {
    const sent = coordination.report(reported, 0);
    const answer = { coordinatorTerm: term, acknowledged: true, instructions };
    return coordination.acknowledged(sent, create(ReportAckSchema, answer));
  };
  const outcomes = (): (string | undefined)[] =>
    coordination.report(reported, 0).instructionAcks.map(({ outcome }) => {
      return Object.entries(Outcome).find(([, number]) => number === outcome)?.[0];
    });
  assert.equal(hear(6n, instruction(6n, 1n, domain('assignDomain', 'r1'))), true);
  assert.deepEqual(outcomes(), ['ACCEPTED']);
  assert.deepEqual([...domains.pairs()], [['rack', 'r1']]);
  // what was reported is not reported again
  assert.equal(hear(6n), false);
  assert.deepEqual(outcomes(), []);
  hear(6n, instruction(6n, 1n, domain('unassignDomain', 'r1')));
  assert.deepEqual(outcomes(), ['REJECTED_STALE']);
  hear(5n, instruction(5n, 9n, domain('unassignDomain', 'r1')));
  assert.deepEqual(outcomes(), ['REJECTED_STALE']);
  assert.equal(domains.size, 1);
  hear(
    6n,
    instruction(6n, 2n, domain('assignDomain', '')),
    instruction(6n, 3n, { case: 'crossShardDrain', value: { machineIds: ['m'] } }),
    instruction(6n, 4n, domain('unassignDomain', 'r1')),
  );
  assert.deepEqual(outcomes(), ['REJECTED_INVALID', 'REJECTED_INVALID', 'ACCEPTED']);
  assert.equal(domains.size, 0);
  assert.equal(coordination.report(reported, 0).shardEpoch, 3n);
});
