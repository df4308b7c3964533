// data plane
/** Protobuf bodies of one kind as JSON text, for those who compare bytes: see `message-text.ts`. */

import { assert } from '@megaplane/base/assert';
import { ownText } from '@megaplane/base/bytes';
import { BackwardWriter } from './backward-writer.ts';
import { textPlanOf, type TextPlan } from './message-plans.ts';
import { MessageText } from './message-text.ts';
import { closeEnvelope } from './protobuf-envelope.ts';
import { findTypeOfKind } from '../scheme/schema.ts';

/** Of an envelope that holds nothing: the object's length, 0. */
const LENGTH_BYTES = 1;
const texts = new MessageText();

export class BodyText {
  readonly #plan: TextPlan;
  readonly #head: Buffer;
  /** What stands before the object's length: encoders write the envelope in one way only. */
  readonly #opening: Buffer;

  constructor(apiVersion: string, kind: string) {
    const type = findTypeOfKind(apiVersion, kind);
    assert(type !== undefined, 'a kind of the built-in API');
    this.#plan = textPlanOf(type);
    this.#head = ownText(`{"kind":"${kind}","apiVersion":"${apiVersion}"`);
    const out = new BackwardWriter();
    closeEnvelope(out, out.mark(), apiVersion, kind);
    const envelope = out.take();
    this.#opening = envelope.subarray(0, envelope.length - LENGTH_BYTES);
  }

  /**
   * The body as `JSON.stringify` would write its object, the owners of its fields first in its
   * metadata. Good until the next call of any. Null for what only the slow way can read.
   */
  read(body: Buffer): Buffer | null {
    const opening = this.#opening;
    const { length } = opening;
    for (let at = 0; at < length; at++) if (body[at] !== opening[at]) return null;
    let at = length;
    let size = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = body[at++];
      if (byte === undefined || shift > 21) return null;
      size |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    const end = at + size;
    if (end > body.length || !isEnd(body, end)) return null;
    if (!texts.write(this.#plan, this.#head, body, at, end)) return null;
    return texts.text.subarray(0, texts.length);
  }
}

/** Nothing, or `contentEncoding` and `contentType`, both empty. */
function isEnd(body: Buffer, at: number): boolean {
  if (at === body.length) return true;
  return (
    at + 4 === body.length &&
    body[at] === 0x1a &&
    body[at + 1] === 0 &&
    body[at + 2] === 0x22 &&
    body[at + 3] === 0
  );
}
