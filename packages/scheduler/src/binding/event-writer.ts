/**
 * Events about pods, as `events.k8s.io/v1` has them: what happened, what the scheduler was doing,
 * and how often. What happens again to the same version of a pod within six minutes is one Event
 * with a series, whatever is noted: as upstream, the first note stays.
 */
import { CONTENT, type Client } from '@megaplane/client/client';
import { Lru } from '@megaplane/client/lru';
import type { JsonObject } from '@megaplane/machinery/json-value';

export interface Subject {
  readonly kind: string;
  readonly apiVersion: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
}

export interface EventText {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  /** What the scheduler was doing. */
  readonly action: string;
  readonly note: string;
}

export interface EventWriterOptions {
  readonly client: Client;
  readonly host: string;
  /** Events posted per second, over all subjects; a million pods must not be a million events. */
  readonly eventsPerSecondMax: number;
}

/** Seconds' worth of events that may go out at once. */
const BURST_SECONDS = 10;
/** Longest note of an event; longer ones are cut. */
const NOTE_CHARACTERS_MAX = 1024;
const CUT_MARK = ' ...';
/** An event that was not repeated for so long is a new one. */
const SERIES_MS = 360_000;
/** Events that may still be repeated; of the others one more is a new one. */
const SERIES_MAX = 4096;

interface Series {
  readonly path: string;
  count: number;
  lastMs: number;
}

export class EventWriter {
  /** Over the rate, and not posted. */
  dropped = 0;
  readonly #options: EventWriterOptions;
  readonly #series = new Lru<Series>(SERIES_MAX);
  #tokens: number;
  #filledMs = 0;
  #serial = 0;

  constructor(options: EventWriterOptions) {
    this.#options = options;
    this.#tokens = options.eventsPerSecondMax * BURST_SECONDS;
  }

  /** Whether the next event would be lost; counts it as such, so that nobody need make it. */
  drops(): boolean {
    if (this.#fill() >= 1) return false;
    this.dropped++;
    return true;
  }

  /** Never blocks and never fails: what cannot be posted is lost. */
  write(controller: string, subject: Subject, event: EventText, related?: Subject): void {
    if (this.drops()) return;
    this.#tokens--;
    const { client } = this.#options;
    const nowMs = client.timers.nowMs();
    const { namespace, name } = subject;
    const what = [controller, event.type, event.reason, event.action];
    const key = [...what, ...identityOf(subject), ...identityOf(related)].join(' ');
    const known = this.#series.get(key);
    if (known !== undefined && nowMs - known.lastMs < SERIES_MS) {
      return this.#repeat(known, nowMs);
    }
    const space = namespace === '' ? 'default' : namespace;
    const collection = `/apis/events.k8s.io/v1/namespaces/${space}/events`;
    const stamp = Math.floor(client.timers.wallMs()).toString(16);
    const suffix = `${stamp}.${(this.#serial++).toString(16)}`;
    const metadata = { name: `${name}.${suffix}`, namespace: space };
    this.#series.set(key, { path: `${collection}/${metadata.name}`, count: 1, lastMs: nowMs });
    const body = JSON.stringify(this.#eventOf(controller, subject, event, related, metadata));
    client.send('POST', collection, CONTENT.json, body, () => {});
  }

  #eventOf(
    controller: string,
    regarding: Subject,
    { type, reason, action, note }: EventText,
    related: Subject | undefined,
    metadata: JsonObject,
  ): JsonObject {
    const { client, host } = this.#options;
    return {
      kind: 'Event',
      apiVersion: 'events.k8s.io/v1',
      metadata,
      eventTime: microTime(client.timers.wallMs()),
      reportingController: controller,
      reportingInstance: `${controller}-${host}`,
      action,
      reason,
      regarding: { ...regarding },
      ...(related === undefined ? {} : { related: { ...related } }),
      note: noteOf(note),
      type,
    };
  }

  /** The count is told when it doubles: a pod that fails for a week is a dozen requests. */
  #repeat(series: Series, nowMs: number): void {
    series.count++;
    series.lastMs = nowMs;
    if ((series.count & (series.count - 1)) !== 0) return;
    const { client } = this.#options;
    const told = {
      count: series.count,
      lastObservedTime: microTime(this.#options.client.timers.wallMs()),
    };
    const body = JSON.stringify({ series: told });
    client.send('PATCH', series.path, CONTENT.mergePatch, body, () => {});
  }

  /** What may go out by now. */
  #fill(): number {
    const { client, eventsPerSecondMax } = this.#options;
    const nowMs = client.timers.nowMs();
    const passed = Math.max(0, nowMs - this.#filledMs) / 1000;
    this.#filledMs = nowMs;
    const max = eventsPerSecondMax * BURST_SECONDS;
    this.#tokens = Math.min(max, this.#tokens + passed * eventsPerSecondMax);
    return this.#tokens;
  }
}

/** Another version of an object is another subject, as upstream tells events apart. */
function identityOf(subject: Subject | undefined): readonly string[] {
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = subject ?? {};
  return [namespace, name, uid, resourceVersion];
}

/** Six digits of a second, as the API server wants them. */
function microTime(nowMs: number): string {
  return new Date(nowMs).toISOString().replace('Z', '000Z');
}

function noteOf(message: string): string {
  if (message.length <= NOTE_CHARACTERS_MAX) return message;
  return message.slice(0, NOTE_CHARACTERS_MAX - CUT_MARK.length) + CUT_MARK;
}
