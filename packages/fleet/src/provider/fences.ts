/**
 * Who may still change a machine: for each shard and machine the newest token that was accepted,
 * by epoch and then by sequence. By shard alone, calls for two machines that overtake each other
 * would fence one of them.
 */
export interface Token {
  readonly shardId: string;
  readonly shardEpoch: bigint;
  readonly sequenceNumber: bigint;
}

interface Mark {
  epoch: bigint;
  sequence: bigint;
}

/** Shards that one machine is remembered for; more than that is no fleet. */
const SHARDS_MAX = 64;

export class Fences {
  readonly #marks = new Map<string, Map<string, Mark>>();

  /**
   * Judges a token, and makes it the newest if it passes. Machines that are not `known` keep no
   * marks. A token without anything in it is of nobody, and passes.
   */
  admit(
    machineId: string,
    { shardId, shardEpoch, sequenceNumber }: Token,
    known: ReadonlyMap<string, unknown>,
  ): 'passes' | 'stale' | 'malformed' {
    if (shardId === '' && shardEpoch === 0n && sequenceNumber === 0n) return 'passes';
    if (shardEpoch < 0n || sequenceNumber < 0n) return 'malformed';
    if (!known.has(machineId)) return 'passes';
    const marks = this.#marks.get(machineId) ?? new Map<string, Mark>();
    this.#marks.set(machineId, marks);
    const mark = marks.get(shardId);
    if (mark === undefined) {
      if (marks.size >= SHARDS_MAX) return 'stale';
      marks.set(shardId, { epoch: shardEpoch, sequence: sequenceNumber });
      return 'passes';
    }
    const isNewer =
      shardEpoch > mark.epoch || (shardEpoch === mark.epoch && sequenceNumber > mark.sequence);
    if (!isNewer) return 'stale';
    mark.epoch = shardEpoch;
    mark.sequence = sequenceNumber;
    return 'passes';
  }
}
