// shell: files
/** Reading files that may not be there. */
import { readFileSync } from 'node:fs';

/** The text of a file; undefined where there is none. Other failures are thrown. */
export function readFileOr(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}
