/** One table that somebody looks at: a page of a list as the server prints it, and its changes. */
import { unawaited } from '@megaplane/base/deferred';
import type { Client } from '@megaplane/client/client';
import { withQuery } from '@megaplane/client/list-query';
import { EVENT_DELETED } from '@megaplane/client/watch-frames';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import type { Cells, TableChange, TableRow, TableRows } from '@megaplane/dashboard/protocol';
import { WatchFeed } from './watch-feed.ts';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
/** Rows of one page. */
export const PAGE_ROWS_MAX = 500;
/** Changes that are told at once; where there are more, the page is read anew. */
const CHANGES_MAX = 500;

/** What is asked for. */
export interface TableQuery {
  readonly path: string;
  readonly labelSelector: string;
  readonly fieldSelector: string;
  readonly next: string;
  readonly limit: number;
}

export interface TableListener {
  readonly onChange: (change: TableChange) => void;
  /** The page must be read anew. */
  readonly onStale: (path: string) => void;
}

/** Lists once, then watches the whole collection for what changes in it. */
export class TableFeed {
  readonly #client: Client;
  readonly #query: TableQuery;
  readonly #listener: TableListener;
  readonly #feed: WatchFeed;
  readonly #changed: Map<string, TableRow> = new Map();
  readonly #removed: Set<string> = new Set();

  constructor(client: Client, query: TableQuery, listener: TableListener) {
    this.#client = client;
    this.#query = query;
    this.#listener = listener;
    this.#feed = new WatchFeed({
      client,
      path: query.path,
      query: selectors(query),
      accept: TABLE,
      onEvent: (type, object) => this.#take(type, object),
      onRound: () => this.#tell(),
      onGap: () => listener.onStale(query.path),
    });
  }

  /** Resolves with the page, or a text for people. From then on changes are told. */
  async open(): Promise<TableRows | { readonly error: string; readonly code: number }> {
    const { path, next, limit } = this.#query;
    const query = { ...selectors(this.#query), limit: `${limit}`, continue: next };
    const answer = await this.#client.request({
      method: 'GET',
      path: withQuery(path, query),
      accept: TABLE,
    });
    if (!answer.ok) {
      return { error: answer.status.message ?? `HTTP ${answer.code}`, code: answer.code };
    }
    const { metadata } = answer.object;
    const meta = isObject(metadata) ? metadata : {};
    unawaited(Promise.resolve().then(() => this.#feed.start(text(meta['resourceVersion']))));
    return {
      path,
      columns: columnsOf(answer.object),
      rows: rowsOf(answer.object),
      next: text(meta['continue']),
      more: typeof meta['remainingItemCount'] === 'number' ? meta['remainingItemCount'] : 0,
    };
  }

  close(): void {
    this.#feed.stop();
  }

  #take(type: number, bytes: Buffer): void {
    const object = parseJson(bytes.toString('utf8'));
    if (!isObject(object)) return;
    for (const row of rowsOf(object)) {
      if (type === EVENT_DELETED) {
        this.#changed.delete(row.uid);
        this.#removed.add(row.uid);
      } else {
        this.#removed.delete(row.uid);
        this.#changed.set(row.uid, row);
      }
    }
  }

  #tell(): void {
    const { path } = this.#query;
    const isMuch = this.#changed.size + this.#removed.size > CHANGES_MAX;
    if (isMuch) this.#listener.onStale(path);
    else {
      const changed = [...this.#changed.values()];
      this.#listener.onChange({ path, changed, removed: [...this.#removed] });
    }
    this.#changed.clear();
    this.#removed.clear();
  }
}

function selectors(query: TableQuery): { labelSelector: string; fieldSelector: string } {
  return { labelSelector: query.labelSelector, fieldSelector: query.fieldSelector };
}

function columnsOf(table: JsonObject): { name: string; isWide: boolean }[] {
  const found = table['columnDefinitions'];
  return (Array.isArray(found) ? found : []).filter(isObject).map((column) => ({
    name: text(column['name']),
    isWide: Number(column['priority'] ?? 0) > 0,
  }));
}

function rowsOf(table: JsonObject): TableRow[] {
  const found = table['rows'];
  return (Array.isArray(found) ? found : []).filter(isObject).map((row) => {
    const partial = isObject(row['object']) ? row['object'] : {};
    const metadata = isObject(partial['metadata']) ? partial['metadata'] : {};
    const cells = Array.isArray(row['cells']) ? row['cells'] : [];
    return {
      namespace: text(metadata['namespace']),
      name: text(metadata['name']),
      uid: text(metadata['uid']),
      cells: cells.map(cellOf) satisfies Cells,
    };
  });
}

const CELL_CHARS_MAX = 500;

function cellOf(value: JsonValue): string | number | null {
  if (value === null || typeof value === 'number') return value;
  const shown = typeof value === 'string' ? value : JSON.stringify(value);
  return shown.length > CELL_CHARS_MAX ? `${shown.slice(0, CELL_CHARS_MAX)}…` : shown;
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}
