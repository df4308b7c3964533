// shell: takes turns with other API servers in compacting etcd
/**
 * As kube-apiserver does it: whoever counts the version of `compact_rev_key` up has the turn,
 * writes
 * down the revision of now for the next turn, and compacts to the one of the turn before. So
 * history
 * of at least one interval is kept, however many servers there are, and theirs of upstream's make
 * count as well.
 */
import { everyMs } from '@megaplane/base/deferred';
import type { EtcdClient } from '@megaplane/etcd/client/client';

/** Who passes turns and compactions on. */
type Turns = Pick<EtcdClient, 'takeTurn' | 'compact'>;

const KEY = Buffer.from('compact_rev_key');

export class Compactor {
  readonly #client: Turns;
  readonly #log: (message: string) => void;
  #timer: NodeJS.Timeout | null = null;
  #turn = 0;
  #revision = 0;

  constructor(client: Turns, log: (message: string) => void) {
    this.#client = client;
    this.#log = log;
  }

  /** Takes a turn every `intervalMs`; 0: never. */
  start(intervalMs: number): void {
    if (intervalMs === 0) return;
    this.#timer = everyMs(intervalMs, () => void this.take());
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  /** One turn. True where it was ours and history was compacted. */
  async take(): Promise<boolean> {
    const result = await this.#client.takeTurn(KEY, this.#turn, Buffer.from(`${this.#revision}`));
    if (!result.ok) {
      this.#log(`etcd was not compacted: ${result.message}`);
      return false;
    }
    const { succeeded, found, revision } = result.value;
    const before = this.#revision;
    this.#revision = revision;
    if (!succeeded) {
      this.#turn = found?.version ?? 0;
      return false;
    }
    this.#turn++;
    if (before === 0) return false;
    const compacted = await this.#client.compact(before);
    if (!compacted.ok) this.#log(`etcd was not compacted: ${compacted.message}`);
    return compacted.ok;
  }
}
