// shell: two connections that are one
import { guarded } from '@megaplane/base/deferred';
import type { Socket } from 'node:net';
import type { UpgradedStream } from '@megaplane/wire/exchange';
import type { FieldList } from '@megaplane/wire/fields';

/** The target's answer to the request to upgrade. */
export interface Answer {
  readonly code: number;
  readonly fields: FieldList;
  /** What came right behind it. */
  readonly rest: Buffer;
}

/** The fields of a 101 that the client must see: the wire writes connection and upgrade itself. */
export function answerFields(fields: FieldList): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = fields[at] ?? '';
    if (!['connection', 'upgrade', 'content-length'].includes(name))
      kept.push(name, fields[at + 1] ?? '');
  }
  return kept;
}

/** The end of one side is the end of both. */
export function joinEnds(near: UpgradedStream, socket: Socket, ended: () => void): void {
  let isOver = false;
  const over = (): void => {
    if (isOver) return;
    isOver = true;
    near.end();
    ended();
  };
  near.onEnd = () => socket.end();
  socket.on(
    'end',
    guarded(() => near.end()),
  );
  socket.on(
    'error',
    guarded(() => socket.destroy()),
  );
  socket.on('close', guarded(over));
}
