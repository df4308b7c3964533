// shell: gives the loop to others between the pieces of a page
/** The pages of the controllers: metrics, health, what they were told, and the graph of owners. */
import { turnOver } from '@megaplane/base/deferred';
import { HealthCounts } from '@megaplane/client/health-counts';
import { healthPage, type HealthChecks } from '@megaplane/client/health-pages';
import type { Page, PageRequest } from '@megaplane/client/http-endpoint';
import { processMetrics } from '@megaplane/client/process-metrics';
import { flagzPage, statuszPage, type ProcessFacts } from '@megaplane/client/zpages';

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const GRAPH = '/debug/controllers/garbage-collector-controller/graph';
/** Pieces of a graph that are sent together. */
const GRAPH_PIECES = 256;
/** As kube-controller-manager tells of them. */
const PATHS: readonly string[] = ['/configz', '/flagz', '/healthz', '/metrics'];

export interface ManagerPagesOptions {
  readonly flags: ReadonlyMap<string, string>;
  readonly startedMs: number;
  /** Of the language's runtime. */
  readonly runtime: string;
  readonly nowMs: () => number;
  readonly metrics: () => string;
  readonly configz: () => string;
  /** Controllers that are at work; none before this program leads. */
  readonly atWork: () => readonly string[];
  readonly isElected: boolean;
  /** The graph of owners, whole or around some uids; undefined where nobody collects. */
  readonly graph: (uids: readonly string[]) => Generator<string> | undefined;
}

export class ManagerPages {
  readonly #options: ManagerPagesOptions;
  readonly #facts: ProcessFacts;
  readonly #counts = new HealthCounts();

  constructor(options: ManagerPagesOptions) {
    this.#options = options;
    const { flags, startedMs, runtime } = options;
    this.#facts = { component: 'kube-controller-manager', flags, startedMs, runtime, paths: PATHS };
  }

  pageAt({ path, query, accept }: PageRequest): Page | null {
    const { metrics, configz, nowMs } = this.#options;
    switch (path) {
      case '/metrics':
        return { contentType: METRICS_TYPE, text: metrics() + processMetrics() };
      case '/metrics/slis':
        return {
          contentType: METRICS_TYPE,
          text: this.#counts.text(this.#facts.startedMs / 1000),
        };
      case '/configz':
        return { contentType: 'application/json', text: configz() };
      case '/statusz':
        return statuszPage(this.#facts, accept, nowMs());
      case '/flagz':
        return flagzPage(this.#facts, accept);
      case GRAPH:
        return this.#graphPage(query.getAll('uid'));
      default:
        return healthPage(path, query, this.#checks(), this.#counts);
    }
  }

  /** One for each controller; a controller that cannot go on ends the program. */
  #checks(): HealthChecks {
    const { isElected, atWork } = this.#options;
    const names = [...(isElected ? ['leaderElection'] : []), ...atWork()];
    const healthz = names.map((name) => ({ name, problem: () => '' }));
    const ping = [{ name: 'ping', problem: () => '' }];
    return { healthz: healthz.length === 0 ? ping : healthz, livez: ping, readyz: ping };
  }

  #graphPage(uids: readonly string[]): Page | null {
    const pieces = this.#options.graph(uids);
    if (pieces === undefined) return null;
    return { contentType: 'text/vnd.graphviz', text: '', pieces: inTurns(pieces) };
  }
}

/** Leaves the loop to others between pieces. */
async function* inTurns(pieces: Iterable<string>): AsyncGenerator<string> {
  let text = '';
  let count = 0;
  for (const piece of pieces) {
    text += piece;
    if (++count % GRAPH_PIECES !== 0) continue;
    yield text;
    text = '';
    await turnOver();
  }
  yield text;
}
