// shell: the file in which a provider keeps what it must know after a restart
/**
 * A journal: lines of JSON, one for each change of a machine and each token that passed, on the
 * disk before the call is answered. At each start, and when it has grown, it is written anew with
 * what counts. A last line that was cut off is what was never answered.
 *
 *     {"instance": 1234, "life": 3}
 *     {"machine": {...}, "changed": 17, "operation": {...}, "dueMs": 1700000000000, ...}
 *     {"token": ["machine", "shard", "epoch", "sequence"]}
 */
import { closeSync, existsSync, fdatasyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fromJson, toJson } from '@bufbuild/protobuf';
import type { JsonValue } from '@bufbuild/protobuf';
import { parseNested } from '@megaplane/base/nested-json';
import { makePrivateDirectory, replacePrivately } from '@megaplane/base/private-file';
import { MachineSchema } from '../contract/tables/provider.ts';
import type { Token } from './fences.ts';
import type { Keeper, Kept, Left, TransitionKind } from './provider.ts';

const FILE = 'machines.jsonl';
/** A journal that has grown to so many times what counts is written anew. */
const GROWTH_MAX = 4;
const GROWTH_BYTES_MIN: number = 4 * 1024 * 1024;

const KINDS: readonly TransitionKind[] = ['create', 'configure', 'drain', 'delete'];

interface Line {
  readonly instance?: number;
  readonly life?: number;
  readonly machine?: JsonValue;
  readonly changed?: number;
  readonly operation?: { readonly kind: string; readonly id: string } | null;
  readonly dueMs?: number | null;
  readonly failure?: string;
  readonly isGoing?: boolean;
  readonly graceSeconds?: number;
  readonly blob?: string;
  readonly token?: readonly [string, string, string, string];
}

export class Journal implements Keeper {
  readonly instance: number;
  readonly life: number;
  readonly left: Left;
  readonly #file: string;
  #fd: number;
  #waiting: string[] = [];
  #bytes = 0;
  #wholeBytes = 0;
  /** Answers what counts now: for writing the journal anew. */
  leftNow: (() => Left) | null = null;

  /** Opens or makes the journal in `dir`. Throws an `Error` for people where it cannot be read. */
  constructor(dir: string, freshInstance: number) {
    makePrivateDirectory(dir);
    this.#file = join(dir, FILE);
    const { instance, life, left } = readJournal(this.#file);
    this.instance = instance === 0 ? freshInstance : instance;
    this.life = life + 1;
    this.left = left;
    this.#fd = this.#writeAnew(left);
  }

  kept(record: Kept): void {
    this.#append(lineOf(record));
  }

  admitted(machineId: string, token: Token): void {
    this.#append(tokenLine({ machineId, ...token }));
  }

  close(): void {
    this.flush();
    closeSync(this.#fd);
  }

  #append(line: string): void {
    this.#waiting.push(line);
  }

  /** Puts on the disk what was told since the last time: before anybody is answered. */
  flush(): void {
    if (this.#waiting.length === 0) return;
    const text = this.#waiting.join('');
    this.#waiting = [];
    writeSync(this.#fd, text);
    fdatasyncSync(this.#fd);
    this.#bytes += text.length;
    const limit = Math.max(GROWTH_BYTES_MIN, GROWTH_MAX * this.#wholeBytes);
    if (this.#bytes <= limit || this.leftNow === null) return;
    closeSync(this.#fd);
    this.#fd = this.#writeAnew(this.leftNow());
  }

  #writeAnew({ records, tokens }: Left): number {
    const head = `${JSON.stringify({ instance: this.instance, life: this.life })}\n`;
    const text = [head, ...records.map(lineOf), ...tokens.map(tokenLine)].join('');
    replacePrivately(this.#file, text);
    this.#wholeBytes = text.length;
    this.#bytes = text.length;
    return openSync(this.#file, 'a');
  }
}

function lineOf({
  machine,
  changed,
  operation,
  dueMs,
  failure,
  isGoing,
  asked,
  blob,
}: Kept): string {
  const line: Line = {
    machine: toJson(MachineSchema, machine),
    ...{ changed, operation, failure, isGoing },
    dueMs: dueMs === Infinity ? null : dueMs,
    ...(asked.graceSeconds === undefined ? {} : { graceSeconds: asked.graceSeconds }),
    ...(blob.length === 0 ? {} : { blob: Buffer.from(blob).toString('base64') }),
  };
  return `${JSON.stringify(line)}\n`;
}

function tokenLine(token: Token & { readonly machineId: string }): string {
  const { machineId, shardId, shardEpoch, sequenceNumber } = token;
  const parts = [machineId, shardId, String(shardEpoch), String(sequenceNumber)];
  return `${JSON.stringify({ token: parts })}\n`;
}

function readJournal(file: string): {
  readonly instance: number;
  readonly life: number;
  readonly left: Left;
} {
  const records = new Map<string, Kept>();
  const tokens = new Map<string, Token & { readonly machineId: string }>();
  let instance = 0;
  let life = 0;
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  for (const [number, text] of lines.entries()) {
    if (text === '') continue;
    try {
      const line = parseNested(text) as Line;
      instance = line.instance ?? instance;
      life = line.life ?? life;
      if (line.machine !== undefined) {
        const record = recordOf(line);
        records.set(record.machine.id, record);
      }
      if (line.token !== undefined) {
        const [machineId, shardId, epoch, sequence] = line.token;
        const token = { shardEpoch: BigInt(epoch), sequenceNumber: BigInt(sequence) };
        tokens.set(`${machineId}\0${shardId}`, { machineId, shardId, ...token });
      }
    } catch (error) {
      // the last line was being written when the process ended: nobody was answered
      if (number === lines.length - 1) continue;
      const why = (error as Error).message;
      throw new Error(`${file}, line ${number + 1}: ${why}`, { cause: error });
    }
  }
  return {
    ...{ instance, life },
    left: { records: [...records.values()], tokens: [...tokens.values()] },
  };
}

function recordOf(line: Line): Kept {
  const { operation, graceSeconds } = line;
  const kind = KINDS.find((one) => one === operation?.kind);
  const blob = new Uint8Array(Buffer.from(line.blob ?? '', 'base64'));
  return {
    machine: fromJson(MachineSchema, line.machine ?? {}),
    changed: line.changed ?? 1,
    operation: kind === undefined ? null : { kind, id: operation?.id ?? '' },
    dueMs: line.dueMs ?? Infinity,
    ...{ failure: line.failure ?? '', isGoing: line.isGoing ?? false, blob },
    asked: { bootstrapBlob: blob, ...(graceSeconds === undefined ? {} : { graceSeconds }) },
  };
}
