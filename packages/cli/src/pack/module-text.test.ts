import assert from 'node:assert/strict';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { moduleText } from './module-text.ts';
import { writePack } from './pack.ts';

/** Runs a module's text with what its imports give; the result is what it gives out. */
async function run(source: string, others: Readonly<Record<string, object>>): Promise<object> {
  const words = Object.keys(others);
  const { text } = moduleText(source, (word) => words.indexOf(word));
  const load = (number: number): object | undefined => others[words[number] ?? ''];
  const given = {};
  // oxlint-disable-next-line typescript/no-implied-eval
  const body = new Function('$exports', '$load', '$meta', '$include', text);
  body(given, load, { url: 'file:///a.ts' }, async (number: number) => load(number));
  return given;
}

test('what a module gives out is what it has given out as a module', async () => {
  const source = `import { a, b as c } from 'x';
import type { T } from 'types';
import * as whole from 'x';
import d from 'y';
export { a as again } from 'x';
export * from 'z';
export const sum: number = a + c + whole.a + d, next = sum + 1;
export function twice(n: number): number { return n * 2; }
export class Held { readonly url = import.meta.url; }
const inner = 5;
export { inner as outer };
export const later = (): Promise<unknown> => import('x');
export interface T2 { a: T }
`;
  const others = { x: { a: 1, b: 2 }, y: { default: 3 }, z: { z: 9, default: 0 } };
  const given = (await run(source, others)) as Record<string, unknown>;
  const { later, Held, twice, ...plain } = given;
  assert.deepEqual(plain, { again: 1, z: 9, sum: 7, next: 8, outer: 5 });
  assert.equal((twice as (n: number) => number)(4), 8);
  assert.equal(new (Held as new () => { url: string })().url, 'file:///a.ts');
  assert.deepEqual(await (later as () => Promise<unknown>)(), others.x);
});

test('lines stay where they are', () => {
  const source = `import {\n  a,\n  b,\n} from 'x';\nthrow new Error(a);\n`;
  const { text, imports } = moduleText(source, () => 0);
  assert.equal(text.split('\n')[4], 'throw new Error(a);');
  assert.deepEqual(imports, ['x']);
});

test('what cannot be said in a function is refused', () => {
  for (const [source, why] of [
    ['export let a = 1;', /a variable that changes/],
    ['export const { a } = b;', /a pattern/],
    ['await a;', /await at the top level/],
    ['export default 1;', /export default/],
    ["export * as a from 'b';", /export \* as/],
    ['import(a);', /known later/],
  ] as const) {
    assert.throws(() => moduleText(source, () => 0), why);
  }
});

test('the whole program can be packed, and the pack holds what it needs', () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-pack-'));
  try {
    const root = join(import.meta.dirname, '../../..');
    writePack(dir, { entry: join(import.meta.dirname, '../packed.ts'), root, version: '1' });
    const { rows } = JSON.parse(readFileSync(join(dir, 'index.json'), 'utf8')) as {
      readonly rows: readonly (readonly [string, number])[];
    };
    const packed = rows.filter(([, start]) => start >= 0).map(([file]) => file);
    const all = globSync('*/src/**/*.ts', { cwd: root });
    assert(packed.length > 300 && packed.length < all.length);
    assert(packed.some((file) => file.endsWith('apiserver/src/server/run.ts')));
    assert(!packed.some((file) => file.includes('node_modules')));
    const outside = rows.filter(([, start]) => start < 0).map(([file]) => file);
    assert(outside.includes('node:fs'));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
