/** The store as simply as it can be said: an array of everything that ever happened. */

export interface Version {
  readonly key: string;
  /** null = deleted. */
  readonly value: string | null;
  readonly mod: number;
  readonly create: number;
  readonly version: number;
  readonly lease: number;
}

export type Change =
  | { readonly kind: 'put'; readonly key: string; readonly value: string; readonly lease: number }
  | { readonly kind: 'delete'; readonly key: string };

export class Model {
  revision = 1;
  compacted = -1;
  /** In order of revision and of execution within one. */
  readonly history: Version[] = [];
  readonly leases: Set<number> = new Set();

  /** The last version of a key at a revision, deletions included. */
  last(key: string, revision: number): Version | undefined {
    return this.history.findLast((version) => version.key === key && version.mod <= revision);
  }

  live(key: string, revision: number = this.revision): Version | undefined {
    const version = this.last(key, revision);
    return version?.value === null ? undefined : version;
  }

  /** Live versions of a range, in key order; `end` in etcd's sense. */
  range(start: string, end: string, revision: number = this.revision): Version[] {
    const keys = [...new Set(this.history.map((version) => version.key))].sort();
    return keys
      .filter((key) => inRange(key, start, end))
      .flatMap((key) => this.live(key, revision) ?? []);
  }

  apply(changes: readonly Change[]): number {
    const next = this.revision + 1;
    let hasChanged = false;
    for (const change of changes) {
      const before = this.live(change.key, next);
      if (change.kind === 'delete') {
        if (before === undefined) continue;
        const gone = { value: null, mod: next, create: 0, version: 0, lease: 0 };
        this.history.push({ key: change.key, ...gone });
      } else {
        const { key, value, lease } = change;
        const create = before?.create ?? next;
        const version = (before?.version ?? 0) + 1;
        this.history.push({ key, value, mod: next, create, version, lease });
      }
      hasChanged = true;
    }
    if (hasChanged) this.revision = next;
    return this.revision;
  }

  revoke(lease: number): number {
    this.leases.delete(lease);
    const keys = this.range('\0', '\0').filter((version) => version.lease === lease);
    return this.apply(keys.map(({ key }) => ({ kind: 'delete', key })));
  }

  /** Events of a range from a revision on. */
  events(start: string, end: string, from: number): Version[] {
    return this.history.filter(
      (version) => version.mod >= from && inRange(version.key, start, end),
    );
  }
}

export function inRange(key: string, start: string, end: string): boolean {
  if (end === '') return key === start;
  return key >= start && (end === '\0' || key < end);
}
