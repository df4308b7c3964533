/**
 * Writes `src/contract/tables/*.ts` from `proto/`: descriptors, and types that only need erasing.
 *
 *     node packages/fleet/tools/generate.ts
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { messageTables } from './message-tables.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));

mkdirSync(`${ROOT}src/contract/tables`, { recursive: true });
const tables = messageTables((path) => readFileSync(`${ROOT}proto/${path}`, 'utf8'));
for (const [name, text] of tables) writeFileSync(`${ROOT}src/contract/tables/${name}`, text);
