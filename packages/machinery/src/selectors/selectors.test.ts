import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { corpus } from '@megaplane/base/corpus.sim';
import fc from 'fast-check';
import { fieldErrorText } from '../meta/fielderrors.ts';
import {
  escapeFieldValue,
  matchesFields,
  parseFieldSelector,
  pinnedField,
} from './fieldselectors.ts';
import type { JsonObject } from '../json/json-value.ts';
import { ObjectScan } from '../serializer/object-scan.ts';
import { LabelProgram, LabelsRange, matchesLabelBytes } from './selectors-bytes.ts';
import {
  EVERYTHING,
  formatLabelSelector,
  labelSelectorErrors,
  labelSelectorOf,
  mapSelector,
  matchesLabels,
  NOTHING,
  OPERATORS,
  parseLabelSelector,
  requirementErrors,
  selectorText,
  type LabelSelector,
  type Operator,
} from './selectors.ts';

function parsed(text: string): LabelSelector {
  const result = parseLabelSelector(text);
  assert('value' in result, `${text}: ${'error' in result ? result.error : ''}`);
  return result.value;
}

function complaint(text: string): string {
  const result = parseLabelSelector(text);
  assert('error' in result, `${text} parsed`);
  return result.error;
}

test('long lists of values are searched as short ones are', () => {
  for (const count of [1, 2, 16, 17, 18, 100, 1001]) {
    const list = Array.from({ length: count }, (_, index) => `v${(index * 7919) % 100_003}`);
    const among = parsed(`k in (${list.join()})`);
    const others = parsed(`k notin (${list.join()})`);
    for (const value of [...list, '', 'a', 'v', 'v1x', 'z', `${list[0]}0`]) {
      const isAmong = list.includes(value);
      assert.equal(matchesLabels(among, { k: value }), isAmong, value);
      assert.equal(matchesLabels(others, { k: value }), !isAmong, value);
    }
    assert(!matchesLabels(among, {}) && matchesLabels(others, {}));
  }
});

test('every form of a requirement selects as it reads', () => {
  const labels = { app: 'web', tier: 'front', rank: '7', empty: '' };
  const holding = [
    '',
    'app=web',
    'app==web',
    'app!=db',
    'gone!=x',
    'app in (db, web)',
    'app notin (db)',
    'gone notin (db)',
    'app',
    '!gone',
    'rank>6',
    'rank<8',
    'empty=',
    'empty in ()',
    'app in (,web)',
    ' app = web , tier = front ',
  ];
  const failing = ['app=db', 'gone', '!app', 'rank>7', 'app>1', 'gone=', 'empty in (x)'];
  for (const text of holding) assert(matchesLabels(parsed(text), labels), text);
  for (const text of failing) assert(!matchesLabels(parsed(text), labels), text);
});

test('in and notin are names where a name stands', () => {
  assert(matchesLabels(parsed('in in (in,notin)'), { in: 'notin' }));
  assert(matchesLabels(parsed('notin=in'), { notin: 'in' }));
});

test('what does not parse is told in the words of upstream', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['a=b,', "found '', expected: identifier after ','"],
    ['a,,b', "found ',', expected: identifier after ','"],
    ['!', "unable to parse requirement: found '', expected: identifier"],
    ['a in (b,c', "unable to parse requirement: found '', expected: ',' or ')'"],
    ['a in b', "unable to parse requirement: found 'b' expected: '('"],
    ['a=(', "unable to parse requirement: found '(', expected: identifier"],
    ['a in =', "unable to parse requirement: found '=' expected: '('"],
  ];
  for (const [text, expected] of cases) assert.equal(complaint(text), expected, text);
});

test('a LabelSelector that is absent selects nothing, an empty one everything', () => {
  assert.deepEqual(labelSelectorOf(undefined), { value: NOTHING });
  assert.deepEqual(labelSelectorOf({}), { value: { requirements: [] } });
  assert(!matchesLabels(NOTHING, { a: 'b' }));
  assert(matchesLabels(EVERYTHING, undefined));
  assert.equal(formatLabelSelector({}), '<none>');
});

test('a LabelSelector object reads as its text form', () => {
  const object = {
    matchLabels: { app: 'web' },
    matchExpressions: [
      { key: 'tier', operator: 'In', values: ['b', 'a'] },
      { key: 'x', operator: 'DoesNotExist' },
    ],
  };
  assert.equal(formatLabelSelector(object), 'app=web,tier in (a,b),!x');
  assert.deepEqual(
    labelSelectorErrors({ matchExpressions: [{ key: 'a', operator: 'In' }] }, 'spec.selector'),
    [
      {
        kind: 'required',
        field: 'spec.selector.matchExpressions[0].values',
        body: "Required value: must be specified when `operator` is 'In' or 'NotIn'",
      },
    ],
  );
});

const word = fc.stringMatching(/^[a-c0-9]{1,2}$/);
const labelsOf = fc.dictionary(word, fc.oneof(word, fc.constant('')), { maxKeys: 4 });
const requirement = fc
  .tuple(word, fc.constantFrom<Operator>(...OPERATORS), fc.uniqueArray(word, { minLength: 1 }))
  .map(([key, operator, values]) => {
    const text: Record<Operator, string> = {
      in: `${key} in (${values.join(',')})`,
      notin: `${key} notin (${values.join(',')})`,
      '=': `${key}=${values[0] ?? ''}`,
      '==': `${key}==${values[0] ?? ''}`,
      '!=': `${key}!=${values[0] ?? ''}`,
      gt: `${key}>${values.length}`,
      lt: `${key}<${values.length}`,
      exists: key,
      '!': `!${key}`,
    };
    return text[operator];
  });

test('matching on bytes, on objects and after printing and parsing again agree', () => {
  fc.assert(
    fc.property(fc.array(requirement, { maxLength: 4 }), labelsOf, (texts, labels) => {
      const selector = parsed(texts.join(','));
      const expected = matchesLabels(selector, labels);
      const bytes = Buffer.from(`xx${JSON.stringify(labels)}yy`);
      const program = new LabelProgram(selector);
      assert.equal(matchesLabelBytes(program, bytes, 2, bytes.length - 2), expected);
      assert.equal(matchesLabels(parsed(selectorText(selector)), labels), expected);
    }),
    { numRuns: 2000 },
  );
});

test('labels are found where a whole scan of the object finds them', () => {
  const member = fc.constantFrom('name', 'labels', 'annotations', 'managedFields', 'uid');
  const value = fc.oneof(labelsOf, fc.constantFrom<JsonObject | string | null>('x', null));
  const metadata = fc.dictionary(member, value, { maxKeys: 5 });
  const range = new LabelsRange();
  const scan = new ObjectScan();
  fc.assert(
    fc.property(metadata, fc.boolean(), (meta, isFirst) => {
      const labels = meta['labels'];
      fc.pre(labels !== 'x');
      const object = isFirst
        ? { metadata: meta, spec: { labels: {} } }
        : { spec: {}, metadata: meta };
      const bytes = Buffer.from(JSON.stringify({ kind: 'Pod', ...object }));
      scan.scan(bytes, 0, bytes.length);
      range.find(bytes, 0, bytes.length);
      const expected = scan.labelsStart < 0 ? [0, 0] : [scan.labelsStart, scan.labelsEnd];
      assert.deepEqual([range.start, range.end], expected);
    }),
    { numRuns: 1000 },
  );
});

test('no text makes the parser fail otherwise than with a complaint', () => {
  const piece = fc.constantFrom(
    'a',
    'in',
    'notin',
    '(',
    ')',
    ',',
    '!',
    '=',
    '<',
    '>',
    ' ',
    '/',
    '1',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 10 }), (pieces) => {
      const result = parseLabelSelector(pieces.join(''));
      if ('error' in result) assert.notEqual(result.error, '');
      else assert.deepEqual(parsed(selectorText(result.value)), result.value);
    }),
    { numRuns: 3000 },
  );
});

test('field selectors compare text, and what is absent is empty', () => {
  const pod: JsonObject = {
    metadata: { name: 'p', namespace: 'n' },
    spec: { nodeName: 'n1' },
    status: { phase: 'Running', podIPs: [{ ip: '10.0.0.1' }] },
  };
  const holding = [
    'spec.nodeName=n1',
    'spec.host==n1',
    'spec.nodeName!=',
    'status.phase!=Failed,status.phase!=Succeeded',
    'spec.hostNetwork=false',
    'status.podIP=10.0.0.1',
    'status.nominatedNodeName=',
    ',',
  ];
  for (const text of holding) {
    const result = parseFieldSelector(text, '', 'Pod');
    assert('value' in result && matchesFields(result.value, pod), text);
  }
  const pinned = parseFieldSelector('status.phase!=x,spec.host=n1', '', 'Pod');
  assert('value' in pinned);
  assert.equal(pinnedField(pinned.value, 'spec.nodeName'), 'n1');
});

test('an event is found by either of its names', () => {
  const event: JsonObject = {
    involvedObject: { name: 'p', kind: 'Pod' },
    source: {},
    type: 'Normal',
  };
  const old = parseFieldSelector('involvedObject.name=p,involvedObject.namespace=', '', 'Event');
  const current = parseFieldSelector('regarding.name=p', 'events.k8s.io', 'Event');
  assert('value' in old && matchesFields(old.value, event));
  assert('value' in current && matchesFields(current.value, event));
});

test('what is wrong with a requirement is told by the place of each value as given', () => {
  const texts = requirementErrors('rank', 'gt', ['b/', '2', 'b/'], 'a[0]').map(fieldErrorText);
  const label = texts[3]?.slice(0, 45);
  const integer = "for 'Gt', 'Lt' operators, the value must be an integer";
  const one = "for 'Gt', 'Lt' operators, exactly one value is required";
  assert.deepEqual(texts.slice(0, 3), [
    `a[0].values: Invalid value: ["b/","2","b/"]: ${one}`,
    `a[0].values[0]: Invalid value: "b/": ${integer}`,
    `a[0].values[2]: Invalid value: "b/": ${integer}`,
  ]);
  assert.equal(label, 'a[0].values[0][rank]: Invalid value: "b/": a ');
});

test('values survive escaping, and escapes that do not exist are told', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('a', '=', ',', '\\', '!') }), (value) => {
      const text = `metadata.name=${escapeFieldValue(value)}`;
      assert.deepEqual(parseFieldSelector(text, '', 'ConfigMap'), {
        value: { requirements: [{ field: 'metadata.name', isEqual: true, value }] },
      });
    }),
  );
  assert.deepEqual(parseFieldSelector('metadata.name=a=b', '', 'Pod'), {
    error: 'invalid field selector: unescaped character in value: 61',
  });
});

test('custom resources offer the fields that they declare', () => {
  assert('value' in parseFieldSelector('spec.color=red', 'x.io', 'Widget', ['spec.color']));
  assert.deepEqual(parseFieldSelector('spec.size=1', 'x.io', 'Widget', ['spec.color']), {
    error: 'field label not supported: spec.size',
  });
});

const TRANSCRIPTS = corpus('apiserver-transcripts');
const KINDS = new Map([
  ['configmaps', ''],
  ['pods', '/Pod'],
  ['secrets', '/Secret'],
  ['nodes', '/Node'],
  ['deployments', 'apps/Deployment'],
  ['services', '/Service'],
  ['namespaces', '/Namespace'],
]);

interface Step {
  readonly request?: { readonly path: string };
  readonly expect?: { readonly status: number; readonly body?: { readonly message?: unknown } };
}

test('recorded selectors are refused with the recorded words, or parse', () => {
  let refused = 0;
  for (const path of globSync(`${TRANSCRIPTS}/list/{fields,labels}-*.json`)) {
    const { steps } = JSON.parse(readFileSync(path, 'utf8')) as { readonly steps: readonly Step[] };
    for (const { request, expect } of steps) {
      if (request === undefined || !request.path.includes('Selector=')) continue;
      const url = new URL(request.path.replaceAll('${', 'v').replaceAll('}', ''), 'http://x');
      const [group = '', kind = ''] = (KINDS.get(url.pathname.split('/').at(-1) ?? '') ?? '').split(
        '/',
      );
      const labels = parseLabelSelector(url.searchParams.get('labelSelector') ?? '');
      const fields = parseFieldSelector(url.searchParams.get('fieldSelector') ?? '', group, kind);
      const error = 'error' in labels ? labels.error : 'error' in fields ? fields.error : undefined;
      assert.equal(error, expect?.status === 400 ? expect.body?.message : undefined, request.path);
      if (error !== undefined) refused++;
    }
  }
  assert(refused >= 15, `only ${refused} were refused`);
});

test('a selector that is kept keeps no more than its own bytes', () => {
  const program = new LabelProgram(mapSelector({ app: 'web', tier: 'front' }));
  assert.equal(program.text.buffer.byteLength, program.text.length);
});
