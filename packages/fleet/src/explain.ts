/**
 * Questions about the fleet's rules, each answered from itself alone: what `megaplane fleet
 * explain` reads and writes, one JSON object a line. A question names its `kind`; nothing of it
 * outlives its answer.
 */
import { parseNested } from '@megaplane/base/nested-json';
import { assert } from '@megaplane/base/assert';
import { explainDecode, explainEncode } from './contract/explain.ts';
import { explainProjection } from './pods/explain.ts';
import { explainRollUp } from './rollup/explain.ts';
import { explainDecide } from './explain-decide.ts';

/** Answers one question. Throws an `Error` whose message is for people if it cannot be answered. */
type Answerer = (question: Readonly<Record<string, unknown>>) => object;

/** The kinds of questions. A new kind is one line here. */
const ANSWERERS: ReadonlyMap<string, Answerer> = new Map<string, Answerer>([
  ['encode', explainEncode],
  ['decode', explainDecode],
  ['project', explainProjection],
  ['rollup', explainRollUp],
  ['decide', explainDecide],
]);

/** The answer to one line of input, as one line without its end; `{"error":"…"}` if it has none. */
export function explainLine(line: string): string {
  try {
    return JSON.stringify(answerTo(parseNested(line)));
  } catch (error) {
    assert(error instanceof Error, 'errors are thrown as such');
    return JSON.stringify({ error: error.message });
  }
}

function answerTo(question: unknown): object {
  if (typeof question !== 'object' || question === null || Array.isArray(question)) {
    throw new Error('a question is a JSON object');
  }
  const fields = question as Readonly<Record<string, unknown>>;
  const kind = fields['kind'];
  const answer = typeof kind === 'string' ? ANSWERERS.get(kind) : undefined;
  if (answer === undefined) {
    const known = [...ANSWERERS.keys()].join(', ');
    throw new Error(`unknown kind ${JSON.stringify(kind)}; known: ${known}`);
  }
  return answer(fields);
}
