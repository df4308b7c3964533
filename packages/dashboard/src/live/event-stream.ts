/** Server-sent events out of the bytes of an answer (WHATWG HTML, section 9.2). */

export interface StreamEvent {
  readonly event: string;
  readonly data: string;
}

/** What is not a whole event yet; more is no stream of ours. */
const CARRY_CHARS_MAX = 64 * 2 ** 20;

/** Takes pieces of text, and returns the events that have become whole. */
export class EventReader {
  #carry = '';

  push(text: string): StreamEvent[] {
    this.#carry += text;
    if (this.#carry.length > CARRY_CHARS_MAX) throw new Error('an event without an end');
    const events: StreamEvent[] = [];
    for (;;) {
      const end = this.#carry.indexOf('\n\n');
      if (end < 0) return events;
      const event = eventOf(this.#carry.slice(0, end));
      if (event !== undefined) events.push(event);
      this.#carry = this.#carry.slice(end + 2);
    }
  }
}

/** Undefined for a comment, which only keeps the stream alive. */
function eventOf(block: string): StreamEvent | undefined {
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('event: ')) event = line.slice('event: '.length);
    else if (line.startsWith('data: ')) data.push(line.slice('data: '.length));
  }
  return data.length === 0 ? undefined : { event, data: data.join('\n') };
}
