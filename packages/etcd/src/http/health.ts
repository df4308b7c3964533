/**
 * `/health`, `/livez` and `/readyz` as etcd 3.6 answers them: the first as JSON with a reason, the
 * others as a list of named checks, of which only the failed ones are told unless asked.
 */
import type { Exchange } from '@megaplane/wire/exchange';
import { FAILURE } from '@megaplane/store/contract';
import type { Store } from '@megaplane/store/store';
import type { Exposition } from './exposition.ts';
import type { FieldList } from '@megaplane/wire/fields';

const TEXT = 'text/plain; charset=utf-8';
const NO_SNIFF = ['x-content-type-options', 'nosniff'];
const NO_LEADER = 'etcdserver: no leader';
const LOG_FAILED = 'the log cannot be written';

/** Alarms that are raised, by name: NOSPACE, CORRUPT. */
export type RaisedAlarms = () => readonly string[];

interface Check {
  readonly name: string;
  /** Null when all is well. */
  readonly run: () => string | null;
}

type CheckKind = 'livez' | 'readyz';

export class Health {
  readonly #store: Store;
  readonly #alarms: RaisedAlarms;
  readonly #hasLeader: () => boolean;
  readonly #checks: Readonly<Record<CheckKind, readonly Check[]>>;
  /** Outcomes so far, by `kind/name`. */
  readonly #outcomes: Map<string, { last: boolean; passed: number; failed: number }> = new Map();
  successes = 0;
  failures = 0;

  /** `hasLeader`: of a group of several. */
  constructor(store: Store, alarms: RaisedAlarms, hasLeader: () => boolean = () => true) {
    this.#store = store;
    this.#hasLeader = hasLeader;
    this.#alarms = alarms;
    const serializable = { name: 'serializable_read', run: () => null };
    const linearizable = { name: 'linearizable_read', run: () => this.#logFailure() };
    const corruption = {
      name: 'data_corruption',
      run: () => (alarms().includes('CORRUPT') ? 'alarm activated: CORRUPT' : null),
    };
    const learner = { name: 'non_learner', run: () => null };
    this.#checks = {
      livez: [serializable],
      readyz: [corruption, serializable, linearizable, learner],
    };
  }

  /** A read that must see everything acknowledged is not answered once the log has failed. */
  #logFailure(): string | null {
    if (!this.#hasLeader()) return NO_LEADER;
    return this.#store.admit(0) === FAILURE.logFailed ? LOG_FAILED : null;
  }

  /** True when `path` (without query) is one of ours and was answered, with `fields`. */
  answer(exchange: Exchange, path: string, query: URLSearchParams, fields: FieldList): boolean {
    if (path === '/health') return this.#health(exchange, query, fields);
    const [, kind = '', name] = path.split('/');
    if (kind !== 'livez' && kind !== 'readyz') return false;
    const checks = this.#checks[kind];
    if (name === undefined) this.#run(exchange, kind, without(checks, query), query, fields);
    else {
      const one = checks.find((check) => check.name === name);
      if (one === undefined || path.split('/').length > 3) return false;
      this.#run(exchange, kind, [one], query, fields);
    }
    return true;
  }

  #health(exchange: Exchange, query: URLSearchParams, fields: FieldList): true {
    const excluded = query.getAll('exclude');
    const alarm = this.#alarms().find((name) => !excluded.includes(name));
    const isSerializable = query.get('serializable') === 'true';
    const failure = isSerializable ? null : this.#logFailure();
    const range = failure === null ? '' : `RANGE ERROR:${failure}`;
    const reason = alarm === undefined ? range : `ALARM ${alarm}`;
    const isWell = reason === '';
    if (isWell) this.successes++;
    else this.failures++;
    const body = JSON.stringify({ health: String(isWell), reason });
    if (isWell) exchange.respond(200, TEXT, body, fields);
    else exchange.respond(503, TEXT, `${body}\n`, [...NO_SNIFF, ...fields]);
    return true;
  }

  #run(
    exchange: Exchange,
    kind: CheckKind,
    checks: readonly Check[],
    query: URLSearchParams,
    fields: FieldList,
  ): void {
    let hasFailed = false;
    const rows = checks.map(({ name, run }) => {
      const failure = run();
      this.#note(`${kind}/${name}`, failure === null);
      if (failure === null) return `[+]${name} ok\n`;
      hasFailed = true;
      return `[-]${name} failed: ${failure}\n`;
    });
    const headers = [...NO_SNIFF, ...fields];
    if (hasFailed) {
      exchange.respond(503, TEXT, `${rows.join('')}\n`, headers);
      return;
    }
    const shown = query.has('verbose') ? rows.join('') : '';
    exchange.respond(200, TEXT, `${shown}ok\n`, headers);
  }

  #note(id: string, isWell: boolean): void {
    const found = this.#outcomes.get(id) ?? { last: isWell, passed: 0, failed: 0 };
    found.last = isWell;
    if (isWell) found.passed++;
    else found.failed++;
    this.#outcomes.set(id, found);
  }

  expose(out: Exposition): void {
    out.counter('etcd_server_health_success', 'Successful health checks.', this.successes);
    out.counter('etcd_server_health_failures', 'Failed health checks.', this.failures);
    const all = [...this.#outcomes].map(([id, outcome]) => {
      const [type = '', name = ''] = id.split('/');
      return { type, name, outcome };
    });
    for (const { type, name, outcome } of all) {
      const value = outcome.last ? 1 : 0;
      out.gauge('etcd_server_healthcheck', 'Result of the last check.', value, { type, name });
    }
    for (const { type, name, outcome } of all) {
      const total = 'etcd_server_healthchecks_total';
      const labels = { type, name };
      out.counter(total, 'Checks run.', outcome.passed, { ...labels, status: 'success' });
      out.counter(total, 'Checks run.', outcome.failed, { ...labels, status: 'error' });
    }
  }
}

function without(checks: readonly Check[], query: URLSearchParams): readonly Check[] {
  const excluded = query.getAll('exclude');
  return checks.filter(({ name }) => !excluded.includes(name));
}
