/** Arbitrary YAML: short documents in the turn of their request, long ones in a thread. */
import { join } from 'node:path';
import { test } from 'node:test';
import { fuzz } from '@megaplane/base/fuzz.sim';
import { readCorpus } from '@megaplane/base/mutation.sim';
import { FUZZ_SECONDS } from '@megaplane/base/trials.sim';
import { parseJson } from '@megaplane/machinery/json-text';
import { readYaml } from '../src/request/yaml/yaml-body.ts';
import { printYaml } from '../src/request/yaml-text.ts';

const SHORT_BYTES_MAX: number = 4 * 1024;
const timeout = FUZZ_SECONDS > 0 ? 36_000_000 : 110_000;
const corpus = readCorpus(join(import.meta.dirname, 'corpus', 'documents.jsonl'));

for (const [name, bytesMax, turnsMax] of [
  ['short documents of YAML', SHORT_BYTES_MAX, 1],
  // as long as the thread may take, after which it is ended
  ['long documents of YAML', 16 * 1024, 100],
] as const) {
  test(name, { timeout }, () =>
    fuzz({
      corpus,
      bytesMax,
      trials: 60,
      turnsMax,
      read(input) {
        const reading = readYaml(input);
        if (!('json' in reading)) return;
        printYaml(parseJson(Buffer.from(reading.json).toString('utf8')));
      },
    }),
  );
}
