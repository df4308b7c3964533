import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { JSON_DEPTH_MAX, parseNested } from './nested-json.ts';

const MODULE = join(import.meta.dirname, 'nested-json.ts');

test('texts are read as JSON.parse reads them, whatever stands in their strings', () => {
  const long = 'x'.repeat(5000);
  const property = fc.property(
    fc.jsonValue({ maxDepth: 6 }),
    fc.string(),
    fc.nat(30),
    (value, text, slashes) => {
      const whole = JSON.stringify([
        value,
        text,
        `${'\\'.repeat(slashes)}"[{`,
        '['.repeat(2000),
        long,
      ]);
      assert.deepEqual(parseNested(whole), JSON.parse(whole));
    },
  );
  fc.assert(property, { numRuns: 300 });
});

test('texts of others that are nested too deep are refused, and no level before', () => {
  const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  const space = ' '.repeat(5000);
  assert(Array.isArray(parseNested(nested(JSON_DEPTH_MAX) + space)));
  assert.throws(() => parseNested(nested(JSON_DEPTH_MAX + 1) + space), /nested more than 1000/);
  assert.throws(() => parseNested(`{"a":"${space}`), SyntaxError);
});

test('a text that breaks the runtime is refused, and the process goes on', () => {
  const script = `
    import { parseNested } from ${JSON.stringify(MODULE)};
    for (const unit of ['[[1],', '{"b":{"c":1},"x":']) {
      for (const end of ['{', '{"a"', '{"a":1', '']) {
        const text = unit.repeat(20_000) + end;
        for (let times = 0; times < 300; times++) {
          try { parseNested(text); } catch {}
          Array.from({ length: 100 }, (_, at) => ({ at }));
        }
      }
    }
    console.log('goes on');`;
  const args = ['--input-type=module', '--eval', script];
  const { stdout, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  assert.deepEqual([stdout, status], ['goes on\n', 0]);
});
