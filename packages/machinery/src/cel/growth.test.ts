/** What an expression makes is bound before it is made; what it cannot pay for is not done. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonValue } from '../json/json-value.ts';
import { fromJson } from './values/json-values.ts';
import { celEnvironment, compileCel, type Evaluation } from './program.ts';
import { DYN } from './values/typing.ts';
import { CelError, CelMap } from './values/values.ts';

const environment = celEnvironment({ variables: { object: DYN }, canBind: true });

function evaluate(source: string, object: JsonValue): Evaluation {
  const compiled = compileCel(environment, source);
  assert(compiled.ok, compiled.ok ? '' : compiled.message);
  return compiled.program.evaluate({ object: fromJson(object) });
}

function failure(source: string, object: JsonValue): string {
  const { value } = evaluate(source, object);
  assert(value instanceof CelError, `${source} gave ${typeof value}`);
  return value.message;
}

const text = 'x'.repeat(50_000);
const LONG = /the text would be longer than/;
const SPENT = /operation cancelled: actual cost limit exceeded/;

test('texts that would become the square of what is there are refused before they are made', () => {
  const object = { a: text, list: Array.from({ length: 2000 }, () => 'y') };
  assert.match(failure("object.a.replace('', object.a) == ''", object), LONG);
  assert.match(failure("object.a.replace('x', object.a) == ''", object), LONG);
  assert.match(failure("object.list.join(object.a) == ''", object), LONG);
  assert.match(failure("object.list.map(i, object.a).join() == ''", object), LONG);
  const format = `'${'%s'.repeat(400)}'.format(object.list.map(i, object.a))`;
  assert.match(failure(`${format} == ''`, object), LONG);
  const twice = "object.a.replace('x', 'yy').size() == 100000";
  assert.equal(evaluate(twice, object).value, true);
  assert.equal(evaluate("object.a.replace('x', object.a, 2).size() == 149998", object).value, true);
});

test('lists that are joined with themselves are counted once, and have a bound', () => {
  const object = { list: Array.from({ length: 100 }, (_, index) => index) };
  const doubled = (times: number, inner: string): string => {
    let source = inner;
    for (let depth = times; depth > 0; depth--) {
      source = `cel.bind(l${depth}, l${depth - 1} + l${depth - 1}, ${source})`;
    }
    return `cel.bind(l0, object.list, ${source})`;
  };
  assert.equal(evaluate(doubled(13, 'l13.size() == 819200'), object).value, true);
  assert.match(failure(doubled(14, 'l14.size() == 0'), object), /the list would have more than/);
  assert.match(failure(doubled(40, 'l40.reverse().size() == 0'), object), /the list would have/);
  assert.match(failure('lists.range(1000001).size() == 0', object), /the list would have/);
});

/** A map that tells how often somebody asked for all its keys or members. */
class CountingMap extends CelMap {
  steps = 0;
  readonly #names: readonly string[];
  constructor(names: readonly string[]) {
    super();
    this.#names = names;
  }
  get size(): number {
    this.steps++;
    return this.#names.length;
  }
  get(): string {
    this.steps++;
    return 'v';
  }
  keys(): readonly string[] {
    this.steps += this.#names.length;
    return this.#names;
  }
}

test('what costs too much is not done first: steps are counted, not time', () => {
  const names = Array.from({ length: 4000 }, (_, index) => `k${index}`);
  const map = new CountingMap(names);
  const compiled = compileCel(environment, 'object.all(k, object[k].size() < 100)');
  assert(compiled.ok);
  const { value, cost } = compiled.program.evaluate({ object: map });
  assert.deepEqual([value, cost], [true, 32_002]);
  assert(map.steps < 10 * names.length, `${map.steps} steps`);
  const list = Array.from({ length: 4000 }, (_, index) => `item-${index}`);
  assert.match(
    failure('sets.intersects(object.a, object.b)', { a: list, b: text.split('') }),
    SPENT,
  );
});

test('the keys of a map are looked at once in an evaluation, however often it is named', () => {
  const data: Record<string, string> = {};
  for (let index = 0; index < 4000; index++) data[`k${index}`] = 'v';
  let asked = 0;
  const watched = new Proxy(data, {
    ownKeys: (target) => {
      asked++;
      return Reflect.ownKeys(target);
    },
  });
  const source = 'object.data.all(k, object.data[k].size() < 100 && object.data.size() == 4000)';
  assert.equal(evaluate(source, { data: watched }).value, true);
  assert(asked <= 2, `${asked} times`);
  data['more'] = 'v';
  assert.equal(evaluate('object.data.size() == 4001', { data: watched }).value, true);
  const { cost } = evaluate('object.data.all(k, object.data[k].size() < 100)', { data });
  assert.equal(cost, 36_012, 'nine units a key, as upstream counts');
});

test('searches of one findAll are bounded by what they may look at', () => {
  const source = "object.a.findAll('x.*y|x').size() == 0";
  assert.match(failure(source, { a: text }), /more than 42 matches/);
  assert.equal(
    evaluate("object.a.findAll('x.*y|x').size() == 500", { a: 'x'.repeat(500) }).value,
    true,
  );
});
