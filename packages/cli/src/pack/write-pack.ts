// shell: a process of its own, which may say nothing of Node's experiments
/** `node write-pack.ts DIR VERSION`: the pack of `packed.ts`, as `pack.ts` has it. */
import { join } from 'node:path';
import { writePack } from './pack.ts';

const [dir = '', version = ''] = process.argv.slice(2);
const root = join(import.meta.dirname, '../../..');
writePack(dir, { entry: join(import.meta.dirname, '..', 'packed.ts'), root, version });
