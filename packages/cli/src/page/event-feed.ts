/** The newest events of the cluster, while somebody looks. */
import { unawaited } from '@megaplane/base/deferred';
import type { Client } from '@megaplane/client/client';
import { withQuery } from '@megaplane/client/list-query';
import { EVENT_DELETED } from '@megaplane/client/watch-frames';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import type { EventLine, EventLines } from '@megaplane/dashboard/protocol';
import { WatchFeed } from './watch-feed.ts';

const PATH = '/api/v1/events';
export const EVENT_LINES_MAX = 50;
/** So many are read at the beginning; of more than these the newest come by the watch alone. */
const FIRST_LIST = 500;
const NOTE_CHARS_MAX = 300;
const AGAIN_MS = 5000;

/** Runs while it is started; `onLines` is told at most twice a second. */
export class EventFeed {
  readonly #client: Client;
  readonly #onLines: (lines: EventLines) => void;
  #feed: WatchFeed | null = null;
  #lines: readonly EventLine[] = [];
  #isSampled = false;
  #isStarted = false;
  #begun = 0;

  constructor(client: Client, onLines: (lines: EventLines) => void) {
    this.#client = client;
    this.#onLines = onLines;
  }

  get lines(): EventLines {
    return { lines: this.#lines, isSampled: this.#isSampled };
  }

  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    unawaited(this.#begin(FIRST_LIST));
  }

  stop(): void {
    this.#isStarted = false;
    this.#begun++;
    this.#feed?.stop();
    this.#feed = null;
  }

  /** Reads so many, then watches; what began later takes its place. */
  async #begin(count: number): Promise<void> {
    const begun = ++this.#begun;
    const path = withQuery(PATH, { limit: `${count}` });
    const answer = await this.#client.request({ method: 'GET', path });
    if (begun !== this.#begun) return;
    if (!answer.ok) {
      this.#client.timers.after(AGAIN_MS, () => {
        if (begun === this.#begun) unawaited(this.#begin(count));
      });
      return;
    }
    const { items, metadata } = answer.object;
    const isWhole = isObject(metadata) && (metadata['continue'] ?? '') === '';
    if (Array.isArray(items)) this.#add(items.filter(isObject).map(lineOf));
    if (!isWhole) this.#isSampled = true;
    this.#onLines(this.lines);
    this.#feed?.stop();
    this.#feed = this.#makeFeed();
    this.#feed.start(isObject(metadata) ? text(metadata['resourceVersion']) : '');
  }

  #makeFeed(): WatchFeed {
    return new WatchFeed({
      client: this.#client,
      path: PATH,
      query: {},
      accept: 'application/json;managedfields=omit',
      onEvent: (type, bytes) => {
        if (type === EVENT_DELETED) return;
        const object = parseJson(bytes.toString('utf8'));
        if (isObject(object)) this.#add([lineOf(object)]);
      },
      onRound: () => this.#onLines(this.lines),
      onGap: () => {
        // in a storm of events only those that come next are read
        this.#isSampled = true;
        unawaited(this.#begin(1));
      },
    });
  }

  #add(lines: readonly EventLine[]): void {
    const known = new Map([...this.#lines, ...lines].map((line) => [line.uid, line]));
    this.#lines = [...known.values()]
      .toSorted((a, b) => b.timeMs - a.timeMs)
      .slice(0, EVENT_LINES_MAX);
  }
}

function lineOf(event: JsonObject): EventLine {
  const series = isObject(event['series']) ? event['series'] : {};
  const metadata = isObject(event['metadata']) ? event['metadata'] : {};
  const about = isObject(event['involvedObject']) ? event['involvedObject'] : {};
  const times = [
    series['lastObservedTime'],
    event['lastTimestamp'],
    event['eventTime'],
    metadata['creationTimestamp'],
  ];
  const time = times.map(text).find((one) => one !== '') ?? '';
  const namespace = text(about['namespace']);
  const name = `${namespace === '' ? '' : `${namespace}/`}${text(about['name'])}`;
  return {
    uid: text(metadata['uid']),
    timeMs: Date.parse(time) || 0,
    type: text(event['type']),
    reason: text(event['reason']),
    object: `${text(about['kind'])} ${name}`,
    note: text(event['message']).slice(0, NOTE_CHARS_MAX),
  };
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}
