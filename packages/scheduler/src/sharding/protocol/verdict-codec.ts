/** Verdicts as messages (`sharding.proto`). */
import type { Rejection, Verdict } from '../../framework/plugin.ts';
import { readRecord, type RecordWriter } from './record.ts';

const CODES: readonly Rejection['code'][] = ['unschedulable', 'unresolvable', 'error'];

export function writeVerdict(record: RecordWriter, { plugin, code, reasons }: Verdict): void {
  record.text(1, plugin).number(2, CODES.indexOf(code));
  for (const reason of reasons) record.text(3, reason);
}

export function readVerdict(bytes: Uint8Array): Verdict {
  let plugin = '';
  let code: Rejection['code'] = 'error';
  const reasons: string[] = [];
  readRecord(bytes, (reader) => {
    if (reader.field === 1) plugin = reader.text();
    else if (reader.field === 2) code = CODES[reader.uint64()] ?? 'error';
    else if (reader.field === 3) reasons.push(reader.text());
    else return false;
    return true;
  });
  return { plugin, code, reasons };
}
