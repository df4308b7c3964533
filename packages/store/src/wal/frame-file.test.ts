import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { FrameFile } from './frame-file.ts';
import {
  FILE_HEADER_BYTES,
  FRAME_HEADER_BYTES,
  FRAME_OK,
  checkFrame,
  paddingAt,
  sealFrame,
  writeFrameHeader,
} from './frame.ts';
import { SLOT_BYTES } from './log-files.ts';

const slots = Array.from({ length: 3 }, () => {
  const memory = new SharedArrayBuffer(SLOT_BYTES, { maxByteLength: SLOT_BYTES });
  return Buffer.from(memory).fill(0x77);
});

/** Sizes of the payloads that a file's first `size` bytes hold, in order and unbroken. */
function payloads(bytes: Buffer, size: number): number[] {
  const found: number[] = [];
  let chain = 0;
  for (let at = FILE_HEADER_BYTES; at < size;) {
    const padding = paddingAt(bytes, at, size, at);
    at += padding;
    if (padding > 0) continue;
    if (checkFrame(bytes, at, size, chain) !== FRAME_OK) break;
    chain = bytes.readUInt32LE(at + 4);
    found.push(bytes.readUInt32LE(at + 16));
    at += FRAME_HEADER_BYTES + bytes.readUInt32LE(at + 16);
  }
  return found;
}

test('groups of any sizes stand in order, and a torn file holds the first of them', () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-frames-'));
  const payload = fc.oneof(fc.nat({ max: 60 }), fc.integer({ min: 1500, max: 9000 }));
  const group = fc.array(payload, { minLength: 1, maxLength: 3 });
  try {
    fc.assert(
      fc.property(
        fc.array(group, { maxLength: 12, size: 'max' }),
        fc.double({ min: 0, max: 1 }),
        (groups, part) => {
          const path = join(dir, 'log');
          const file = new FrameFile(path, 'w', Buffer.alloc(FILE_HEADER_BYTES, 1));
          const written: number[] = [];
          let chain = 0;
          for (const sizes of groups) {
            const frames = sizes.map((units, index) => {
              const frame = (slots[index] as Buffer).subarray(0, FRAME_HEADER_BYTES + units * 16);
              writeFrameHeader(frame, units * 16, 0, written.length, 1, 0, 0);
              chain = sealFrame(frame, chain, 0);
              written.push(units * 16);
              return frame;
            });
            file.append(frames);
          }
          file.close();
          const bytes = readFileSync(path);
          assert.equal(bytes.length, file.size);
          assert.deepEqual(payloads(bytes, bytes.length), written);
          const torn = payloads(bytes, Math.floor(bytes.length * part));
          assert.deepEqual(torn, written.slice(0, torn.length));
        },
      ),
      { numRuns: 60 },
    );
  } finally {
    rmSync(dir, { recursive: true });
  }
});
