/** Arbitrary texts of small languages: expressions, selectors, paths, quantities, frames. */
import { join } from 'node:path';
import { test } from 'node:test';
import { fuzz } from '@megaplane/base/fuzz.sim';
import { readCorpus } from '@megaplane/base/mutation.sim';
import { FUZZ_SECONDS } from '@megaplane/base/trials.sim';
import { celEnvironment, compileCel } from '../src/cel/program.ts';
import { fromJson } from '../src/cel/values/json-values.ts';
import { DYN } from '../src/cel/values/typing.ts';
import { parseQuantity } from '../src/meta/quantity.ts';
import { fieldSelectorText, parseFieldSelector } from '../src/selectors/fieldselectors.ts';
import { matchesFields } from '../src/selectors/fieldselectors.ts';
import { matchesLabels, parseLabelSelector, selectorText } from '../src/selectors/selectors.ts';
import { parseShardSelector } from '../src/sharding/selector.ts';
import { FrameReader } from '../src/streams/websocket-frames.ts';
import { customPrinterOf } from '../src/structural/columns.ts';

/** Texts of a request's path and header fields. */
const HEAD_BYTES_MAX: number = 1024 * 1024;
const BODY_BYTES_MAX: number = 3 * 1024 * 1024;
const timeout = FUZZ_SECONDS > 0 ? 36_000_000 : 110_000;

function corpus(name: string): readonly Buffer[] {
  return readCorpus(join(import.meta.dirname, 'corpus', `${name}.jsonl`));
}

const OBJECT = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a', namespace: 'n', labels: { a: 'b', 'a.b/c': 'd', x: 'a1' } },
  spec: { nodeName: 'n', replicas: 3, containers: [{ name: 'c' }, { name: 'd' }] },
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  name: 'a'.repeat(5000),
  list: Array.from({ length: 300 }, (_, at) => at),
  data: Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`k${at}`, 'v'.repeat(20)])),
};

test('expressions of CEL', { timeout }, () => {
  const self = fromJson(OBJECT);
  return fuzz({
    corpus: corpus('cel'),
    bytesMax: BODY_BYTES_MAX,
    trials: 60,
    turnsMax: 2,
    read(input) {
      const environment = celEnvironment({ variables: { self: DYN }, canBind: true });
      const compiled = compileCel(environment, input.toString('utf8'));
      if (!compiled.ok) return;
      compiled.program.estimate();
      compiled.program.evaluate({ self });
    },
  });
});

test('selectors of labels, fields and shards', { timeout }, () =>
  fuzz({
    corpus: corpus('selectors'),
    bytesMax: HEAD_BYTES_MAX,
    trials: 60,
    turnsMax: 3,
    read(input) {
      const text = input.toString('utf8');
      const labels = parseLabelSelector(text);
      if ('value' in labels) {
        matchesLabels(labels.value, OBJECT.metadata.labels);
        parseLabelSelector(selectorText(labels.value));
      }
      const fields = parseFieldSelector(text, '', 'Pod');
      if ('value' in fields) {
        matchesFields(fields.value, OBJECT);
        fieldSelectorText(fields.value);
      }
      parseShardSelector(text);
    },
  }),
);

test('quantities', { timeout }, () =>
  fuzz({
    corpus: corpus('quantities'),
    bytesMax: BODY_BYTES_MAX,
    trials: 60,
    read(input) {
      const read = parseQuantity(input.toString('utf8'));
      if (typeof read !== 'string') parseQuantity(read.toString());
    },
  }),
);

test('paths of columns', { timeout }, () =>
  fuzz({
    corpus: corpus('paths'),
    bytesMax: BODY_BYTES_MAX,
    trials: 60,
    read(input) {
      const jsonPath = input.toString('utf8');
      for (const type of ['string', 'integer', 'date']) {
        customPrinterOf([{ name: 'C', type, jsonPath }]).row(OBJECT, 0);
      }
    },
    turnsMax: 3,
  }),
);

test('frames of WebSockets', { timeout }, () =>
  fuzz({
    corpus: corpus('frames'),
    bytesMax: BODY_BYTES_MAX,
    trials: 60,
    read(input) {
      for (const step of [input.length + 1, 7]) {
        const reader = new FrameReader({
          onData: () => undefined,
          onReply: () => undefined,
          onClose: () => undefined,
        });
        for (let at = 0; at < input.length; at += step) reader.read(input.subarray(at, at + step));
      }
    },
  }),
);
