/**
 * The answer to DELETE of a collection as JSON: what was gone through, kept as text while the
 * deletions go on. A hundred thousand pods are more than a string may hold, and as objects several
 * times as much; so what is long leaves in pieces, as fast as the client takes them.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { AnswerBody } from './answer-body.ts';
import type { Call } from './call.ts';
import { JSON_TYPE } from './negotiation.ts';

/** Characters of a piece; what is shorter is answered at once. */
const PIECE_LENGTH = 64 * 1024;
const NONE: Buffer = Buffer.alloc(0);

export class DeletedList {
  readonly #pieces: Buffer[] = [];
  #text = '';
  #isEmpty = true;

  add(item: JsonObject): void {
    this.#text += `${this.#isEmpty ? '' : ','}${JSON.stringify(item)}`;
    this.#isEmpty = false;
    if (this.#text.length < PIECE_LENGTH) return;
    this.#pieces.push(Buffer.from(this.#text));
    this.#text = '';
  }

  /** Answers with the items so far behind `head`: kind, version and metadata of the list. */
  send(call: Call, head: JsonObject): void {
    const open = `${JSON.stringify(head).slice(0, -1)},"items":[`;
    const close = `${this.#text}]}\n`;
    if (this.#pieces.length === 0) {
      call.send(200, JSON_TYPE, open + close);
      return;
    }
    const body = new AnswerBody(call, JSON_TYPE);
    const pieces = [Buffer.from(open), ...this.#pieces, Buffer.from(close)];
    let next = 0;
    const pump = (): void => {
      while (next < pieces.length && !call.exchange.closed) {
        if (body.writable() <= 0) return;
        body.write(pieces[next] ?? NONE);
        pieces[next++] = NONE;
      }
      if (!call.exchange.closed) body.end();
    };
    call.exchange.onWritable = pump;
    pump();
  }
}
