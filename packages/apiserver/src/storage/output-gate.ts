/**
 * Keeps answers back until what they saw is as durable as promised.
 *
 * After each request the gate looks whether storage has applied what it has not published yet. If
 * so, the connection's output of this turn waits; when the revision is published it leaves in one
 * write. When nothing is pending, which is the rule for reads, nothing waits.
 */
import type { Connection } from '@megaplane/wire/exchange';
import type { Storage } from './storage.ts';

export class OutputGate {
  readonly #storage: Storage;
  /** Connections that wait, with the revision that each waits for. */
  readonly #waiting = new Map<Connection, number>();

  constructor(storage: Storage) {
    this.#storage = storage;
    storage.onPublish(() => this.#release());
  }

  /** Called after a request was handled, with answers possibly in the connection's output. */
  guard(connection: Connection): void {
    const { appliedRevision, publishedRevision } = this.#storage;
    if (appliedRevision <= publishedRevision) return;
    if (!this.#waiting.has(connection)) connection.hold();
    this.#waiting.set(connection, appliedRevision);
  }

  #release(): void {
    const published = this.#storage.publishedRevision;
    for (const [connection, revision] of this.#waiting) {
      if (revision > published) continue;
      this.#waiting.delete(connection);
      connection.release();
    }
  }
}
