// shell: the stream to the server, and the browser's frames
/**
 * What is known of the cluster now. The stream fills it; views are drawn anew at most once a frame,
 * and not at all while nobody sees the page, so that a slow browser leaves out frames.
 */
import { afterMs, guarded, unawaited } from '@megaplane/base/deferred';
import { History } from '../model/history.ts';
import { VIEWS } from '../model/protocol.ts';
import type { EventLines, Hello, Sample, TableChange, View, ViewData } from '../model/protocol.ts';
import { EventReader } from './event-stream.ts';
import type { StreamEvent } from './event-stream.ts';
import { ask, TOKEN_GONE } from './requests.ts';

const AGAIN_MS_MIN = 1000;
const AGAIN_MS_MAX = 8000;
/** A stream that says nothing for so long is dead: the server speaks each quarter of a minute. */
const SILENCE_MS_MAX = 40_000;

export type Link =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  | { readonly kind: 'lost'; readonly why: string }
  | { readonly kind: 'refused' };

/** Where the page is: a view, and what it shows there. */
export interface Place {
  readonly view: View;
  readonly query: URLSearchParams;
}

export class Live {
  link: Link = { kind: 'connecting' };
  hello: Hello | null = null;
  history: History = new History();
  sample: Sample | null = null;
  view: ViewData | null = null;
  events: EventLines = { lines: [], isSampled: false };
  place: Place = placeOf(location.hash);
  /** Told of changes in the table that is open; true for one that must be read anew. */
  onTable: (change: TableChange | null) => void = () => {};
  readonly #draw: () => void;
  #isDrawing = false;
  #againMs = AGAIN_MS_MIN;
  #silence: AbortController = new AbortController();
  #silenceTimer: ReturnType<typeof afterMs> | null = null;

  constructor(draw: () => void) {
    this.#draw = draw;
    window.addEventListener(
      'hashchange',
      guarded(() => this.#moved()),
    );
    document.addEventListener(
      'visibilitychange',
      guarded(() => this.changed()),
    );
  }

  start(): void {
    unawaited(this.#run());
  }

  /** Something is to be drawn in the next frame. */
  changed(): void {
    if (this.#isDrawing || document.hidden) return;
    this.#isDrawing = true;
    requestAnimationFrame(
      guarded(() => {
        this.#isDrawing = false;
        this.#draw();
      }),
    );
  }

  go(view: View, query: Readonly<Record<string, string>> = {}): void {
    const words = new URLSearchParams(query).toString();
    location.hash = `/${view}${words === '' ? '' : `?${words}`}`;
  }

  #moved(): void {
    const before = this.place.view;
    this.place = placeOf(location.hash);
    if (this.place.view !== before) {
      this.view = null;
      this.tellView();
    }
    this.changed();
  }

  tellView(): void {
    if (this.hello === null || this.link.kind !== 'live') return;
    const { view } = this.place;
    const asked = ask(`api/view?session=${this.hello.session}`, 'POST', { view });
    // a stream that ends meanwhile is begun again, and tells it then
    unawaited(asked.catch(() => null));
  }

  async #run(): Promise<void> {
    for (;;) {
      try {
        await this.#read();
        this.link = { kind: 'lost', why: 'the server ended the stream' };
      } catch (error) {
        const why = (error as Error).message;
        if (why === TOKEN_GONE) {
          this.link = { kind: 'refused' };
          this.changed();
          return;
        }
        this.link = { kind: 'lost', why };
      }
      this.changed();
      await new Promise<void>((resolve) => afterMs(this.#againMs, resolve));
      this.#againMs = Math.min(AGAIN_MS_MAX, this.#againMs * 2);
    }
  }

  async #read(): Promise<void> {
    this.#silence = new AbortController();
    const response = await ask('api/stream', 'GET', undefined, this.#silence.signal);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    const events = new EventReader();
    for (;;) {
      this.#listen();
      const piece = await reader?.read();
      if (piece === undefined || piece.done) return;
      for (const event of events.push(piece.value)) this.#take(event);
    }
  }

  #listen(): void {
    if (this.#silenceTimer !== null) clearTimeout(this.#silenceTimer);
    this.#silenceTimer = afterMs(SILENCE_MS_MAX, () => this.#silence.abort());
  }

  #take({ event, data }: StreamEvent): void {
    const told: unknown = JSON.parse(data);
    switch (event) {
      case 'hello':
        this.hello = told as Hello;
        this.history = History.from(this.hello.history);
        this.link = { kind: 'live' };
        this.#againMs = AGAIN_MS_MIN;
        this.tellView();
        this.onTable(null);
        break;
      case 'sample':
        this.sample = told as Sample;
        this.history.add(this.sample.timeMs, new Map(Object.entries(this.sample.values)));
        break;
      case 'view':
        if ((told as ViewData).view === this.place.view) this.view = told as ViewData;
        break;
      case 'events':
        this.events = told as EventLines;
        break;
      case 'table':
        this.onTable(told as TableChange);
        break;
      case 'stale':
        this.onTable(null);
        break;
      default:
    }
    this.changed();
  }
}

function placeOf(hash: string): Place {
  const [word = '', query = ''] = hash.replace(/^#\//, '').split('?', 2);
  const view = VIEWS.find((one) => one === word) ?? 'cluster';
  return { view, query: new URLSearchParams(query) };
}
