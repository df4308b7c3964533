import { addressFault } from './values/address-faults.ts';
import { parseGoUrl } from '../gotext/go-url.ts';
import { versionFault } from './values/version-faults.ts';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { authorizerValue, AUTHORIZER_TYPE } from './library/authorizer-library.ts';
import { SchemaGraph } from '../structural/schema/schema-graph.ts';
import type { JsonObject } from '../json/json-value.ts';
import { declaredType } from './declarations.ts';
import type { CelType } from './values/typing.ts';
import { fromJson } from './values/json-values.ts';
import { celEnvironment, compileCel } from './program.ts';
import { BOOL, DYN, INT, opaque, STRING, typeText } from './values/typing.ts';
import { CelError, type CelValue } from './values/values.ts';
import { compileRules, evaluateRules, ruleBudget } from './validation-rules.ts';

const anything = celEnvironment({
  variables: { object: DYN, n: INT, s: STRING, b: BOOL, authorizer: opaque(AUTHORIZER_TYPE) },
});

function typeOf(schema: JsonObject): CelType | null {
  return declaredType(new SchemaGraph().add(schema), 'self');
}

function evaluate(source: string, bindings: Record<string, CelValue> = {}): CelValue {
  const compiled = compileCel(anything, source);
  if (!compiled.ok) return new CelError(compiled.message);
  return compiled.program.evaluate(bindings).value;
}

const TRUE = [
  "quantity('50k').isLessThan(quantity('50M')) && quantity('1Ki').asInteger() == 1024",
  "quantity('1').add(quantity('500m')) == quantity('1500m') && isQuantity('x') == false",
  "ip('::ffff') == ip('0:0:0:0:0:0:0:ffff') && ip('10.0.0.1').family() == 4",
  "!isIP('1.2.3.4.5') && isIP('::1') && ip.isCanonical('::1') && !ip.isCanonical('::01')",
  "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsCIDR('0.0.0.0/0')",
  "string(cidr('192.168.1.7/24').masked()) == '192.168.1.0/24'",
  "url('https://a.example:8443/b/c?d=e&d=f').getPort() == '8443'",
  "url('https://a/b?d=e&d=f').getQuery()['d'] == ['e', 'f'] && !isURL('../x')",
  "semver('1.2.3').isLessThan(semver('1.10.0-rc.1')) && !isSemver('v1.0')",
  "semver('v01.2', true).compareTo(semver('1.2.0')) == 0",
  "!format.dns1123Label().validate('a.b').hasValue() == false",
  "format.named('dns1123Label').hasValue() && !format.named('nope').hasValue()",
  "['a', 'b'].isSorted() && [1, 3, 2].max() == 3 && [1.5, 2.5].sum() == 4.0",
  "'abc 123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2']",
  'sets.contains([1, 2, 3], [2]) && !sets.intersects([1], [2]) && sets.equivalent([1, 1], [1])',
  "[1, 2].all(i, v, i < v) && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
  'object.?spec.?replicas.orValue(1) == 3 && !object.?status.?phase.hasValue()',
  "object.spec.tags.exists(t, t.startsWith('x')) && has(object.spec.replicas)",
  '[3, 1, 2].sort() == [1, 2, 3] && [[1], [2, 3]].flatten() == [1, 2, 3]',
  "['bb', 'a'].sortBy(s, s.size()) == ['a', 'bb'] && sign(quantity('-1')) == -1",
  "object.spec.tags.sortBy(t, t.endsWith('y')) == ['ab', 'xy']",
  "authorizer.group('apps').resource('deployments').namespace('n').check('get').allowed()",
  "!authorizer.path('/healthz').check('get').allowed()",
  "timestamp('2024-02-29T12:00:00Z').getDayOfYear('America/New_York') == 59",
  "'%s has %d of %.1f%%'.format(['a', 3, 2.25]) == 'a has 3 of 2.2%'",
];

test('functions that Kubernetes adds answer as documented', () => {
  const object = fromJson({ spec: { replicas: 3, tags: ['ab', 'xy'] } });
  const authorizer = authorizerValue(({ path, verb, namespace }) => ({
    allowed: path === null && verb === 'get' && namespace === 'n',
    reason: '',
    error: '',
  }));
  for (const source of TRUE) {
    const value = evaluate(source, { object, authorizer });
    assert.equal(value instanceof CelError ? value.message : value, true, source);
  }
});

const VARIABLE = /\b[A-Z]\b/g;

test('exactly those functions are declared that Kubernetes 1.36 declares', () => {
  const found: string[] = [];
  for (const [name, overloads] of celEnvironment({ variables: {} }).functions) {
    for (const { id, isMember, params, result } of overloads) {
      if (id.endsWith('_runtime')) continue;
      const texts = params.map(typeText);
      const target = isMember ? `${texts.shift()} . ` : '';
      const names = new Map<string, string>();
      const text = `${target}${name}(${texts.join(', ')}): ${typeText(result)}`
        .replaceAll('google.protobuf.Timestamp', 'timestamp')
        .replaceAll('google.protobuf.Duration', 'duration')
        .replaceAll(VARIABLE, (one) => {
          if (!names.has(one)) names.set(one, String.fromCodePoint(65 + names.size));
          return names.get(one) ?? '';
        });
      found.push(text);
    }
  }
  const file = new URL('declared-functions.txt', import.meta.url);
  const wanted = readFileSync(file, 'utf8').trim().split('\n');
  assert.deepEqual(Array.from(new Set(found)).toSorted(), wanted.toSorted());
});

test('what other environments of CEL have is refused', () => {
  const foreign = [
    'cel.bind(x, 1, x == 1)',
    'math.greatest(1, 2) == 2',
    "base64.encode(b'a') == 'YQ=='",
    "jsonpatch.escapeKey('a/b') == 'a~1b'",
    "'abc'.reverse() == 'cba'",
    "format.duration().validate('1s').hasValue()",
  ];
  for (const source of foreign) assert.equal(compileCel(anything, source).ok, false, source);
  const patching = celEnvironment({ variables: {}, makesPatches: true, canBind: true });
  assert.equal(compileCel(patching, "jsonpatch.escapeKey('a/b') == 'a~1b'").ok, true);
  assert.equal(compileCel(patching, 'cel.bind(x, 1, x == 1)').ok, true);
});

test('messages name the place and say what cel-go says', () => {
  const type = typeOf({
    type: 'object',
    properties: { size: { type: 'integer' }, 'a-b': { type: 'string' } },
  });
  assert.ok(type !== null);
  const environment = celEnvironment({ variables: { self: type } });
  const first =
    "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, " +
    'NUM_UINT, STRING, BYTES, IDENTIFIER}';
  const at = (source: string, column: number, message: string): string =>
    `ERROR: <input>:1:${column}: ${message}\n | ${source}\n | ${'.'.repeat(column - 1)}^`;
  const syntax = (source: string, ...issues: readonly (readonly [number, string])[]): string =>
    issues.map(([column, message]) => at(source, column, `Syntax error: ${message}`)).join('\n');
  const messages: Record<string, string> = {
    '!': syntax('!', [2, `extraneous input '<EOF>' ${first}`]),
    '(-)': syntax(
      '(-)',
      [3, "no viable alternative at input '-)'"],
      [3, `mismatched input ')' ${first}`],
    ),
    'in in': syntax(
      'in in',
      [1, `mismatched input 'in' ${first}`],
      [4, `mismatched input 'in' ${first}`],
      [6, `mismatched input '<EOF>' ${first}`],
    ),
    '. .': syntax('. .', [3, "no viable alternative at input '. .'"]),
    'var x':
      `${at('var x', 1, 'reserved identifier: var')}\n` +
      syntax('var x', [5, "extraneous input 'x' expecting <EOF>"]),
    '"\\u12"': syntax(
      '"\\u12"',
      [1, 'token recognition error at: \'"\\u12"\''],
      [7, `mismatched input '<EOF>' ${first}`],
    ),
    '"\\ud800"': at('"\\ud800"', 1, 'invalid unicode code point'),
    'b"\\u0041"': at('b"\\u0041"', 1, 'unable to unescape string'),
    'self.`n` == 1': "ERROR: <input>:1:6: unsupported syntax: '`'\n | self.`n` == 1\n | .....^",
    '(self.n == 1':
      "ERROR: <input>:1:13: Syntax error: missing ')' at '<EOF>'\n | (self.n == 1\n" +
      ' | ............^',
    '.n == 1':
      "ERROR: <input>:1:2: undeclared reference to '.n' (in container '')\n | .n == 1\n | .^",
    'self.n = 1':
      "ERROR: <input>:1:8: Syntax error: token recognition error at: '= '\n | self.n = 1\n" +
      " | .......^\nERROR: <input>:1:10: Syntax error: extraneous input '1' expecting <EOF>\n" +
      ' | self.n = 1\n | .........^',
    '1e400 == 1.0': 'ERROR: <input>:1:1: invalid double literal\n | 1e400 == 1.0\n | ^',
    'self.nope == 1': "ERROR: <input>:1:5: undefined field 'nope'\n | self.nope == 1\n | ....^",
    "self.size == 'a'":
      "ERROR: <input>:1:11: found no matching overload for '_==_' applied to '(int, string)'\n" +
      " | self.size == 'a'\n | ..........^",
    'other.x':
      "ERROR: <input>:1:1: undeclared reference to 'other' (in container '')\n | other.x\n | ^",
    'self.size ==':
      "ERROR: <input>:1:13: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.'," +
      " '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, " +
      'IDENTIFIER}\n | self.size ==\n | ............^',
    'self.size 1':
      "ERROR: <input>:1:11: Syntax error: extraneous input '1' expecting <EOF>\n" +
      ' | self.size 1\n | ..........^',
    'self.size 1 == 2':
      "ERROR: <input>:1:11: Syntax error: mismatched input '1' expecting <EOF>\n" +
      ' | self.size 1 == 2\n | ..........^',
    '"a\nb"':
      'ERROR: <input>:1:1: Syntax error: token recognition error at: \'"a\n\'\n | "a\n | ^\n' +
      'ERROR: <input>:2:2: Syntax error: token recognition error at: \'"\'\n | b"\n | .^',
  };
  for (const [source, message] of Object.entries(messages)) {
    const compiled = compileCel(environment, source);
    assert.equal(compiled.ok ? 'compiles' : compiled.message, message);
  }
  assert.equal(compileCel(environment, "self.a__dash__b.startsWith('x')").ok, true);
});

test('what is constant is judged when the expression is written', () => {
  const wrong: Record<string, string> = {
    "'%d'.format(['a']) == ''": 'decimal clause can only be used on integers, was given string',
    "'%s'.format(['a', 'b']) == ''":
      'too many arguments supplied to string.format (expected 1, got 2)',
    "'%s %s'.format(['a']) == ''": 'index 1 out of range',
    "int('x') == 1": "type conversion error from 'string' to 'int'",
    "'a'.find('[') == ''": 'error parsing regexp: missing closing ]: `[`',
    's && b': "expected type 'bool' but found 'string'",
    'type(n) in [int, string]': "expected type 'type(int)' but found 'type(string)'",
  };
  for (const [source, why] of Object.entries(wrong)) {
    const compiled = compileCel(anything, source);
    assert.ok(!compiled.ok && compiled.message.includes(why), source);
  }
});

test('the second operand of orValue is evaluated where the first is empty', () => {
  const object = fromJson({ a: 1 });
  assert.equal(evaluate('object.?a.orValue(object.b) == 1', { object }), true);
  assert.equal(evaluate('object.?b.orValue(object.a) == 1', { object }), true);
  assert.ok(evaluate('object.?b.orValue(object.c) == 1', { object }) instanceof CelError);
  assert.equal(evaluate('object.?a.optMap(x, 2).value() == 2', { object }), true);
});

test('quantities are integers where upstream holds them in one, as they were written', () => {
  const isInteger = (text: string): unknown => evaluate(`quantity(${text}).isInteger()`, {});
  const integers = ["'1e3'", "'1Gi').add(1", "'-0'", "'12Ti'", "'999k').sub(quantity('1Mi')"];
  for (const text of integers) assert.equal(isInteger(text), true, text);
  const others = ["'2000m'", "'1.0'", "'0.0'", "'1.5Gi'", "'1.0Mi'", "'123Ti'", "'1Pi'", "'10E'"];
  others.push("'10').add(quantity('200m')).sub(quantity('200m')", "'0').add(quantity('1.5Gi')");
  others.push("'9223372036854775807').add(1");
  for (const text of others) assert.equal(isInteger(text), false, text);
  assert.equal(evaluate("quantity('2k').asInteger() == 2000", {}), true);
  assert.ok(evaluate("quantity('1.0').asInteger() == 1", {}) instanceof CelError);
});

test('members of lists that an expression makes have a size', () => {
  const schema = { type: 'string', maxLength: 20 } as const;
  const { rules } = compileRules(typeOf(schema) ?? DYN, [
    { rule: "self.split(',').all(y, isQuantity(y))" },
    { rule: "self.split(',')[0].contains('y')" },
    { rule: "self.findAll('x').sort()[0].contains('y')" },
  ] as never);
  assert.deepEqual(
    rules.map(({ program }) => Number.isFinite(program.estimate().max)),
    [true, true, true],
  );
});

test('no call takes null for a time, a span or a value of Kubernetes', () => {
  const faults: Readonly<Record<string, string>> = {
    'null.getFullYear() == 1': ': getFullYear(null_type)',
    "null < timestamp('2026-01-02T03:04:05Z')": ': _<_',
    "(b ? null : quantity('1')).isInteger()": ': isInteger(null_type)',
    "(b ? null : url('http://a')).getHost() == ''": ': getHost(null_type)',
    "(b ? null : duration('1s')).getSeconds() == 1": ': getSeconds(null_type)',
  };
  for (const [source, fault] of Object.entries(faults)) {
    const value = evaluate(source, { b: true });
    assert(value instanceof CelError, source);
    assert.equal(value.message, `no such overload${fault}`, source);
  }
  // but null is what a call may give
  assert.equal(evaluate('dyn(object.x) == null', { object: fromJson({ x: null }) }), true);
});

test('what RE2 refuses is refused, and no pattern explodes', () => {
  for (const pattern of ['(?=a)b', '(?<!a)b', '(a)\\\\1', 'a**', '(?>a)', '[z-a]']) {
    const compiled = compileCel(anything, `s.matches('${pattern}')`);
    assert.equal(compiled.ok, false, pattern);
  }
  const s = 'a'.repeat(5000);
  assert.equal(evaluate("s.matches('^(a+)+$')", { s: `${s}!` }), false);
  assert.equal(evaluate("s.matches('^(a|a)*$')", { s }), true);
  assert.equal(evaluate("s.matches('\\\\pL+\\\\z')", { s }), true);
});

test('an expression that costs more than its budget ends', () => {
  const big = fromJson(Array.from({ length: 2000 }, (_, index) => index));
  const source = 'object.all(x, object.all(y, object.all(z, x + y + z >= 0)))';
  const value = evaluate(source, { object: big });
  assert.ok(value instanceof CelError);
  assert.equal(value.message, 'operation cancelled: actual cost limit exceeded');
});

test('estimates grow with the sizes that a schema allows', () => {
  const list = (more: object): CelType | null =>
    typeOf({ type: 'array', items: { type: 'string', maxLength: 10 }, ...more });
  const most = (type: CelType | null, rule: string): number => {
    assert.ok(type !== null);
    const compiled = compileCel(celEnvironment({ variables: { self: type } }), rule);
    assert.ok(compiled.ok, compiled.ok ? '' : compiled.message);
    return compiled.program.estimate().max;
  };
  const rule = "self.all(x, x.startsWith('ab'))";
  const small = most(list({ maxItems: 10 }), rule);
  assert.equal(small, 52);
  assert.ok(most(list({}), rule) > 1_000_000);
  assert.ok(most(list({ maxItems: 1000 }), 'self.all(x, self.all(y, x == y))') > 1_000_000);
});

test('rules see the old value, and say their own messages', () => {
  const type = typeOf({
    type: 'object',
    properties: { size: { type: 'integer' }, name: { type: 'string', maxLength: 5 } },
  });
  assert.ok(type !== null);
  const compiled = compileRules(type, [
    { rule: 'self.size < 10', message: 'too large' },
    { rule: 'self.size >= oldSelf.size', messageExpression: "'was ' + self.name" },
    { rule: 'oldSelf.hasValue() || self.size == 1', optionalOldSelf: true },
    { rule: 'self.name == "x"' },
    { rule: 'self.size + 1' },
    { rule: 'self.nope' },
  ]);
  assert.deepEqual(
    compiled.faults.map(({ index, message }) => `${index} ${message.split('\n')[0]}`),
    [
      '4 cel expression must evaluate to a bool',
      "5 compilation failed: ERROR: <input>:1:5: undefined field 'nope'",
    ],
  );
  const texts = (self: object, old?: object): string[] =>
    evaluateRules(
      compiled,
      { ...self },
      old === undefined ? undefined : { ...old },
      ruleBudget(),
    ).map(({ message }) => message);
  assert.deepEqual(texts({ size: 1, name: 'x' }), []);
  assert.deepEqual(texts({ size: 20, name: 'x' }, { size: 30, name: 'x' }), ['too large', 'was x']);
  assert.deepEqual(texts({ size: 2, name: 'x' }), [
    'failed rule: oldSelf.hasValue() || self.size == 1',
  ]);
  assert.deepEqual(texts({ size: 1 }), ['no such key: name evaluating rule: self.name == "x"']);
});

test('any text either compiles or is refused, and never throws', () => {
  const word = fc.constantFrom(
    'object',
    '.',
    'a',
    '(',
    ')',
    '[',
    ']',
    '{',
    '}',
    '1',
    '"x"',
    '+',
    '&&',
    '||',
    '!',
    '?',
    ':',
    'has',
    'all',
    ',',
    '==',
    'in',
    '-',
    '1u',
    '1.5',
    'x',
    '.?',
    '[?',
    'map',
    "b'a'",
    '%',
    'true',
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 14 }), (words) => {
      const compiled = compileCel(anything, words.join(' '));
      if (compiled.ok)
        compiled.program.evaluate({ object: fromJson({ a: [1, { a: 'x' }] }) }, 10_000);
      else assert.match(compiled.message, /^ERROR: <input>:\d+:\d+: /);
    }),
    { numRuns: 800 },
  );
  assert.equal(compileCel(anything, '('.repeat(5000)).ok, false);
  assert.equal(compileCel(anything, `${'-'.repeat(5000)}n`).ok, true);
  assert.equal(compileCel(anything, `[${'['.repeat(5000)}`).ok, false);
  const chain = (inner: string): string => `(${Array(240).fill(inner).join(' + ')})`;
  const deep = Array.from({ length: 20 }).reduce<string>(
    (text) => `(${text}${' + n'.repeat(200)})`,
    'n',
  );
  assert.equal(compileCel(anything, deep).ok, false);
  assert.equal(compileCel(anything, chain('n')).ok, true);
});

test('fields are selected by keywords, and by their escaped names', () => {
  const type = typeOf({
    type: 'object',
    properties: { namespace: { type: 'string', format: 'date' }, if: { type: 'integer' } },
  });
  assert.ok(type !== null);
  const environment = celEnvironment({ variables: { self: type } });
  for (const source of ['self.if == self.__if__', 'self.namespace == self.__namespace__']) {
    assert.equal(compileCel(environment, source).ok, true, source);
  }
  assert.equal(compileCel(environment, 'self.in == 1').ok, false);
  assert.equal(compileCel(environment, '[1].existsOne(x, x == 1)').ok, false);
  assert.equal(compileCel(environment, '[,] == []').ok, true);
});

test('addresses and versions are refused as Go refuses them', () => {
  const faults: Record<string, string> = {
    '1.2.3': 'IPv4 address too short',
    '1.2.3.4.5': 'IPv4 address too long',
    '1.02.3.4': 'IPv4 field has octet with leading zero',
    '1.2.256.4': 'IPv4 field has value >255',
    '1..2.3': 'IPv4 field must have at least one digit (at ".2.3")',
    '1.0.0-rc': 'unexpected character (at "-rc")',
    'fe80::1%': 'zone must be a non-empty string',
    '1:2': 'address string too short',
    '1::2::3': 'multiple :: in address (at ":3")',
    '12345::': 'each group must have 4 or less digits (at "12345::")',
    '1:2:3:4:5:6:7:8:9': 'trailing garbage after address (at "9")',
    'https://x': 'each colon-separated field must have at least one digit (at "https://x")',
    '1::x': 'each colon-separated field must have at least one digit (at "x")',
    '1:2:3:4:5:6:7:': 'colon must be followed by more characters (at ":")',
    abc: 'unable to parse IP',
  };
  for (const [text, fault] of Object.entries(faults)) assert.equal(addressFault(text), fault, text);
  const urls: Record<string, string> = {
    'http://h:x': 'parse "http://h:x": invalid port ":x" after host',
    'http://[::1': `parse "http://[::1": missing ']' in host`,
    'http://h%41': 'parse "http://h%41": invalid URL escape "%41"',
    'http://u p@h': 'parse "http://u p@h": net/url: invalid userinfo',
    '/%4': 'parse "/%4": invalid URL escape "%4"',
    'a b://x': 'parse "a b://x": invalid URI for request',
  };
  for (const [text, fault] of Object.entries(urls)) assert.equal(parseGoUrl(text, true), fault);
  const versions: Record<string, string> = {
    '': 'Version string empty',
    '1.2': 'No Major.Minor.Patch elements found',
    '1.2.3.4': 'Invalid character(s) found in patch number "3.4"',
    '1h.2.3': 'Invalid character(s) found in major number "1h"',
    '1.02.3': 'Minor number must not contain leading zeroes "02"',
    '1.2.3-': 'Prerelease is empty',
    '1.2.3-01': 'Numeric PreRelease version must not contain leading zeroes "01"',
    '1.2.3-a_b': 'Invalid character(s) found in prerelease "a_b"',
    '1.2.3+': 'Build meta data is empty',
  };
  for (const [text, fault] of Object.entries(versions)) assert.equal(versionFault(text), fault);
});

test('what is no map has no members, and what no overload takes is named as in cel-go', () => {
  const faults: Readonly<Record<string, string>> = {
    'dyn(1).a': 'no such key: a',
    'dyn(1)[0]': 'no such key: 0',
    'has(dyn(1).a.b)': 'no such key: a',
    'dyn([1]).a': "unsupported index type 'string' in list",
    'size(dyn(1))': 'no such overload: size',
    'dyn(true) + dyn(1)': 'no such overload: _+_',
    "dyn(1) + dyn('a')": 'no such overload',
    "dyn(1).startsWith('a')": 'no such overload',
    'dyn(1).getHours()': 'no such overload: getHours(int)',
    "dyn(1).split('a')": 'no such overload: split(int, string)',
    'dyn([true]).sum()': 'no such overload: sum(list)',
    "quantity('1') == dyn(1)": 'no such overload',
    'dyn(1).all(x, true)': "got 'types.Int', expected iterable type",
    'dyn(1).all(i, x, true)': 'unsupported comprehension range type: types.Int',
    "'abc'.substring(5)": 'index out of range: 5',
  };
  for (const [source, fault] of Object.entries(faults)) {
    const value = evaluate(source, {});
    assert(value instanceof CelError, source);
    assert.equal(value.message, fault, source);
  }
  const values: Readonly<Record<string, boolean>> = {
    'has(dyn(null).a)': false,
    'has(dyn(1).a)': false,
    'dyn(1).?a.hasValue()': false,
    "dyn('a')[?'b'].hasValue()": false,
    "quantity('1') != dyn(1)": true,
    "-dyn(duration('1h')) == duration('-1h')": true,
  };
  for (const [source, wanted] of Object.entries(values)) {
    assert.equal(evaluate(source, {}), wanted, source);
  }
});

test('members of a list or a map that is written down are of one type, anything is another', () => {
  const faults: Readonly<Record<string, string>> = {
    '[1, dyn(1)]': "expected type 'int' but found 'dyn'",
    '[[1], [dyn(1)]]': "expected type 'list(int)' but found 'list(dyn)'",
    "{'a': 1, 'b': dyn(1)}": "expected type 'int' but found 'dyn'",
    '[?optional.of(1), dyn(1)]': "expected type 'int' but found 'dyn'",
  };
  for (const [source, fault] of Object.entries(faults)) {
    const compiled = compileCel(anything, source);
    assert(!compiled.ok && compiled.message.includes(fault), source);
  }
  for (const source of ["'%s %s'.format([1, dyn(1)])", '[dyn(1), dyn(2)]', '[1, 2]']) {
    assert(compileCel(anything, source).ok, source);
  }
});
