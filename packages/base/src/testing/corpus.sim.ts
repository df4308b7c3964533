// shell: for tests
/** For tests: recorded answers of other programs, which travel packed (testdata/README.md). */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';

const TESTDATA = join(import.meta.dirname, '../../../../testdata');

/** The folder with the files of `testdata/NAME.json.br`, unpacked once for each content. */
export function corpus(name: string): string {
  const packed = readFileSync(join(TESTDATA, `${name}.json.br`));
  const state = createHash('sha256').update(packed).digest('hex').slice(0, 16);
  const folder = join(tmpdir(), `megaplane-${name}-${state}`);
  if (existsSync(folder)) return folder;
  const fresh = mkdtempSync(`${folder}-`);
  const text = brotliDecompressSync(packed).toString('utf8');
  for (const [path, content] of Object.entries(JSON.parse(text) as Record<string, string>)) {
    mkdirSync(dirname(join(fresh, path)), { recursive: true });
    writeFileSync(join(fresh, path), content);
  }
  try {
    renameSync(fresh, folder);
  } catch (error) {
    // another process was faster, with the same content
    if (!existsSync(folder)) throw error;
    return fresh;
  }
  return folder;
}
