// shell: reads files that people name
/** Files that flags and arguments name: what cannot be read is told with both. */
import { readFileSync } from 'node:fs';

/** The file that `what` names (a flag, or what the file is). Throws an Error for people. */
export function readNamed(what: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Error(`${what}: cannot read ${file}: ${(error as Error).message}`, { cause: error });
  }
}
