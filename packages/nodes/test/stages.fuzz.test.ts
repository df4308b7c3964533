/** Arbitrary stage files, templates and queries, as users of the simulator write them. */
import { join } from 'node:path';
import { test } from 'node:test';
import { fuzz } from '@megaplane/base/fuzz.sim';
import { readCorpus } from '@megaplane/base/mutation.sim';
import { FUZZ_SECONDS } from '@megaplane/base/trials.sim';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { withFloats } from '../src/gotemplate/go-values.ts';
import { stageFunctions } from '../src/gotemplate/stage-functions.ts';
import { TemplateError } from '../src/gotemplate/template-lexer.ts';
import { Template } from '../src/gotemplate/template-run.ts';
import { JqError } from '../src/jq/jq-lexer.ts';
import { JqQuery } from '../src/jq/jq.ts';
import { chooseStage, StageSubject } from '../src/stages/stage.ts';
import { StageError } from '../src/stages/stage.ts';
import { readStageFile } from '../src/stages/stage-file.ts';
import { FileError } from '../src/yaml/yaml-fields.ts';

/** What the API server takes of a Stage. */
const BODY_BYTES_MAX: number = 3 * 1024 * 1024;
/** Files are their user's own: a long one takes its time at the start. */
const FILE_BYTES_MAX: number = 64 * 1024;
const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5);
const timeout = FUZZ_SECONDS > 0 ? 36_000_000 : 110_000;
const functions = stageFunctions({
  nowMs: () => NOW_MS,
  random: () => 0,
  version: 'v1',
  nodePort: 0,
  nodeName: '',
  nodeIp: '',
  nodeAddresses: () => ['10.0.0.1'],
  podAddresses: () => ['10.1.0.1'],
  anyAddress: () => '10.1.0.9',
});
const clock = { nowMs: () => NOW_MS, random: () => 0 };
const OBJECT = {
  metadata: { name: 'a', labels: { a: 'b' } },
  spec: { containers: [{ name: 'c' }, { name: 'd' }] },
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  name: 'a'.repeat(5000),
  list: Array.from({ length: 100 }, (_, at) => at),
  a: { b: [1, 2], a: { a: null } },
} satisfies JsonObject;

function corpus(name: string): readonly Buffer[] {
  return readCorpus(join(import.meta.dirname, 'corpus', `${name}.jsonl`));
}

test('templates', { timeout }, () =>
  fuzz({
    corpus: corpus('templates'),
    bytesMax: BODY_BYTES_MAX,
    trials: 60,
    turnsMax: 2,
    read(input) {
      try {
        new Template(input.toString('utf8'), functions).render(withFloats(OBJECT));
      } catch (error) {
        if (!(error instanceof TemplateError)) throw error;
      }
    },
  }),
);

test('queries (jq)', { timeout }, () =>
  fuzz({
    corpus: corpus('queries'),
    bytesMax: BODY_BYTES_MAX,
    trials: 60,
    turnsMax: 2,
    read(input) {
      try {
        new JqQuery(input.toString('utf8'), () => NOW_MS).run(OBJECT);
      } catch (error) {
        if (!(error instanceof JqError)) throw error;
      }
    },
  }),
);

test('stage files', { timeout }, () =>
  fuzz({
    corpus: corpus('stages'),
    bytesMax: FILE_BYTES_MAX,
    trials: 60,
    // read at the start, or in steps of their own
    turnsMax: 40,
    read(input) {
      try {
        const { stages } = readStageFile('s.yaml', input.toString('utf8'), { functions, clock });
        const subject = new StageSubject(OBJECT);
        for (const stage of stages) chooseStage([stage], subject, () => 0);
      } catch (error) {
        if (!(error instanceof FileError || error instanceof StageError)) throw error;
      }
    },
  }),
);
