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
/** Machines that nobody knows are remembered, too, those asked for last. */
const UNKNOWN_MAX = 10_000;

export class Fences {
  readonly #marks = new Map<string, Map<string, Mark>>();
  /** Marks of machines that are not there: a caller may ask for any. */
  readonly #unknown = new Map<string, Map<string, Mark>>();
  readonly #isThere: (machineId: string) => boolean;

  constructor(isThere: (machineId: string) => boolean = () => true) {
    this.#isThere = isThere;
  }

  /**
   * Judges a token, and makes it the newest if it passes. A token without anything in it is of
   * nobody, and passes.
   */
  admit(
    machineId: string,
    { shardId, shardEpoch, sequenceNumber }: Token,
  ): 'passes' | 'stale' | 'malformed' {
    if (shardId === '' && shardEpoch === 0n && sequenceNumber === 0n) return 'passes';
    if (shardEpoch < 0n || sequenceNumber < 0n) return 'malformed';
    const marks = this.#marksOf(machineId);
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

  #marksOf(machineId: string): Map<string, Mark> {
    const isThere = this.#isThere(machineId);
    const all = isThere ? this.#marks : this.#unknown;
    const marks = all.get(machineId) ?? new Map<string, Mark>();
    // those asked for last stand last
    if (!isThere) all.delete(machineId);
    all.set(machineId, marks);
    if (!isThere && all.size > UNKNOWN_MAX) {
      for (const oldest of all.keys()) {
        all.delete(oldest);
        break;
      }
    }
    return marks;
  }

  /** Tokens that passed last, one for each shard and machine that is there. */
  *tokens(): Generator<Token & { readonly machineId: string }> {
    for (const [machineId, marks] of this.#marks) {
      for (const [shardId, { epoch, sequence }] of marks) {
        yield { machineId, shardId, shardEpoch: epoch, sequenceNumber: sequence };
      }
    }
  }
}
