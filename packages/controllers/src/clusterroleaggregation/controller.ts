/**
 * ClusterRoles with an aggregation rule get the rules of those that it selects, by their names. The
 * rules are applied: where nothing is selected they are given up, which leaves those that somebody
 * else wrote.
 */
import { CONTENT, type Client } from '@megaplane/client/client';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { equals, listAt, objectAt } from '@megaplane/machinery/json';
import { labelSelectorOf, matchesLabels } from '@megaplane/machinery/selectors';
import type { ControllerContext } from '../framework/controller-context.ts';
import { Expectations } from '../framework/expectations.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import { revisionOf } from '../framework/pod-control.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

/** One after the other: see `#work`. */
const WORKERS = 1;
/** The event of a write brings all roles back; without it they come after this. */
const WRITE_LOOK_MS = 300_000;
const MANAGER = 'clusterrole-aggregation-controller';
const PATH = '/apis/rbac.authorization.k8s.io/v1/clusterroles';

export class ClusterRoleController {
  readonly #client: Client;
  readonly #workers: Workers<string>;
  readonly #roles: ObjectCache;
  /** Names of roles that aggregate others. */
  readonly #aggregating: Set<string> = new Set();
  /** Our last write that is not in view yet. */
  readonly #writes = new Expectations();

  constructor({ client, informers, onError }: ControllerContext) {
    this.#client = client;
    this.#workers = new Workers(
      client.timers,
      WORKERS,
      (key) => this.#work(key),
      onError,
      informers.queues.queue('ClusterRoleAggregator'),
    );
    this.#roles = new ObjectCache(
      informers,
      PATH,
      (key, after) => {
        if (after === undefined || objectAt(after, 'aggregationRule') === undefined) {
          this.#aggregating.delete(key);
        } else {
          this.#aggregating.add(key);
        }
        this.#addAll();
      },
      () => this.#addAll(),
    );
  }

  /** Any role may be selected by any rule, now or before. */
  #addAll(): void {
    for (const name of this.#aggregating) this.#workers.add(name);
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  async #work(name: string): Promise<WorkResult> {
    await Promise.resolve();
    // Two that select each other and are written by what both were before would swap the order of
    // their rules for ever.
    const { revision } = this.#roles.informer;
    if (!this.#writes.isMet('', revision, () => true, this.#client.timers.wallMs())) {
      return { againMs: WRITE_LOOK_MS };
    }
    const role = this.#role(name);
    const rule = objectAt(role, 'aggregationRule');
    if (role === undefined || rule === undefined) return 'done';
    const rules: JsonValue[] = [];
    for (const selector of listAt(rule, 'clusterRoleSelectors')) {
      const parsed = labelSelectorOf(selector);
      if ('error' in parsed) return 'done';
      const selected = [...this.#roles.keys()].toSorted().filter((other) => {
        const labels = objectAt(this.#role(other), 'metadata', 'labels') ?? {};
        return other !== name && matchesLabels(parsed.value, labels);
      });
      for (const other of selected) {
        for (const one of listAt(this.#role(other), 'rules')) {
          if (!rules.some((known) => equals(known, one))) rules.push(one);
        }
      }
    }
    if (equals([...listAt(role, 'rules')], rules)) return 'done';
    return this.#apply(name, rules);
  }

  #role(name: string): JsonObject | undefined {
    return this.#roles.get(name);
  }

  async #apply(name: string, rules: JsonValue[]): Promise<WorkResult> {
    const answer = await this.#client.request({
      method: 'PATCH',
      path: `${PATH}/${name}?fieldManager=${MANAGER}&force=true`,
      contentType: CONTENT.applyPatch,
      body: {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name },
        ...(rules.length === 0 ? {} : { rules }),
      },
    });
    if (answer.ok) {
      this.#writes.expectRevision('', revisionOf(answer.object), this.#client.timers.wallMs());
    }
    return answer.ok || answer.code === 404 ? 'done' : 'retry';
  }
}
